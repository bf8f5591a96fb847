#include "fake_broker.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/map.h"
#include "net/net.h"
#include "wire/codec.h"
#include "wire/error.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

#define N_KINDS 3

struct role {
        char topic[64];
        int32_t partition, leader, leader_epoch;
        bool fetching, present;
};

struct held {
        struct net_request *q;
        struct held *next;
};

struct fake_broker {
        int32_t id;
        struct loop *loop;
        struct net_server *server;
        pthread_mutex_t lock;
        int64_t broker_epoch;
        int32_t fence_epoch;
        bool hold[N_KINDS];
        int fail[N_KINDS];
        int16_t partition_error[N_KINDS];
        int requests[N_KINDS], live_brokers;
        struct told *told;
        size_t n_told, told_capacity;
        struct map *roles; /* "topic/partition" -> role */
        struct held *held;
        bool full, serving_held;
};

static _Atomic int64_t sequence;

static const int16_t api_keys[N_KINDS] = {[TOLD_LAI] = 4, [TOLD_UM] = 6, [TOLD_STOP] = 5};

static void *grow(void *items, size_t n, size_t *capacity, size_t size)
{
        if (n < *capacity)
                return items;
        *capacity = *capacity ? *capacity * 2 : 64;
        items = realloc(items, *capacity * size);
        assert_non_null(items);
        return items;
}

static void remember(struct fake_broker *b, struct told t, struct wire_str topic)
{
        b->told = grow(b->told, b->n_told, &b->told_capacity, sizeof(*b->told));
        t.seq = atomic_fetch_add(&sequence, 1);
        (void)snprintf(t.topic, sizeof(t.topic), "%.*s", topic.len, topic.data);
        b->told[b->n_told++] = t;
}

static struct role *role_of(struct fake_broker *b, const char *topic, int32_t partition, bool make)
{
        struct role *r;
        char key[96];

        (void)snprintf(key, sizeof(key), "%s/%d", topic, partition);
        r = map_get_str(b->roles, key);
        if (r || !make)
                return r;
        r = calloc(1, sizeof(*r));
        assert_non_null(r);
        *r = (struct role){.partition = partition, .leader = -1, .leader_epoch = -1};
        (void)snprintf(r->topic, sizeof(r->topic), "%s", topic);
        assert_int_equal(map_put_str(b->roles, key, r), 0);
        return r;
}

static int16_t gate(const struct fake_broker *b, int32_t controller_epoch, int64_t broker_epoch)
{
        if (controller_epoch < b->fence_epoch)
                return KAFKA_STALE_CONTROLLER_EPOCH;
        if (broker_epoch != -1 && broker_epoch < b->broker_epoch)
                return KAFKA_STALE_BROKER_EPOCH;
        return KAFKA_NONE;
}

static void answer(struct net_request *q, const struct wire_message *m, const struct wire_request_header *h,
                   const void *body)
{
        cleanup_with(buf_donep) struct buf out = {0};

        assert_int_equal(wire_encode_response(m, h->api_version, h->correlation_id, body, &out), 0);
        net_request_reply(q, &out);
}

static int16_t take_lai_partition(struct fake_broker *b, const struct leader_and_isr_request *req,
                                  const struct leader_and_isr_request_topic_state *t,
                                  const struct leader_and_isr_request_partition_state *p)
{
        struct told told = {.kind = TOLD_LAI,
                            .partition = p->partition_index,
                            .leader = p->leader,
                            .leader_epoch = p->leader_epoch,
                            .partition_epoch = p->partition_epoch,
                            .controller_epoch = req->controller_epoch,
                            .broker_epoch = req->broker_epoch,
                            .is_new = p->is_new,
                            .full = req->type == 2};
        char topic[64];
        struct role *r;

        for (int32_t i = 0; i < p->isr.n && i < 8; i++)
                told.isr[told.n_isr++] = p->isr.items[i];
        remember(b, told, t->topic_name);
        (void)snprintf(topic, sizeof(topic), "%.*s", t->topic_name.len, t->topic_name.data);
        r = role_of(b, topic, p->partition_index, true);
        if (b->partition_error[TOLD_LAI]) /* an offline replica's comes before the epoch is looked at */
                return b->partition_error[TOLD_LAI];
        if (p->leader_epoch <= r->leader_epoch)
                return KAFKA_STALE_CONTROLLER_EPOCH;
        *r = (struct role){.partition = p->partition_index,
                           .leader = p->leader,
                           .leader_epoch = p->leader_epoch,
                           .fetching = p->leader != b->id && p->leader >= 0,
                           .present = true};
        (void)snprintf(r->topic, sizeof(r->topic), "%s", topic);
        return KAFKA_NONE;
}

