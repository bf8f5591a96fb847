/* /brokers/topics/T after its creation: rewritten when partitions are added or replicas reassigned, and read
 * again when somebody else has written it (the old tools write it themselves).
 *
 * One write of a topic at a time, each a multi of `check /controller_epoch` and compare-and-set of the znode.
 * The context follows what was written, never the other way round. After a conflict or a lost reply the znode
 * is read and the context follows that. */
#include <errno.h>
#include <string.h>

#include "base/slog.h"
#include "controller/assignment_core.h"
#include "controller/controller_internal.h"

#define POLL_STEPS 1000 /* partitions looked at a tick, in search of a topic that is not watched */

static void rewrite_free(void *arg)
{
        struct topic_rewrite *rw = arg;

        free(rw->topic);
        free(rw->changes);
        free(rw);
}

struct topic_rewrite *topic_rewrite_new(const struct ctx_topic *t, size_t max)
{
        struct topic_rewrite *rw = calloc(1, sizeof(*rw));

        if (!rw)
                return NULL;
        rw->topic = strdup(t->name);
        rw->changes = calloc(max + 1, sizeof(*rw->changes));
        if (rw->topic && rw->changes)
                return rw;
        rewrite_free(rw);
        return NULL;
}

/* --- the context follows --- */

static void added(struct controller *c, struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                replica_set_state(c, p, &p->slots[i],
                                  p->slots[i].broker->alive ? REPLICA_ONLINE : REPLICA_OFFLINE);
        if (p->reassigning)
                list_push_back(&c->moving, &p->moving);
        writer_mark(c, p, WRITER_NORMAL);
}

static int add_partition(struct controller *c, struct ctx_topic *t, int32_t number,
                         const struct ctx_assigned *to, size_t n)
{
        int32_t ids[ASSIGNMENT_MAX], adding[ASSIGNMENT_MAX], removing[ASSIGNMENT_MAX];
        struct znode_assignment a = {
                .partition = number, .replicas = ids, .adding = adding, .removing = removing};
        struct ctx_partition *p;
        int r;

        for (size_t i = 0; i < n; i++) {
                ids[a.n_replicas++] = to[i].id;
                if (to[i].adding)
                        adding[a.n_adding++] = to[i].id;
                if (to[i].removing)
                        removing[a.n_removing++] = to[i].id;
        }
        r = ctx_topic_grow(&c->ctx, t, &a, &p);
        if (r == 0)
                added(c, p);
        return r;
}

/* What changes for a partition that is known: its replicas hear of it with a new leader epoch, which also
 * tells a leader whom it may let in. One that has ended was told before, when the last replica left. */
static int change_partition(struct controller *c, struct ctx_partition *p, const struct ctx_assigned *to,
                            size_t n)
{
        int r;

        r = ctx_partition_assign(&c->ctx, p, to, n);
        if (r < 0)
                return r;
        list_remove(&p->moving);
        if (p->reassigning || p->want)
                list_push_back(&c->moving, &p->moving);
        p->renew = p->renew || !p->finishing;
        p->finishing = false;
        sender_announce_metadata(c, p);
        writer_mark(c, p, WRITER_NORMAL);
        return 0;
}

static int follow(struct controller *c, struct ctx_topic *t, int32_t number, const struct ctx_assigned *to,
                  size_t n)
{
        struct ctx_partition *p = ctx_topic_partition(t, number);

        return p ? change_partition(c, p, to, n) : add_partition(c, t, number, to, n);
}

