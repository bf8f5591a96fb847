/* PUT, GET and DELETE /v1/brokers/{id}/drain (D1): the controller's drain as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "admin/drain_body.h"
#include "admin/http.h"
#include "base/clock.h"
#include "controller/controller.h"
#include "wire/error.h"

#define BLOCKED_LISTED 100

static json_t *int_array(const int32_t *v, int32_t n)
{
        json_t *a = json_array();

        for (int32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, json_integer(v[i]));
        return a;
}

static json_t *blocked_json(const struct drain_blocked *b)
{
        json_t *o = json_pack("{s:s, s:i, s:s, s:s, s:b, s:b, s:i}", "topic", b->topic, "partition",
                              (int)b->partition, "reason", drain_reason_name(b->reason), "explanation",
                              drain_reason_help(b->reason), "leads", (int)b->leads, "never_safe",
                              (int)b->never_safe, "min_isr", (int)b->min_isr);

        if (!o)
                return NULL;
        (void)json_object_set_new(o, "isr", int_array(b->isr, b->n_isr));
        (void)json_object_set_new(o, "replicas", int_array(b->replicas, b->n_replicas));
        if (b->detail)
                (void)json_object_set_new(o, "detail", json_string(b->detail));
        return o;
}

static json_t *blocked_list(const struct drain_blocked *b, size_t n)
{
        json_t *a = json_array();

        for (size_t i = 0; i < n && i < BLOCKED_LISTED; i++)
                (void)json_array_append_new(a, blocked_json(&b[i]));
        return a;
}

static json_t *reasons_json(const struct drain_status *s)
{
        json_t *o = json_object();

        for (int i = 0; i < N_DRAIN_REASONS; i++)
                if (s->by_reason[i] > 0)
                        (void)json_object_set_new(o, drain_reason_name((enum drain_reason)i),
                                                  json_integer(s->by_reason[i]));
        return o;
}

static json_t *holder_json(const struct slot_holder *h)
{
        return json_pack("{s:i, s:I, s:s, s:s, s:I, s:I, s:s, s:s}", "broker", (int)h->broker, "epoch",
                         (json_int_t)h->epoch, "drain_id", h->drain_id, "state", slot_state_name(h->state),
                         "since_ms", (json_int_t)h->since_ms, "expires_ms", (json_int_t)h->expires_ms,
                         "reason", h->reason, "requested_by", h->requested_by);
}

/* D4: what stopping the broker means, each risk with its partitions, the worst first. */
static json_t *risks_json(const struct stop_check *sum)
{
        json_t *o = json_object(), *list = json_array();

        for (int i = N_STOP_RISKS - 1; i > STOP_SAFE; i--) {
                if (sum->by_risk[i] > 0)
                        (void)json_object_set_new(o, stop_risk_name((enum stop_risk)i),
                                                  json_integer(sum->by_risk[i]));
                for (size_t k = 0; k < sum->n_listed[i] && json_array_size(list) < BLOCKED_LISTED; k++) {
                        const struct stop_check_item *p = &sum->listed[i][k];
                        json_t *item = json_pack(
                                "{s:s, s:i, s:s, s:s, s:b, s:i, s:i}", "topic", p->topic, "partition",
                                (int)p->partition, "risk", stop_risk_name((enum stop_risk)i), "goes_away",
                                stop_wait_name(p->verdict.wait), "never_safe", (int)p->verdict.never_safe,
                                "min_isr", (int)p->min_isr, "in_sync_left", (int)p->verdict.left);

                        if (!item)
                                continue;
                        (void)json_object_set_new(item, "isr", int_array(p->isr, p->n_isr));
                        (void)json_object_set_new(item, "replicas", int_array(p->replicas, p->n_replicas));
                        (void)json_array_append_new(list, item);
                }
        }
        (void)json_object_set_new(o, "waiting_for", json_integer(sum->gate));
        (void)json_object_set_new(o, "list", list);
        return o;
}

static json_t *status_json(const struct drain_status *s)
{
        json_t *o = json_pack("{s:i, s:I, s:s, s:s, s:i, s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:b, s:b}",
                              "broker", (int)s->broker_id, "epoch", (json_int_t)s->broker_epoch, "drain_id",
                              s->drain_id, "state", s->stale ? "stale" : drain_state_name(s->state),
                              "leaders_initial", (int)s->leaders_initial, "moved", (int)s->leaders_moved,
                              "leaders_remaining", (int)s->leaders_remaining, "isr_remaining",
                              (int)s->isr_remaining, "rf1_led", (int)s->single_replica, "since_ms",
                              (json_int_t)s->since_ms, "deadline_ms", (json_int_t)s->deadline_ms,
                              "updated_ms", (json_int_t)s->updated_ms, "deadline_passed",
                              (int)s->deadline_passed, "zookeeper_available", (int)s->zookeeper_available);

        if (!o)
                return NULL;
        (void)json_object_set_new(o, "reason", json_string(s->reason));
        (void)json_object_set_new(o, "requested_by", json_string(s->requested_by));
        (void)json_object_set_new(o, "controller", json_integer(s->controller_id));
        (void)json_object_set_new(o, "controller_epoch", json_integer(s->controller_epoch));
        (void)json_object_set_new(o, "blocked_total", json_integer((json_int_t)s->leaders_remaining));
        (void)json_object_set_new(o, "blocked", blocked_list(s->blocked, s->n_blocked));
        (void)json_object_set_new(o, "by_reason", reasons_json(s));
        (void)json_object_set_new(o, "rf1", blocked_list(s->single, s->n_single));
        (void)json_object_set_new(o, "slot", s->holder ? holder_json(s->holder) : json_null());
        if (s->risks)
                (void)json_object_set_new(o, "risks", risks_json(s->risks));
        if (s->ended)
                (void)json_object_set_new(o, "error", json_string("drain_ended"));
        if (!s->zookeeper_available)
                (void)json_object_set_new(o, "error", json_string("zookeeper_unavailable"));
        return o;
}