static void take_lai(struct fake_broker *b, struct net_request *q, const struct wire_request_header *h,
                     const void *data, size_t len, struct arena *a)
{
        struct leader_and_isr_request req;
        struct leader_and_isr_response res;

        assert_int_equal(h->api_version, 7);
        assert_int_equal(wire_decode(&leader_and_isr_request_wire, h->api_version, data, len, a, &req), 0);
        wire_init(&leader_and_isr_response_wire, &res);
        res.error_code = gate(b, req.controller_epoch, req.broker_epoch);
        if (res.error_code == KAFKA_NONE) {
                b->full = b->full || req.type == 2;
                res.topics.items = arena_alloc(a, (size_t)req.topic_states.n + 1, sizeof(*res.topics.items));
                res.topics.n = req.topic_states.n;
                for (int32_t i = 0; i < req.topic_states.n; i++) {
                        const struct leader_and_isr_request_topic_state *t = &req.topic_states.items[i];
                        struct leader_and_isr_response_topic *o = &res.topics.items[i];

                        o->topic_id = t->topic_id;
                        o->partition_errors.items = arena_alloc(a, (size_t)t->partition_states.n + 1,
                                                                sizeof(*o->partition_errors.items));
                        o->partition_errors.n = t->partition_states.n;
                        for (int32_t k = 0; k < t->partition_states.n; k++) {
                                o->partition_errors.items[k].partition_index =
                                        t->partition_states.items[k].partition_index;
                                o->partition_errors.items[k].error_code =
                                        take_lai_partition(b, &req, t, &t->partition_states.items[k]);
                        }
                }
        }
        answer(q, &leader_and_isr_response_wire, h, &res);
}

static void take_um(struct fake_broker *b, struct net_request *q, const struct wire_request_header *h,
                    const void *data, size_t len, struct arena *a)
{
        struct update_metadata_request req;
        struct update_metadata_response res;

        assert_int_equal(h->api_version, 8);
        assert_int_equal(wire_decode(&update_metadata_request_wire, h->api_version, data, len, a, &req), 0);
        wire_init(&update_metadata_response_wire, &res);
        res.error_code = gate(b, req.controller_epoch, req.broker_epoch);
        for (int32_t i = 0; res.error_code == 0 && i < req.topic_states.n; i++)
                for (int32_t k = 0; k < req.topic_states.items[i].partition_states.n; k++) {
                        const struct update_metadata_request_partition_state *p =
                                &req.topic_states.items[i].partition_states.items[k];
                        struct told told = {.kind = TOLD_UM,
                                            .partition = p->partition_index,
                                            .leader = p->leader,
                                            .leader_epoch = p->leader_epoch,
                                            .partition_epoch = p->zk_version,
                                            .controller_epoch = req.controller_epoch,
                                            .broker_epoch = req.broker_epoch};

                        for (int32_t n = 0; n < p->isr.n && n < 8; n++)
                                told.isr[told.n_isr++] = p->isr.items[n];
                        remember(b, told, req.topic_states.items[i].topic_name);
                }
        if (res.error_code == 0)
                b->live_brokers = req.live_brokers.n;
        answer(q, &update_metadata_response_wire, h, &res);
}

static int16_t take_stop_partition(struct fake_broker *b, const struct stop_replica_request *req,
                                   struct wire_str name, const struct stop_replica_request_partition_state *p)
{
        struct told told = {.kind = TOLD_STOP,
                            .partition = p->partition_index,
                            .leader_epoch = p->leader_epoch,
                            .controller_epoch = req->controller_epoch,
                            .broker_epoch = req->broker_epoch,
                            .delete_partition = p->delete_partition};
        char topic[64];
        struct role *r;

        remember(b, told, name);
        if (b->partition_error[TOLD_STOP])
                return b->partition_error[TOLD_STOP];
        (void)snprintf(topic, sizeof(topic), "%.*s", name.len, name.data);
        r = role_of(b, topic, p->partition_index, true);
        if (p->leader_epoch >= 0 && p->leader_epoch < r->leader_epoch)
                return KAFKA_FENCED_LEADER_EPOCH;
        r->fetching = false;
        if (p->delete_partition)
                *r = (struct role){.partition = p->partition_index, .leader = -1, .leader_epoch = -1};
        return KAFKA_NONE;
}

