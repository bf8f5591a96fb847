/* The controller's requests to this broker: LeaderAndIsr (4), StopReplica (5), UpdateMetadata (6).
 *
 * One at a time on the control loop: the order of arrival is the order of effect, also when a LeaderAndIsr
 * has to wait for the configuration of a topic that is new here. */
#include "api/request.h"

#include <errno.h>

#include "replica/replica_manager.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

static void run_next(struct api *a)
{
        if (a->control_running)
                return; /* the loop below is on the stack and goes on */
        a->control_running = true;
        while (!a->control_busy && !a->control_paused && !list_empty(&a->control_queue)) {
                struct api_request *r = list_entry(a->control_queue.next, struct api_request, queue_node);

                list_remove(&r->queue_node);
                a->control_busy = true;
                r->handler->handle(r);
        }
        a->control_running = false;
}

void api_control_enqueue(struct api_request *r)
{
        list_push_back(&r->api->control_queue, &r->queue_node);
        run_next(r->api);
}

void api_control_pause(struct api *a)
{
        a->control_paused = true;
}

void api_control_resume(struct api *a)
{
        a->control_paused = false;
        run_next(a);
}

void api_control_drop(struct api *a)
{
        while (!list_empty(&a->control_queue)) {
                struct api_request *r = list_entry(a->control_queue.next, struct api_request, queue_node);

                list_remove(&r->queue_node);
                api_abort(r);
        }
}

static void reply_control(struct api_request *r, int e, const void *res)
{
        struct api *a = r->api;

        if (e < 0)
                api_abort(r); /* the controller sends it again */
        else
                api_reply(r, res);
        a->control_busy = false;
        run_next(a);
}

/* --- LeaderAndIsr --- */

/* New replicas make files, thousands of them take seconds or, on a slow disk, a minute. Meanwhile the control
 * loop is to hear signals, to feed the watchdog and to keep its ZooKeeper session, so they are made some at a
 * turn. What exists already is not split: its leaders come first, in the whole request. */
#define NEW_A_TURN 50

struct turns {
        struct leader_and_isr_response *res;
        int32_t topic, at; /* next: index in topic_states, and in its partition_states */
        bool begun;
};

/* The next partitions as a request of their own; whose they are, in @first: their place in the answer. */
struct turn {
        struct leader_and_isr_request req;
        struct leader_and_isr_request_topic_state topics[NEW_A_TURN];
        struct leader_and_isr_response_partition_error *first[NEW_A_TURN];
};

static struct turns *turns_new(struct api_request *r)
{
        const struct leader_and_isr_request *req = r->body;
        struct turns *t = arena_alloc(&r->arena, 1, sizeof(*t));
        struct leader_and_isr_response_topic *topics =
                arena_alloc(&r->arena, (size_t)req->topic_states.n + 1, sizeof(*topics));

        if (!t || !topics)
                return NULL;
        *t = (struct turns){.res = api_response_new(r)};
        if (!t->res)
                return NULL;
        t->res->topics.items = topics;
        t->res->topics.n = req->topic_states.n;
        for (int32_t i = 0; i < req->topic_states.n; i++) {
                size_t n = (size_t)MAX(req->topic_states.items[i].partition_states.n, 0);

                topics[i].topic_id = req->topic_states.items[i].topic_id;
                topics[i].partition_errors.n = (int32_t)n;
                topics[i].partition_errors.items =
                        arena_alloc(&r->arena, n + 1, sizeof(*topics[i].partition_errors.items));
                if (!topics[i].partition_errors.items)
                        return NULL;
        }
        return t;
}

static void take_turn(const struct leader_and_isr_request *req, struct turns *t, struct turn *ret)
{
        int32_t left = NEW_A_TURN;

        ret->req = *req;
        ret->req.topic_states.items = ret->topics;
        ret->req.topic_states.n = 0;
        if (t->begun)
                ret->req.live_leaders.n = 0;
        t->begun = true;
        while (left > 0 && t->topic < req->topic_states.n) {
                const struct leader_and_isr_request_topic_state *from = &req->topic_states.items[t->topic];
                int32_t n = MIN(left, from->partition_states.n - t->at);

                if (n <= 0) {
                        t->topic++;
                        t->at = 0;
                        continue;
                }
                ret->first[ret->req.topic_states.n] =
                        &t->res->topics.items[t->topic].partition_errors.items[t->at];
                ret->topics[ret->req.topic_states.n] = *from;
                ret->topics[ret->req.topic_states.n].partition_states.items += t->at;
                ret->topics[ret->req.topic_states.n++].partition_states.n = n;
                t->at += n;
                left -= n;
        }
}

