/* AlterPartition: each proposed ISR waits in its partition until no write of it is in flight, and is judged
 * by the state of that moment (isr_core.c). */
#include <errno.h>
#include <string.h>

#include "controller/controller_internal.h"
#include "controller/isr_core.h"
#include "wire/alter_partition.h"
#include "wire/error.h"

struct alter_request {
        struct ctl_call call;
        const struct alter_partition_request *req;
        struct list node; /* controller->alters */
        controller_alter_partition_fn fn;
        void *userdata;
        struct arena arena;
        struct alter_partition_response res;
        int32_t broker_id;
        int16_t version;
        int pending;
};

static void request_answer(struct alter_request *q)
{
        list_remove(&q->node);
        q->fn(&q->res, q->userdata);
        arena_done(&q->arena);
        free(q);
}

static void fill_state(const struct ctx_partition *p, struct arena *a,
                       struct alter_partition_response_partition *out)
{
        out->leader_id = p->leader;
        out->leader_epoch = p->leader_epoch;
        out->partition_epoch = p->version;
        out->isr.items = arena_alloc(a, (size_t)p->n_isr + 1, sizeof(int32_t));
        if (!out->isr.items) {
                out->error_code = KAFKA_UNKNOWN_SERVER_ERROR;
                return;
        }
        memcpy(out->isr.items, p->isr, (size_t)p->n_isr * sizeof(int32_t));
        out->isr.n = p->n_isr;
}

void alter_finish(struct controller *c, struct ctx_partition *p, struct alter_item *item, int16_t error)
{
        struct alter_request *q = item->req;

        (void)c;
        item->out->error_code = error;
        if (error == KAFKA_NONE && p)
                fill_state(p, &q->arena, item->out);
        if (--q->pending == 0)
                request_answer(q);
}

void alter_requeue(struct ctx_partition *p, struct alter_item *item)
{
        item->next = p->alters;
        p->alters = item;
}

static int members_of(const struct controller *c, const struct ctx_partition *p, struct isr_member *ret)
{
        int n = 0;

        for (uint16_t i = 0; i < p->n_slots && n < ZNODE_MAX_REPLICAS; i++)
                ret[n++] = (struct isr_member){.id = p->slots[i].broker_id,
                                               .epoch = p->slots[i].broker->epoch,
                                               .assigned = true,
                                               .alive = p->slots[i].broker->alive && !p->slots[i].dir_offline,
                                               /* KAFKA-1097: what leaves must not come in again */
                                               .draining = p->slots[i].broker->drain ||
                                                           (p->finishing && p->slots[i].removing)};
        for (int32_t i = 0; i < p->n_isr && n < ZNODE_MAX_REPLICAS; i++) {
                const struct ctx_broker *b = ctx_broker(&c->ctx, p->isr[i]);
                bool known = false;

                for (int k = 0; k < n; k++)
                        known = known || ret[k].id == p->isr[i];
                if (!known)
                        ret[n++] = (struct isr_member){
                                .id = p->isr[i], .epoch = b ? b->epoch : -1, .alive = b && b->alive};
        }
        return n;
}

static int16_t check(const struct controller *c, const struct ctx_partition *p, const struct alter_item *item,
                     bool *ret_unchanged)
{
        struct isr_member members[ZNODE_MAX_REPLICAS];
        struct isr_current cur = {.leader = p->leader,
                                  .leader_epoch = p->leader_epoch,
                                  .partition_epoch = p->version,
                                  .isr = p->isr,
                                  .n_isr = p->n_isr,
                                  .members = members};
        struct isr_proposal proposal = {.broker_id = item->req->broker_id,
                                        .leader_epoch = item->leader_epoch,
                                        .partition_epoch = item->partition_epoch,
                                        .isr = item->isr,
                                        .epochs = item->epochs,
                                        .n_isr = item->n_isr,
                                        .leader_recovery_state = item->recovery,
                                        .version = item->req->version};

        cur.n_members = members_of(c, p, members);
        return isr_proposal_check(&cur, &proposal, ret_unchanged);
}