static void take_stop(struct fake_broker *b, struct net_request *q, const struct wire_request_header *h,
                      const void *data, size_t len, struct arena *a)
{
        struct stop_replica_request req;
        struct stop_replica_response res;
        int32_t n = 0;

        assert_int_equal(h->api_version, 4);
        assert_int_equal(wire_decode(&stop_replica_request_wire, h->api_version, data, len, a, &req), 0);
        wire_init(&stop_replica_response_wire, &res);
        res.error_code = gate(b, req.controller_epoch, req.broker_epoch);
        for (int32_t i = 0; i < req.topic_states.n; i++)
                n += req.topic_states.items[i].partition_states.n;
        assert_true(n > 0); /* R48: never the empty request */
        res.partition_errors.items = arena_alloc(a, (size_t)n, sizeof(*res.partition_errors.items));
        for (int32_t i = 0; res.error_code == 0 && i < req.topic_states.n; i++)
                for (int32_t k = 0; k < req.topic_states.items[i].partition_states.n; k++) {
                        const struct stop_replica_request_topic_state *t = &req.topic_states.items[i];

                        res.partition_errors.items[res.partition_errors.n++] =
                                (struct stop_replica_response_partition_error){
                                        .topic_name = t->topic_name,
                                        .partition_index = t->partition_states.items[k].partition_index,
                                        .error_code = take_stop_partition(b, &req, t->topic_name,
                                                                          &t->partition_states.items[k]),
                                };
                }
        answer(q, &stop_replica_response_wire, h, &res);
}

static bool take(struct fake_broker *b, struct net_request *q)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct wire_request_header h;
        size_t consumed;
        enum told_kind kind = TOLD_LAI;

        arena_init(&a, 0);
        assert_int_equal(wire_decode_request_header(q->frame.data, q->frame.len, &h, &consumed), 0);
        while (api_keys[kind] != h.api_key)
                kind++;
        if (b->hold[kind] && !b->serving_held)
                return false;
        b->requests[kind]++;
        if (b->fail[kind] > 0) {
                b->fail[kind]--;
                net_request_abort(q);
                return true;
        }
        (kind == TOLD_LAI  ? take_lai
         : kind == TOLD_UM ? take_um
                           : take_stop)(b, q, &h, q->frame.data + consumed, q->frame.len - consumed, &a);
        return true;
}

static void on_request(struct net_request *q, void *userdata)
{
        struct fake_broker *b = userdata;

        (void)pthread_mutex_lock(&b->lock);
        if (!take(b, q)) {
                struct held *h = calloc(1, sizeof(*h)), **at = &b->held;

                assert_non_null(h);
                h->q = q;
                while (*at)
                        at = &(*at)->next;
                *at = h;
        }
        (void)pthread_mutex_unlock(&b->lock);
}

static void serve_held(void *userdata)
{
        struct fake_broker *b = userdata;
        struct held *h;

        (void)pthread_mutex_lock(&b->lock);
        b->serving_held = true;
        while ((h = b->held)) {
                b->held = h->next;
                (void)take(b, h->q);
                free(h);
        }
        b->serving_held = false;
        (void)pthread_mutex_unlock(&b->lock);
}

struct fake_broker *fake_broker_new(int32_t id)
{
        struct fake_broker *b = calloc(1, sizeof(*b));
        struct net_ops ops = {.on_request = on_request, .userdata = b};
        struct net_limits limits;

        assert_non_null(b);
        b->id = id;
        (void)pthread_mutex_init(&b->lock, NULL);
        b->roles = map_new();
        assert_non_null(b->roles);
        net_limits_default(&limits);
        assert_int_equal(loop_new("fake-broker", &b->loop), 0);
        assert_int_equal(net_server_new(b->loop, "127.0.0.1", 0, &limits, &ops, &b->server), 0);
        assert_int_equal(loop_thread_start(b->loop), 0);
        return b;
}

static void free_server(void *userdata)
{
        struct fake_broker *b = userdata;

        while (b->held) {
                struct held *h = b->held;

                b->held = h->next;
                net_request_abort(h->q);
                free(h);
        }
        b->server = net_server_free(b->server);
}

struct fake_broker *fake_broker_free(struct fake_broker *b)
{
        size_t cursor = 0;
        void *role;

        if (!b)
                return NULL;
        assert_int_equal(loop_call(b->loop, free_server, b), 0);
        loop_stop(b->loop);
        loop_thread_join(b->loop);
        loop_free(b->loop);
        (void)pthread_mutex_destroy(&b->lock);
        while (map_next(b->roles, &cursor, NULL, NULL, &role))
                free(role);
        map_free(b->roles);
        free(b->told);
        free(b);
        return NULL;
}

