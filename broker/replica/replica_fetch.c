/* Fetch, of consumers and followers (§4.5): serve what is there, or wait in the purgatory until it is worth
 * it.
 *
 * First, once a request: may each partition be read, how much is there, and, of a follower, how far has it
 * got. When it is answered, now or later, what has changed since is looked at again, and what has bytes is
 * read. A follower's request names hundreds of partitions of which one has news, so the others must cost as
 * little as possible. */
#include "replica/replica_internal.h"

#include <errno.h>

#include "base/clock.h"
#include "wire/fetch.h"

/* Partitions of all requests that wait, about 200 bytes each, and of one partition: each of those is tried
 * whenever something is appended to it. Past that a fetch is answered with what is there. */
#define MAX_WAITS     (1024 * 1024)
#define MAX_KEY_WAITS (16 * 1024)

/* While memory for answers is short followers may use this much more: without them nothing is committed. */
#define FOLLOWER_RESERVE_BYTES ((size_t)64 * 1024 * 1024)

struct fetch_part {
        struct partition *p; /* a reference; NULL: not here, see error */
        struct partition_fetch fetch;
        int32_t index, topic;
        size_t max_bytes;
        struct partition_fetch_state
                state;          /* as last seen; valid while the partition's count of changes stands */
        size_t read_at, read_n; /* in the response's records */
};

struct fetch_topic {
        struct wire_str name; /* may be null from v13 on */
        struct uuid id;
        size_t n;
};

struct fetch_op {
        struct delayed_op base;
        struct replica_manager *m;
        struct replica_call call;
        struct arena arena;
        struct fetch_topic *topics;
        struct fetch_part *parts; /* by topic */
        struct delayed_wait *waits;
        size_t n_topics, n_parts, n_waits;
        int32_t replica_id;
        int64_t replica_epoch, min_bytes;
        int64_t throttled_ms; /* how long what a throttle holds back waits for it; INT64_MAX: nothing does */
        size_t max_bytes;
        int16_t error; /* of the whole request */
};

/* --- the answer --- */

static int64_t capped_bytes(const struct fetch_part *part)
{
        return MIN(part->state.bytes, (int64_t)part->max_bytes);
}

/* KIP-73: bytes for a replica that is not in sync, while the broker sends enough to such. They are as good as
 * not there; the request ends its wait when some may go, not when the follower's patience ends. */
static bool held_back(struct fetch_op *op, const struct fetch_part *part)
{
        int64_t ms;

        if (!part->state.throttled || part->state.bytes == 0)
                return false;
        ms = throttle_wait_ms(&op->m->throttles[THROTTLE_LEADER], capped_bytes(part));
        if (ms > 0)
                op->throttled_ms = MIN(op->throttled_ms, ms);
        return ms > 0;
}

/* That could be answered now. */
static int64_t ready_bytes(struct fetch_op *op, const struct fetch_part *part)
{
        return held_back(op, part) ? 0 : capped_bytes(part);
}

static void fill_partition(struct fetch_op *op, struct fetch_part *part, struct fetch_response_partition *out,
                           struct replica_hints *hints)
{
        const struct partition_fetch_state *s = &part->state;
        struct wire_str topic = op->topics[part->topic].name;

        out->partition_index = part->index;
        out->error_code = s->error;
        out->high_watermark = s->hw;
        out->last_stable_offset = s->hw; /* no transactions: everything committed is stable */
        out->log_start_offset = s->log_start_offset;
        out->diverging_epoch.epoch = s->diverging_epoch;
        out->diverging_epoch.end_offset = s->diverging_end_offset;
        out->aborted_transactions.n = -1;
        if (replica_error_has_hint(s->error))
                replica_hint(op->m, topic, part->index, part->p, s->error, hints,
                             &out->current_leader.leader_id, &out->current_leader.leader_epoch);
}

static bool is_current(const struct fetch_part *part)
{
        return atomic_load_explicit(&part->p->changes, memory_order_acquire) == part->state.changes;
}

/* What this answer may hold at most. When there is no memory for any, it says nothing about the data that is
 * there, and the reader asks again. */