static int run_turn(struct api_request *r, struct turns *t, struct turn *turn)
{
        cleanup_with(arena_donep) struct arena scratch = {0};
        struct leader_and_isr_response res;
        int e;

        arena_init(&scratch, 0);
        e = replica_manager_leader_and_isr(r->api->env.replicas, &turn->req, r->header.api_version, &scratch,
                                           &res);
        if (e < 0)
                return e;
        t->res->error_code = res.error_code;
        for (int32_t i = 0; i < res.topics.n; i++)
                memcpy(turn->first[i], res.topics.items[i].partition_errors.items,
                       (size_t)res.topics.items[i].partition_errors.n * sizeof(*turn->first[i]));
        return 0;
}

/* While the broker is not registered nothing is applied: the request is to begin anew. */
static bool put_back(struct api_request *r)
{
        struct api *a = r->api;

        if (!a->control_paused)
                return false;
        r->net->userdata = NULL;
        list_push_front(&a->control_queue, &r->queue_node);
        a->control_busy = false;
        return true;
}

static void apply_in_turns(void *userdata)
{
        struct api_request *r = userdata;
        struct turns *t = r->net->userdata;
        struct turn turn;
        int e;

        if (put_back(r))
                return;
        take_turn(r->body, t, &turn);
        e = run_turn(r, t, &turn);
        if (e < 0 || t->res->error_code != KAFKA_NONE || turn.req.topic_states.n == 0) {
                if (e == 0 && t->res->error_code != KAFKA_NONE)
                        t->res->topics.n = 0;
                reply_control(r, e, t->res);
                return;
        }
        r->task = (struct loop_task){.fn = apply_in_turns, .userdata = r};
        loop_post_task(r->api->env.control_loop, &r->task);
}

static size_t count_new(const struct leader_and_isr_request *req)
{
        size_t n = 0;

        for (int32_t i = 0; i < req->topic_states.n; i++)
                for (int32_t j = 0; j < req->topic_states.items[i].partition_states.n; j++)
                        n += req->topic_states.items[i].partition_states.items[j].is_new;
        return n;
}

static void apply_leader_and_isr(void *userdata)
{
        struct api_request *r = userdata;
        struct leader_and_isr_response *res;
        int e = -ENOMEM;

        if (put_back(r))
                return;
        /* From v5 on the answer is by topic; older ones are not what our controllers send. */
        if (r->header.api_version >= 5 && count_new(r->body) > NEW_A_TURN) {
                r->net->userdata = turns_new(r);
                if (r->net->userdata)
                        apply_in_turns(r);
                else
                        reply_control(r, e, NULL);
                return;
        }
        res = api_response_new(r);
        if (res)
                e = replica_manager_leader_and_isr(r->api->env.replicas, r->body, r->header.api_version,
                                                   &r->arena, res);
        reply_control(r, e, res);
}

static bool any_new(const struct leader_and_isr_request_topic_state *t)
{
        for (int32_t i = 0; i < t->partition_states.n; i++)
                if (t->partition_states.items[i].is_new)
                        return true;
        return false;
}

static struct api_topic *topics_of(struct api_request *r, size_t *ret_n)
{
        const struct leader_and_isr_request *req = r->body;
        size_t n = (size_t)MAX(req->topic_states.n, 0);
        struct api_topic *topics = arena_alloc(&r->arena, n + 1, sizeof(*topics));

        for (size_t i = 0; topics && i < n; i++) {
                const struct leader_and_isr_request_topic_state *t = &req->topic_states.items[i];

                topics[i].name =
                        arena_strndup(&r->arena, t->topic_name.data, (size_t)MAX(t->topic_name.len, 0));
                topics[i].fresh = any_new(t);
                if (!topics[i].name)
                        return NULL;
        }
        *ret_n = n;
        return topics;
}

void api_handle_leader_and_isr(struct api_request *r)
{
        struct api_env *env = &r->api->env;
        size_t n = 0;
        struct api_topic *topics = topics_of(r, &n);

        if (!topics || env->prepare_topics(topics, n, apply_leader_and_isr, r, env->userdata) < 0)
                reply_control(r, -ENOMEM, NULL);
}

void api_handle_stop_replica(struct api_request *r)
{
        struct stop_replica_response *res = api_response_new(r);
        int e = -ENOMEM;

        if (res)
                e = replica_manager_stop_replica(r->api->env.replicas, r->body, r->header.api_version,
                                                 &r->arena, res);
        reply_control(r, e, res);
}

void api_handle_update_metadata(struct api_request *r)
{
        struct update_metadata_response *res = api_response_new(r);
        int e = -ENOMEM;

        if (res)
                e = replica_manager_update_metadata(r->api->env.replicas, r->body, r->header.api_version,
                                                    res);
        reply_control(r, e, res);
}