uint16_t fake_broker_port(const struct fake_broker *b)
{
        return net_server_port(b->server);
}

#define LOCKED(b, statement)                                                                                 \
        do {                                                                                                 \
                (void)pthread_mutex_lock(&(b)->lock);                                                        \
                statement;                                                                                   \
                (void)pthread_mutex_unlock(&(b)->lock);                                                      \
        } while (0)

void fake_broker_set_epoch(struct fake_broker *b, int64_t broker_epoch)
{
        LOCKED(b, b->broker_epoch = broker_epoch);
}

void fake_broker_hold(struct fake_broker *b, enum told_kind kind, bool on)
{
        LOCKED(b, b->hold[kind] = on);
}

void fake_broker_release(struct fake_broker *b)
{
        LOCKED(b, memset(b->hold, 0, sizeof(b->hold)));
        assert_int_equal(loop_call(b->loop, serve_held, b), 0);
}

void fake_broker_fail_next(struct fake_broker *b, enum told_kind kind, int times)
{
        LOCKED(b, b->fail[kind] = times);
}

void fake_broker_partition_error(struct fake_broker *b, enum told_kind kind, int16_t error)
{
        LOCKED(b, b->partition_error[kind] = error);
}

void fake_broker_fence(struct fake_broker *b, int32_t controller_epoch)
{
        LOCKED(b, b->fence_epoch = controller_epoch);
}

int fake_broker_requests(struct fake_broker *b, enum told_kind kind)
{
        int n;

        LOCKED(b, n = b->requests[kind]);
        return n;
}

int fake_broker_live_brokers(struct fake_broker *b)
{
        int n;

        LOCKED(b, n = b->live_brokers);
        return n;
}

static bool matches(const struct told *t, enum told_kind kind, const char *topic, int32_t partition)
{
        return t->kind == kind && t->partition == partition && strcmp(t->topic, topic) == 0;
}

bool fake_broker_last(struct fake_broker *b, enum told_kind kind, const char *topic, int32_t partition,
                      struct told *ret)
{
        bool found = false;

        (void)pthread_mutex_lock(&b->lock);
        for (size_t i = b->n_told; i > 0 && !found; i--)
                if (matches(&b->told[i - 1], kind, topic, partition)) {
                        *ret = b->told[i - 1];
                        found = true;
                }
        (void)pthread_mutex_unlock(&b->lock);
        return found;
}

bool fake_broker_first(struct fake_broker *b, enum told_kind kind, const char *topic, int32_t partition,
                       struct told *ret)
{
        bool found = false;

        (void)pthread_mutex_lock(&b->lock);
        for (size_t i = 0; i < b->n_told && !found; i++)
                if (matches(&b->told[i], kind, topic, partition)) {
                        *ret = b->told[i];
                        found = true;
                }
        (void)pthread_mutex_unlock(&b->lock);
        return found;
}

int fake_broker_count(struct fake_broker *b, enum told_kind kind, const char *topic)
{
        int n = 0;

        (void)pthread_mutex_lock(&b->lock);
        for (size_t i = 0; i < b->n_told; i++)
                n += b->told[i].kind == kind && strcmp(b->told[i].topic, topic) == 0;
        (void)pthread_mutex_unlock(&b->lock);
        return n;
}

bool fake_broker_has_full(struct fake_broker *b)
{
        bool full;

        LOCKED(b, full = b->full);
        return full;
}

static struct role role_copy(struct fake_broker *b, const char *topic, int32_t partition)
{
        struct role *r, copy = {.leader = -1};

        (void)pthread_mutex_lock(&b->lock);
        r = role_of(b, topic, partition, false);
        if (r)
                copy = *r;
        (void)pthread_mutex_unlock(&b->lock);
        return copy;
}

bool fake_broker_leads(struct fake_broker *b, const char *topic, int32_t partition)
{
        return role_copy(b, topic, partition).leader == b->id;
}

bool fake_broker_fetches(struct fake_broker *b, const char *topic, int32_t partition)
{
        return role_copy(b, topic, partition).fetching;
}

bool fake_broker_has(struct fake_broker *b, const char *topic, int32_t partition)
{
        return role_copy(b, topic, partition).present;
}

int fake_broker_n_led(struct fake_broker *b)
{
        size_t cursor = 0;
        void *role;
        int n = 0;

        (void)pthread_mutex_lock(&b->lock);
        while (map_next(b->roles, &cursor, NULL, NULL, &role))
                n += ((struct role *)role)->leader == b->id;
        (void)pthread_mutex_unlock(&b->lock);
        return n;
}
