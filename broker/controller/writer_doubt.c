/* Reads a partition's state back when it is not known: after a conflict, or a write whose reply was lost. */
#include <errno.h>
#include <string.h>

#include "controller/controller_internal.h"
#include "wire/error.h"

static bool is_our_write(const struct controller *c, const struct writer_plan *pl,
                         const struct znode_state *st)
{
        return pl && pl->isr && st->controller_epoch == c->epoch && st->leader == pl->to.leader &&
               st->leader_epoch == pl->to.leader_epoch && st->n_isr == (size_t)pl->to.n_isr &&
               memcmp(st->isr, pl->to.isr, st->n_isr * sizeof(int32_t)) == 0;
}

static void drop_doubt(struct controller *c, struct ctx_partition *p, struct writer_plan *pl, int16_t error)
{
        if (pl && pl->alter)
                alter_finish(c, p, pl->alter, error);
        if (pl)
                writer_plan_drop(c, pl);
        free(pl);
}

/* Somebody else's write, or an older state of ours: start from it. */
static void adopt(struct controller *c, struct ctx_partition *p, struct writer_plan *pl,
                  const struct znode_state *st, int32_t version)
{
        int32_t *isr = calloc(st->n_isr + 1, sizeof(*isr)), old_leader = p->leader;

        if (!isr) {
                p->doubt = pl;
                writer_push(&c->writer.doubtful, p);
                writer_retry_later(c);
                return;
        }
        memcpy(isr, st->isr, st->n_isr * sizeof(*isr));
        /* Nothing was written: a proposed ISR is still to be. "There is a newer state" would let its leader
         * wait for one that never comes. */
        if (pl && pl->alter && version == p->version)
                alter_requeue(p, TAKE_PTR(pl->alter));
        drop_doubt(c, p, pl, KAFKA_INVALID_UPDATE_VERSION);
        p->has_state = p->dir_made = true;
        ctx_partition_set_state(&c->ctx, p, st->leader, st->leader_epoch, st->controller_epoch, version, &isr,
                                (int32_t)st->n_isr);
        partition_set_state(
                c, p, p->leader >= 0 && ctx_in_isr(p, p->leader) ? PARTITION_ONLINE : PARTITION_OFFLINE);
        if (st->controller_epoch > c->epoch)
                elector_probe(c); /* a newer controller has written (R34) */
        sender_announce(c, p, old_leader);
        p->again = true;
        writer_release(c, p);
}

/* No state znode. When it was to be created, its parent is there but not by us, or not there although we
 * thought so; try the other way. */
static void on_missing(struct controller *c, struct ctx_partition *p, struct writer_plan *pl)
{
        if (pl && pl->to.kind == ELECTION_NEW)
                p->dir_made = pl->makes_dir;
        drop_doubt(c, p, pl, KAFKA_UNKNOWN_SERVER_ERROR);
        p->has_state = false;
        writer_try_later(c, p);
        writer_release(c, p);
}

static void on_read(struct controller *c, const struct zk_result *res, void *arg)
{
        uint32_t index = (uint32_t)(uintptr_t)arg;
        struct ctx_partition *p = ctx_partition(&c->ctx, index);
        struct writer_plan *pl = TAKE_PTR(p->doubt);
        struct znode_state st;
        int r = res->r;

        c->writer.reads--;
        if (r == 0)
                r = znode_state_decode(res->data ? res->data : "", res->data_len, &st);
        if (p->topic->forgotten) {
                drop_doubt(c, p, pl, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
                writer_release(c, p);
        } else if (r == 0 && is_our_write(c, pl, &st)) {
                writer_apply(c, pl, res->stat.version);
                free(pl);
        } else if (r == 0) {
                adopt(c, p, pl, &st, res->stat.version);
        } else if (r == -ENOENT) {
                on_missing(c, p, pl);
        } else {
                p->doubt = pl;
                writer_push(&c->writer.doubtful, p);
                writer_retry_later(c);
                return;
        }
        sender_kick_all(c);
        ctl_progress(c);
        writer_pump(c);
}

static void read_drop(void *arg)
{
        (void)arg; /* a number */
}

void writer_pump_reads(struct controller *c)
{
        struct writer *w = &c->writer;
        char path[ZNODE_PATH_SIZE];
        uint32_t index;

        while (w->reads < WRITER_MAX_READS && index_queue_pop(&w->doubtful, &index)) {
                struct ctx_partition *p = ctx_partition(&c->ctx, index);

                ctx_partition_unref(&c->ctx, p); /* being in flight it has another reference */
                znode_path_state(p->topic->name, p->number, path);
                if (ctl_zk_get(c, path, on_read, (void *)(uintptr_t)index, read_drop) < 0) {
                        writer_push(&w->doubtful, p);
                        writer_retry_later(c);
                        return;
                }
                w->reads++;
        }
}

void writer_forget_doubts(struct controller *c)
{
        for (size_t i = 0; i < c->ctx.n_indexes; i++) {
                struct ctx_partition *p = c->ctx.partitions[i];

                if (p && p->doubt)
                        free(p->doubt->isr);
        }
}
