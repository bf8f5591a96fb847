/* /log_dir_event_notification: a broker says that a log directory of its has failed (KIP-112). It does not
 * say what was in it; LeaderAndIsr of everything the broker hosts is answered with KAFKA_STORAGE_ERROR for
 * each replica that is gone (sender.c), and those partitions get another leader and lose it from their ISR.
 *
 * A notification is deleted when LeaderAndIsr has been queued. A controller that dies before it was sent is
 * followed by one that sends it for everything anyway. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/slog.h"
#include "controller/controller_internal.h"

#define MAX_EVENTS ((size_t)100) /* a pass; their deletion fires the watch, which begins the next one */

struct event_read {
        char path[ZNODE_PATH_SIZE];
};

static void on_events(struct controller *c, const struct zk_result *res, void *arg);

static void read_events(struct controller *c)
{
        c->dir_events = (struct dir_events){.reading = true};
        if (ctl_zk_children(c, ZNODE_LOG_DIR_EVENTS, WATCH_LOG_DIRS, on_events, NULL) < 0)
                ctl_resign_soon(c, "out of memory while reading which log directories failed");
}

void log_dirs_on_changed(struct controller *c)
{
        if (c->dir_events.reading)
                c->dir_events.again = true;
        else if (ctl_is_active(c))
                read_events(c);
}

void log_dirs_forget(struct controller *c)
{
        c->dir_events = (struct dir_events){0};
}

static void read_done(struct controller *c)
{
        if (--c->dir_events.pending > 0)
                return;
        c->dir_events.reading = false;
        if (c->dir_events.again)
                read_events(c);
}

/* Replicas already known to be offline, or bounced and told everything anyway, answer the same again. */
static void ask_broker(struct controller *c, int32_t id)
{
        struct ctx_broker *b = ctx_broker(&c->ctx, id);

        if (!b || !b->alive || !b->sender)
                return; /* when it is back it is told everything */
        slog_warning("log-directory-failed", "a broker reports that a log directory of its has failed",
                     SL_INT("broker", id), SL_INT("replicas", (int64_t)b->n_hosted));
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct ctx_partition *p = c->ctx.partitions[b->hosted[i].partition];

                /* LeaderAndIsr would start the fetcher of a drained follower again (R9). */
                if (!(b->drain && p->slots[b->hosted[i].slot].stop_sent && p->leader != id))
                        sender_push_lai(b->sender, p);
        }
        sender_kick(b->sender);
}

static void delete_event(struct controller *c, const char *path)
{
        struct zk_op ops[] = {ctl_epoch_check(c), {.type = ZK_OP_DELETE, .path = path, .version = -1}};

        if (ctl_zk_multi(c, ops, ARRAY_SIZE(ops), ctl_zk_ignore, NULL, NULL) < 0)
                ctl_resign_soon(c, "out of memory while reading which log directories failed");
}

static void on_event(struct controller *c, const struct zk_result *res, void *arg)
{
        cleanup_with(freep) struct event_read *e = arg;
        int32_t id;

        if (ctl_outcome_unknown(res->r))
                c->dir_events.again = true;
        if (res->r == 0) {
                if (znode_log_dir_event_decode(res->data ? res->data : "", res->data_len, &id) == 0)
                        ask_broker(c, id);
                else
                        slog_error("log-dir-event-malformed",
                                   "a report of a failed log directory cannot be read; it is deleted",
                                   SL_STR("path", e->path), SL_INT("bytes", (int64_t)res->data_len));
                delete_event(c, e->path);
        }
        read_done(c);
}

static int read_event(struct controller *c, const char *name)
{
        struct event_read *e = malloc(sizeof(*e));
        int r;

        if (!e)
                return -ENOMEM;
        if (snprintf(e->path, sizeof(e->path), ZNODE_LOG_DIR_EVENTS "/%s", name) >= (int)sizeof(e->path)) {
                free(e); /* nobody's report: their names are numbers */
                return 0;
        }
        r = ctl_zk_get(c, e->path, on_event, e, NULL);
        if (r < 0)
                free(e);
        else
                c->dir_events.pending++;
        return r;
}

static void on_events(struct controller *c, const struct zk_result *res, void *arg)
{
        int r = 0;

        (void)arg;
        c->dir_events.pending = 1; /* this callback */
        if (ctl_outcome_unknown(res->r))
                c->dir_events.again = true;
        for (size_t i = 0; r == 0 && res->r == 0 && i < MIN(res->n_children, MAX_EVENTS); i++)
                r = read_event(c, res->children[i]);
        if (r < 0)
                ctl_resign_soon(c, "out of memory while reading which log directories failed");
        read_done(c);
}
