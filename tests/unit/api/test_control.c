/* The controller's requests on the control loop: their order, their size, and what holds them back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/api.h"
#include "base/arena.h"
#include "replica/replica_manager.h"
#include "wire/codec.h"
#include "wire/error.h"
#include "wire/leader_and_isr.h"

#define VERSION 7

/* --- what the api calls: the replica manager and the connection --- */

static struct {
        int calls, partitions, most, live_leaders;
        int16_t error;            /* of the whole request */
        void (*during)(void *ud); /* what happens meanwhile */
        void *userdata;
        int32_t seen[1000];
} manager;

static struct {
        int n_replies, n_aborts;
        struct buf reply;
} answers;

int __wrap_replica_manager_leader_and_isr(struct replica_manager *m, const struct leader_and_isr_request *req,
                                          int16_t version, struct arena *a,
                                          struct leader_and_isr_response *ret);
void __wrap_net_request_reply(struct net_request *r, struct buf *response);
void __wrap_net_request_abort(struct net_request *r);
void __wrap_net_request_charge(struct net_request *r, size_t bytes);

/* The error of a partition tells its topic and index, so that the answer can be compared with the question.
 */
static int16_t error_of(int32_t topic, int32_t index)
{
        return (int16_t)(topic * 1000 + index % 1000);
}

int __wrap_replica_manager_leader_and_isr(struct replica_manager *m, const struct leader_and_isr_request *req,
                                          int16_t version, struct arena *a,
                                          struct leader_and_isr_response *ret)
{
        struct leader_and_isr_response_topic *topics = arena_alloc(a, 100, sizeof(*topics));
        int here = 0;

        (void)m;
        assert_int_equal(version, VERSION);
        *ret = (struct leader_and_isr_response){.error_code = manager.error};
        ret->topics.items = topics;
        for (int32_t i = 0; i < req->topic_states.n; i++) {
                const struct leader_and_isr_request_topic_state *t = &req->topic_states.items[i];

                topics[i].topic_id = t->topic_id;
                topics[i].partition_errors.n = t->partition_states.n;
                topics[i].partition_errors.items = arena_alloc(a, (size_t)t->partition_states.n,
                                                               sizeof(*topics[i].partition_errors.items));
                for (int32_t j = 0; j < t->partition_states.n; j++, here++) {
                        int32_t index = t->partition_states.items[j].partition_index;

                        manager.seen[manager.partitions++] = index;
                        topics[i].partition_errors.items[j] =
                                (struct leader_and_isr_response_partition_error){
                                        .partition_index = index,
                                        .error_code = error_of(t->topic_name.data[0] - 'a', index)};
                }
        }
        ret->topics.n = manager.error ? 0 : req->topic_states.n;
        manager.calls++;
        manager.most = MAX(manager.most, here);
        manager.live_leaders += req->live_leaders.n;
        if (manager.during)
                manager.during(manager.userdata);
        return 0;
}

static void request_done(struct net_request *r)
{
        buf_done(&r->frame);
        free(r);
}

void __wrap_net_request_reply(struct net_request *r, struct buf *response)
{
        answers.n_replies++;
        buf_done(&answers.reply);
        answers.reply = buf_take(response);
        request_done(r);
}

void __wrap_net_request_abort(struct net_request *r)
{
        answers.n_aborts++;
        request_done(r);
}

void __wrap_net_request_charge(struct net_request *r, size_t bytes)
{
        assert_true(bytes > 0);
        (void)r; /* it has no connection to charge */
}

/* --- fixture --- */

struct fixture {
        struct loop *loop;
        struct api *api;
        int beats;
};

static int prepare_topics(const struct api_topic *topics, size_t n, void (*fn)(void *fn_userdata),
                          void *fn_userdata, void *userdata)
{
        (void)topics;
        (void)n;
        (void)userdata;
        fn(fn_userdata);
        return 0;
}

static void set_up(struct fixture *f)
{
        struct api_env env = {.prepare_topics = prepare_topics};

        memset(&manager, 0, sizeof(manager));
        memset(&answers, 0, sizeof(answers));
        *f = (struct fixture){0};
        assert_int_equal(loop_new("control", &f->loop), 0);
        env.control_loop = f->loop;
        assert_int_equal(api_new(&env, &f->api), 0);
}

