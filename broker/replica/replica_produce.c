/* Produce: append here; with acks=all wait in the purgatory until the ISR has it (R64-R69, §4.4). */
#include "replica/replica_internal.h"

#include <errno.h>
#include <stdio.h>

#include "base/slog.h"
#include "wire/produce.h"
#include "wire/record_batch.h"

#define MAX_WAITS    (1024 * 1024) /* partitions of all requests that wait, about 300 bytes each */
#define ZSTD_VERSION 7             /* the first version of Produce whose clients know zstd (KIP-110) */

struct produce_status {      /* R65: one partition of the request */
        struct partition *p; /* a reference; NULL: not here */
        struct produce_response_partition *out;
        struct wire_str topic;
        uint32_t term;
        int64_t required_offset;
        bool pending;
};

struct produce_op {
        struct delayed_op base;
        struct replica_manager *m;
        struct replica_call call;
        struct replica_response *response; /* handed over when it completes */
        struct produce_response *body;
        struct produce_status *statuses;
        struct delayed_wait *waits;
        size_t n, n_waits;
        int16_t acks;
};

/* --- responses --- */

struct replica_response *replica_response_new(size_t records_ceiling)
{
        struct replica_response *r = calloc(1, sizeof(*r));

        if (!r)
                return NULL;
        arena_init(&r->arena, 0);
        buf_init(&r->records, records_ceiling);
        return r;
}

struct replica_response *replica_response_free(struct replica_response *r)
{
        if (!r)
                return NULL;
        buf_done(&r->records);
        arena_done(&r->arena);
        free(r);
        return NULL;
}

int replica_copy_str(struct arena *a, struct wire_str s, struct wire_str *ret)
{
        char *copy;

        *ret = WIRE_NULL_STR;
        if (s.len < 0)
                return 0;
        copy = arena_strndup(a, s.data, (size_t)s.len);
        if (!copy)
                return -ENOMEM;
        *ret = (struct wire_str){.data = copy, .len = s.len};
        return 0;
}

/* --- the operation --- */

static void op_free(struct delayed_op *base)
{
        struct produce_op *op = container_of(base, struct produce_op, base);

        for (size_t i = 0; i < op->n; i++)
                (void)partition_unref(op->statuses[i].p);
        (void)replica_response_free(op->response);
        free(op->statuses);
        free(op->waits);
        free(op);
}

static bool op_is_satisfied(struct delayed_op *base, const struct purgatory_key *hint)
{
        struct produce_op *op = container_of(base, struct produce_op, base);
        bool all = true;

        (void)hint;
        for (size_t i = 0; i < op->n; i++) {
                struct produce_status *s = &op->statuses[i];

                if (s->pending)
                        s->pending =
                                !partition_ack_state(s->p, s->term, s->required_offset, &s->out->error_code);
                all &= !s->pending;
        }
        return all;
}

static bool op_is_abandoned(struct delayed_op *base)
{
        const struct produce_op *op = container_of(base, struct produce_op, base);

        return op->call.is_abandoned && op->call.is_abandoned(op->call.userdata);
}

