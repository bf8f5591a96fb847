/* The client's life and its requests: queues, deadlines, exactly one callback each. */
#include "client/kclient.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "client/kclient_internal.h"

#define READ_SLACK_BYTES (64 * 1024 + 4)

static const struct {
        const char *name;
        unsigned next; /* bits of the states that may follow */
} kclient_states[N_KC_STATES] = {
        [KC_IDLE] = {"idle", 1U << KC_RESOLVING | 1U << KC_CONNECTING | 1U << KC_BACKOFF | 1U << KC_CLOSED},
        [KC_RESOLVING] = {"resolving",
                          1U << KC_CONNECTING | 1U << KC_BACKOFF | 1U << KC_IDLE | 1U << KC_CLOSED},
        [KC_CONNECTING] = {"connecting",
                           1U << KC_CONNECTED | 1U << KC_BACKOFF | 1U << KC_IDLE | 1U << KC_CLOSED},
        [KC_CONNECTED] = {"connected", 1U << KC_IDLE | 1U << KC_CLOSED},
        [KC_BACKOFF] = {"backoff", 1U << KC_IDLE | 1U << KC_CLOSED},
        [KC_CLOSED] = {"closed", 0},
};

void kclient_set_state(struct kclient *c, enum kclient_state to)
{
        assert(kclient_states[c->state].next & 1U << to);
        slog_debug("client-state", kclient_states[to].name, SL_STR("from", kclient_states[c->state].name),
                   SL_STR("host", c->host), SL_INT("port", c->port));
        c->state = to;
}

void kclient_schedule(struct kclient *c, int64_t due_ms)
{
        if (due_ms >= c->timer_due_ms || c->state == KC_CLOSED)
                return;
        c->timer_due_ms = due_ms;
        loop_timer_arm(c->timer, MAX(due_ms - clock_mono_ms(), (int64_t)0), 0);
}

void kreq_finish(struct kreq *q, int result, struct list *finished)
{
        list_remove(&q->node);
        list_remove(&q->deadline_node);
        q->stage = KREQ_FINISHED;
        q->result = result;
        list_push_back(finished, &q->node);
}

void kreq_answer(struct kreq *q, int r, const void *response, struct arena *arena)
{
        if (q->raw_fn)
                q->raw_fn(r, NULL, 0, q->userdata);
        else if (q->fn)
                q->fn(r, response, arena, q->userdata);
        buf_done(&q->frame);
        free(q);
}

void kreq_answer_all(struct list *finished)
{
        while (!list_empty(finished)) {
                struct kreq *q = list_entry(finished->next, struct kreq, node);

                list_remove(&q->node);
                kreq_answer(q, q->result, NULL, NULL);
        }
}

/* Deadlines have passed. What only waited just fails; what the broker may be working on takes the connection
 * with it: answers come in order, so everything behind it is stuck as well. */
static bool kclient_expire(struct kclient *c, int64_t now_ms, struct list *finished)
{
        bool stuck = false;

        while (!list_empty(&c->deadlines)) {
                struct kreq *q = list_entry(c->deadlines.next, struct kreq, deadline_node);
                bool waiting = q->stage == KREQ_WAITING;

                if (q->deadline_ms > now_ms)
                        break;
                if (!waiting) {
                        c->n_inflight--;
                        stuck |= q->stage == KREQ_SENT || q->written > 0;
                }
                kreq_finish(q, waiting && c->last_error ? c->last_error : -ETIMEDOUT, finished);
        }
        return stuck;
}

static void kclient_fail_waiting(struct kclient *c, struct list *finished)
{
        list_for_each_safe (it, tmp, &c->waiting)
                kreq_finish(list_entry(it, struct kreq, node), c->last_error ? c->last_error : -ECONNRESET,
                            finished);
}

static void kclient_reschedule(struct kclient *c)
{
        if (!list_empty(&c->deadlines))
                kclient_schedule(c, list_entry(c->deadlines.next, struct kreq, deadline_node)->deadline_ms);
        if (c->state == KC_CONNECTING)
                kclient_schedule(c, c->connect_due_ms);
        if (c->state == KC_BACKOFF)
                kclient_schedule(c, c->retry_due_ms);
}

static int kclient_on_timer(struct loop *l, void *userdata)
{
        struct list finished = LIST_INIT(finished);
        struct kclient *c = userdata;
        int64_t now_ms = clock_mono_ms();

        (void)l;
        c->timer_due_ms = INT64_MAX;
        if (c->broken)
                kclient_lost(c, &finished);
        if (c->state == KC_CONNECTING && now_ms >= c->connect_due_ms)
                kclient_attempt_failed(c, -ETIMEDOUT);
        if (c->state == KC_BACKOFF && c->fail_fast)
                kclient_fail_waiting(c, &finished);
        if (c->state == KC_BACKOFF && now_ms >= c->retry_due_ms) {
                kclient_set_state(c, KC_IDLE);
                kclient_kick(c);
        }
        if (kclient_expire(c, now_ms, &finished))
                kclient_lost(c, &finished);
        kclient_reschedule(c);
        kreq_answer_all(&finished);
        return 0;
}

static struct kclient *kclient_release(struct kclient *c)
{
        if (!c)
                return NULL;
        c->timer = loop_timer_remove(c->timer);
        free(c->client_id);
        free(c->host);
        free(c);
        return NULL;
}

static void kclient_releasep(struct kclient **c)
{
        (void)kclient_release(*c);
}

static void kclient_on_free_task(void *userdata)
{
        struct kclient *c = userdata;

        c->free_posted = false;
        (void)kclient_free(c);
}

