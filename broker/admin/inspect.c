/* GET /v1/brokers/{id}/check (D10), GET /v1/brokers/{id} and GET /v1/drains (D12). */
#include "controller/inspect.h"

#include <stdio.h>
#include <string.h>

#include "admin/http.h"
#include "base/parse.h"
#include "wire/error.h"

#define DAY_MS INT64_C(86400000)

static json_t *int_array(const int32_t *v, int32_t n)
{
        json_t *a = json_array();

        for (int32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, json_integer(v[i]));
        return a;
}

/* "" when it is not known. */
static void format_address(const char *host, uint16_t port, char out[300])
{
        out[0] = '\0';
        if (host[0] != '\0')
                (void)snprintf(out, 300, strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, port);
}

static void refuse(struct http_request *r, int16_t error, const char *unknown)
{
        if (error == KAFKA_NOT_CONTROLLER)
                http_reply_to_controller(r);
        else if (error == KAFKA_BROKER_NOT_AVAILABLE)
                http_reply_error(r, MHD_HTTP_NOT_FOUND, "unknown_broker", unknown);
        else
                http_reply_error(r, MHD_HTTP_SERVICE_UNAVAILABLE, "controller_error",
                                 kafka_error_name(error));
}

/* --- check --- */

static json_t *item_json(const struct stop_check_item *i)
{
        json_t *o = json_pack(
                "{s:s, s:i, s:i, s:i, s:i, s:s, s:b, s:b}", "topic", i->topic, "partition", (int)i->partition,
                "leader", (int)i->leader, "min_isr", (int)i->min_isr, "in_sync_left", (int)i->verdict.left,
                "goes_away", stop_wait_name(i->verdict.wait), "already",
                (int)(i->verdict.before >= i->verdict.risk), "never_safe", (int)i->verdict.never_safe);

        if (!o)
                return NULL;
        (void)json_object_set_new(o, "isr", int_array(i->isr, i->n_isr));
        (void)json_object_set_new(o, "replicas", int_array(i->replicas, i->n_replicas));
        return o;
}

static json_t *risk_json(const struct stop_check *s, enum stop_risk risk)
{
        json_t *o = json_pack("{s:i, s:i, s:s}", "partitions", (int)s->by_risk[risk], "already",
                              (int)s->already[risk], "explanation", stop_risk_help(risk));
        json_t *waits = json_object(), *list = json_array();

        for (int w = STOP_WAIT_CATCH_UP; w < N_STOP_WAITS; w++)
                if (s->by_wait[risk][w] > 0)
                        (void)json_object_set_new(waits, stop_wait_name((enum stop_wait)w),
                                                  json_integer(s->by_wait[risk][w]));
        for (size_t i = 0; i < s->n_listed[risk]; i++)
                (void)json_array_append_new(list, item_json(&s->listed[risk][i]));
        if (!o)
                o = json_object();
        (void)json_object_set_new(o, "goes_away", waits);
        (void)json_object_set_new(o, "list", list);
        return o;
}

static json_t *estimate_json(const struct drain_estimate *e)
{
        return json_pack("{s:I, s:s, s:i, s:f}", "ms", (json_int_t)e->ms, "source",
                         e->measured ? "measured" : "default", "drains", (int)e->drains,
                         "replicas_per_second", (double)e->rate_milli / 1000);
}

static json_t *draining_json(const struct draining_broker *d)
{
        return json_pack("{s:i, s:s, s:s, s:I, s:I}", "broker", (int)d->id, "state",
                         drain_state_name(d->state), "drain_id", d->drain_id, "since_ms",
                         (json_int_t)d->since_ms, "deadline_ms", (json_int_t)d->deadline_ms);
}

/* What cannot move waits for others, and nobody knows for how long: then no budget is known to be enough. */
static json_t *budget_json(const struct broker_check *c, int64_t budget_ms)
{
        const char *why = c->stuck > 0                 ? "stuck"
                          : c->n_draining > 0          ? "another_drain"
                          : c->estimate.ms > budget_ms ? "too_short"
                                                       : "";

        return json_pack("{s:I, s:b, s:s}", "ms", (json_int_t)budget_ms, "suffices", (int)(why[0] == '\0'),
                         "why", why);
}