/* D3: machine-readable, and in a form with which HTTP clients that know nothing of us come back later. */
static void reply_held(struct http_request *r, const struct drain_status *s)
{
        char message[SLOT_HOLDER_TEXT_SIZE + 64], holder[SLOT_HOLDER_TEXT_SIZE];
        json_t *o;

        if (s->holder)
                slot_holder_text(s->holder, holder);
        (void)snprintf(message, sizeof(message), "one broker is drained at a time; the slot is held by %s",
                       s->holder ? holder : "another broker");
        o = json_pack("{s:s, s:s, s:i, s:s, s:I, s:o}", "error", "slot_held", "message", message, "broker",
                      (int)s->broker_id, "state", drain_state_name(DRAIN_WAITING), "since_ms",
                      (json_int_t)s->since_ms, "holder", s->holder ? holder_json(s->holder) : json_null());
        http_reply_json(r, MHD_HTTP_TOO_MANY_REQUESTS, o);
}

/* D4: nothing has begun. The same status and header as for the slot: it is a matter of waiting. */
static void reply_unsafe(struct http_request *r, const struct drain_status *s)
{
        char message[256];
        json_t *o;

        (void)snprintf(message, sizeof(message),
                       "stopping broker %d now takes %d partitions offline or below min.insync.replicas; "
                       "replicas that are being waited for change that",
                       (int)s->broker_id, s->risks ? (int)s->risks->gate : 0);
        o = json_pack("{s:s, s:s, s:i, s:s, s:I}", "error", "unsafe", "message", message, "broker",
                      (int)s->broker_id, "state", "waiting_for_in_sync", "since_ms", (json_int_t)s->since_ms);
        if (o)
                (void)json_object_set_new(o, "leaders_remaining", json_integer(s->leaders_remaining));
        if (o && s->risks)
                (void)json_object_set_new(o, "risks", risks_json(s->risks));
        http_reply_json(r, MHD_HTTP_TOO_MANY_REQUESTS, o);
}

static void on_drain(int16_t error, const struct drain_status *s, void *userdata)
{
        struct http_request *r = userdata;

        if (error == KAFKA_NOT_CONTROLLER || !s)
                http_reply_to_controller(r);
        else if (error == KAFKA_BROKER_NOT_AVAILABLE)
                http_reply_error(r, MHD_HTTP_NOT_FOUND, "unknown_broker",
                                 "no broker with that id is registered: there is nothing to drain");
        else if (error == KAFKA_INVALID_REQUEST)
                http_reply_json(r, MHD_HTTP_CONFLICT, status_json(s));
        else if (error == KAFKA_OPERATION_NOT_ATTEMPTED)
                (s->unsafe ? reply_unsafe : reply_held)(r, s);
        else if (error != KAFKA_NONE && !s->zookeeper_available)
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "zookeeper_unavailable",
                                 "the controller has no confirmed ZooKeeper session now: the drain slot "
                                 "cannot be given to anybody");
        else if (error != KAFKA_NONE)
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "controller_error",
                                 kafka_error_name(error));
        else
                http_reply_json(r, s->stale ? MHD_HTTP_GONE : MHD_HTTP_OK, status_json(s));
}

void admin_put_drain(struct http_request *r)
{
        struct drain_request q = {.broker_id = r->id};
        char error[DRAIN_BODY_ERROR_SIZE];
        struct drain_body b;
        const char *code;

        if (drain_body_parse(r->body.data, r->body.len, &b, &code, error) < 0) {
                http_reply_error(r, MHD_HTTP_BAD_REQUEST, code, error);
                return;
        }
        q.broker_epoch = b.epoch;
        q.drain_id = b.drain_id;
        q.reason = b.reason;
        q.requested_by = b.requested_by;
        q.replace = b.replace;
        q.cluster_stop = b.cluster_shutdown;
        q.force = b.force;
        q.deadline_ms = b.deadline_ms > 0 ? clock_real_ms() + b.deadline_ms : 0;
        http_wait_begin(r);
        controller_drain_start(r->admin->env.controller, &q, on_drain, r); /* copies the strings */
}

void admin_get_drain(struct http_request *r)
{
        http_wait_begin(r);
        controller_drain_get(r->admin->env.controller, r->id,
                             MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, "drain_id"),
                             on_drain, r);
}

void admin_delete_drain(struct http_request *r)
{
        http_wait_begin(r);
        controller_drain_undo(r->admin->env.controller, r->id, -1, on_drain, r);
}