static size_t response_limit(const struct fetch_op *op)
{
        size_t room = op->call.response_room ? op->call.response_room(op->call.userdata) : SIZE_MAX / 2;

        return MIN(op->max_bytes, op->replica_id >= 0 ? room + FOLLOWER_RESERVE_BYTES : room);
}

static void look_again(struct fetch_part *part, bool lease)
{
        if (!is_current(part))
                partition_fetch_check(part->p, &part->fetch, lease, &part->state);
}

/* The first batch is read whole even if the throttle grants less, or a large one would never go. */
static void read_throttled(const struct fetch_op *op, struct fetch_part *part, bool lease, size_t left,
                           struct buf *records)
{
        struct throttle *t = &op->m->throttles[THROTTLE_LEADER];
        int64_t taken = throttle_take(t, MIN((int64_t)MIN(part->max_bytes, left), part->state.bytes));

        if (taken == 0)
                return;
        partition_fetch_read(part->p, &part->fetch, lease, (size_t)taken, true, records, &part->read_n,
                             &part->state);
        throttle_settle(t, taken, (int64_t)part->read_n);
}

/* KIP-74: limits are for whole requests and partitions, but the first that has anything gets at least one
 * batch, or a reader could never get past a large one. */
static void read_part(const struct fetch_op *op, struct fetch_part *part, bool lease, size_t limit,
                      struct buf *records)
{
        size_t left = records->len < limit ? limit - records->len : 0;
        bool min_one = records->len == 0 && (limit > 0 || op->max_bytes == 0);

        part->read_at = records->len;
        part->read_n = 0;
        if (!part->p || (is_current(part) && part->state.bytes == 0))
                return;
        if (part->state.throttled)
                look_again(part, lease); /* it may be in sync by now */
        if (part->state.throttled)
                read_throttled(op, part, lease, left, records);
        else
                partition_fetch_read(part->p, &part->fetch, lease, MIN(part->max_bytes, left), min_one,
                                     records, &part->read_n, &part->state);
        if (part->state.error == KAFKA_NONE)
                return;
        records->len = part->read_at;
        part->read_n = 0;
}

static bool lease_valid(const struct replica_manager *m)
{
        return !m->ops.lease_valid || m->ops.lease_valid(m->ops.userdata);
}

/* F2: asked before and after the reads. A consumer gets nothing that was read while the lease ran out. */
static void read_all(struct fetch_op *op, struct buf *records)
{
        bool lease = lease_valid(op->m);
        size_t limit = response_limit(op);

        for (size_t i = 0; i < op->n_parts; i++)
                read_part(op, &op->parts[i], lease, limit, records);
        if (op->replica_id >= 0 || lease_valid(op->m))
                return;
        records->len = 0;
        for (size_t i = 0; i < op->n_parts; i++) {
                op->parts[i].read_n = 0;
                if (op->parts[i].p)
                        op->parts[i].state.error = KAFKA_NOT_LEADER_OR_FOLLOWER;
        }
}

/* The buffer may have moved while it grew, so the slices are set when it is complete. */
static void set_slices(struct fetch_op *op, struct replica_response *r, struct fetch_response_partition *outs)
{
        static const uint8_t empty[1];

        for (size_t i = 0; i < op->n_parts; i++) {
                const struct fetch_part *part = &op->parts[i];

                outs[i].records = (struct wire_bytes){
                        .data = part->read_n > 0 ? r->records.data + part->read_at : empty,
                        .len = (int32_t)part->read_n,
                };
        }
}

static int add_endpoints(struct replica_response *r, struct fetch_response *body,
                         const struct replica_hints *h)
{
        int ret;

        body->node_endpoints.items = WIRE_NEW(&r->arena, fetch_response_node_endpoint, (size_t)h->n);
        if (!body->node_endpoints.items)
                return -ENOMEM;
        for (int32_t i = 0; i < h->n; i++) {
                struct fetch_response_node_endpoint *e = &body->node_endpoints.items[i];

                e->node_id = h->brokers[i].id;
                e->port = h->brokers[i].port;
                ret = replica_copy_str(&r->arena, wire_str(h->brokers[i].host), &e->host);
                if (ret == 0 && h->brokers[i].rack[0])
                        ret = replica_copy_str(&r->arena, wire_str(h->brokers[i].rack), &e->rack);
                if (ret < 0)
                        return ret;
        }
        body->node_endpoints.n = h->n;
        return 0;
}