/* Whoever knows an older state proposes nothing more until it has heard of the newer one, so it is told once
 * more; but not when it has stopped following, which LeaderAndIsr would undo (R9). */
static void tell_again(struct ctx_partition *p, int32_t broker_id)
{
        const struct ctx_slot *s = ctx_slot(p, broker_id);

        if (!s || !s->broker->sender || s->stop_sent)
                return;
        sender_push_lai(s->broker->sender, p);
        sender_kick(s->broker->sender);
}

bool alter_next(struct controller *c, struct ctx_partition *p, struct alter_item **ret)
{
        while (p->alters) {
                struct alter_item *item = p->alters;
                bool unchanged;
                int16_t error = check(c, p, item, &unchanged);

                p->alters = item->next;
                item->next = NULL;
                if (error == KAFKA_NONE && !unchanged) {
                        *ret = item;
                        return true;
                }
                if (error == KAFKA_FENCED_LEADER_EPOCH || error == KAFKA_INVALID_UPDATE_VERSION) {
                        metric_add(&controller_metric_stale[error == KAFKA_FENCED_LEADER_EPOCH
                                                                    ? STALE_LEADER_EPOCH
                                                                    : STALE_PARTITION_EPOCH],
                                   1);
                        tell_again(p, item->req->broker_id);
                }
                alter_finish(c, p, item, error);
        }
        return false;
}

void alter_abandon(struct controller *c, struct ctx_partition *p, int16_t error)
{
        struct alter_item *old = TAKE_PTR(p->alters);

        while (old) {
                struct alter_item *next = old->next;

                alter_finish(c, p, old, error);
                old = next;
        }
}

void alter_forget(struct controller *c)
{
        while (!list_empty(&c->alters)) {
                struct alter_request *q = list_entry(c->alters.next, struct alter_request, node);

                q->res.error_code = KAFKA_NOT_CONTROLLER;
                q->res.topics.n = 0;
                request_answer(q);
        }
}

static int fill_isr(struct alter_request *q, const struct alter_partition_request_partition *in,
                    struct alter_item *ret)
{
        bool with_epochs = q->version >= 3;
        int32_t n = with_epochs ? in->new_isr_with_epochs.n : in->new_isr.n;

        n = MAX(n, 0);
        if (n > ZNODE_MAX_REPLICAS)
                return -E2BIG;
        ret->isr = arena_alloc(&q->arena, (size_t)n + 1, sizeof(int32_t));
        ret->epochs = with_epochs ? arena_alloc(&q->arena, (size_t)n + 1, sizeof(int64_t)) : NULL;
        if (!ret->isr || (with_epochs && !ret->epochs))
                return -ENOMEM;
        for (int32_t i = 0; i < n; i++) {
                ret->isr[i] = with_epochs ? in->new_isr_with_epochs.items[i].broker_id : in->new_isr.items[i];
                if (with_epochs)
                        ret->epochs[i] = in->new_isr_with_epochs.items[i].broker_epoch;
        }
        ret->n_isr = n;
        return 0;
}

static int16_t start_partition(struct controller *c, struct alter_request *q, struct ctx_topic *t,
                               const struct alter_partition_request_partition *in,
                               struct alter_partition_response_partition *out)
{
        struct ctx_partition *p = ctx_topic_partition(t, in->partition_index);
        struct alter_item *item;
        int r;

        if (!p || !p->has_state || t->deleting)
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        item = arena_alloc(&q->arena, 1, sizeof(*item));
        r = item ? fill_isr(q, in, item) : -ENOMEM;
        if (r < 0)
                return r == -ENOMEM ? KAFKA_UNKNOWN_SERVER_ERROR : KAFKA_INVALID_REQUEST;
        item->req = q;
        item->out = out;
        item->leader_epoch = in->leader_epoch;
        item->partition_epoch = in->partition_epoch;
        item->recovery = in->leader_recovery_state;
        /* An older proposal belongs to a request its leader has given up on. */
        alter_abandon(c, p, KAFKA_OPERATION_NOT_ATTEMPTED);
        q->pending++;
        p->alters = item;
        writer_mark(c, p, WRITER_URGENT);
        return KAFKA_NONE;
}

