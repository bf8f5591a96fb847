/* /brokers/topics and /admin/delete_topics: read after an election and whenever they change; the end of
 * loading. */
#include <errno.h>
#include <string.h>

#include "base/replica_assignment.h"
#include "base/slog.h"
#include "controller/controller_internal.h"
#include "controller/drain_history.h"
#include "controller/leader_return.h"

static void on_topics(struct controller *c, const struct zk_result *res, void *arg);
static void on_deletions(struct controller *c, const struct zk_result *res, void *arg);

static void resign_for_memory(struct controller *c)
{
        ctl_resign_soon(c, "out of memory while reading the cluster's state");
}

static void read_topics(struct controller *c)
{
        c->topics_reading = true;
        c->topics_again = false;
        if (ctl_zk_children(c, ZNODE_TOPICS, WATCH_TOPICS, on_topics, NULL) < 0)
                resign_for_memory(c);
}

static void read_deletions(struct controller *c)
{
        c->deletions_reading = true;
        c->deletions_again = false;
        if (ctl_zk_children(c, ZNODE_DELETE_TOPICS, WATCH_DELETIONS, on_deletions, NULL) < 0)
                resign_for_memory(c);
}

void loader_on_topics_changed(struct controller *c)
{
        if (c->topics_reading)
                c->topics_again = true;
        else if (c->state == CTL_ACTIVE)
                read_topics(c);
}

void loader_on_deletions_changed(struct controller *c)
{
        if (c->deletions_reading)
                c->deletions_again = true;
        else if (c->state == CTL_ACTIVE)
                read_deletions(c);
}

/* --- all there is has been read --- */

static void announce_everything(struct controller *c)
{
        for (size_t i = 0; i < c->ctx.n_indexes; i++) {
                struct ctx_partition *p = c->ctx.partitions[i];

                if (!p)
                        continue;
                for (uint16_t k = 0; k < p->n_slots; k++) {
                        /* KAFKA-3143: also for those whose broker died while nobody was controller. */
                        replica_set_state(c, p, &p->slots[k],
                                          p->slots[k].broker->alive ? REPLICA_ONLINE : REPLICA_OFFLINE);
                        if (p->slots[k].broker->sender)
                                sender_push_lai(p->slots[k].broker->sender, p);
                }
                sender_announce_metadata(c, p);
                writer_mark(c, p, WRITER_NORMAL);
        }
}

/* Metadata and LeaderAndIsr of what is known go out before elections change it (KAFKA-4443); a controller
 * that died between a write and its requests has left brokers behind that need both (S3's open end). */
static void activate(struct controller *c)
{
        ctl_set_state(c, CTL_ACTIVE);
        drain_history_active(c);
        drain_resume_all(c);
        announce_everything(c);
        reassign_load(c);
        atomic_store(&c->active, true);
        slog_notice("controller-active", "the cluster's state is loaded", SL_INT("epoch", c->epoch),
                    SL_INT("brokers", c->ctx.n_alive), SL_INT("partitions", c->ctx.n_partitions));
        sender_kick_all(c);
        writer_pump(c);
        read_deletions(c);
        /* KAFKA-840: what tools have asked for while nobody was controller. */
        tool_znode_read(c, WATCH_ELECTIONS);
        tool_znode_read(c, WATCH_REASSIGNMENTS);
        log_dirs_on_changed(c);
        rebalance_start(c);
        leader_return_active(c);
        slot_settle_soon(c);
        ctl_progress(c);
}

/* --- topics --- */

static void load_done(struct controller *c)
{
        if (c->state == CTL_LOADING) {
                c->topics_reading = false;
                activate(c);
                if (c->topics_again)
                        read_topics(c);
                return;
        }
        c->topics_reading = false;
        reassign_load(c);
        deletion_progress(c);
        read_deletions(c); /* one that was asked for while its topic was being read */
        if (c->topics_again)
                read_topics(c);
}