static int fill_topics(struct fetch_op *op, struct replica_response *r, struct fetch_response *body,
                       struct fetch_response_partition *outs)
{
        size_t at = 0;
        int ret;

        body->responses.items = WIRE_NEW(&r->arena, fetch_response_topic, op->n_topics);
        if (!body->responses.items)
                return -ENOMEM;
        body->responses.n = (int32_t)op->n_topics;
        for (size_t i = 0; i < op->n_topics; i++) {
                struct fetch_response_topic *t = &body->responses.items[i];

                ret = replica_copy_str(&r->arena, op->topics[i].name, &t->topic);
                if (ret < 0)
                        return ret;
                t->topic_id = op->topics[i].id;
                t->partitions.items = &outs[at];
                t->partitions.n = (int32_t)op->topics[i].n;
                at += op->topics[i].n;
        }
        return 0;
}

static int build(struct fetch_op *op, struct replica_response *r)
{
        struct fetch_response *body = arena_alloc(&r->arena, 1, sizeof(*body));
        struct fetch_response_partition *outs = WIRE_NEW(&r->arena, fetch_response_partition, op->n_parts);
        struct replica_hints hints = {.leaders = op->call.version >= 12, .endpoints = op->call.version >= 16};
        int ret;

        if (!body || !outs)
                return -ENOMEM;
        wire_init(&fetch_response_wire, body);
        r->body = body;
        body->error_code = op->error;
        if (op->error != KAFKA_NONE)
                return 0;
        ret = fill_topics(op, r, body, outs);
        if (ret < 0)
                return ret;
        read_all(op, &r->records);
        for (size_t i = 0; i < op->n_parts; i++) {
                fill_partition(op, &op->parts[i], &outs[i], &hints);
                r->failed |= op->parts[i].state.error != KAFKA_NONE;
        }
        set_slices(op, r, outs);
        return add_endpoints(r, body, &hints);
}

static bool op_is_abandoned(struct delayed_op *base)
{
        const struct fetch_op *op = container_of(base, struct fetch_op, base);

        return op->call.is_abandoned && op->call.is_abandoned(op->call.userdata);
}

static void op_complete(struct delayed_op *base, bool expired)
{
        struct fetch_op *op = container_of(base, struct fetch_op, base);
        struct replica_response *r = op_is_abandoned(base) ? NULL : replica_response_new(0);

        (void)expired; /* what is there is the answer, also when it is less than asked for */
        if (r && build(op, r) < 0)
                r = replica_response_free(r);
        op->call.on_done(r, op->call.userdata);
}

/* --- waiting --- */

/* Errors and divergence are answered at once (§4.5 A-F, H): waiting does not make them go away. Nor is there
 * anything to wait for once a partition has as much as it may carry, whatever min.bytes asks. */
static bool must_answer(struct fetch_op *op, const struct fetch_part *part)
{
        const struct partition_fetch_state *s = &part->state;

        return s->error != KAFKA_NONE || s->diverging_epoch >= 0 ||
               (s->bytes > 0 && s->bytes >= (int64_t)part->max_bytes && !held_back(op, part));
}

/* With min.bytes of at most one byte a change of one partition decides by itself. */
static bool is_satisfied_by(struct fetch_op *op, const struct purgatory_key *hint, bool lease)
{
        for (size_t i = 0; i < op->n_parts; i++) {
                struct fetch_part *part = &op->parts[i];

                if (!part->p || &part->p->fetch_key != hint)
                        continue;
                look_again(part, lease);
                if (must_answer(op, part) || ready_bytes(op, part) >= MAX(op->min_bytes, (int64_t)1))
                        return true;
        }
        return false;
}