static bool has(const int32_t *ids, size_t n, int32_t id)
{
        for (size_t i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

static bool same(const struct ctx_partition *p, const struct ctx_assigned *to, size_t n)
{
        if (!p || p->n_slots != n)
                return false;
        for (size_t i = 0; i < n; i++)
                if (p->slots[i].broker_id != to[i].id || p->slots[i].adding != to[i].adding ||
                    p->slots[i].removing != to[i].removing)
                        return false;
        return true;
}

/* Everything that @z has and we have not. Partitions that are gone from it stay: Kafka has no way to take one
 * away, so that is somebody's mistake, and the data is still there. */
static int follow_znode(struct controller *c, struct ctx_topic *t, const struct znode_topic *z)
{
        struct ctx_assigned to[ASSIGNMENT_MAX];
        int r = 0;

        for (size_t i = 0; r >= 0 && i < z->n_partitions; i++) {
                const struct znode_assignment *a = &z->partitions[i];
                struct ctx_partition *p = ctx_topic_partition(t, a->partition);

                if (a->n_replicas == 0 || a->n_replicas > ASSIGNMENT_MAX)
                        return -EINVAL;
                for (size_t k = 0; k < a->n_replicas; k++)
                        to[k] = (struct ctx_assigned){
                                .id = a->replicas[k],
                                .adding = has(a->adding, a->n_adding, a->replicas[k]),
                                .removing = has(a->removing, a->n_removing, a->replicas[k])};
                if (same(p, to, a->n_replicas))
                        continue;
                if (!p)
                        slog_notice("partition-found", "a partition was added in ZooKeeper",
                                    SL_STR("topic", t->name), SL_INT("partition", a->partition));
                r = follow(c, t, a->partition, to, a->n_replicas);
        }
        return r;
}

/* --- reading --- */

static void on_reread(struct controller *c, const struct zk_result *res, void *arg)
{
        cleanup_with(freep) char *name = arg;
        struct ctx_topic *t = ctx_topic(&c->ctx, name);
        struct znode_topic z = {0};
        bool again;
        int r;

        if (!t)
                return;
        t->reading = false;
        again = t->read_again || ctl_outcome_unknown(res->r);
        t->read_again = false;
        if (again || res->r != 0 || t->deleting) {
                if (again)
                        topic_reread(c, t);
                else
                        t->rewriting = t->doubtful = false; /* it is gone; /brokers/topics says so, too */
                return;
        }
        if (t->rewriting && !t->doubtful) {
                t->read_again = true; /* read before what is being written now; its end reads again */
                return;
        }
        t->rewriting = t->doubtful = false;
        r = znode_topic_decode(res->data ? res->data : "", res->data_len, &z);
        if (r >= 0 && uuid_equal(&z.id, &t->id) && res->stat.version != t->version) {
                t->version = res->stat.version;
                r = follow_znode(c, t, &z);
        }
        znode_topic_done(&z);
        if (r == -ENOMEM)
                ctl_resign_soon(c, "out of memory for a topic's assignment");
        else if (r < 0)
                slog_error("topic-znode-malformed",
                           "a topic's assignment cannot be read; what was known of it holds",
                           SL_STR("topic", t->name), SL_ERR(r));
        sender_kick_all(c);
        ctl_progress(c);
}

void topic_reread(struct controller *c, struct ctx_topic *t)
{
        char *name;

        if (t->reading) {
                t->read_again = true;
                return;
        }
        name = strdup(t->name);
        if (name && ctl_zk_get_topic(c, t->name, on_reread, name, free) == 0) {
                t->reading = true;
                return;
        }
        free(name);
        ctl_resign_soon(c, "out of memory for a topic's assignment");
}

/* While a write is under way its own end reads what has to be read. */
void topic_changed(struct controller *c, const char *topic)
{
        struct ctx_topic *t = ctl_is_active(c) ? ctx_topic(&c->ctx, topic) : NULL;

        if (!t || t->deleting)
                return;
        if (t->rewriting && !t->reading)
                t->read_again = true;
        else
                topic_reread(c, t);
}

void topic_poll(struct controller *c)
{
        for (int i = 0; i < POLL_STEPS && c->topic_poll < c->ctx.n_indexes; i++) {
                struct ctx_partition *p = c->ctx.partitions[c->topic_poll++];

                if (!p || p->number != 0 || p->topic->forgotten || p->topic->deleting ||
                    p->topic->rewriting || ctl_zk_topic_watched(c, p->topic->name))
                        continue;
                topic_reread(c, p->topic);
                return;
        }
        if (c->topic_poll >= c->ctx.n_indexes)
                c->topic_poll = 0;
}

/* --- writing --- */

static void finish(struct controller *c, struct topic_rewrite *rw, int r)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, rw->topic);

        rw->done(c, t, rw, t || r != 0 ? r : -ENOENT);
        rewrite_free(rw);
        sender_kick_all(c);
        ctl_progress(c);
}

