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

static void apply_leader_and_isr(void *userdata)
{
        struct api_request *r = userdata;
        struct api *a = r->api;
        struct leader_and_isr_response *res;
        int e = -ENOMEM;

        if (a->control_paused) { /* while it waited for a configuration: it is to begin anew */
                list_push_front(&a->control_queue, &r->queue_node);
                a->control_busy = false;
                return;
        }
        res = api_response_new(r);
        if (res)
                e = replica_manager_leader_and_isr(a->env.replicas, r->body, r->header.api_version, &r->arena,
                                                   res);
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