/* R70: only bytes of the partitions in this fetch count, and of each only what it may carry. */
static bool op_is_satisfied(struct delayed_op *base, const struct purgatory_key *hint)
{
        struct fetch_op *op = container_of(base, struct fetch_op, base);
        bool lease = lease_valid(op->m);
        int64_t bytes = 0;

        if (hint && is_satisfied_by(op, hint, lease))
                return true;
        if (hint && op->min_bytes <= 1)
                return false;
        for (size_t i = 0; i < op->n_parts; i++) {
                struct fetch_part *part = &op->parts[i];

                if (!part->p)
                        return true;
                look_again(part, lease);
                if (must_answer(op, part))
                        return true;
                bytes += ready_bytes(op, part);
                if (bytes >= op->min_bytes)
                        return true;
        }
        return false;
}

static void op_free(struct delayed_op *base)
{
        struct fetch_op *op = container_of(base, struct fetch_op, base);

        for (size_t i = 0; i < op->n_parts; i++)
                (void)partition_unref(op->parts[i].p);
        arena_done(&op->arena);
        free(op);
}

static const struct delayed_op_ops fetch_ops = {
        .is_satisfied = op_is_satisfied,
        .complete = op_complete,
        .free = op_free,
        .is_abandoned = op_is_abandoned,
        .max_waits = MAX_WAITS,
        .max_key_waits = MAX_KEY_WAITS,
};

/* --- building it --- */

/* Under the map lock. */
static struct partition *find_part(struct fetch_op *op, const struct fetch_topic *t, int32_t index)
{
        if (op->call.version >= 13)
                return replica_find_locked(op->m, &t->id, sizeof(t->id), index, true);
        if (t->name.len < 1 || t->name.len >= TOPIC_NAME_SIZE)
                return NULL;
        return replica_find_locked(op->m, t->name.data, (size_t)t->name.len, index, false);
}

static void find_parts(struct fetch_op *op)
{
        pthread_rwlock_rdlock(&op->m->map_lock);
        for (size_t i = 0; i < op->n_parts; i++) {
                struct fetch_part *part = &op->parts[i];

                part->p = find_part(op, &op->topics[part->topic], part->index);
                if (part->p)
                        op->waits[op->n_waits++].key = &part->p->fetch_key;
        }
        pthread_rwlock_unlock(&op->m->map_lock);
}

static void say_missing(struct fetch_op *op)
{
        for (size_t i = 0; op->n_waits < op->n_parts && i < op->n_parts; i++) {
                struct fetch_part *part = &op->parts[i];
                const struct fetch_topic *t = &op->topics[part->topic];

                if (!part->p)
                        part->state.error = op->call.version >= 13 && t->name.len < 0
                                                    ? (int16_t)KAFKA_UNKNOWN_TOPIC_ID
                                                    : replica_missing_error(op->m, t->name, part->index);
        }
}

/* Names are copied: the request is gone when the answer is made. By id, the name is only for finding leaders.
 */
static int take_topic(struct fetch_op *op, const struct fetch_request_topic *from, struct fetch_topic *to)
{
        char name[TOPIC_NAME_SIZE];
        struct wire_str s = from->topic;

        to->id = from->topic_id;
        to->n = (size_t)MAX(from->partitions.n, 0);
        if (op->call.version >= 13)
                s = metadata_cache_topic_name(op->m->metadata, &from->topic_id, name) ? wire_str(name)
                                                                                      : WIRE_NULL_STR;
        return replica_copy_str(&op->arena, s, &to->name);
}

static void take_part(struct fetch_op *op, int32_t topic, const struct fetch_request_partition *from,
                      struct fetch_part *to)
{
        to->index = from->partition;
        to->topic = topic;
        to->max_bytes = (size_t)MAX(from->partition_max_bytes, 0);
        to->fetch = (struct partition_fetch){.replica_id = op->replica_id,
                                             .replica_epoch = op->replica_epoch,
                                             .current_leader_epoch = from->current_leader_epoch,
                                             .last_fetched_epoch = from->last_fetched_epoch,
                                             .offset = from->fetch_offset};
        to->state = (struct partition_fetch_state){.hw = -1,
                                                   .log_start_offset = -1,
                                                   .diverging_epoch = -1,
                                                   .diverging_end_offset = -1,
                                                   .changes = UINT32_MAX /* never seen */};
}

