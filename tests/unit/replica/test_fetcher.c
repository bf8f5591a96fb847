/* Two brokers, 1 and 2, over loopback: each serves Fetch and ListOffsets, and follows the other when told to.
 */
#include "replica_testing.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "net/net.h"
#include "wire/list_offsets.h"

static const int32_t both[] = {1, 2};

struct peer {
        struct node node;
        struct loop *loop;
        struct net_server *server;
        uint16_t port;
};

struct pair {
        struct peer peers[2];
};

/* --- a server that knows two requests --- */

struct exchange {
        struct node *node;
        struct net_request *net;
        struct wire_request_header header;
        struct arena arena;
        void *body;
};

static void reply(struct exchange *x, const struct wire_message *m, const void *body)
{
        struct buf out;

        buf_init(&out, 0);
        assert_int_equal(wire_encode_response(m, x->header.api_version, x->header.correlation_id, body, &out),
                         0);
        net_request_reply(x->net, &out);
        arena_done(&x->arena);
        free(x);
}

static void on_fetched(struct replica_response *r, void *userdata)
{
        assert_non_null(r);
        reply(userdata, &fetch_response_wire, r->body);
        (void)replica_response_free(r);
}

static void handle(struct exchange *x)
{
        const struct replica_call call = {
                .version = x->header.api_version, .on_done = on_fetched, .userdata = x};
        struct list_offsets_response listed;

        if (x->header.api_key == 1) {
                replica_manager_fetch(x->node->rm, x->body, &call);
                return;
        }
        assert_int_equal(x->header.api_key, 2);
        assert_int_equal(
                replica_manager_list_offsets(x->node->rm, x->body, x->header.api_version, &x->arena, &listed),
                0);
        reply(x, &list_offsets_response_wire, &listed);
}

static void on_request(struct net_request *r, void *userdata)
{
        struct peer *p = userdata;
        struct exchange *x = calloc(1, sizeof(*x));
        const struct wire_api *api;
        size_t used;

        assert_non_null(x);
        x->node = &p->node;
        x->net = r;
        arena_init(&x->arena, 0);
        assert_int_equal(wire_decode_request_header(r->frame.data, r->frame.len, &x->header, &used), 0);
        api = wire_api_find(x->header.api_key);
        x->body = arena_alloc(&x->arena, 1, wire_struct_size(api->request));
        assert_int_equal(wire_decode(api->request, x->header.api_version, r->frame.data + used,
                                     r->frame.len - used, &x->arena, x->body),
                         0);
        handle(x);
}

static void open_server(struct peer *p)
{
        const struct net_ops ops = {.on_request = on_request, .userdata = p};
        struct net_limits limits;

        net_limits_default(&limits);
        assert_int_equal(loop_new("peer", &p->loop), 0);
        assert_int_equal(net_server_new(p->loop, "127.0.0.1", p->port, &limits, &ops, &p->server), 0);
        p->port = net_server_port(p->server);
        assert_int_equal(loop_thread_start(p->loop), 0);
}

static void free_server(void *userdata)
{
        struct peer *p = userdata;

        p->server = net_server_free(p->server);
}

static void close_server(struct peer *p)
{
        if (!p->loop)
                return;
        assert_int_equal(loop_call(p->loop, free_server, p), 0);
        loop_stop(p->loop);
        loop_thread_join(p->loop);
        p->loop = loop_free(p->loop);
}

/* Clients of a broker before its replica manager: nothing may call it while it goes. */
static void peer_stop(struct peer *p)
{
        replica_manager_shutdown(p->node.rm);
        close_server(p);
        node_stop(&p->node);
}

static int setup(void **state)
{
        struct pair *t = calloc(1, sizeof(*t));

        assert_non_null(t);
        for (int i = 0; i < 2; i++) {
                node_init(&t->peers[i].node, i + 1);
                t->peers[i].node.auto_controller = true;
                node_start(&t->peers[i].node);
                open_server(&t->peers[i]);
        }
        *state = t;
        return 0;
}

static int teardown(void **state)
{
        struct pair *t = *state;

        for (int i = 0; i < 2; i++)
                replica_manager_shutdown(t->peers[i].node.rm);
        for (int i = 0; i < 2; i++) {
                close_server(&t->peers[i]);
                node_done(&t->peers[i].node);
        }
        free(t);
        return 0;
}

/* --- words --- */