static void tear_down(struct fixture *f)
{
        f->api = api_free(f->api);
        f->loop = loop_free(f->loop);
        buf_done(&answers.reply);
}

/* Topics "a", "b" … with so many partitions each. */
static void send_request(struct fixture *f, const int32_t *partitions, int32_t n_topics, bool is_new)
{
        static const char names[] = "abcdefgh";
        const struct wire_api *desc = wire_api_find(4);
        struct leader_and_isr_request_live_leader leader = {
                .broker_id = 1, .host_name = wire_str("h"), .port = 1};
        struct net_request *net = calloc(1, sizeof(*net));
        struct leader_and_isr_request req;
        struct arena a = {0};
        struct buf frame;

        arena_init(&a, 0);
        wire_init(desc->request, &req);
        req.live_leaders.items = &leader;
        req.live_leaders.n = 1;
        req.topic_states.items = arena_alloc(&a, (size_t)n_topics, sizeof(*req.topic_states.items));
        req.topic_states.n = n_topics;
        for (int32_t i = 0; i < n_topics; i++) {
                struct leader_and_isr_request_topic_state *t = &req.topic_states.items[i];

                t->topic_name = (struct wire_str){.data = (char *)&names[i], .len = 1};
                t->topic_id.bytes[0] = (uint8_t)(i + 1);
                t->partition_states.n = partitions[i];
                t->partition_states.items =
                        arena_alloc(&a, (size_t)partitions[i] + 1, sizeof(*t->partition_states.items));
                for (int32_t j = 0; j < partitions[i]; j++) {
                        wire_init_struct(&leader_and_isr_request_partition_state_wire,
                                         &t->partition_states.items[j]);
                        t->partition_states.items[j].partition_index = j;
                        t->partition_states.items[j].is_new = is_new;
                }
        }
        buf_init(&frame, 0);
        assert_int_equal(wire_encode_request(desc->request, VERSION, 1, "test", &req, &frame), 0);
        buf_init(&net->frame, 0);
        assert_int_equal(buf_append(&net->frame, frame.data + 4, frame.len - 4), 0); /* without the length */
        net->peer = "test";
        buf_done(&frame);
        arena_done(&a);
        api_on_request(net, f->api);
}

static void stop_when_answered(void *userdata)
{
        struct fixture *f = userdata;

        f->beats++;
        if (answers.n_replies + answers.n_aborts > 0 || f->beats > 1000)
                loop_stop(f->loop);
        else
                assert_int_equal(loop_post(f->loop, stop_when_answered, f), 0);
}

static void run_until_answered(struct fixture *f)
{
        f->beats = 0;
        assert_int_equal(loop_post(f->loop, stop_when_answered, f), 0);
        assert_int_equal(loop_run(f->loop), 0);
}

static void assert_answer(const int32_t *partitions, int32_t n_topics)
{
        const struct wire_api *desc = wire_api_find(4);
        struct leader_and_isr_response res;
        struct arena a = {0};
        int32_t correlation;

        arena_init(&a, 0);
        assert_int_equal(answers.n_replies, 1);
        assert_int_equal(wire_decode_response(desc->response, VERSION, answers.reply.data + 4,
                                              answers.reply.len - 4, &a, &correlation, &res),
                         0);
        assert_int_equal(res.error_code, 0);
        assert_int_equal(res.topics.n, n_topics);
        for (int32_t i = 0; i < n_topics; i++) {
                assert_int_equal(res.topics.items[i].topic_id.bytes[0], i + 1);
                assert_int_equal(res.topics.items[i].partition_errors.n, partitions[i]);
                for (int32_t j = 0; j < partitions[i]; j++) {
                        assert_int_equal(res.topics.items[i].partition_errors.items[j].partition_index, j);
                        assert_int_equal(res.topics.items[i].partition_errors.items[j].error_code,
                                         error_of(i, j));
                }
        }
        arena_done(&a);
}

/* --- tests --- */

static void thousands_of_new_partitions_are_made_some_at_a_turn(void **state)
{
        static const int32_t partitions[] = {120, 0, 7, 1, 99};
        struct fixture f;

        (void)state;
        set_up(&f);
        api_control_resume(f.api);
        send_request(&f, partitions, ARRAY_SIZE(partitions), true);
        run_until_answered(&f);
        assert_int_equal(manager.partitions, 227);
        assert_true(manager.most <= 50);
        assert_int_equal(manager.live_leaders, 1);
        assert_true(f.beats >= 4); /* the loop did something else in between */
        assert_answer(partitions, ARRAY_SIZE(partitions));
        tear_down(&f);
}

