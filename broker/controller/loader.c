/* Reads topics into memory: all of them after an election, single ones that a tool has created in ZooKeeper.
 *
 * Pipelined with a bounded number of reads in flight. A partition counts as in flight while its state is
 * being read, so that nobody decides about it; what cannot be parsed is said and left out (KAFKA-990). */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/slog.h"
#include "controller/controller_internal.h"

struct job {
        char **names;
        size_t n_names, next_name;
        struct ctx_partition **parts; /* in flight until the job ends */
        size_t n_parts, parts_capacity, next_part;
        size_t pending;
        loader_done_fn done;
};

struct job_op {
        struct job *job;
        struct ctx_partition *part;
        char *name; /* borrowed of the job */
};

static void job_pump(struct controller *c, struct job *j);

static void job_free(struct job *j)
{
        for (size_t i = 0; i < j->n_names; i++)
                free(j->names[i]);
        free(j->names);
        free(j->parts);
        free(j);
}

static void op_drop(void *arg)
{
        struct job_op *op = arg;

        if (--op->job->pending == 0)
                job_free(op->job);
        free(op);
}

/* @path NULL: the znode of topic @name, and a watch on it. */
static int op_read(struct controller *c, struct job *j, const char *path, ctl_zk_fn fn, char *name,
                   struct ctx_partition *part)
{
        struct job_op *op = malloc(sizeof(*op));
        int r = -ENOMEM;

        if (op) {
                *op = (struct job_op){.job = j, .name = name, .part = part};
                r = path ? ctl_zk_get(c, path, fn, op, op_drop) : ctl_zk_get_topic(c, name, fn, op, op_drop);
        }
        if (r < 0) {
                free(op);
                ctl_resign_soon(c, "out of memory while reading topics");
                return r;
        }
        j->pending++;
        return 0;
}

/* The wrapper holds operations back while it is not connected, so repeating at once does not spin. */
static bool repeat(const struct zk_result *res)
{
        return ctl_outcome_unknown(res->r);
}

/* --- topics and their configuration --- */

static void on_config(struct controller *c, const struct zk_result *res, void *arg)
{
        struct job_op *op = arg;
        struct job *j = op->job;
        struct ctx_topic *t = ctx_topic(&c->ctx, op->name);
        struct znode_config config = {0};
        const char *min_isr;
        char path[ZNODE_PATH_SIZE];

        j->pending--;
        if (repeat(res)) {
                znode_path_topic_config(op->name, path);
                (void)op_read(c, j, path, on_config, op->name, NULL);
        } else if (t && res->r == 0 && res->data &&
                   znode_config_decode(res->data, res->data_len, &config) == 0) {
                min_isr = znode_config_get(&config, "min.insync.replicas");
                if (min_isr && parse_int32(min_isr, 1, INT32_MAX, &t->min_isr) < 0)
                        slog_warning("topic-config-malformed",
                                     "min.insync.replicas of a topic is not a number",
                                     SL_STR("topic", op->name), SL_STR("value", min_isr));
                znode_config_done(&config);
        }
        free(op);
        job_pump(c, j);
}

static int hold_partitions(struct job *j, struct ctx_topic *t)
{
        size_t need = j->n_parts + (size_t)t->n_partitions;

        if (need > j->parts_capacity) {
                size_t capacity = MAX(need, j->parts_capacity * 2);
                void *grown = reallocarray(j->parts, capacity, sizeof(struct ctx_partition *));

                if (!grown)
                        return -ENOMEM;
                j->parts = grown;
                j->parts_capacity = capacity;
        }
        for (int32_t i = 0; i < t->n_partitions; i++) {
                struct ctx_partition *p = t->partitions[i];

                if (!p)
                        continue;
                p->in_flight = true;
                ctx_partition_ref(p);
                j->parts[j->n_parts++] = p;
        }
        return 0;
}

