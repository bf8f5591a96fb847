/* How far writes may run ahead of what brokers have been told.
 *
 * A partition that moves is without a leader, to its clients, from the write of its state until every broker
 * has heard of it: as long as it waits in the queues in between. So those are kept short. A drain takes no
 * longer for that, brokers work all the time, but each partition's gap is that of WINDOW partitions and not
 * of all that move (D6, R5). Elections after failures and ISR changes do not wait: their gap has begun
 * already. */
#include "controller/controller_internal.h"

#define WINDOW  200 /* partitions */
#define STEP_MS 50  /* a broker that does not answer slows the others down, to a multi in so long; no more */

static int on_overdue(struct loop *l, void *userdata)
{
        struct controller *c = userdata;

        (void)l;
        c->writer.pace_overdue = true;
        writer_pump(c);
        return 0;
}

int writer_pace_init(struct controller *c)
{
        return loop_add_timer(c->loop, on_overdue, c, &c->writer.pace);
}

static size_t ahead(const struct controller *c)
{
        size_t cursor = 0, most = 0;
        void *v;

        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b->alive && b->sender)
                        most = MAX(most, sender_untold(b->sender));
        }
        return most + c->writer.writing;
}

bool writer_pace_open(struct controller *c)
{
        struct writer *w = &c->writer;

        if (w->pace_overdue || ahead(c) < WINDOW)
                return true;
        if (!loop_timer_armed(w->pace))
                loop_timer_arm(w->pace, STEP_MS, 0);
        return false;
}

void writer_pace_wrote(struct controller *c, size_t n)
{
        c->writer.writing += n;
        c->writer.pace_overdue = false;
        loop_timer_disarm(c->writer.pace);
}