/* Removed by somebody in ZooKeeper, without asking. */
static void forget_missing(struct controller *c, struct map *present)
{
        size_t cursor = 0;
        void *v;

        while (map_next(c->ctx.topics, &cursor, NULL, NULL, &v)) {
                struct ctx_topic *t = v;

                if (map_get_str(present, t->name) || t->deleting)
                        continue;
                slog_warning("topic-vanished", "a topic was removed in ZooKeeper by somebody else",
                             SL_STR("topic", t->name));
                t->deleting = true;
                for (int32_t i = 0; i < t->n_partitions; i++)
                        if (t->partitions[i])
                                sender_announce_metadata(c, t->partitions[i]);
                deletion_forget_topic(c, t);
        }
}

/* Anybody may make a znode. Brokers refuse such a topic, and a name that is too long cannot even be sent. */
static bool legal_name(const char *name)
{
        char error[ASSIGNMENT_TEXT_SIZE];

        if (topic_name_check(name, strlen(name), error) == 0)
                return true;
        slog_warning("topic-znode-ignored", "a znode below /brokers/topics is no topic's",
                     SL_STR("why", error));
        return false;
}

static int collect(struct controller *c, const struct zk_result *res, char ***ret_names, size_t *ret_n)
{
        cleanup_with(map_freep) struct map *present = map_new();
        char **names = calloc(res->n_children + 1, sizeof(*names));
        size_t n = 0;

        if (!present || !names)
                goto fail;
        for (size_t i = 0; i < res->n_children; i++) {
                if (map_set(present, res->children[i], strlen(res->children[i]), c, NULL) < 0)
                        goto fail;
                if (ctx_topic(&c->ctx, res->children[i]) || !legal_name(res->children[i]))
                        continue;
                names[n] = strdup(res->children[i]);
                if (!names[n++])
                        goto fail;
        }
        forget_missing(c, present);
        *ret_names = names;
        *ret_n = n;
        return 0;
fail:
        for (size_t i = 0; names && i < n; i++)
                free(names[i]);
        free(names);
        return -ENOMEM;
}

static void on_topics(struct controller *c, const struct zk_result *res, void *arg)
{
        char **names;
        size_t n;

        (void)arg;
        if (ctl_outcome_unknown(res->r)) {
                read_topics(c);
                return;
        }
        if (res->r != 0) {
                ctl_resign_soon(c, "/brokers/topics cannot be read");
                return;
        }
        if (collect(c, res, &names, &n) < 0 || loader_start(c, names, n, load_done) < 0)
                resign_for_memory(c);
}

/* --- deletions --- */

/* Asked for a topic that is not there: the request goes. */
static void delete_request(struct controller *c, const char *topic)
{
        char path[ZNODE_PATH_SIZE];
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_DELETE, .path = path, .version = -1}};

        znode_path_delete_topic(topic, path);
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), ctl_zk_ignore, NULL, NULL) < 0)
                resign_for_memory(c);
}

static void on_deletions(struct controller *c, const struct zk_result *res, void *arg)
{
        (void)arg;
        if (ctl_outcome_unknown(res->r)) {
                read_deletions(c);
                return;
        }
        c->deletions_reading = false;
        for (size_t i = 0; res->r == 0 && i < res->n_children; i++) {
                struct ctx_topic *t = ctx_topic(&c->ctx, res->children[i]);

                if (t)
                        deletion_begin(c, t);
                else if (c->loads == 0 && !c->topics_reading)
                        delete_request(c, res->children[i]);
        }
        if (c->deletions_again)
                read_deletions(c);
}

/* --- loading --- */

static void on_slot_known(void *arg)
{
        read_topics(arg);
}

static void on_brokers_known(void *arg)
{
        struct controller *c = arg;

        if (c->state == CTL_LOADING)
                slot_load(c, on_slot_known, c);
}

void loader_load_all(struct controller *c)
{
        drain_history_load(c); /* answered before what is asked for later */
        if (brokers_refresh_then(c, on_brokers_known, c, true) < 0)
                resign_for_memory(c);
}
