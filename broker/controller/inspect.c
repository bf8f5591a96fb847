/* Answers from the controller's memory; see the header. */
#include "controller/inspect.h"

#include <errno.h>
#include <string.h>

#include "controller/drain_history.h"
#include "controller/drain_internal.h"
#include "controller/stop_check.h"
#include "wire/error.h"

enum ask { ASK_CHECK, ASK_INFO, ASK_DRAINS };

struct inspect_call {
        struct ctl_call call;
        enum ask ask;
        int32_t broker_id;
        bool refreshed;
        union {
                controller_check_fn check;
                controller_broker_info_fn info;
                controller_drain_list_fn drains;
        } fn;
        void *userdata;
};

static void refuse(struct inspect_call *q, int16_t error)
{
        if (q->ask == ASK_CHECK)
                q->fn.check(error, NULL, q->userdata);
        else if (q->ask == ASK_INFO)
                q->fn.info(error, NULL, q->userdata);
        else
                q->fn.drains(error, NULL, q->userdata);
        free(q);
}

static struct draining_broker describe_drain(const struct controller *c, const struct ctx_broker *b)
{
        const struct drain *d = b->drain;

        return (struct draining_broker){.id = b->id,
                                        .state = drain_state_shown(c, b),
                                        .drain_id = d ? d->id : "",
                                        .since_ms = d ? d->since_ms : 0,
                                        .deadline_ms = d ? d->deadline_ms : 0};
}

/* --- check --- */

static int compare_items(const void *a, const void *b)
{
        const struct stop_check_item *x = a, *y = b;
        int r = strcmp(x->topic, y->topic);

        return r ? r : (x->partition > y->partition) - (x->partition < y->partition);
}

static int compare_draining(const void *a, const void *b)
{
        const struct draining_broker *x = a, *y = b;

        return (x->id > y->id) - (x->id < y->id);
}

static int fill_draining(struct controller *c, const struct ctx_broker *self, struct arena *a,
                         struct broker_check *ret)
{
        struct draining_broker *list = arena_alloc(a, c->ctx.n_alive + 1, sizeof(*list));
        size_t cursor = 0, n = 0;
        void *v;

        if (!list)
                return -ENOMEM;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b != self && b->drain && n <= c->ctx.n_alive)
                        list[n++] = describe_drain(c, b);
        }
        qsort(list, n, sizeof(*list), compare_draining);
        ret->draining = list;
        ret->n_draining = n;
        return 0;
}

static void count_work(const struct controller *c, const struct ctx_broker *b, struct broker_check *ret)
{
        for (size_t i = 0; i < b->n_hosted; i++) {
                struct election_replica replicas[ZNODE_MAX_REPLICAS];
                const struct ctx_partition *p = ctx_partition(&c->ctx, b->hosted[i].partition);
                struct election_input in;

                if (!p->has_state || p->n_slots < 2 || p->topic->deleting)
                        continue;
                ret->replicas++;
                if (p->leader != b->id)
                        continue;
                ctx_election_input(&c->ctx, p, false, replicas, &in);
                ret->stuck += election_drain_candidate(&in) == NULL;
        }
}

static void answer_check(struct controller *c, const struct ctx_broker *b, struct inspect_call *q)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct broker_check check = {.broker_id = b->id,
                                     .broker_epoch = b->epoch,
                                     .controller_id = c->o.broker_id,
                                     .controller_epoch = c->epoch,
                                     .zookeeper_available = zk_lease_valid(c->zk),
                                     .drain = drain_state_shown(c, b)};
        const struct znode_drain *past;
        size_t n;

        arena_init(&a, 0);
        if (stop_check_broker(c, b, INSPECT_LISTED, &a, &check.sum) < 0 ||
            fill_draining(c, b, &a, &check) < 0) {
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR);
                return;
        }
        for (int r = STOP_SAFE + 1; r < N_STOP_RISKS; r++)
                qsort(check.sum.listed[r], check.sum.n_listed[r], sizeof(*check.sum.listed[r]),
                      compare_items);
        count_work(c, b, &check);
        past = drain_history_items(c, &n);
        drain_estimate(past, n, check.replicas, &check.estimate);
        q->fn.check(KAFKA_NONE, &check, q->userdata);
        free(q);
}

/* --- a broker --- */

static int compare_partitions(const void *a, const void *b)
{
        const struct cluster_partition *x = a, *y = b;
        int r = strcmp(x->topic, y->topic);

        return r ? r : (x->partition > y->partition) - (x->partition < y->partition);
}

static void count_partition(const struct controller *c, const struct ctx_broker *b,
                            const struct ctx_partition *p, struct cluster_partition *list,
                            struct broker_info *ret)
{
        bool in_sync = ctx_in_isr(p, b->id), offline = !ctx_partition_online(&c->ctx, p);

        if (p->topic->deleting || !p->has_state)
                return;
        ret->replicas++;
        ret->in_sync += in_sync;
        ret->under_replicated += p->n_isr < p->n_slots;
        ret->offline += offline;
        ret->preferred += p->replicas[0] == b->id;
        ret->preferred_elsewhere += p->replicas[0] == b->id && p->leader != b->id;
        ret->leaders += p->leader == b->id;
        ret->leaders_single += p->leader == b->id && p->n_slots == 1;
        if (!in_sync && ret->n_catching_up < INSPECT_LISTED)
                list[ret->n_catching_up++] = (struct cluster_partition){.topic = p->topic->name,
                                                                        .partition = p->number,
                                                                        .leader = p->leader,
                                                                        .leader_epoch = p->leader_epoch,
                                                                        .partition_epoch = p->version,
                                                                        .replicas = p->replicas,
                                                                        .n_replicas = p->n_slots,
                                                                        .isr = p->isr,
                                                                        .n_isr = p->n_isr,
                                                                        .under_replicated = true,
                                                                        .offline = offline};
}