static void options_fill(struct kclient_options *o)
{
        const struct kclient_options defaults = {
                .connect_timeout_ms = 2000,
                .reconnect_backoff_ms = 100,
                .reconnect_backoff_max_ms = 1000,
                .max_response_bytes = 100 * 1024 * 1024,
                .max_inflight = 5,
        };

        if (o->connect_timeout_ms <= 0)
                o->connect_timeout_ms = defaults.connect_timeout_ms;
        if (o->reconnect_backoff_ms <= 0)
                o->reconnect_backoff_ms = defaults.reconnect_backoff_ms;
        if (o->reconnect_backoff_max_ms <= 0)
                o->reconnect_backoff_max_ms = defaults.reconnect_backoff_max_ms;
        o->reconnect_backoff_max_ms = MAX(o->reconnect_backoff_max_ms, o->reconnect_backoff_ms);
        if (o->max_response_bytes == 0)
                o->max_response_bytes = defaults.max_response_bytes;
        if (o->max_inflight <= 0)
                o->max_inflight = defaults.max_inflight;
}

int kclient_new(struct loop *l, const char *host, uint16_t port, const struct kclient_options *o,
                struct kclient **ret)
{
        cleanup_with(kclient_releasep) struct kclient *c = calloc(1, sizeof(*c));
        int r;

        if (!c)
                return -ENOMEM;
        c->loop = l;
        c->port = port;
        c->fd = -1;
        c->timer_due_ms = INT64_MAX;
        if (o)
                c->options = *o;
        options_fill(&c->options);
        c->backoff_ms = c->options.reconnect_backoff_ms;
        c->free_task = (struct loop_task){.fn = kclient_on_free_task, .userdata = c};
        buf_init(&c->in, c->options.max_response_bytes + READ_SLACK_BYTES);
        list_init(&c->waiting);
        list_init(&c->sending);
        list_init(&c->sent);
        list_init(&c->deadlines);

        c->host = strdup(host);
        if (!c->host)
                return -ENOMEM;
        if (o && o->client_id) {
                c->client_id = strdup(o->client_id);
                if (!c->client_id)
                        return -ENOMEM;
        }
        r = loop_add_timer(l, kclient_on_timer, c, &c->timer);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

static void kclient_cancel(struct list *queue, struct list *finished)
{
        list_for_each_safe (it, tmp, queue)
                kreq_finish(list_entry(it, struct kreq, node), -ECANCELED, finished);
}

struct kclient *kclient_free(struct kclient *c)
{
        struct list finished = LIST_INIT(finished);

        if (!c)
                return NULL;
        assert(!c->free_posted); /* kclient_free_later() has it already */
        kclient_attempt_cancel(c);
        kclient_set_state(c, KC_CLOSED);
        kclient_cancel(&c->sent, &finished);
        kclient_cancel(&c->sending, &finished);
        kclient_cancel(&c->waiting, &finished);
        kreq_answer_all(&finished);
        return kclient_release(c);
}

void kclient_free_later(struct kclient *c)
{
        if (!c || c->free_posted)
                return;
        c->free_posted = true;
        loop_post_task(c->loop, &c->free_task);
}

static void kclient_enqueue(struct kclient *c, struct kreq *q)
{
        struct list *at = c->deadlines.prev;

        list_push_back(&c->waiting, &q->node);
        /* almost always the latest deadline so far, so the walk from the back is short */
        while (at != &c->deadlines &&
               list_entry(at, struct kreq, deadline_node)->deadline_ms > q->deadline_ms)
                at = at->prev;
        list_push_front(at, &q->deadline_node);
        kclient_schedule(c, q->deadline_ms);
        kclient_kick(c);
}

static int kclient_submit(struct kclient *c, const void *body, int64_t timeout_ms, const struct kreq *proto)
{
        cleanup_with(buf_donep) struct buf frame = {0};
        struct kreq *q;
        int r;

        if (c->state == KC_CLOSED || c->free_posted)
                return -ECANCELED;
        r = wire_encode_request(proto->api->request, proto->version, c->next_correlation_id, c->client_id,
                                body, &frame);
        if (r < 0)
                return r;
        q = malloc(sizeof(*q));
        if (!q)
                return -ENOMEM;
        *q = *proto;
        q->correlation_id = c->next_correlation_id;
        q->deadline_ms = clock_mono_ms() + timeout_ms;
        q->frame = buf_take(&frame);
        c->next_correlation_id = c->next_correlation_id == INT32_MAX ? 0 : c->next_correlation_id + 1;
        kclient_enqueue(c, q);
        return 0;
}

int kclient_request(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                    int64_t timeout_ms, kclient_fn fn, void *userdata)
{
        const struct kreq q = {.api = api, .version = version, .fn = fn, .userdata = userdata};

        return kclient_submit(c, body, timeout_ms, &q);
}

int kclient_request_raw(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                        int64_t timeout_ms, kclient_raw_fn fn, void *userdata)
{
        const struct kreq q = {.api = api, .version = version, .raw_fn = fn, .userdata = userdata};

        return kclient_submit(c, body, timeout_ms, &q);
}

void kclient_disconnect(struct kclient *c)
{
        struct list finished = LIST_INIT(finished);

        if (c->state == KC_CLOSED)
                return;
        kclient_drop(c, &finished);
        kreq_answer_all(&finished);
        kclient_kick(c);
}

bool kclient_connected(const struct kclient *c)
{
        return c->state == KC_CONNECTED;
}
