/* The shell around stop_check_core.c; see the header. */
#include "controller/stop_check.h"

#include <errno.h>

static void add(const struct controller *c, const struct ctx_broker *b, const struct ctx_partition *p,
                struct stop_check *sum)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        struct stop_check_partition view = {
                .broker_id = b->id, .min_isr = p->topic->min_isr, .deleting = p->topic->deleting};
        struct stop_check_item item = {.topic = p->topic->name,
                                       .partition = p->number,
                                       .leader = p->leader,
                                       .min_isr = p->topic->min_isr,
                                       .isr = p->isr,
                                       .replicas = p->replicas,
                                       .n_isr = p->n_isr,
                                       .n_replicas = p->n_slots};

        if (p->topic->deleting)
                return;
        ctx_election_input(&c->ctx, p, c->o.unclean_leader_election, replicas, &view.state);
        stop_check_judge(&view, &item.verdict);
        stop_check_add(sum, &item);
}

int stop_check_broker(const struct controller *c, const struct ctx_broker *b, size_t max, struct arena *a,
                      struct stop_check *ret)
{
        struct stop_check sum = {.max = max};

        for (int i = STOP_SAFE + 1; max > 0 && i < N_STOP_RISKS; i++) {
                sum.listed[i] = arena_alloc(a, MIN(max, b->n_hosted + 1), sizeof(*sum.listed[i]));
                if (!sum.listed[i])
                        return -ENOMEM;
        }
        sum.max = MIN(max, b->n_hosted + 1);
        for (size_t i = 0; i < b->n_hosted; i++) {
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);

                if (p)
                        add(c, b, p, &sum);
        }
        *ret = sum;
        return 0;
}