static void on_rewritten(struct controller *c, const struct zk_result *res, void *arg)
{
        struct topic_rewrite *rw = arg;
        struct ctx_topic *t = ctx_topic(&c->ctx, rw->topic);
        int r = 0;

        if (res->r != 0 && ctl_multi_failed_at(res) == 0) {
                rewrite_free(rw);
                ctl_resign_soon(c, "an assignment was fenced: another controller was elected");
                return;
        }
        if (!t) {
                finish(c, rw, -ENOENT);
                return;
        }
        if (res->r == -ESTALE || ctl_outcome_unknown(res->r)) {
                t->doubtful = true;
                topic_reread(c, t); /* ends `rewriting` */
                finish(c, rw, -EAGAIN);
                return;
        }
        t->rewriting = false;
        if (res->r == 0) {
                t->version = res->op_stats[1].version;
                for (size_t i = 0; r >= 0 && i < rw->n; i++)
                        r = follow(c, t, rw->changes[i].partition, rw->changes[i].to, rw->changes[i].n);
                if (r < 0)
                        ctl_resign_soon(c, "out of memory for an assignment");
        }
        if (t->read_again) {
                t->read_again = false;
                topic_reread(c, t);
        }
        finish(c, rw, res->r == 0 || res->r == -ENOENT ? res->r : -EIO);
}

static int put(struct arena *a, struct znode_assignment *out, int32_t number, const struct ctx_assigned *to,
               size_t n)
{
        *out = (struct znode_assignment){.partition = number,
                                         .replicas = arena_alloc(a, 3 * n, sizeof(int32_t))};
        if (!out->replicas)
                return -ENOMEM;
        out->adding = out->replicas + n;
        out->removing = out->adding + n;
        for (size_t i = 0; i < n; i++) {
                out->replicas[out->n_replicas++] = to[i].id;
                if (to[i].adding)
                        out->adding[out->n_adding++] = to[i].id;
                if (to[i].removing)
                        out->removing[out->n_removing++] = to[i].id;
        }
        return 0;
}

static int put_known(struct arena *a, struct znode_assignment *out, const struct ctx_partition *p)
{
        struct ctx_assigned now[ASSIGNMENT_MAX];

        for (uint16_t i = 0; i < p->n_slots; i++)
                now[i] = (struct ctx_assigned){.id = p->slots[i].broker_id,
                                               .adding = p->slots[i].adding,
                                               .removing = p->slots[i].removing};
        return put(a, out, p->number, now, p->n_slots);
}

/* The topic as it is to be: the changes, and what is known for the others. */
static int encode(const struct ctx_topic *t, const struct topic_rewrite *rw, struct buf *out)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct znode_topic z = {.id = t->id};
        size_t k = 0;
        int r = 0;

        arena_init(&a, 0);
        z.partitions = arena_alloc(&a, (size_t)t->n_partitions + rw->n + 1, sizeof(*z.partitions));
        if (!z.partitions)
                return -ENOMEM;
        for (int32_t i = 0; r == 0 && (i < t->n_partitions || k < rw->n); i++) {
                const struct ctx_partition *p = ctx_topic_partition(t, i);

                if (k < rw->n && rw->changes[k].partition == i) {
                        r = put(&a, &z.partitions[z.n_partitions++], i, rw->changes[k].to, rw->changes[k].n);
                        k++;
                } else if (p) {
                        r = put_known(&a, &z.partitions[z.n_partitions++], p);
                }
        }
        if (r == 0)
                r = znode_topic_encode(&z, out);
        return r < 0 ? r : buf_append(out, "", 1);
}

void topic_rewrite(struct controller *c, struct ctx_topic *t, struct topic_rewrite *rw)
{
        cleanup_with(buf_donep) struct buf out = {0};
        char path[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_SET, .path = path, .version = t->version}};
        int r;

        assert(!t->rewriting);
        buf_init(&out, 0);
        znode_path_topic(t->name, path);
        r = encode(t, rw, &out);
        if (r >= 0) {
                ops[1].data = (const char *)out.data;
                r = ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_rewritten, rw, rewrite_free);
        }
        if (r >= 0)
                t->rewriting = true;
        else
                finish(c, rw, r == -EINVAL ? -E2BIG : -EIO);
}