static json_t *check_json(const struct broker_check *c, int64_t budget_ms)
{
        enum stop_risk worst = stop_check_worst(&c->sum);
        json_t *o =
                json_pack("{s:i, s:I, s:b, s:s, s:i, s:i, s:i, s:i, s:i, s:s}", "broker", (int)c->broker_id,
                          "epoch", (json_int_t)c->broker_epoch, "safe", (int)(worst <= STOP_ONE_COPY),
                          "worst", stop_risk_name(worst), "partitions", (int)c->sum.partitions, "replicas",
                          (int)c->replicas, "leaders", (int)c->sum.leaders, "stuck", (int)c->stuck, "delays",
                          (int)c->sum.delays, "drain_state", drain_state_name(c->drain));
        json_t *risks = json_object(), *draining = json_array();

        for (int i = N_STOP_RISKS - 1; i > STOP_SAFE; i--)
                if (c->sum.by_risk[i] > 0)
                        (void)json_object_set_new(risks, stop_risk_name((enum stop_risk)i),
                                                  risk_json(&c->sum, (enum stop_risk)i));
        for (size_t i = 0; i < c->n_draining; i++)
                (void)json_array_append_new(draining, draining_json(&c->draining[i]));
        if (!o)
                o = json_object();
        (void)json_object_set_new(o, "risks", risks);
        (void)json_object_set_new(o, "unclean", json_integer(c->sum.unclean));
        (void)json_object_set_new(o, "never_safe", json_integer(c->sum.never_safe));
        (void)json_object_set_new(o, "draining", draining);
        (void)json_object_set_new(o, "estimate", estimate_json(&c->estimate));
        if (budget_ms > 0)
                (void)json_object_set_new(o, "budget", budget_json(c, budget_ms));
        (void)json_object_set_new(o, "controller", json_integer(c->controller_id));
        (void)json_object_set_new(o, "controller_epoch", json_integer(c->controller_epoch));
        (void)json_object_set_new(o, "zookeeper_available", json_boolean(c->zookeeper_available));
        return o;
}

/* On the HTTP thread, before the controller is asked: r->number. */
static bool take_number(struct http_request *r, const char *name, int64_t absent, int64_t min, int64_t max)
{
        const char *text = MHD_lookup_connection_value(r->connection, MHD_GET_ARGUMENT_KIND, name);

        r->number = absent;
        return !text || parse_int64(text, min, max, &r->number) == 0;
}

static void on_check(int16_t error, const struct broker_check *c, void *userdata)
{
        struct http_request *r = userdata;

        if (error != KAFKA_NONE)
                refuse(r, error, "no broker with that id is registered: there is nothing to stop");
        else
                http_reply_json(r, MHD_HTTP_OK, check_json(c, r->number));
}

void admin_get_check(struct http_request *r)
{
        if (!take_number(r, "budget_ms", 0, 1, DAY_MS)) {
                http_reply_error(r, MHD_HTTP_BAD_REQUEST, "bad_request",
                                 "budget_ms is a number of milliseconds, at most a day");
                return;
        }
        http_wait_begin(r);
        controller_check(r->admin->env.controller, r->id, on_check, r);
}

/* --- a broker --- */

static json_t *catching_up_json(const struct broker_info *b)
{
        json_t *list = json_array();

        for (size_t i = 0; i < b->n_catching_up; i++) {
                const struct cluster_partition *p = &b->catching_up[i];
                json_t *o = json_pack("{s:s, s:i, s:i}", "topic", p->topic, "partition", (int)p->partition,
                                      "leader", (int)p->leader);

                if (!o)
                        break;
                (void)json_object_set_new(o, "isr", int_array(p->isr, p->n_isr));
                (void)json_object_set_new(o, "replicas", int_array(p->replicas, p->n_replicas));
                (void)json_array_append_new(list, o);
        }
        return list;
}

static json_t *info_json(const struct broker_info *b)
{
        char address[300], admin[300];
        json_t *o, *drain;

        format_address(b->host, b->port, address);
        format_address(b->admin_host, b->admin_port, admin);
        o = json_pack("{s:i, s:b, s:I, s:I, s:s, s:s, s:b, s:i, s:i}", "broker", (int)b->broker_id,
                      "registered", (int)b->registered, "epoch", (json_int_t)b->broker_epoch, "since_ms",
                      (json_int_t)b->since_ms, "address", address, "admin", admin, "is_controller",
                      (int)(b->registered && b->broker_id == b->controller_id), "controller",
                      (int)b->controller_id, "controller_epoch", (int)b->controller_epoch);
        if (!o)
                return NULL;
        (void)json_object_update_new(
                o,
                json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:b, s:i}", "leaders", (int)b->leaders,
                          "leaders_rf1", (int)b->leaders_single, "preferred", (int)b->preferred,
                          "preferred_elsewhere", (int)b->preferred_elsewhere, "replicas", (int)b->replicas,
                          "in_sync", (int)b->in_sync, "under_replicated", (int)b->under_replicated, "offline",
                          (int)b->offline, "caught_up", (int)(b->registered && b->in_sync == b->replicas),
                          "catching_up_total", (int)(b->replicas - b->in_sync)));
        (void)json_object_set_new(o, "catching_up", catching_up_json(b));
        drain = draining_json(&b->drain);
        if (drain) {
                (void)json_object_del(drain, "broker");
                (void)json_object_set_new(drain, "moved", json_integer(b->drain_moved));
        }
        (void)json_object_set_new(o, "drain", drain);
        (void)json_object_set_new(o, "zookeeper_available", json_boolean(b->zookeeper_available));
        return o;
}

