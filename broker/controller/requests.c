/* What the controller tells brokers, built from the state of the moment a request is sent. Versions are those
 * of Kafka 3.9 in ZooKeeper mode: LeaderAndIsr 7, UpdateMetadata 8, StopReplica 4. */
#include <errno.h>
#include <string.h>

#include "controller/controller_internal.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

#define LAI_TYPE_FULL        2 /* every partition of the broker (KIP-516) */
#define LEADER_DURING_DELETE (-2)
#define EPOCH_DURING_DELETE  (-2)

static int compare_items(const void *a, const void *b)
{
        const struct ctx_partition *x = *(struct ctx_partition *const *)a,
                                   *y = *(struct ctx_partition *const *)b;

        if (x->topic != y->topic)
                return x->topic < y->topic ? -1 : 1;
        return (x->number > y->number) - (x->number < y->number);
}

static struct ctx_partition **by_topic(struct arena *a, struct ctx_partition *const *items, size_t n,
                                       size_t *ret_topics)
{
        struct ctx_partition **sorted = arena_alloc(a, n + 1, sizeof(struct ctx_partition *));
        size_t topics = 0;

        if (!sorted)
                return NULL;
        if (n)
                memcpy(sorted, items, n * sizeof(struct ctx_partition *));
        qsort(sorted, n, sizeof(struct ctx_partition *), compare_items);
        for (size_t i = 0; i < n; i++)
                topics += i == 0 || sorted[i]->topic != sorted[i - 1]->topic;
        *ret_topics = topics;
        return sorted;
}

/* All leaders of the items, draining ones included: a follower that does not find its leader there refuses to
 * follow, and the drain never ends (KAFKA-999). Every live broker is listed: cheap, and always enough. */
static int live_leaders(struct controller *c, struct arena *a, struct leader_and_isr_request *ret)
{
        size_t cursor = 0;
        void *v;

        ret->live_leaders.items = arena_alloc(a, c->ctx.n_alive + 1, sizeof(*ret->live_leaders.items));
        if (!ret->live_leaders.items)
                return -ENOMEM;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;
                const struct znode_endpoint *e =
                        b->alive ? znode_broker_endpoint(&b->info, c->listener) : NULL;

                if (e)
                        ret->live_leaders.items[ret->live_leaders.n++] =
                                (struct leader_and_isr_request_live_leader){
                                        .broker_id = b->id, .host_name = wire_str(e->host), .port = e->port};
        }
        return 0;
}

struct ids {
        int32_t *items, n;
};

/* The replicas that a partition has, or those among them that some mark stands for. While a reassignment
 * ends, what leaves is not named any more: a leader lets in whom it finds there (KAFKA-1097). */
static int pick(const struct ctx_partition *p,
                bool (*want)(const struct ctx_partition *p, const struct ctx_slot *s), struct arena *a,
                struct ids *ret)
{
        *ret = (struct ids){.items = arena_alloc(a, (size_t)p->n_slots + 1, sizeof(int32_t))};
        if (!ret->items)
                return -ENOMEM;
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (want(p, &p->slots[i]))
                        ret->items[ret->n++] = p->slots[i].broker_id;
        return 0;
}

static bool is_kept(const struct ctx_partition *p, const struct ctx_slot *s)
{
        return !reassign_is_leaving(p, s);
}

static bool is_added(const struct ctx_partition *p, const struct ctx_slot *s)
{
        return !p->finishing && s->adding;
}

static bool is_removed(const struct ctx_partition *p, const struct ctx_slot *s)
{
        return !p->finishing && s->removing;
}

static int fill_lai(const struct ctx_broker *to, struct ctx_partition *p, struct arena *a,
                    struct leader_and_isr_request_partition_state *ret)
{
        struct ids kept = {p->replicas, p->n_slots}, added = {0}, removed = {0};
        const struct ctx_slot *s = ctx_slot(p, to->id);