static int add_endpoints(struct replica_response *r, struct produce_response *body,
                         const struct replica_hints *h)
{
        int ret;

        body->node_endpoints.items = WIRE_NEW(&r->arena, produce_response_node_endpoint, (size_t)h->n);
        if (!body->node_endpoints.items)
                return -ENOMEM;
        for (int32_t i = 0; i < h->n; i++) {
                struct produce_response_node_endpoint *e = &body->node_endpoints.items[i];

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

static void finish_partition(struct produce_op *op, const struct produce_status *s,
                             struct replica_hints *hints)
{
        struct produce_response_partition *out = s->out;

        if (out->error_code == KAFKA_NONE)
                return;
        op->response->failed = true;
        if (out->error_code != KAFKA_NOT_ENOUGH_REPLICAS_AFTER_APPEND &&
            out->error_code != KAFKA_REQUEST_TIMED_OUT) {
                out->base_offset = -1;
                out->log_start_offset = -1;
        }
        if (replica_error_has_hint(out->error_code))
                replica_hint(op->m, s->topic, out->index, s->p, out->error_code, hints,
                             &out->current_leader.leader_id, &out->current_leader.leader_epoch);
        slog_debug("produce-failed", "a partition of a produce request failed",
                   SL_STR("code", kafka_error_name(out->error_code)), SL_INT("partition", out->index),
                   SL_INT("request", op->call.trace_id));
}

/* R69: what is still pending when the time is over has timed out; the others keep their own outcome. */
static void op_complete(struct delayed_op *base, bool expired)
{
        struct produce_op *op = container_of(base, struct produce_op, base);
        bool carried = op->call.version >= 10;
        struct replica_hints hints = {.leaders = carried, .endpoints = carried};

        (void)expired;
        for (size_t i = 0; i < op->n; i++) {
                if (op->statuses[i].pending)
                        op->statuses[i].out->error_code = KAFKA_REQUEST_TIMED_OUT;
                finish_partition(op, &op->statuses[i], &hints);
        }
        if (add_endpoints(op->response, op->body, &hints) < 0)
                op->response = replica_response_free(op->response);
        op->call.on_done(TAKE_PTR(op->response), op->call.userdata);
}

static const struct delayed_op_ops produce_ops = {
        .is_satisfied = op_is_satisfied,
        .complete = op_complete,
        .free = op_free,
        .is_abandoned = op_is_abandoned,
        .max_waits = MAX_WAITS,
};

/* --- building it --- */

static size_t count_partitions(const struct produce_request *req)
{
        size_t n = 0;

        for (int32_t i = 0; i < req->topic_data.n; i++)
                n += (size_t)MAX(req->topic_data.items[i].partition_data.n, 0);
        return n;
}

static int fill_topic(struct produce_op *op, const struct produce_request_topic *from,
                      struct produce_response_topic *to)
{
        size_t n = (size_t)MAX(from->partition_data.n, 0);
        int r;

        r = replica_copy_str(&op->response->arena, from->name, &to->name);
        if (r < 0)
                return r;
        to->partition_responses.items = WIRE_NEW(&op->response->arena, produce_response_partition, n);
        if (!to->partition_responses.items)
                return -ENOMEM;
        to->partition_responses.n = (int32_t)n;
        for (size_t i = 0; i < n; i++) {
                struct produce_response_partition *out = &to->partition_responses.items[i];

                out->index = from->partition_data.items[i].index;
                out->base_offset = -1;
                op->statuses[op->n++] = (struct produce_status){.out = out, .topic = to->name};
        }
        return 0;
}

static int fill_op(struct produce_op *op, const struct produce_request *req)
{
        size_t n = count_partitions(req), n_topics = (size_t)MAX(req->topic_data.n, 0);
        int r;

        op->response = replica_response_new(0);
        op->statuses = calloc(n + 1, sizeof(*op->statuses));
        op->waits = calloc(n + 1, sizeof(*op->waits));
        if (!op->response || !op->statuses || !op->waits)
                return -ENOMEM;
        op->body = arena_alloc(&op->response->arena, 1, sizeof(*op->body));
        if (!op->body)
                return -ENOMEM;
        wire_init(&produce_response_wire, op->body);
        op->response->body = op->body;
        op->body->responses.items = WIRE_NEW(&op->response->arena, produce_response_topic, n_topics);
        if (!op->body->responses.items)
                return -ENOMEM;
        op->body->responses.n = (int32_t)n_topics;
        for (size_t i = 0; i < n_topics; i++) {
                r = fill_topic(op, &req->topic_data.items[i], &op->body->responses.items[i]);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int op_new(struct replica_manager *m, const struct produce_request *req,
                  const struct replica_call *call, struct produce_op **ret)
{
        struct produce_op *op = calloc(1, sizeof(*op));
        int r;

        if (!op)
                return -ENOMEM;
        r = delayed_op_init(&op->base, &produce_ops);
        if (r < 0) {
                free(op);
                return r;
        }
        op->m = m;
        op->call = *call;
        op->acks = req->acks;
        r = fill_op(op, req);
        if (r < 0) {
                delayed_op_unref(&op->base);
                return r;
        }
        *ret = op;
        return 0;
}

/* --- appending --- */

/* What the log cannot judge. Transactions have no coordinator here, so that nobody would ever end one; what
 * was accepted as part of one would be read as committed. */
static int16_t check_batch(struct wire_bytes records, int16_t version)
{
        struct record_batch b;

        if (records.len <= 0)
                return KAFKA_INVALID_RECORD;
        if (record_batch_parse(records.data, (size_t)records.len, &b) < 0)
                return KAFKA_NONE; /* the log says what is wrong with it */
        if (record_batch_codec(&b) == RECORD_ZSTD && version < ZSTD_VERSION)
                return KAFKA_UNSUPPORTED_COMPRESSION_TYPE;
        return b.attributes & RECORD_ATTR_TRANSACTIONAL ? KAFKA_INVALID_TXN_STATE : KAFKA_NONE;
}

static void append_one(struct produce_op *op, struct produce_status *s,
                       const struct produce_request_partition *from)
{
        struct partition_effects e;
        struct partition_append a;

        s->out->error_code = check_batch(from->records, op->call.version);
        if (s->out->error_code != KAFKA_NONE)
                return;
        s->p = replica_find(op->m, s->topic, from->index);
        if (!s->p) {
                s->out->error_code = replica_missing_error(op->m, s->topic, from->index);
                return;
        }
        /* The frame is ours until the request is answered; offsets are assigned in it. */
        partition_produce(s->p, (uint8_t *)(uintptr_t)from->records.data, (size_t)from->records.len, op->acks,
                          &a, &e);
        replica_perform(op->m, s->p, &e);
        s->out->error_code = a.error;
        s->out->base_offset = a.base_offset; /* of the first record, whatever acks is (KAFKA-1255) */
        s->out->log_start_offset = a.log_start_offset;
        s->term = a.term;
        s->required_offset = a.required_offset;
        s->pending = a.error == KAFKA_NONE && op->acks == -1;
        if (s->pending)
                op->waits[op->n_waits++].key = &s->p->produce_key;
}

static void append_all(struct produce_op *op, const struct produce_request *req)
{
        size_t n = 0;

        for (int32_t i = 0; i < req->topic_data.n; i++) {
                const struct produce_request_topic *t = &req->topic_data.items[i];

                for (int32_t j = 0; j < t->partition_data.n; j++)
                        append_one(op, &op->statuses[n++], &t->partition_data.items[j]);
        }
}

static void refuse_all(struct produce_op *op, int16_t error)
{
        for (size_t i = 0; i < op->n; i++)
                op->statuses[i].out->error_code = error;
}

void replica_manager_produce(struct replica_manager *m, const struct produce_request *req,
                             const struct replica_call *call)
{
        struct produce_op *op;

        if (op_new(m, req, call, &op) < 0) {
                call->on_done(NULL, call->userdata);
                return;
        }
        if (atomic_load(&m->closed))
                refuse_all(op, KAFKA_NOT_LEADER_OR_FOLLOWER);
        else if (req->acks < -1 || req->acks > 1)
                refuse_all(op, KAFKA_INVALID_REQUIRED_ACKS);
        else
                append_all(op, req);
        if (op->n_waits == 0) { /* R64: acks 0 and 1, or nothing was appended */
                op_complete(&op->base, false);
                delayed_op_unref(&op->base);
                return;
        }
        purgatory_try_or_wait(m->produce, &op->base, op->waits, op->n_waits, req->timeout_ms);
}