static void on_info(int16_t error, const struct broker_info *b, void *userdata)
{
        struct http_request *r = userdata;

        if (error != KAFKA_NONE)
                refuse(r, error, "no broker with that id is registered, and no partition names it");
        else
                http_reply_json(r, MHD_HTTP_OK, info_json(b));
}

void admin_get_broker_info(struct http_request *r)
{
        http_wait_begin(r);
        controller_broker_info(r->admin->env.controller, r->id, on_info, r);
}

/* --- past drains --- */

static json_t *left_json(const struct znode_drain *d)
{
        json_t *list = json_array();

        for (size_t i = 0; i < d->n_left; i++)
                (void)json_array_append_new(list, json_pack("{s:s, s:i, s:s}", "topic", d->left[i].topic,
                                                            "partition", (int)d->left[i].partition, "reason",
                                                            d->left[i].reason));
        return list;
}

static json_t *number_or_null(int64_t v, bool known)
{
        return known ? json_integer(v) : json_null();
}

static json_t *drain_json(const struct znode_drain *d)
{
        bool over = d->verdict[0] != '\0';
        json_t *o = json_pack(
                "{s:s, s:i, s:I, s:s, s:s, s:o, s:I, s:o, s:o, s:o, s:i, s:i, s:i}", "drain_id", d->id,
                "broker", (int)d->broker, "epoch", (json_int_t)d->epoch, "reason", d->reason, "requested_by",
                d->requested_by, "verdict", over ? json_string(d->verdict) : json_null(), "started_ms",
                (json_int_t)d->started_ms, "deadline_ms", number_or_null(d->deadline_ms, d->deadline_ms > 0),
                "drained_ms", number_or_null(d->drained_ms, d->drained_ms > 0), "ended_ms",
                number_or_null(d->ended_ms, d->ended_ms > 0), "leaders", (int)d->leaders, "replicas",
                (int)d->replicas, "moved", (int)d->moved);
        json_t *reasons = json_object();

        if (!o) {
                json_decref(reasons);
                return NULL;
        }
        for (size_t i = 0; i < d->n_reasons; i++)
                (void)json_object_set_new(reasons, d->reasons[i].name, json_integer(d->reasons[i].n));
        /* Unknown is never zero (L1). */
        (void)json_object_set_new(o, "remaining", number_or_null(d->remaining, d->remaining >= 0));
        (void)json_object_set_new(o, "returned_ms", number_or_null(d->returned_ms, d->returned_ms > 0));
        (void)json_object_set_new(o, "isr_remaining", json_integer(d->isr_remaining));
        (void)json_object_set_new(o, "rf1_led", json_integer(d->single));
        (void)json_object_set_new(o, "by_reason", reasons);
        (void)json_object_set_new(o, "left", left_json(d));
        (void)json_object_set_new(o, "controller", json_integer(d->controller));
        return o;
}

static void on_drains(int16_t error, const struct drain_list *list, void *userdata)
{
        struct http_request *r = userdata;
        json_t *o, *drains;

        if (error != KAFKA_NONE) {
                refuse(r, error, "");
                return;
        }
        drains = json_array();
        for (size_t i = list->n; i-- > 0;)
                if (r->number < 0 || list->items[i].broker == r->number)
                        (void)json_array_append_new(drains, drain_json(&list->items[i]));
        o = json_pack("{s:o, s:b, s:i, s:i}", "drains", drains, "saved", (int)list->saved, "controller",
                      (int)list->controller_id, "controller_epoch", (int)list->controller_epoch);
        http_reply_json(r, MHD_HTTP_OK, o);
}

void admin_get_drains(struct http_request *r)
{
        if (!take_number(r, "broker", -1, 0, INT32_MAX)) {
                http_reply_error(r, MHD_HTTP_BAD_REQUEST, "bad_request", "broker is a broker's id");
                return;
        }
        http_wait_begin(r);
        controller_drain_list(r->admin->env.controller, on_drains, r);
}