        *ret = (struct leader_and_isr_request_partition_state){
                .partition_index = p->number,
                .controller_epoch = p->controller_epoch,
                .leader = p->leader,
                .leader_epoch = p->leader_epoch,
                .isr = {p->isr, p->n_isr},
                .partition_epoch = p->version,
                .is_new = s && s->is_new,
        };
        if (p->reassigning && (pick(p, is_kept, a, &kept) < 0 || pick(p, is_added, a, &added) < 0 ||
                               pick(p, is_removed, a, &removed) < 0))
                return -ENOMEM;
        ret->replicas.items = kept.items;
        ret->replicas.n = kept.n;
        ret->adding_replicas.items = added.items;
        ret->adding_replicas.n = added.n;
        ret->removing_replicas.items = removed.items;
        ret->removing_replicas.n = removed.n;
        return 0;
}

int request_lai(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
                size_t n, bool full, struct arena *a, struct leader_and_isr_request *ret)
{
        struct ctx_partition **sorted;
        struct leader_and_isr_request_partition_state *states;
        size_t topics;

        sorted = by_topic(a, items, n, &topics);
        states = arena_alloc(a, n + 1, sizeof(*states));
        wire_init(&leader_and_isr_request_wire, ret);
        ret->topic_states.items = arena_alloc(a, topics + 1, sizeof(*ret->topic_states.items));
        if (!sorted || !states || !ret->topic_states.items)
                return -ENOMEM;
        ret->controller_id = c->o.broker_id;
        ret->controller_epoch = c->epoch;
        ret->broker_epoch = to->epoch;
        ret->type = full ? LAI_TYPE_FULL : 0;
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || sorted[i]->topic != sorted[i - 1]->topic)
                        ret->topic_states.items[ret->topic_states.n++] =
                                (struct leader_and_isr_request_topic_state){
                                        .topic_name = wire_str(sorted[i]->topic->name),
                                        .topic_id = sorted[i]->topic->id,
                                        .partition_states = {&states[i], 0},
                                };
                if (fill_lai(to, sorted[i], a, &states[i]) < 0)
                        return -ENOMEM;
                ret->topic_states.items[ret->topic_states.n - 1].partition_states.n++;
        }
        return live_leaders(c, a, ret);
}

static const struct {
        const char *name;
        int16_t id;
} protocols[] = {{"PLAINTEXT", 0}, {"SSL", 1}, {"SASL_PLAINTEXT", 2}, {"SASL_SSL", 3}};

static int16_t protocol_id(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(protocols); i++)
                if (name && strcmp(name, protocols[i].name) == 0)
                        return protocols[i].id;
        return 0;
}

static int fill_broker(const struct ctx_broker *b, struct arena *a,
                       struct update_metadata_request_live_broker *ret)
{
        ret->id = b->id;
        ret->v0_host = wire_str("");
        ret->rack = wire_str(b->info.rack);
        ret->endpoints.items = arena_alloc(a, b->info.n_endpoints + 1, sizeof(*ret->endpoints.items));
        if (!ret->endpoints.items)
                return -ENOMEM;
        for (size_t i = 0; i < b->info.n_endpoints; i++) {
                const struct znode_endpoint *e = &b->info.endpoints[i];

                ret->endpoints.items[ret->endpoints.n++] = (struct update_metadata_request_endpoint){
                        .port = e->port,
                        .host = wire_str(e->host),
                        .listener = wire_str(e->listener ? e->listener : "PLAINTEXT"),
                        .security_protocol = protocol_id(e->protocol),
                };
        }
        return 0;
}

/* Dead and draining brokers count as offline replicas, as in Kafka. */
static int fill_um(struct ctx_partition *p, struct arena *a,
                   struct update_metadata_request_partition_state *ret)
{
        *ret = (struct update_metadata_request_partition_state){
                .partition_index = p->number,
                .controller_epoch = p->controller_epoch,
                .leader = p->topic->deleting || p->topic->forgotten ? LEADER_DURING_DELETE : p->leader,
                .leader_epoch = p->leader_epoch,
                .isr = {p->isr, p->n_isr},
                .zk_version = p->version,
                .replicas = {p->replicas, p->n_slots},
        };
        for (uint16_t i = 0; i < p->n_slots; i++) {
                const struct ctx_slot *s = &p->slots[i];

                if (s->broker->alive && !s->dir_offline && !s->broker->drain)
                        continue;
                if (!ret->offline_replicas.items)
                        ret->offline_replicas.items = arena_alloc(a, p->n_slots, sizeof(int32_t));
                if (!ret->offline_replicas.items)
                        return -ENOMEM;
                ret->offline_replicas.items[ret->offline_replicas.n++] = s->broker_id;
        }
        return 0;
}

