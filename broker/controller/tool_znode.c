/* /admin/preferred_replica_election and /admin/reassign_partitions: lists of partitions by which tools ask
 * for something. Read when they appear and after an election; rewritten, and in the end deleted, by us alone.
 *
 * Anybody may have written them: what cannot be read is said and deleted, or no tool could ever ask again
 * (KAFKA-990, KAFKA-4914). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "controller/controller_internal.h"

static const struct {
        const char *path;
        void (*take)(struct controller *c);
} tools[N_CTL_WATCHES] = {
        [WATCH_ELECTIONS] = {ZNODE_PREFERRED_ELECTION, elections_take_znode},
        [WATCH_REASSIGNMENTS] = {ZNODE_REASSIGN, reassign_take_znode},
};

static struct tool_znode *znode_of(struct controller *c, enum ctl_watch_kind kind)
{
        return kind == WATCH_ELECTIONS ? &c->elections_znode : &c->moves_znode;
}

void tool_znode_forget(struct tool_znode *z)
{
        znode_partitions_done(&z->list);
        *z = (struct tool_znode){0};
}

static void drop_nothing(void *arg)
{
        (void)arg; /* a number */
}

static void read_done(struct controller *c, enum ctl_watch_kind kind)
{
        struct tool_znode *z = znode_of(c, kind);
        bool again = z->again;

        z->reading = z->again = false;
        if (again)
                tool_znode_read(c, kind);
}

static void on_data(struct controller *c, const struct zk_result *res, void *arg)
{
        enum ctl_watch_kind kind = (enum ctl_watch_kind)(uintptr_t)arg;
        struct tool_znode *z = znode_of(c, kind);
        struct znode_partition_list list = {0};
        char begins[128];
        int r;

        if (ctl_outcome_unknown(res->r))
                z->again = true;
        /* One that is being worked on is known; what we wrote ourselves comes back here, too. */
        if (res->r != 0 || (z->pending && z->version == res->stat.version) || z->writing) {
                read_done(c, kind);
                return;
        }
        r = znode_partitions_decode(res->data ? res->data : "", res->data_len, &list);
        if (r == -ENOMEM) {
                ctl_resign_soon(c, "out of memory for a tool's request");
                return;
        }
        (void)snprintf(begins, sizeof(begins), "%s", res->data ? res->data : "");
        if (r < 0)
                slog_error("tool-znode-malformed",
                           "a tool's request in ZooKeeper is not a list of partitions; it is deleted",
                           SL_STR("path", tools[kind].path), SL_INT("bytes", res->data_len),
                           SL_STR("begins", begins));
        znode_partitions_done(&z->list);
        z->list = list;
        z->version = res->stat.version;
        z->pending = true;
        tools[kind].take(c);
        read_done(c, kind);
}

static void on_exists(struct controller *c, const struct zk_result *res, void *arg)
{
        enum ctl_watch_kind kind = (enum ctl_watch_kind)(uintptr_t)arg;
        struct tool_znode *z = znode_of(c, kind);

        if (res->r == 0 && ctl_zk_get(c, tools[kind].path, on_data, arg, drop_nothing) == 0)
                return;
        if (res->r == -ENOENT && !z->writing) {
                /* Gone: a tool has withdrawn what was not done yet, as the old cancellation did. */
                znode_partitions_done(&z->list);
                z->pending = false;
        }
        if (ctl_outcome_unknown(res->r))
                z->again = true;
        read_done(c, kind);
}

static void on_written(struct controller *c, const struct zk_result *res, void *arg)
{
        enum ctl_watch_kind kind = (enum ctl_watch_kind)(uintptr_t)arg;
        struct tool_znode *z = znode_of(c, kind);

        z->writing = false;
        if (res->r == 0 && z->list.n == 0)
                z->pending = false;
        else if (res->r == 0)
                z->version = res->op_stats[1].version;
        else if (ctl_multi_failed_at(res) == 0)
                ctl_resign_soon(c, "a tool's request was fenced: another controller was elected");
        else
                z->pending = false; /* somebody else wrote, or it is not known: read anew */
        tool_znode_read(c, kind);
        ctl_progress(c);
}

/* exists() and not get(): it leaves a watch also when there is nothing. */
void tool_znode_read(struct controller *c, enum ctl_watch_kind kind)
{
        struct tool_znode *z = znode_of(c, kind);
        void *arg = (void *)(uintptr_t)kind;

        if (!ctl_is_active(c))
                return;
        if (z->reading) {
                z->again = true;
                return;
        }
        z->reading = true;
        if (ctl_zk_exists_arg(c, tools[kind].path, kind, on_exists, arg, drop_nothing) < 0)
                ctl_resign_soon(c, "out of memory for a tool's request");
}

void tool_znode_write(struct controller *c, enum ctl_watch_kind kind)
{
        struct tool_znode *z = znode_of(c, kind);
        cleanup_with(buf_donep) struct buf out = {0};
        struct zk_op ops[] = {ctl_epoch_check(c),
                              {.type = z->list.n ? ZK_OP_SET : ZK_OP_DELETE,
                               .path = tools[kind].path,
                               .version = z->version}};

        if (z->writing || !ctl_lease(c))
                return;
        buf_init(&out, 0);
        if (z->list.n) {
                if (znode_partitions_encode(&z->list, &out) < 0 || buf_append(&out, "", 1) < 0)
                        return; /* tried again with the next change */
                ops[1].data = (const char *)out.data;
        }
        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), on_written, (void *)(uintptr_t)kind, drop_nothing) == 0)
                z->writing = true;
}