static int add_topic(struct controller *c, struct job *j, char *name, const struct zk_result *res)
{
        struct znode_topic z = {0};
        struct ctx_topic *t;
        int r;

        r = znode_topic_decode(res->data ? res->data : "", res->data_len, &z);
        if (r >= 0)
                r = ctx_topic_add(&c->ctx, name, &z, &t);
        znode_topic_done(&z);
        if (r == -EEXIST)
                return 0; /* created here in the meantime */
        if (r == -EBADMSG || r == -EINVAL) {
                slog_error("topic-znode-malformed",
                           "a topic's assignment cannot be read; the topic is left out",
                           SL_STR("topic", name), SL_ERR(r));
                return 0;
        }
        if (r < 0)
                return r;
        t->version = res->stat.version;
        t->min_isr = c->o.default_min_insync_replicas;
        return hold_partitions(j, t);
}

static void on_topic(struct controller *c, const struct zk_result *res, void *arg);

/* Whatever came of it, what stands there is read again: another write may have been first. */
static void on_id_given(struct controller *c, const struct zk_result *res, void *arg)
{
        struct job_op *op = arg;
        struct job *j = op->job;

        j->pending--;
        if (res->r != 0 && ctl_multi_failed_at(res) == 0)
                ctl_resign_soon(c, "a topic's id was fenced: another controller was elected");
        else if (res->r == 0 || res->r == -ESTALE || ctl_outcome_unknown(res->r))
                (void)op_read(c, j, NULL, on_topic, op->name, NULL);
        else
                slog_error("topic-id-not-written",
                           "a topic without an id could not be given one; it is left out",
                           SL_STR("topic", op->name), SL_ERR(res->r));
        free(op);
        job_pump(c, j);
}

/* Kafka's tools before 2.8, and people, write topics without an id. Brokers propose ISR changes by id, so
 * that the ISR of such a topic could never change: it gets one before anybody hears of it. */
static int give_id(struct controller *c, struct job *j, char *name, const struct znode_topic *z,
                   int32_t version)
{
        cleanup_with(buf_donep) struct buf out = {0};
        struct job_op *op = malloc(sizeof(*op));
        struct znode_topic with_id = *z;
        char path[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_SET, .path = path, .version = version}};
        int r = op ? uuid_random(&with_id.id) : -ENOMEM;

        buf_init(&out, 0);
        znode_path_topic(name, path);
        if (r == 0)
                r = znode_topic_encode(&with_id, &out);
        ops[1].data = r == 0 ? buf_cstr(&out) : NULL;
        if (r == 0 && !ops[1].data)
                r = -ENOMEM;
        if (r == 0) {
                *op = (struct job_op){.job = j, .name = name};
                r = ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_id_given, op, op_drop);
        }
        if (r == 0)
                j->pending++;
        else
                free(op);
        return r;
}

/* 1: it is to be written first. */
static int needs_id(struct controller *c, struct job *j, char *name, const struct zk_result *res)
{
        struct znode_topic z = {0};
        int r = 0;

        if (znode_topic_decode(res->data ? res->data : "", res->data_len, &z) < 0)
                return 0; /* add_topic() says what is wrong with it */
        if (uuid_is_zero(&z.id))
                r = give_id(c, j, name, &z, res->stat.version) < 0 ? -ENOMEM : 1;
        znode_topic_done(&z);
        return r;
}

static void on_topic(struct controller *c, const struct zk_result *res, void *arg)
{
        struct job_op *op = arg;
        struct job *j = op->job;
        char path[ZNODE_PATH_SIZE];
        int first;

        j->pending--;
        first = res->r == 0 ? needs_id(c, j, op->name, res) : 0;
        if (first < 0) {
                ctl_resign_soon(c, "out of memory for a topic");
        } else if (first > 0) {
                /* it comes back */
        } else if (repeat(res)) {
                (void)op_read(c, j, NULL, on_topic, op->name, NULL);
        } else if (res->r == 0) {
                znode_path_topic_config(op->name, path);
                if (add_topic(c, j, op->name, res) < 0)
                        ctl_resign_soon(c, "out of memory for a topic");
                else
                        (void)op_read(c, j, path, on_config, op->name, NULL);
        }
        free(op);
        job_pump(c, j);
}

/* --- partition states --- */

