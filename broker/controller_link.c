/* A request crosses threads as its own encoding: it is decoded again on the link's loop, where the client
 * lives. */
#include "controller_link.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "api/api.h"
#include "controller/controller.h"

struct controller_link {
        struct loop *loop;
        struct controller *controller;
        struct kclient *client;
        struct controller_location where; /* of `client` */
        struct list waiting;              /* struct link_call; posted, not yet handed to a client */
        pthread_mutex_t lock;             /* guards `waiting` */
        struct loop_task task;
        bool posted, closing;
        bool moved; /* look anew where the controller is; under lock */
};

struct link_call {
        struct list node;
        const struct wire_api *api;
        int16_t version;
        int64_t timeout_ms;
        struct buf body;
        kclient_fn fn;
        void *userdata;
};

static struct link_call *link_call_free(struct link_call *c)
{
        if (!c)
                return NULL;
        buf_done(&c->body);
        free(c);
        return NULL;
}
DEFINE_FREEP(struct link_call, link_call_free)

static bool same_place(const struct controller_location *a, const struct controller_location *b)
{
        return a->id == b->id && a->port == b->port && strcmp(a->host, b->host) == 0;
}

/* The client of the active controller; a client of a former one is dropped. */
static int current_client(struct controller_link *k, struct kclient **ret)
{
        struct controller_location now;
        int r;

        r = controller_locate(k->controller, &now);
        if (r < 0)
                return r;
        if (k->client && !same_place(&now, &k->where)) {
                kclient_free_later(k->client);
                k->client = NULL;
        }
        if (!k->client) {
                struct kclient_options o = {.client_id = API_FORWARD_CLIENT_ID};

                r = kclient_new(k->loop, now.host, now.port, &o, &k->client);
                if (r < 0)
                        return r;
                k->where = now;
        }
        *ret = k->client;
        return 0;
}

static int send_call(struct controller_link *k, struct link_call *c)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct kclient *client = NULL;
        void *body;
        int r;

        arena_init(&a, 0);
        r = current_client(k, &client);
        if (r < 0)
                return r;
        body = arena_alloc(&a, 1, wire_struct_size(c->api->request));
        if (!body)
                return -ENOMEM;
        r = wire_decode(c->api->request, c->version, c->body.data, c->body.len, &a, body);
        if (r < 0)
                return r;
        return kclient_request(client, c->api, c->version, body, c->timeout_ms, c->fn, c->userdata);
}

static void fail_call(struct link_call *c, int r)
{
        cleanup_with(arena_donep) struct arena a = {0};

        arena_init(&a, 0);
        if (c->fn)
                c->fn(r, NULL, &a, c->userdata);
}

/* What was asked of a controller that is none any more would wait for its time-out, long after there is
 * another one to ask. */
static void drop_former(struct controller_link *k)
{
        struct controller_location now;

        if (!k->client || controller_locate(k->controller, &now) < 0 || same_place(&now, &k->where))
                return;
        kclient_free_later(k->client);
        k->client = NULL;
}

static void run_calls(void *userdata)
{
        struct controller_link *k = userdata;
        struct list todo;
        bool moved;

        list_init(&todo);
        pthread_mutex_lock(&k->lock);
        list_splice_back(&todo, &k->waiting);
        k->posted = false;
        moved = k->moved;
        k->moved = false;
        pthread_mutex_unlock(&k->lock);
        if (moved && !k->closing)
                drop_former(k);
        list_for_each_safe (it, next, &todo) {
                struct link_call *c = list_entry(it, struct link_call, node);
                int r = k->closing ? -ECANCELED : send_call(k, c);

                list_remove(&c->node);
                if (r < 0)
                        fail_call(c, r);
                (void)link_call_free(c);
        }
}

int controller_link_request(struct controller_link *k, const struct wire_api *api, int16_t version,
                            const void *body, int64_t timeout_ms, kclient_fn fn, void *userdata)
{
        cleanup_with(link_call_freep) struct link_call *c = calloc(1, sizeof(*c));
        bool post;
        int r;

        if (!c)
                return -ENOMEM;
        c->api = api;
        c->version = version;
        c->timeout_ms = timeout_ms;
        c->fn = fn;
        c->userdata = userdata;
        buf_init(&c->body, 0);
        r = wire_encode(api->request, version, body, &c->body);
        if (r < 0)
                return r;
        pthread_mutex_lock(&k->lock);
        list_push_back(&k->waiting, &TAKE_PTR(c)->node);
        post = !k->posted;
        k->posted = true;
        pthread_mutex_unlock(&k->lock);
        if (post)
                loop_post_task(k->loop, &k->task);
        return 0;
}

void controller_link_on_change(struct controller_link *k)
{
        bool post;

        pthread_mutex_lock(&k->lock);
        k->moved = true;
        post = !k->posted;
        k->posted = true;
        pthread_mutex_unlock(&k->lock);
        if (post)
                loop_post_task(k->loop, &k->task);
}

int controller_link_new(struct loop *l, struct controller *controller, struct controller_link **ret)
{
        struct controller_link *k = calloc(1, sizeof(*k));

        if (!k)
                return -ENOMEM;
        k->loop = l;
        k->controller = controller;
        list_init(&k->waiting);
        (void)pthread_mutex_init(&k->lock, NULL);
        k->task = (struct loop_task){.fn = run_calls, .userdata = k};
        *ret = k;
        return 0;
}

struct controller_link *controller_link_free(struct controller_link *k)
{
        if (!k)
                return NULL;
        k->closing = true;
        run_calls(k);
        k->client = kclient_free(k->client);
        (void)pthread_mutex_destroy(&k->lock);
        free(k);
        return NULL;
}