static int um_brokers(struct controller *c, struct arena *a, struct update_metadata_request *ret)
{
        size_t cursor = 0;
        void *v;

        ret->live_brokers.items = arena_alloc(a, c->ctx.n_alive + 1, sizeof(*ret->live_brokers.items));
        if (!ret->live_brokers.items)
                return -ENOMEM;
        while (map_next(c->ctx.brokers, &cursor, NULL, NULL, &v)) {
                const struct ctx_broker *b = v;

                if (b->alive && fill_broker(b, a, &ret->live_brokers.items[ret->live_brokers.n++]) < 0)
                        return -ENOMEM;
        }
        return 0;
}

int request_um(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
               size_t n, struct arena *a, struct update_metadata_request *ret)
{
        struct ctx_partition **sorted;
        struct update_metadata_request_partition_state *states;
        size_t topics;

        sorted = by_topic(a, items, n, &topics);
        states = arena_alloc(a, n + 1, sizeof(*states));
        wire_init(&update_metadata_request_wire, ret);
        ret->topic_states.items = arena_alloc(a, topics + 1, sizeof(*ret->topic_states.items));
        if (!sorted || !states || !ret->topic_states.items)
                return -ENOMEM;
        ret->controller_id = c->o.broker_id;
        ret->controller_epoch = c->epoch;
        ret->broker_epoch = to->epoch;
        for (size_t i = 0; i < n; i++) {
                if (i == 0 || sorted[i]->topic != sorted[i - 1]->topic)
                        ret->topic_states.items[ret->topic_states.n++] =
                                (struct update_metadata_request_topic_state){
                                        .topic_name = wire_str(sorted[i]->topic->name),
                                        .topic_id = sorted[i]->topic->id,
                                        .partition_states = {&states[i], 0},
                                };
                if (fill_um(sorted[i], a, &states[i]) < 0)
                        return -ENOMEM;
                ret->topic_states.items[ret->topic_states.n - 1].partition_states.n++;
        }
        return um_brokers(c, a, ret);
}

int request_stop(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
                 size_t n, struct arena *a, struct stop_replica_request *ret)
{
        struct ctx_partition **sorted;
        struct stop_replica_request_partition_state *states;
        size_t topics;

        sorted = by_topic(a, items, n, &topics);
        states = arena_alloc(a, n + 1, sizeof(*states));
        wire_init(&stop_replica_request_wire, ret);
        ret->topic_states.items = arena_alloc(a, topics + 1, sizeof(*ret->topic_states.items));
        if (!sorted || !states || !ret->topic_states.items)
                return -ENOMEM;
        ret->controller_id = c->o.broker_id;
        ret->controller_epoch = c->epoch;
        ret->broker_epoch = to->epoch;
        for (size_t i = 0; i < n; i++) {
                bool deleting = sorted[i]->topic->deleting;
                struct ctx_slot *s = ctx_slot(sorted[i], to->id);

                if (s)
                        s->delete_in_flight =
                                !deleting && s->delete_sent && reassign_is_leaving(sorted[i], s);

                /* R48, R49: each partition by name, with a flag of its own. */
                if (i == 0 || sorted[i]->topic != sorted[i - 1]->topic)
                        ret->topic_states.items[ret->topic_states.n++] =
                                (struct stop_replica_request_topic_state){
                                        .topic_name = wire_str(sorted[i]->topic->name),
                                        .partition_states = {&states[i], 0},
                                };
                states[i] = (struct stop_replica_request_partition_state){
                        .partition_index = sorted[i]->number,
                        .leader_epoch = deleting ? EPOCH_DURING_DELETE : sorted[i]->leader_epoch,
                        .delete_partition = deleting || (s && s->delete_in_flight),
                };
                ret->topic_states.items[ret->topic_states.n - 1].partition_states.n++;
        }
        return 0;
}
