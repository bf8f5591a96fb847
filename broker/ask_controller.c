#include "ask_controller.h"

#include <errno.h>

#include "base/clock.h"

#define PATIENCE_MS 10000 /* an election takes less, and clients wait for thirty seconds */
#define RETRY_MS    100

struct question {
        struct server *s;
        const struct wire_api *api;
        int16_t version;
        const void *body;
        bool (*is_refused)(const void *response);
        void (*fn)(const void *response, void *userdata);
        void *userdata;
        int64_t until_ms;
};

static int ask(struct question *q);

static void end(struct question *q, const void *response)
{
        q->fn(response, q->userdata);
        free(q);
}

static void on_pause_over(const struct zk_result *res, void *userdata)
{
        struct question *q = userdata;

        if (res->r == -ECANCELED || q->s->state >= SERVER_STOPPING || ask(q) < 0)
                end(q, NULL);
}

static void on_answer(int r, const void *response, struct arena *arena, void *userdata)
{
        struct question *q = userdata;

        (void)arena;
        if (r == 0 && !q->is_refused(response)) {
                end(q, response);
                return;
        }
        if (q->s->state >= SERVER_STOPPING || clock_mono_ms() >= q->until_ms ||
            zk_delay(q->s->zk, q->s->control_loop, RETRY_MS, on_pause_over, q) < 0)
                end(q, r == 0 ? response : NULL);
}

static int ask(struct question *q)
{
        int64_t left_ms = MAX(q->until_ms - clock_mono_ms(), (int64_t)1000);

        return controller_link_request(q->s->link, q->api, q->version, q->body, left_ms, on_answer, q);
}

void server_ask_controller(int16_t key, int16_t version, const void *body,
                           bool (*is_refused)(const void *response),
                           void (*fn)(const void *response, void *fn_userdata), void *fn_userdata,
                           void *userdata)
{
        struct question *q = calloc(1, sizeof(*q));

        if (q)
                *q = (struct question){.s = userdata,
                                       .api = wire_api_find(key),
                                       .version = version,
                                       .body = body,
                                       .is_refused = is_refused,
                                       .fn = fn,
                                       .userdata = fn_userdata,
                                       .until_ms = clock_mono_ms() + PATIENCE_MS};
        if (q && ask(q) == 0)
                return;
        free(q);
        fn(NULL, fn_userdata);
}