static struct lai order(const struct pair *t, int32_t partition, int32_t leader, int32_t epoch)
{
        return (struct lai){.partition = partition,
                            .leader = leader,
                            .epoch = epoch,
                            .replicas = both,
                            .n_replicas = 2,
                            .leader_port = leader > 0 ? t->peers[leader - 1].port : 0};
}

/* The leader hears of it first, as the controller does it (D6). */
static void assign(struct pair *t, int32_t partition, int32_t leader, int32_t epoch)
{
        struct lai l = order(t, partition, leader, epoch);

        assert_int_equal(lai(&t->peers[leader - 1].node, &l), KAFKA_NONE);
        assert_int_equal(lai(&t->peers[2 - leader].node, &l), KAFKA_NONE);
}

static void await_end(struct node *n, int32_t partition, int64_t end, int64_t hw, int64_t within_ms)
{
        int64_t deadline_ms = clock_mono_ms() + within_ms;
        struct replica_info i;

        for (;;) {
                info(n, partition, &i);
                if (i.end_offset == end && i.high_watermark == hw)
                        return;
                if (clock_mono_ms() > deadline_ms)
                        fail_msg("partition %d of broker %d: end %ld hw %ld, wanted %ld and %ld", partition,
                                 n->options.broker_id, i.end_offset, i.high_watermark, end, hw);
                usleep(500);
        }
}

static void write_one(struct node *n, int32_t partition, int16_t acks, int16_t error)
{
        struct outcome o;

        outcome_init(&o);
        produce_to(n, TOPIC, partition, acks, 5000, &(struct batch){0}, &o);
        outcome_await(&o);
        assert_int_equal(produced(&o)->error_code, error);
        outcome_done(&o);
}

static void assert_same_log(struct pair *t, int32_t partition, int64_t end)
{
        struct buf logs[2];

        for (int i = 0; i < 2; i++) {
                struct partition_log *l;
                size_t n;

                buf_init(&logs[i], 0);
                assert_int_equal(log_manager_get(t->peers[i].node.logs, TOPIC, partition, false, &l), 0);
                assert_int_equal(partition_log_end_offset(l), end);
                assert_int_equal(partition_log_read(l, partition_log_start_offset(l), end, 1 << 24, true,
                                                    &logs[i], &n),
                                 0);
        }
        assert_int_equal(logs[0].len, logs[1].len);
        assert_memory_equal(logs[0].data, logs[1].data, logs[0].len);
        buf_done(&logs[0]);
        buf_done(&logs[1]);
}

/* --- tests --- */

static void a_follower_copies_its_leaders_log(void **state)
{
        struct pair *t = *state;

        assign(t, 0, 1, 1);
        for (int i = 0; i < 20; i++)
                write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        await_end(&t->peers[1].node, 0, 20, 20, 5000);
        assert_same_log(t, 0, 20);
}

static void an_acknowledgement_by_all_takes_little(void **state)
{
        struct pair *t = *state;
        int64_t begin_us, worst_us = 0, sum_us = 0;

        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        for (int i = 0; i < 300; i++) {
                begin_us = clock_mono_us();
                write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
                worst_us = MAX(worst_us, clock_mono_us() - begin_us);
                sum_us += clock_mono_us() - begin_us;
        }
        print_message("acks=all over two brokers: mean %ld us, worst %ld us\n", sum_us / 300, worst_us);
        assert_true(sum_us / 300 < 20000);
}

static void a_new_partition_does_not_wait_for_a_waiting_fetch(void **state)
{
        struct pair *t = *state;

        peer_stop(&t->peers[1]);
        t->peers[1].node.options.replica_fetch_wait_max_ms = 60000;
        node_start(&t->peers[1].node);
        open_server(&t->peers[1]);
        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE); /* now a fetch of 0 waits for a minute */
        for (int32_t p = 1; p < 10; p++) {
                assign(t, p, 1, 1);
                write_one(&t->peers[0].node, p, -1, KAFKA_NONE);
        }
        for (int32_t p = 0; p < 10; p++)
                write_one(&t->peers[0].node, p, -1, KAFKA_NONE);
}