static void what_exists_already_is_one_request(void **state)
{
        static const int32_t partitions[] = {300, 50};
        struct fixture f;

        (void)state;
        set_up(&f);
        api_control_resume(f.api);
        send_request(&f, partitions, 2, false);
        run_until_answered(&f);
        assert_int_equal(manager.calls, 1); /* leaders first, in all of it */
        assert_answer(partitions, 2);
        tear_down(&f);
}

static void a_refusal_of_the_whole_request_is_the_answer(void **state)
{
        static const int32_t partitions[] = {200};
        const struct wire_api *desc = wire_api_find(4);
        struct leader_and_isr_response res;
        struct arena a = {0};
        int32_t correlation;
        struct fixture f;

        (void)state;
        set_up(&f);
        manager.error = KAFKA_STALE_BROKER_EPOCH;
        api_control_resume(f.api);
        send_request(&f, partitions, 1, true);
        run_until_answered(&f);
        assert_int_equal(manager.calls, 1);
        arena_init(&a, 0);
        assert_int_equal(wire_decode_response(desc->response, VERSION, answers.reply.data + 4,
                                              answers.reply.len - 4, &a, &correlation, &res),
                         0);
        assert_int_equal(res.error_code, KAFKA_STALE_BROKER_EPOCH);
        assert_int_equal(res.topics.n, 0);
        arena_done(&a);
        tear_down(&f);
}

/* Runs all that is posted. */
static void on_idle(void *userdata)
{
        loop_stop(userdata);
}

static void run_posted(struct fixture *f)
{
        for (int i = 0; i < 3; i++) {
                assert_int_equal(loop_post(f->loop, on_idle, f->loop), 0);
                assert_int_equal(loop_run(f->loop), 0);
        }
}

static void nothing_is_applied_while_the_broker_is_not_registered(void **state)
{
        static const int32_t partitions[] = {3};
        struct fixture f;

        (void)state;
        set_up(&f);
        send_request(&f, partitions, 1, false);
        run_posted(&f);
        assert_int_equal(manager.calls, 0); /* an api is born holding them back */
        api_control_resume(f.api);
        assert_int_equal(manager.calls, 1);
        assert_answer(partitions, 1);
        tear_down(&f);
}

static void pause_it(void *userdata)
{
        api_control_pause(userdata);
}

/* D2: with the epoch of the new registration known, the request is judged again as a whole. */
static void a_session_lost_in_the_middle_begins_the_request_anew(void **state)
{
        static const int32_t partitions[] = {120};
        struct fixture f;

        (void)state;
        set_up(&f);
        api_control_resume(f.api);
        manager.during = pause_it;
        manager.userdata = f.api;
        send_request(&f, partitions, 1, true);
        run_posted(&f);
        assert_int_equal(manager.calls, 1);
        assert_int_equal(answers.n_replies, 0);

        manager.during = NULL;
        manager.partitions = 0;
        api_control_resume(f.api);
        run_until_answered(&f);
        assert_int_equal(manager.partitions, 120);
        assert_answer(partitions, 1);
        tear_down(&f);
}

static void requests_that_nobody_ran_are_dropped_at_the_end(void **state)
{
        static const int32_t partitions[] = {3};
        struct fixture f;

        (void)state;
        set_up(&f);
        send_request(&f, partitions, 1, false);
        send_request(&f, partitions, 1, false);
        run_posted(&f);
        tear_down(&f);
        assert_int_equal(answers.n_aborts, 2);
        assert_int_equal(answers.n_replies, 0);
}

int main(void)
{
        static const struct CMUnitTest tests[] = {
                cmocka_unit_test(thousands_of_new_partitions_are_made_some_at_a_turn),
                cmocka_unit_test(what_exists_already_is_one_request),
                cmocka_unit_test(a_refusal_of_the_whole_request_is_the_answer),
                cmocka_unit_test(nothing_is_applied_while_the_broker_is_not_registered),
                cmocka_unit_test(a_session_lost_in_the_middle_begins_the_request_anew),
                cmocka_unit_test(requests_that_nobody_ran_are_dropped_at_the_end),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