static void take_state(struct controller *c, struct ctx_partition *p, const struct zk_result *res)
{
        struct znode_state st = {.leader = -1};
        int32_t *isr;

        if (znode_state_decode(res->data ? res->data : "", res->data_len, &st) < 0) {
                slog_error("partition-znode-malformed",
                           "a partition's state cannot be read; nobody is elected until it is repaired",
                           SL_STR("topic", p->topic->name), SL_INT("partition", p->number));
                st = (struct znode_state){.leader = -1};
        }
        isr = calloc(st.n_isr + 1, sizeof(*isr));
        if (!isr) {
                ctl_resign_soon(c, "out of memory for a partition");
                return;
        }
        memcpy(isr, st.isr, st.n_isr * sizeof(*isr));
        p->has_state = p->dir_made = true;
        ctx_partition_set_state(&c->ctx, p, st.leader, st.leader_epoch, st.controller_epoch,
                                res->stat.version, &isr, (int32_t)st.n_isr);
        partition_set_state(c, p,
                            ctx_partition_online(&c->ctx, p) && ctx_in_isr(p, p->leader) ? PARTITION_ONLINE
                                                                                         : PARTITION_OFFLINE);
        if (st.controller_epoch > c->epoch)
                elector_probe(c); /* R34 */
}

static void on_state(struct controller *c, const struct zk_result *res, void *arg)
{
        struct job_op *op = arg;
        struct job *j = op->job;
        char path[ZNODE_PATH_SIZE];

        j->pending--;
        if (repeat(res)) {
                znode_path_state(op->part->topic->name, op->part->number, path);
                (void)op_read(c, j, path, on_state, NULL, op->part);
        } else if (res->r == 0 && !op->part->topic->forgotten) {
                take_state(c, op->part, res);
        }
        free(op);
        job_pump(c, j);
}

/* --- the parent of new partitions: only /brokers/topics/T is written by Kafka's tools --- */

static void on_parent(struct controller *c, const struct zk_result *res, void *arg)
{
        struct job_op *op = arg;
        struct job *j = op->job;

        (void)res; /* EEXIST as a rule; when it failed otherwise, writing the states fails and is repeated */
        j->pending--;
        free(op);
        job_pump(c, j);
}

static void make_parent(struct controller *c, struct job *j, struct ctx_topic *t)
{
        struct job_op *op = malloc(sizeof(*op));
        char path[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_CREATE, .path = path}};

        if (!op)
                return;
        *op = (struct job_op){.job = j};
        znode_path_partitions(t->name, path);
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_parent, op, op_drop) < 0)
                free(op);
        else
                j->pending++;
}

/* --- the job --- */

static void job_finish(struct controller *c, struct job *j)
{
        loader_done_fn done = j->done;

        for (size_t i = 0; i < j->n_parts; i++) {
                j->parts[i]->again = true;
                writer_release(c, j->parts[i]);
        }
        job_free(j);
        c->loads--;
        done(c);
        writer_pump(c);
}

static void job_pump(struct controller *c, struct job *j)
{
        char path[ZNODE_PATH_SIZE];
        const struct ctx_topic *last = NULL;

        while (j->pending < LOADER_MAX_READS && j->next_name < j->n_names) {
                char *name = j->names[j->next_name++];

                if (op_read(c, j, NULL, on_topic, name, NULL) < 0)
                        return;
        }
        if (j->next_name < j->n_names || (j->next_part == 0 && j->pending > 0))
                return;
        while (j->pending < LOADER_MAX_READS && j->next_part < j->n_parts) {
                struct ctx_partition *p = j->parts[j->next_part++];

                znode_path_state(p->topic->name, p->number, path);
                if (op_read(c, j, path, on_state, NULL, p) < 0)
                        return;
        }
        if (j->next_part < j->n_parts || j->pending > 0)
                return;
        if (j->parts_capacity) { /* once */
                j->parts_capacity = 0;
                for (size_t i = 0; i < j->n_parts; i++) {
                        if (!j->parts[i]->has_state && j->parts[i]->topic != last &&
                            !j->parts[i]->topic->forgotten)
                                make_parent(c, j, j->parts[i]->topic);
                        last = j->parts[i]->topic;
                }
        }
        if (j->pending == 0)
                job_finish(c, j);
}

int loader_start(struct controller *c, char **names, size_t n, loader_done_fn done)
{
        struct job *j = calloc(1, sizeof(*j));

        if (!j) {
                for (size_t i = 0; i < n; i++)
                        free(names[i]);
                free(names);
                return -ENOMEM;
        }
        *j = (struct job){.names = names, .n_names = n, .done = done};
        c->loads++;
        job_pump(c, j);
        return 0;
}