static void a_follower_that_diverged_cuts_its_log(void **state)
{
        struct pair *t = *state;

        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        await_end(&t->peers[1].node, 0, 1, 1, 5000);
        /* 1 goes on alone, as far as it knows */
        assert_int_equal(stop_replica(&t->peers[1].node, 0, 1, false), KAFKA_NONE);
        for (int i = 0; i < 5; i++)
                write_one(&t->peers[0].node, 0, 1, KAFKA_NONE);
        await_end(&t->peers[0].node, 0, 6, 1, 1000);
        /* 2 is elected with less; what 1 wrote was never acknowledged by all */
        assign(t, 0, 2, 2);
        write_one(&t->peers[1].node, 0, -1, KAFKA_NONE);
        write_one(&t->peers[1].node, 0, -1, KAFKA_NONE);
        await_end(&t->peers[0].node, 0, 3, 3, 5000);
        assert_same_log(t, 0, 3);
}

static void logs_converge_after_elections_without_data(void **state)
{
        /* KIP-279, KAFKA-7415: epochs in which nothing was written. */
        struct pair *t = *state;
        int32_t epoch = 1;

        assign(t, 0, 1, epoch);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        for (int round = 0; round < 6; round++) {
                int32_t leader = 1 + round % 2;
                struct node *n = &t->peers[leader - 1].node;

                assign(t, 0, leader, ++epoch);
                (void)stop_replica(&t->peers[2 - leader].node, 0, epoch, false);
                write_one(n, 0, 1, KAFKA_NONE); /* only the leader has it */
                assign(t, 0, 3 - leader, ++epoch);
                assign(t, 0, leader, ++epoch);
        }
        write_one(&t->peers[1].node, 0, -1, KAFKA_NONE);
        {
                struct replica_info i;

                info(&t->peers[1].node, 0, &i);
                await_end(&t->peers[0].node, 0, i.end_offset, i.end_offset, 5000);
                assert_same_log(t, 0, i.end_offset);
        }
}

static void a_follower_behind_the_leaders_start_begins_there(void **state)
{
        struct pair *t = *state;
        struct partition_log *l;

        assert_int_equal(log_manager_get(t->peers[0].node.logs, TOPIC, 0, true, &l), 0);
        assert_int_equal(partition_log_truncate_fully_and_start_at(l, 100), 0);
        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, 1, KAFKA_NONE);
        await_end(&t->peers[1].node, 0, 101, 101, 5000); /* KAFKA-9491 */
        assert_same_log(t, 0, 101);
}

static void a_partition_that_the_leader_lacks_does_not_stop_the_others(void **state)
{
        /* KAFKA-10371, 5758 */
        struct pair *t = *state;
        struct lai lost = order(t, 7, 1, 1);

        assert_int_equal(lai(&t->peers[1].node, &lost), KAFKA_NONE);
        assign(t, 0, 1, 1);
        for (int i = 0; i < 50; i++)
                write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        assert_int_equal(lai(&t->peers[0].node, &lost), KAFKA_NONE); /* the leader hears of it at last */
        write_one(&t->peers[0].node, 7, -1, KAFKA_NONE);
}

static void a_leader_that_comes_back_is_found_again(void **state)
{
        struct pair *t = *state;

        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        close_server(&t->peers[0]);
        write_one(&t->peers[0].node, 0, 1, KAFKA_NONE);
        open_server(&t->peers[0]); /* at the same port */
        await_end(&t->peers[1].node, 0, 2, 2, 10000);
}

static void a_leader_that_moved_is_found_at_its_new_port(void **state)
{
        struct pair *t = *state;

        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        close_server(&t->peers[0]);
        t->peers[0].port = 0;
        open_server(&t->peers[0]);
        assign(t, 0, 1, 2);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
}

static void who_is_about_to_stop_follows_nobody(void **state)
{
        /* R9 */
        struct pair *t = *state;
        struct replica_info i;

        replica_manager_begin_shutdown(t->peers[1].node.rm);
        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, 1, KAFKA_NONE);
        usleep(50000); /* nothing is to happen: the time in which it would */
        info(&t->peers[1].node, 0, &i);
        assert_int_equal(i.role, REPLICA_FOLLOWER);
        assert_int_equal(i.end_offset, 0);
        replica_manager_cancel_shutdown(t->peers[1].node.rm); /* D2 */
        await_end(&t->peers[1].node, 0, 1, 1, 5000);
}

static void a_follower_rejoins_the_isr(void **state)
{
        struct pair *t = *state;
        struct lai l = order(t, 0, 1, 1);
        struct replica_info i = {0};
        int64_t deadline_ms = clock_mono_ms() + 5000;

        l.isr = both;
        l.n_isr = 1;
        assert_int_equal(lai(&t->peers[0].node, &l), KAFKA_NONE);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NOT_ENOUGH_REPLICAS);
        assert_int_equal(lai(&t->peers[1].node, &l), KAFKA_NONE);
        while (i.n_isr != 2) {
                assert_true(clock_mono_ms() < deadline_ms);
                info(&t->peers[0].node, 0, &i);
                usleep(500);
        }
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
}