static int take_request(struct fetch_op *op, const struct fetch_request *req)
{
        size_t n = 0;
        int r;

        op->n_topics = (size_t)MAX(req->topics.n, 0);
        for (size_t i = 0; i < op->n_topics; i++)
                n += (size_t)MAX(req->topics.items[i].partitions.n, 0);
        op->topics = arena_alloc(&op->arena, op->n_topics + 1, sizeof(*op->topics));
        op->parts = arena_alloc(&op->arena, n + 1, sizeof(*op->parts));
        op->waits = arena_alloc(&op->arena, n + 1, sizeof(*op->waits));
        if (!op->topics || !op->parts || !op->waits)
                return -ENOMEM;
        for (size_t i = 0; i < op->n_topics; i++) {
                const struct fetch_request_topic *t = &req->topics.items[i];

                r = take_topic(op, t, &op->topics[i]);
                if (r < 0)
                        return r;
                for (int32_t j = 0; j < t->partitions.n; j++)
                        take_part(op, (int32_t)i, &t->partitions.items[j], &op->parts[op->n_parts++]);
        }
        find_parts(op);
        say_missing(op);
        return 0;
}

static int op_new(struct replica_manager *m, const struct fetch_request *req, const struct replica_call *call,
                  struct fetch_op **ret)
{
        struct fetch_op *op = calloc(1, sizeof(*op));
        int r;

        if (!op)
                return -ENOMEM;
        r = delayed_op_init(&op->base, &fetch_ops);
        if (r < 0) {
                free(op);
                return r;
        }
        arena_init(&op->arena, 0);
        op->m = m;
        op->call = *call;
        op->throttled_ms = INT64_MAX;
        op->replica_id = call->version >= 15 ? req->replica_state.replica_id : req->replica_id;
        op->replica_epoch = call->version >= 15 ? req->replica_state.replica_epoch : -1;
        op->max_bytes = (size_t)MAX(MIN(req->max_bytes, m->options.fetch_max_bytes), 0);
        op->min_bytes = MIN((int64_t)req->min_bytes, (int64_t)op->max_bytes); /* more cannot come */
        r = take_request(op, req);
        if (r < 0) {
                delayed_op_unref(&op->base);
                return r;
        }
        *ret = op;
        return 0;
}

/* --- serving it --- */

static int16_t session_error(const struct fetch_request *req)
{
        if (req->session_id != 0)
                return KAFKA_FETCH_SESSION_ID_NOT_FOUND;
        return req->session_epoch > 0 ? KAFKA_INVALID_FETCH_SESSION_EPOCH : KAFKA_NONE;
}

/* true: there is a reason not to wait. */
static bool begin_all(struct fetch_op *op)
{
        int64_t now_ms = clock_mono_ms(), bytes = 0;
        bool answer = op->n_parts == 0, lease = lease_valid(op->m);

        for (size_t i = 0; i < op->n_parts; i++) {
                struct fetch_part *part = &op->parts[i];
                struct partition_effects e;

                if (!part->p) {
                        answer = true;
                        continue;
                }
                partition_fetch_begin(part->p, &part->fetch, lease, now_ms, &part->state, &e);
                /* R67: this may complete produce requests, whose answers must not wait for ours. */
                replica_perform(op->m, part->p, &e);
                answer |= must_answer(op, part);
                bytes += ready_bytes(op, part);
        }
        return answer || bytes >= op->min_bytes;
}

void replica_manager_fetch(struct replica_manager *m, const struct fetch_request *req,
                           const struct replica_call *call)
{
        struct fetch_op *op;

        if (op_new(m, req, call, &op) < 0) {
                call->on_done(NULL, call->userdata);
                return;
        }
        op->error = session_error(req);
        if (op->error != KAFKA_NONE || atomic_load(&m->closed) || begin_all(op) || req->max_wait_ms <= 0) {
                op_complete(&op->base, false);
                delayed_op_unref(&op->base);
                return;
        }
        purgatory_wait(m->fetch, &op->base, op->waits, op->n_waits,
                       MIN((int64_t)req->max_wait_ms, op->throttled_ms));
}