static int start_topic(struct controller *c, struct alter_request *q,
                       const struct alter_partition_request_topic *in,
                       struct alter_partition_response_topic *out)
{
        bool by_id = q->version >= 2;
        struct ctx_topic *t = by_id ? ctx_topic_by_id(&c->ctx, &in->topic_id)
                              : in->topic_name.len > 0
                                      ? ctx_topic_n(&c->ctx, in->topic_name.data, (size_t)in->topic_name.len)
                                      : NULL;

        out->topic_id = in->topic_id;
        out->topic_name = in->topic_name;
        out->partitions.items =
                arena_alloc(&q->arena, (size_t)MAX(in->partitions.n, 0) + 1, sizeof(*out->partitions.items));
        if (!out->partitions.items)
                return -ENOMEM;
        for (int32_t i = 0; i < in->partitions.n; i++) {
                struct alter_partition_response_partition *o = &out->partitions.items[out->partitions.n++];

                o->partition_index = in->partitions.items[i].partition_index;
                o->leader_id = -1;
                if (t)
                        o->error_code = start_partition(c, q, t, &in->partitions.items[i], o);
                else
                        o->error_code = by_id ? KAFKA_UNKNOWN_TOPIC_ID : KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        }
        return 0;
}

/* The broker speaks for itself only in its present life (KIP-380). Whoever sends this request knows its
 * epoch, so that "unknown" is none either. */
static int16_t check_broker(const struct controller *c, const struct alter_partition_request *req)
{
        const struct ctx_broker *b;

        b = ctx_broker(&c->ctx, req->broker_id);
        if (b && b->alive && req->broker_epoch == b->epoch)
                return KAFKA_NONE;
        metric_add(&controller_metric_stale[STALE_BROKER_EPOCH], 1);
        return KAFKA_STALE_BROKER_EPOCH;
}

static void begin(struct controller *c, struct alter_request *q)
{
        const struct alter_partition_request *req = q->req;

        q->res.topics.items =
                arena_alloc(&q->arena, (size_t)MAX(req->topics.n, 0) + 1, sizeof(*q->res.topics.items));
        if (!q->res.topics.items)
                q->res.error_code = KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; q->res.topics.items && i < req->topics.n; i++)
                if (start_topic(c, q, &req->topics.items[i], &q->res.topics.items[q->res.topics.n++]) < 0)
                        q->res.error_code = KAFKA_UNKNOWN_SERVER_ERROR;
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct alter_request *q = container_of(call, struct alter_request, call);

        q->pending = 1; /* ours, while the partitions are begun */
        q->res.error_code = active ? check_broker(c, q->req) : KAFKA_NOT_CONTROLLER;
        if (active)
                list_push_back(&c->alters, &q->node);
        if (q->res.error_code == KAFKA_NONE)
                begin(c, q);
        if (--q->pending == 0)
                request_answer(q);
}

void controller_alter_partition(struct controller *c, const struct alter_partition_request *req,
                                int16_t version, controller_alter_partition_fn fn, void *userdata)
{
        struct alter_partition_response oom = {.error_code = KAFKA_UNKNOWN_SERVER_ERROR};
        struct alter_request *q = calloc(1, sizeof(*q));

        if (!q) {
                fn(&oom, userdata);
                return;
        }
        *q = (struct alter_request){
                .req = req, .fn = fn, .userdata = userdata, .broker_id = req->broker_id, .version = version};
        list_init(&q->node);
        arena_init(&q->arena, 0);
        ctl_post(c, &q->call, run);
}