static void a_follower_of_an_older_epoch_acknowledges_nothing(void **state)
{
        /* zk-fencing §2.5: every fetch carries the leader epoch, and one of another epoch is no progress. */
        struct pair *t = *state;
        struct lai l;
        struct outcome o;

        assign(t, 0, 1, 1);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        l = order(t, 0, 1, 2);
        assert_int_equal(lai(&t->peers[0].node, &l), KAFKA_NONE); /* 2 has not heard of it */
        outcome_init(&o);
        produce(&t->peers[0].node, -1, 150, &o);
        outcome_await(&o);
        assert_int_equal(produced(&o)->error_code, KAFKA_REQUEST_TIMED_OUT);
        outcome_done(&o);
        assert_int_equal(lai(&t->peers[1].node, &l), KAFKA_NONE);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
}

#define MANY 200

static void many_partitions_are_followed_at_once(void **state)
{
        struct pair *t = *state;
        int64_t begin_ms;

        for (int32_t p = 0; p < MANY; p++)
                assign(t, p, 1 + p % 2, 1);
        begin_ms = clock_mono_ms();
        for (int32_t p = 0; p < MANY; p++)
                write_one(&t->peers[p % 2].node, p, -1, KAFKA_NONE);
        print_message("%d partitions written one after the other in %ld ms\n", MANY,
                      clock_mono_ms() - begin_ms);
        for (int32_t p = 0; p < MANY; p++)
                await_end(&t->peers[1 - p % 2].node, p, 1, 1, 10000);
}

/* Both lead in turn while somebody writes; what was acknowledged by all is there in the end, once (I1). */
struct writer {
        struct pair *t;
        _Atomic bool stop;
        int64_t acked;
};

static void *write_for_ever(void *userdata)
{
        struct writer *w = userdata;

        for (int i = 0; !atomic_load(&w->stop); i++) {
                struct node *n = &w->t->peers[i / 4 % 2].node;
                struct outcome o;

                outcome_init(&o);
                produce_to(n, TOPIC, 0, -1, 2000, &(struct batch){0}, &o);
                outcome_await(&o);
                w->acked += produced(&o)->error_code == KAFKA_NONE;
                outcome_done(&o);
        }
        return NULL;
}

static void leadership_goes_back_and_forth_under_load(void **state)
{
        /* KAFKA-13266, 7786 */
        struct pair *t = *state;
        struct writer w = {.t = t};
        struct replica_info a;
        pthread_t thread;
        int32_t epoch = 1;

        assign(t, 0, 1, epoch);
        assert_int_equal(pthread_create(&thread, NULL, write_for_ever, &w), 0);
        for (int i = 0; i < 40; i++) {
                usleep(20000);
                assign(t, 0, 1 + i % 2, ++epoch);
        }
        atomic_store(&w.stop, true);
        pthread_join(thread, NULL);
        assign(t, 0, 1, ++epoch);
        write_one(&t->peers[0].node, 0, -1, KAFKA_NONE);
        info(&t->peers[0].node, 0, &a);
        assert_true(w.acked > 0);
        assert_true(a.end_offset > w.acked);
        await_end(&t->peers[1].node, 0, a.end_offset, a.end_offset, 5000);
        assert_same_log(t, 0, a.end_offset);
        print_message("%ld acknowledged across 40 elections\n", w.acked);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_follower_copies_its_leaders_log),
                TEST(an_acknowledgement_by_all_takes_little),
                TEST(a_new_partition_does_not_wait_for_a_waiting_fetch),
                TEST(a_follower_that_diverged_cuts_its_log),
                TEST(logs_converge_after_elections_without_data),
                TEST(a_follower_behind_the_leaders_start_begins_there),
                TEST(a_partition_that_the_leader_lacks_does_not_stop_the_others),
                TEST(a_leader_that_comes_back_is_found_again),
                TEST(a_leader_that_moved_is_found_at_its_new_port),
                TEST(who_is_about_to_stop_follows_nobody),
                TEST(a_follower_rejoins_the_isr),
                TEST(a_follower_of_an_older_epoch_acknowledges_nothing),
                TEST(many_partitions_are_followed_at_once),
                TEST(leadership_goes_back_and_forth_under_load),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