static void fill_address(const struct controller *c, const struct ctx_broker *b,
                         struct controller_location *where, struct broker_info *ret)
{
        const struct znode_endpoint *e = znode_broker_endpoint(&b->info, c->listener);

        if (!b->alive)
                return;
        elector_locate(c, &b->info, where);
        ret->host = e ? e->host : "";
        ret->port = e ? e->port : 0;
        ret->admin_host = where->admin_host;
        ret->admin_port = where->admin_port;
        ret->since_ms = b->info.timestamp_ms;
}

static void answer_info(struct controller *c, const struct ctx_broker *b, struct inspect_call *q)
{
        struct cluster_partition list[INSPECT_LISTED];
        struct controller_location where = {.admin_host = ""};
        struct broker_info info = {.broker_id = b->id,
                                   .controller_id = c->o.broker_id,
                                   .controller_epoch = c->epoch,
                                   .registered = b->alive,
                                   .zookeeper_available = zk_lease_valid(c->zk),
                                   .broker_epoch = b->alive ? b->epoch : -1,
                                   .host = "",
                                   .admin_host = "",
                                   .catching_up = list,
                                   .drain = describe_drain(c, b),
                                   .drain_moved = b->drain ? b->drain->moved : 0};

        fill_address(c, b, &where, &info);
        for (size_t i = 0; i < b->n_hosted; i++)
                count_partition(c, b, ctx_partition(&c->ctx, b->hosted[i].partition), list, &info);
        qsort(list, info.n_catching_up, sizeof(list[0]), compare_partitions);
        q->fn.info(KAFKA_NONE, &info, q->userdata);
        free(q);
}

/* --- past drains --- */

static void answer_drains(struct controller *c, struct inspect_call *q)
{
        struct drain_list list = {.controller_id = c->o.broker_id, .controller_epoch = c->epoch};

        list.items = drain_history_items(c, &list.n);
        list.saved = drain_history_saved(c);
        q->fn.drains(KAFKA_NONE, &list, q->userdata);
        free(q);
}

/* --- doors --- */

static void serve(struct controller *c, struct inspect_call *q);

static void on_refreshed(void *arg)
{
        struct inspect_call *q = arg;
        struct controller *c = q->call.c;

        if (!ctl_is_active(c))
                refuse(q, KAFKA_NOT_CONTROLLER);
        else if (!zk_lease_valid(c->zk))
                refuse(q, KAFKA_UNKNOWN_SERVER_ERROR); /* nobody knows */
        else
                serve(c, q);
}

static void serve(struct controller *c, struct inspect_call *q)
{
        const struct ctx_broker *b = ctx_broker(&c->ctx, q->broker_id);
        bool there = b && b->alive;

        /* "Not there" must not be said from a list that lags. */
        if (!there && !q->refreshed) {
                q->refreshed = true;
                if (brokers_refresh_then(c, on_refreshed, q, false) == 0)
                        return;
        }
        if (q->ask == ASK_INFO && b && (there || b->n_hosted > 0))
                answer_info(c, b, q);
        else if (!there)
                refuse(q, KAFKA_BROKER_NOT_AVAILABLE);
        else
                answer_check(c, b, q);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct inspect_call *q = container_of(call, struct inspect_call, call);

        if (!active)
                refuse(q, KAFKA_NOT_CONTROLLER);
        else if (q->ask == ASK_DRAINS)
                answer_drains(c, q);
        else
                serve(c, q);
}

static void post(struct controller *c, const struct inspect_call *what)
{
        struct inspect_call *q = malloc(sizeof(*q));

        if (!q) {
                if (what->ask == ASK_CHECK)
                        what->fn.check(KAFKA_UNKNOWN_SERVER_ERROR, NULL, what->userdata);
                else if (what->ask == ASK_INFO)
                        what->fn.info(KAFKA_UNKNOWN_SERVER_ERROR, NULL, what->userdata);
                else
                        what->fn.drains(KAFKA_UNKNOWN_SERVER_ERROR, NULL, what->userdata);
                return;
        }
        *q = *what;
        ctl_post(c, &q->call, run);
}

void controller_check(struct controller *c, int32_t broker_id, controller_check_fn fn, void *userdata)
{
        post(c, &(struct inspect_call){
                        .ask = ASK_CHECK, .broker_id = broker_id, .fn.check = fn, .userdata = userdata});
}

void controller_broker_info(struct controller *c, int32_t broker_id, controller_broker_info_fn fn,
                            void *userdata)
{
        post(c, &(struct inspect_call){
                        .ask = ASK_INFO, .broker_id = broker_id, .fn.info = fn, .userdata = userdata});
}

void controller_drain_list(struct controller *c, controller_drain_list_fn fn, void *userdata)
{
        post(c, &(struct inspect_call){.ask = ASK_DRAINS, .fn.drains = fn, .userdata = userdata});
}
