/* Election, fencing, broker failures and topics, with a real ZooKeeper and fake brokers. */
#include "cluster_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "wire/error.h"
#include "zk_faults.h"

static struct cluster *c;

static int setup(void **state)
{
        (void)state;
        c = cluster_new();
        return 0;
}

static int teardown(void **state)
{
        (void)state;
        zk_faults_clear();
        cluster_free(c);
        return 0;
}

static int32_t epoch_znode(void)
{
        struct seen *seen = calloc(1, sizeof(*seen));
        int32_t epoch = -1;

        assert_non_null(seen);
        assert_int_equal(do_get(c->admin, ZNODE_CONTROLLER_EPOCH, seen), 0);
        assert_int_equal(znode_epoch_decode(seen->data, strlen(seen->data), &epoch), 0);
        free(seen);
        return epoch;
}

/* --- waiting conditions --- */

static bool knows_controller(void *userdata)
{
        const int32_t *want = userdata;
        struct controller_location where;

        return controller_active_id(c->nodes[want[0]].controller) == want[1] &&
               (want[1] < 0 ||
                (controller_locate(c->nodes[want[0]].controller, &where) == 0 && where.id == want[1]));
}

static void wait_knows(int32_t node, int32_t controller)
{
        int32_t want[] = {node, controller};

        wait_until(knows_controller, want);
}

struct absent {
        const char *path;
};

static bool is_absent(void *userdata)
{
        const struct absent *a = userdata;

        return do_exists(c->admin, a->path, NULL) == -ENOENT;
}

static bool not_active(void *userdata)
{
        return !controller_is_active(userdata);
}

static void on_view(int16_t error, struct cluster_view *view, void *userdata)
{
        _Atomic(struct cluster_view *) *ret = userdata;

        assert_int_equal(error, KAFKA_NONE);
        *ret = view;
}

static bool has_view(void *userdata)
{
        return *(_Atomic(struct cluster_view *) *)userdata != NULL;
}

static struct cluster_view *view_of(enum cluster_view_scope scope, const char *topic)
{
        _Atomic(struct cluster_view *) v = NULL;

        controller_view(cluster_active(c), scope, topic, on_view, &v);
        wait_until(has_view, &v);
        return v;
}

static bool broker_gone(void *userdata)
{
        const int32_t *id = userdata;
        struct cluster_view *v = view_of(CLUSTER_SUMMARY, NULL);
        bool gone = true;

        for (size_t i = 0; i < v->n_brokers; i++)
                gone = gone && v->brokers[i].id != *id;
        cluster_view_free(v);
        return gone;
}

/* The controller has noticed it. */
static void wait_broker_gone(int32_t id)
{
        wait_until(broker_gone, &id);
}

struct term {
        int32_t node, epoch;
};

static bool in_term(void *userdata)
{
        const struct term *t = userdata;

        return controller_is_active(c->nodes[t->node].controller) &&
               controller_epoch(c->nodes[t->node].controller) == t->epoch;
}

static void wait_term(int32_t node, int32_t epoch)
{
        struct term t = {node, epoch};

        wait_until(in_term, &t);
}

/* --- who is controller --- */

static void the_first_broker_is_elected_and_counts_the_epoch_up(void **state)
{
        struct controller_location where;

        (void)state;
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);

        assert_int_equal(epoch_znode(), 1);
        assert_int_equal(controller_epoch(c->nodes[1].controller), 1);
        wait_knows(1, 1);
        assert_int_equal(controller_locate(c->nodes[1].controller, &where), 0);
        assert_string_equal(where.host, "127.0.0.1");
        assert_int_equal(where.port, fake_broker_port(c->nodes[1].broker));
        assert_string_equal(where.admin_host, "127.0.0.1");
        assert_int_equal(where.admin_port, 7001);
}

static void others_know_the_controller_and_follow_it_when_it_stops(void **state)
{
        (void)state;
        cluster_start(c, 3);
        wait_knows(2, 1);
        wait_knows(3, 1);
        assert_false(controller_is_active(c->nodes[2].controller));

        node_stop(c, 1);

        (void)cluster_active(c);
        assert_int_equal(epoch_znode(), 2);
        wait_knows(2, cluster_active_id(c));
        wait_knows(3, cluster_active_id(c));
}

/* The old one has not noticed anything: /controller is still its own, only the epoch has moved on. Its next
 * write is refused by the check, nothing of it is applied, and it resigns (KAFKA-6082; I8). */
static void a_controller_whose_epoch_was_counted_up_writes_nothing_and_resigns(void **state)
{
        const int32_t ids[] = {1, 2};
        struct znode_state before, after;
        int32_t version, version_after;
        char text[ZNODE_SMALL_SIZE];

        (void)state;
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        node_start(c, 2, NODE_BROKER);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        assert_true(read_state(c, "t", 0, &before, &version));

        (void)znode_epoch_encode(41, text);
        assert_int_equal(do_set(c->admin, ZNODE_CONTROLLER_EPOCH, text, -1), 0);
        node_stop(c, 2);
        /* it stands again, with the epoch it reads now, and only then acts */
        wait_term(1, 42);
        assert_int_equal(epoch_znode(), 42);
        wait_told(c, 1, TOLD_LAI, "t", 0, 1);
        wait_leader(c, "t", 0, 1);
        for (;;) {
                assert_true(read_state(c, "t", 0, &after, &version_after));
                if (version_after > version)
                        break;
        }
        assert_int_equal(after.controller_epoch, 42);
        assert_int_equal(version_after, version + 1);
}

static void a_controller_whose_znode_is_deleted_resigns_and_stands_again(void **state)
{
        (void)state;
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        assert_int_equal(do_delete(c->admin, ZNODE_CONTROLLER, -1), 0);
        wait_term(1, 2);
        assert_int_equal(epoch_znode(), 2);
}

/* A partition of ZooKeeper's own may show it another controller before it hears of its session's end. */
static void a_controller_that_reads_another_name_resigns(void **state)
{
        struct seen *seen = seen_new();
        struct zk_op ops[] = {
                {.type = ZK_OP_DELETE, .path = ZNODE_CONTROLLER, .version = -1},
                {.type = ZK_OP_CREATE_EPHEMERAL,
                 .path = ZNODE_CONTROLLER,
                 .data = "{\"version\":2,\"brokerid\":9,\"timestamp\":\"1\",\"kraftControllerEpoch\":-1}"},
        };

        (void)state;
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        assert_int_equal(zk_multi(c->admin->z, c->admin->loop, ops, 2, on_seen, seen), 0);
        assert_int_equal(seen_wait(seen), 0);
        seen_free(seen);
        wait_until(not_active, c->nodes[1].controller);
        assert_int_equal(do_delete(c->admin, ZNODE_CONTROLLER, -1), 0);
        wait_term(1, 2);
}

static void an_expired_session_makes_room_for_another_and_may_come_back(void **state)
{
        struct node *n;

        (void)state;
        cluster_start(c, 2);
        n = &c->nodes[1];
        wait_knows(2, 1);

        zk_test_kill_session(fixture_address(), zk_session_id(n->client->z));
        client_wait_event(n->client, ZK_EXPIRED, 1);
        controller_on_session(n->controller, ZK_EXPIRED);
        wait_active(c, 2);
        wait_until(not_active, n->controller);

        assert_int_equal(zk_reopen(n->client->z), 0);
        client_wait_event(n->client, ZK_CONNECTED, 2);
        node_register(n);
        wait_knows(1, 2);
        wait_live(c, 2, 2);
        node_stop(c, 2);
        wait_active(c, 1); /* KAFKA-928: nothing of the first term stands in the way */
}

/* The reply to the election's multi is lost; what it wrote is recognised by session, value and version. */
static void a_lost_reply_to_the_election_does_not_lose_the_office(void **state)
{
        (void)state;
        zk_faults_lose_replies(ZNODE_CONTROLLER_EPOCH, 1);
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        assert_int_equal(zk_faults_left(), 0);
        assert_int_equal(epoch_znode(), 1); /* elected once, not twice */
}

/* KAFKA-1382: a write whose reply is lost is read back and recognised; nothing is written twice. */
static void a_lost_reply_to_a_state_write_is_recognised(void **state)
{
        const int32_t ids[] = {2, 1};
        struct znode_state st;
        int32_t version;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        zk_faults_lose_replies("/partitions/0", 1);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        zk_faults_lose_replies("/partitions/0/state", 1);
        node_stop(c, 2);
        wait_leader(c, "t", 0, 1);
        wait_told(c, 1, TOLD_LAI, "t", 0, 1);
        assert_int_equal(zk_faults_left(), 0);
        assert_true(read_state(c, "t", 0, &st, &version));
        assert_int_equal(version, 1);
        assert_int_equal(st.leader_epoch, 1);
}

static void a_lost_reply_to_a_creation_is_recognised(void **state)
{
        (void)state;
        cluster_start(c, 1);
        zk_faults_lose_replies("/config/topics/t", 1);
        assert_int_equal(make_topic(c, "t", 3, 1, NULL), KAFKA_NONE);
        assert_int_equal(zk_faults_left(), 0);
}

/* A write that ZooKeeper refuses is tried again, and only its partition waits. */
static void a_refused_write_is_tried_again(void **state)
{
        const int32_t ids[] = {2, 1};

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        zk_faults_refuse("/t/partitions/0/state", -EIO, 3);
        node_stop(c, 2);
        wait_leader(c, "t", 0, 1);
        assert_int_equal(zk_faults_left(), 0);
}

/* F2: without a lease nothing is written and nothing is sent; with it, what waited goes on. */
static void nothing_happens_while_the_lease_has_lapsed(void **state)
{
        const int32_t ids[] = {2, 1};
        struct znode_state st;
        int sent;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        zk_faults_lapse_lease(true);
        sent = fake_broker_requests(c->nodes[1].broker, TOLD_LAI) +
               fake_broker_requests(c->nodes[1].broker, TOLD_UM);
        node_stop(c, 2);
        wait_broker_gone(2);
        st = state_of(c, "t", 0);
        assert_int_equal(st.leader, 2);
        assert_int_equal(fake_broker_requests(c->nodes[1].broker, TOLD_LAI) +
                                 fake_broker_requests(c->nodes[1].broker, TOLD_UM),
                         sent);
        zk_faults_lapse_lease(false);
        wait_leader(c, "t", 0, 1);
        wait_told(c, 1, TOLD_LAI, "t", 0, 1);
}

/* --- what is asked while nobody is in office --- */

static void a_broker_that_is_not_controller_says_so(void **state)
{
        struct shutdown_seen seen;

        (void)state;
        cluster_start(c, 2);
        controlled_shutdown(c->nodes[2].controller, 1, -1, &seen);
        assert_int_equal(seen.error, KAFKA_NOT_CONTROLLER); /* R36 */
}

static void a_stopped_controller_answers_not_controller(void **state)
{
        struct shutdown_seen seen;

        (void)state;
        cluster_start(c, 1);
        controller_stop(c->nodes[1].controller);
        controlled_shutdown(c->nodes[1].controller, 1, -1, &seen);
        assert_int_equal(seen.error, KAFKA_NOT_CONTROLLER); /* KAFKA-10193 */
}

/* --- topics --- */

static void a_created_topic_is_led_in_sync_and_known_everywhere(void **state)
{
        const int32_t ids[] = {1, 2, 3, 2, 3, 1, 3, 1, 2};
        struct znode_state st;
        struct told t;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 3, 3, ids), KAFKA_NONE);

        for (int32_t p = 0; p < 3; p++) {
                assert_true(read_state(c, "t", p, &st, NULL));
                assert_int_equal(st.leader, p + 1);
                assert_int_equal(st.n_isr, 3);
                assert_int_equal(st.leader_epoch, 0);
                assert_int_equal(st.controller_epoch, 1);
                for (int32_t b = 1; b <= 3; b++) {
                        assert_true(fake_broker_last(c->nodes[b].broker, TOLD_LAI, "t", p, &t));
                        assert_true(t.is_new);
                        assert_int_equal(t.leader, p + 1);
                        assert_int_equal(t.broker_epoch, c->nodes[b].epoch);
                        assert_true(fake_broker_last(c->nodes[b].broker, TOLD_UM, "t", p, &t));
                        assert_int_equal(t.leader, p + 1);
                }
        }
        assert_int_equal(do_exists(c->admin, "/config/topics/t", NULL), 0);
        assert_int_equal(make_topic(c, "t", 1, 1, NULL), KAFKA_TOPIC_ALREADY_EXISTS);
        assert_int_equal(make_topic(c, "u", 1, 4, NULL), KAFKA_INVALID_REPLICATION_FACTOR);
        assert_int_equal(make_topic(c, "u", 0, 1, NULL), KAFKA_INVALID_PARTITIONS);
        assert_int_equal(make_topic(c, "no/good", 1, 1, NULL), KAFKA_INVALID_TOPIC_EXCEPTION);
        assert_int_equal(make_topic(c, "a.b", 2, 3, NULL), KAFKA_NONE);
        assert_int_equal(make_topic(c, "a_b", 1, 1, NULL), KAFKA_INVALID_TOPIC_EXCEPTION);
}

/* Kafka's own tools write no more than the assignment. */
static void a_topic_written_by_a_tool_comes_online(void **state)
{
        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(do_create(c->admin, "/brokers/topics/tool",
                                   "{\"version\":1,\"partitions\":{\"0\":[2,1],\"1\":[1,2]}}", false),
                         0);
        wait_leader(c, "tool", 0, 2);
        wait_leader(c, "tool", 1, 1);
        wait_told(c, 2, TOLD_LAI, "tool", 0, 2);
}

/* KAFKA-990, KAFKA-4010: junk in ZooKeeper is left out, the rest works. */
static void a_malformed_topic_znode_is_left_out(void **state)
{
        (void)state;
        cluster_start(c, 1);
        assert_int_equal(
                do_create(c->admin, "/brokers/topics/junk", "{\"version\":1,\"partitions\":7}", false), 0);
        assert_int_equal(make_topic(c, "good", 1, 1, NULL), KAFKA_NONE);
        assert_int_equal(do_delete(c->admin, ZNODE_CONTROLLER, -1), 0);
        wait_term(1, 2);
        assert_int_equal(make_topic(c, "better", 1, 1, NULL), KAFKA_NONE);
}

static void a_deleted_topic_leaves_brokers_first_and_zookeeper_then(void **state)
{
        const int32_t ids[] = {1, 2, 2, 1};
        struct absent gone = {"/brokers/topics/t"};
        struct told t;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 2, 2, ids), KAFKA_NONE);

        fake_broker_hold(c->nodes[2].broker, TOLD_STOP, true);
        assert_int_equal(drop_topic(c, "t"), KAFKA_REQUEST_TIMED_OUT); /* it goes on */
        assert_int_equal(do_exists(c->admin, "/brokers/topics/t", NULL), 0);
        fake_broker_release(c->nodes[2].broker);
        wait_until(is_absent, &gone);

        assert_int_equal(do_exists(c->admin, "/config/topics/t", NULL), -ENOENT);
        assert_int_equal(do_exists(c->admin, "/admin/delete_topics/t", NULL), -ENOENT);
        for (int32_t b = 1; b <= 2; b++) {
                assert_true(fake_broker_last(c->nodes[b].broker, TOLD_STOP, "t", 1, &t));
                assert_true(t.delete_partition);
                assert_int_equal(t.leader_epoch, -2);
                wait_told(c, b, TOLD_UM, "t", 1, -2);
        }
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        assert_int_equal(drop_topic(c, "nothing"), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
}

/* Otherwise it would come back with the data of a topic that nobody knows. */
static void deletion_waits_for_a_broker_that_is_away(void **state)
{
        const int32_t ids[] = {1, 2};
        struct absent gone = {"/brokers/topics/t"};

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        node_stop(c, 2);
        wait_live(c, 1, 1);

        assert_int_equal(do_create(c->admin, "/admin/delete_topics/t", NULL, false), 0); /* as a tool asks */
        wait_told(c, 1, TOLD_UM, "t", 0, -2);
        assert_int_equal(make_topic(c, "other", 1, 1, NULL), KAFKA_NONE);
        assert_int_equal(drop_topic(c, "other"), KAFKA_NONE); /* deletions are at work */
        assert_int_equal(do_exists(c->admin, "/brokers/topics/t", NULL), 0);
        node_start(c, 2, NODE_BROKER);
        wait_until(is_absent, &gone);
        assert_int_equal(fake_broker_count(c->nodes[2].broker, TOLD_STOP, "t"), 1);
}

/* --- brokers come and go --- */

static void a_dead_leader_is_replaced_from_the_isr_and_leaves_it(void **state)
{
        const int32_t ids[] = {2, 3, 1};
        struct znode_state st;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 1, 3, ids), KAFKA_NONE);
        node_stop(c, 2);
        wait_leader(c, "t", 0, 3);
        assert_true(read_state(c, "t", 0, &st, NULL));
        assert_false(isr_has(&st, 2));
        assert_int_equal(st.n_isr, 2);
        assert_int_equal(st.leader_epoch, 1);
        wait_told(c, 1, TOLD_LAI, "t", 0, 3);
        wait_told(c, 3, TOLD_LAI, "t", 0, 3);
        wait_live(c, 1, 2);
}

/* KAFKA-5083, R29: leader -1, the ISR keeps the last; it and only it leads again. */
static void the_last_in_sync_replica_is_kept_and_leads_when_it_returns(void **state)
{
        const int32_t ids[] = {2, 3};
        struct znode_state st;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        node_stop(c, 3);
        wait_live(c, 1, 2);
        wait_told(c, 2, TOLD_UM, "t", 0, 2);
        node_stop(c, 2);
        wait_leader(c, "t", 0, -1);
        st = state_of(c, "t", 0);
        assert_int_equal(st.n_isr, 1);
        assert_int_equal(st.isr[0], 2);

        node_start(c, 3, NODE_BROKER); /* not in sync */
        wait_live(c, 1, 2);
        assert_int_equal(state_of(c, "t", 0).leader, -1);
        node_start(c, 2, NODE_BROKER);
        wait_leader(c, "t", 0, 2);
}

/* KIP-380: the same id with a new czxid between two looks is a death and a birth. */
static void a_bounced_broker_loses_leadership_and_hears_everything_again(void **state)
{
        const int32_t ids[] = {2, 3, 3, 2};
        struct node *n;
        struct told t;

        (void)state;
        cluster_start(c, 3);
        n = &c->nodes[2];
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 2, 2, ids), KAFKA_NONE);

        /* the znode is replaced in one transaction: no look can see it missing */
        {
                struct seen *seen = seen_new();
                char path[ZNODE_PATH_SIZE];
                struct seen *old = calloc(1, sizeof(*old));
                struct zk_op ops[2];

                assert_non_null(old);
                znode_path_broker(2, path);
                assert_int_equal(do_get(n->client, path, old), 0);
                ops[0] = (struct zk_op){.type = ZK_OP_DELETE, .path = path, .version = -1};
                ops[1] = (struct zk_op){.type = ZK_OP_CREATE_EPHEMERAL, .path = path, .data = old->data};
                assert_int_equal(zk_multi(n->client->z, n->client->loop, ops, 2, on_seen, seen), 0);
                assert_int_equal(seen_wait(seen), 0);
                assert_int_equal(do_get(n->client, path, old), 0);
                n->epoch = old->stat.czxid;
                fake_broker_set_epoch(n->broker, n->epoch);
                seen_free(seen);
                free(old);
        }
        wait_leader(c, "t", 0, 3);
        assert_false(({
                struct znode_state st = state_of(c, "t", 0);
                isr_has(&st, 2);
        }));
        wait_told(c, 2, TOLD_LAI, "t", 0, 3);
        assert_true(fake_broker_last(n->broker, TOLD_LAI, "t", 0, &t));
        assert_int_equal(t.broker_epoch, n->epoch);
}

/* KAFKA-831, KAFKA-769: the first LeaderAndIsr holds every partition, those without a live leader as well,
 * and the metadata of live brokers comes before it (KAFKA-4443). */
static void a_returning_broker_gets_metadata_and_then_all_its_partitions_at_once(void **state)
{
        const int32_t ids[] = {2, 3, 3, 2, 2, 3};
        struct told lai, um;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 3, 2, ids), KAFKA_NONE);
        node_stop(c, 2);
        wait_leader(c, "t", 0, 3);
        node_stop(c, 3);
        wait_leader(c, "t", 0, -1);
        node_start(c, 2, NODE_BROKER);
        wait_live(c, 2, 2);
        wait_told(c, 2, TOLD_LAI, "t", 2, -1);
        for (int32_t p = 0; p < 3; p++) {
                assert_true(fake_broker_first(c->nodes[2].broker, TOLD_LAI, "t", p, &lai));
                assert_true(lai.full);
                assert_true(fake_broker_first(c->nodes[2].broker, TOLD_UM, "t", p, &um));
                assert_true(um.seq < lai.seq);
        }
}

/* KAFKA-1187, KAFKA-1738 */
static void a_request_lost_with_its_connection_is_sent_again(void **state)
{
        const int32_t ids[] = {1, 2};

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        fake_broker_fail_next(c->nodes[2].broker, TOLD_LAI, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        wait_told(c, 2, TOLD_LAI, "t", 0, 1);
        assert_true(fake_broker_fetches(c->nodes[2].broker, "t", 0));
}

static void a_replica_with_an_offline_directory_counts_as_dead(void **state)
{
        const int32_t ids[] = {2, 1};
        struct znode_state st;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        fake_broker_partition_error(c->nodes[2].broker, TOLD_LAI, KAFKA_STORAGE_ERROR);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        wait_leader(c, "t", 0, 1);
        st = state_of(c, "t", 0);
        assert_false(isr_has(&st, 2));
}

static bool is_removed(void *userdata)
{
        return do_exists(c->admin, userdata, NULL) == -ENOENT;
}

static void wait_gone(const char *path)
{
        wait_until(is_removed, (void *)path);
}

/* KIP-112: the report does not say which replicas; the broker is asked about all of them. */
static void a_report_of_a_failed_directory_is_looked_into_and_deleted(void **state)
{
        const int32_t ids[] = {2, 1};
        char data[ZNODE_SMALL_SIZE];
        struct znode_state st;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        wait_leader(c, "t", 0, 2);
        assert_int_equal(do_create(c->admin, ZNODE_LOG_DIR_PREFIX "0000000001", "no json", false), 0);
        wait_gone(ZNODE_LOG_DIR_PREFIX "0000000001");
        assert_int_equal(state_of(c, "t", 0).leader, 2);
        fake_broker_partition_error(c->nodes[2].broker, TOLD_LAI, KAFKA_STORAGE_ERROR);
        (void)znode_log_dir_event_encode(2, data);
        assert_int_equal(do_create(c->admin, ZNODE_LOG_DIR_PREFIX "0000000002", data, false), 0);
        wait_leader(c, "t", 0, 1);
        wait_gone(ZNODE_LOG_DIR_PREFIX "0000000002");
        st = state_of(c, "t", 0);
        assert_false(isr_has(&st, 2));
}

static void a_new_controller_takes_the_cluster_as_it_finds_it(void **state)
{
        const int32_t ids[] = {2, 3, 3, 2};
        struct told t;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 2, 2, ids), KAFKA_NONE);
        node_stop(c, 1);
        (void)cluster_active(c);
        wait_live(c, 2, 2);
        assert_int_equal(make_topic(c, "u", 1, 2, ids),
                         KAFKA_NONE); /* everything sent before has been answered */
        assert_true(fake_broker_last(c->nodes[3].broker, TOLD_LAI, "t", 1, &t));
        assert_int_equal(t.leader, 3);
        assert_int_equal(state_of(c, "t", 0).leader_epoch, 0); /* R24: no write without a reason */
}

/* A broker that died while nobody was in office (KAFKA-3143). */
static void a_new_controller_finds_the_dead(void **state)
{
        const int32_t ids[] = {3, 2};

        (void)state;
        cluster_start(c, 2);
        node_start(c, 3, NODE_BROKER);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        controller_stop(c->nodes[2].controller); /* nobody to take over yet */
        controller_stop(c->nodes[1].controller);
        node_stop(c, 3);
        assert_int_equal(state_of(c, "t", 0).leader, 3);
        node_start(c, 4, NODE_CONTROLLER);
        wait_leader(c, "t", 0, 2);
}

/* KAFKA-1382 at the controller: a state that somebody else has written is read back and started from. */
static void a_conflicting_write_is_read_back_and_decided_anew(void **state)
{
        const int32_t ids[] = {2, 1};
        struct znode_state st;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "t", 1, 2, ids), KAFKA_NONE);
        st = state_of(c, "t", 0);
        write_state(c, "t", 0, &st); /* version up, unknown to the controller */
        node_stop(c, 2);
        wait_leader(c, "t", 0, 1);
}

/* --- AlterPartition --- */

static void a_leader_changes_its_isr_through_the_controller(void **state)
{
        const int32_t ids[] = {2, 1, 3};
        struct proposal shrink = {.topic = "t", .leader = 2, .isr = {2, 1}, .n_isr = 2};
        struct proposal stale = {.topic = "t", .leader = 2, .isr = {2}, .n_isr = 1};
        struct proposal expand = {
                .topic = "t", .leader = 2, .isr = {2, 1, 3}, .n_isr = 3, .partition_epoch = 1};
        struct znode_state st;
        int32_t version;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 1, 3, ids), KAFKA_NONE);

        assert_int_equal(propose_isr(c, &shrink), KAFKA_NONE);
        assert_true(read_state(c, "t", 0, &st, &version));
        assert_int_equal(st.n_isr, 2);
        assert_int_equal(st.leader_epoch, 0); /* KAFKA-15021 */
        assert_int_equal(version, 1);
        assert_int_equal(propose_isr(c, &shrink), KAFKA_NONE); /* KAFKA-14144: the reply may have been lost */
        assert_int_equal(propose_isr(c, &stale), KAFKA_INVALID_UPDATE_VERSION);
        assert_int_equal(propose_isr(c, &expand), KAFKA_NONE);
        assert_true(read_state(c, "t", 0, &st, &version));
        assert_int_equal(st.n_isr, 3);
        assert_int_equal(version, 2);

        /* KAFKA-1382: the write went through, only its reply was lost */
        zk_faults_lose_replies("/t/partitions/0/state", 1);
        shrink.partition_epoch = 2;
        assert_int_equal(propose_isr(c, &shrink), KAFKA_NONE);
        assert_int_equal(zk_faults_left(), 0);

        c->nodes[2].epoch--; /* an earlier life */
        assert_int_equal(propose_isr(c, &shrink), KAFKA_STALE_BROKER_EPOCH);
        c->nodes[2].epoch++;
}

/* A metric as /metrics shows it. */
static int64_t counted(const char *row)
{
        cleanup_with(buf_donep) struct buf text = {0};
        const char *at;

        buf_init(&text, 0);
        assert_int_equal(metrics_print(&text), 0);
        at = strstr(buf_cstr(&text), row);
        return at ? strtoll(at + strlen(row), NULL, 10) : 0;
}

/* F3: an epoch that is not named is none, and each refusal is counted. */
static void an_isr_change_without_a_broker_epoch_is_refused_and_counted(void **state)
{
        static const char of_broker[] = "stepdown_controller_stale_requests_total{epoch=\"broker\"} ",
                          of_partition[] = "stepdown_controller_stale_requests_total{epoch=\"partition\"} ";
        const int32_t ids[] = {2, 1, 3};
        struct proposal shrink = {.topic = "t", .leader = 2, .isr = {2, 1}, .n_isr = 2};
        int64_t known, brokers, partitions;

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        assert_int_equal(make_topic(c, "t", 1, 3, ids), KAFKA_NONE);
        brokers = counted(of_broker);
        partitions = counted(of_partition);
        known = c->nodes[2].epoch;

        c->nodes[2].epoch = -1;
        assert_int_equal(propose_isr(c, &shrink), KAFKA_STALE_BROKER_EPOCH);
        c->nodes[2].epoch = known;
        assert_int_equal(propose_isr(c, &shrink), KAFKA_NONE);
        shrink.isr[1] = 3;
        assert_int_equal(propose_isr(c, &shrink), KAFKA_INVALID_UPDATE_VERSION);

        assert_int_equal(counted(of_broker), brokers + 1);
        assert_int_equal(counted(of_partition), partitions + 1);
}

/* --- the view --- */

static void the_view_shows_brokers_topics_and_troubled_partitions(void **state)
{
        const int32_t ids[] = {2, 1, 1, 2}, single[] = {2};
        struct cluster_view *v;

        (void)state;
        cluster_start(c, 2);
        wait_live(c, 1, 2);
        assert_int_equal(make_topic(c, "pair", 2, 2, ids), KAFKA_NONE);
        assert_int_equal(make_topic(c, "single", 1, 1, single), KAFKA_NONE);
        v = view_of(CLUSTER_PARTITIONS, NULL);
        assert_int_equal(v->n_brokers, 2);
        assert_int_equal(v->brokers[1].leaders, 2);
        assert_int_equal(v->brokers[1].admin_port, 7002);
        assert_int_equal(v->n_topics, 2);
        assert_string_equal(v->topics[0].name, "pair");
        assert_int_equal(v->n_partitions, 3);
        assert_int_equal(v->n_under_replicated + v->n_offline, 0);
        cluster_view_free(v);

        node_stop(c, 2);
        wait_leader(c, "single", 0, -1);
        wait_leader(c, "pair", 0, 1);
        wait_told(c, 1, TOLD_UM, "single", 0, -1);
        v = view_of(CLUSTER_UNAVAILABLE, NULL);
        assert_int_equal(v->n_partitions, 1);
        assert_string_equal(v->partitions[0].topic, "single");
        assert_int_equal(v->n_offline, 1);
        assert_int_equal(v->n_partitions_total, 3);
        cluster_view_free(v);
        v = view_of(CLUSTER_PARTITIONS, "pair");
        assert_int_equal(v->n_partitions, 2);
        cluster_view_free(v);
        v = view_of(CLUSTER_SUMMARY, NULL);
        assert_int_equal(v->n_partitions, 0);
        cluster_view_free(v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(the_first_broker_is_elected_and_counts_the_epoch_up),
                TEST(others_know_the_controller_and_follow_it_when_it_stops),
                TEST(a_controller_whose_epoch_was_counted_up_writes_nothing_and_resigns),
                TEST(a_controller_whose_znode_is_deleted_resigns_and_stands_again),
                TEST(a_controller_that_reads_another_name_resigns),
                TEST(an_expired_session_makes_room_for_another_and_may_come_back),
                TEST(a_lost_reply_to_the_election_does_not_lose_the_office),
                TEST(a_lost_reply_to_a_state_write_is_recognised),
                TEST(a_lost_reply_to_a_creation_is_recognised),
                TEST(a_refused_write_is_tried_again),
                TEST(nothing_happens_while_the_lease_has_lapsed),
                TEST(a_broker_that_is_not_controller_says_so),
                TEST(a_stopped_controller_answers_not_controller),
                TEST(a_created_topic_is_led_in_sync_and_known_everywhere),
                TEST(a_topic_written_by_a_tool_comes_online),
                TEST(a_malformed_topic_znode_is_left_out),
                TEST(a_deleted_topic_leaves_brokers_first_and_zookeeper_then),
                TEST(deletion_waits_for_a_broker_that_is_away),
                TEST(a_dead_leader_is_replaced_from_the_isr_and_leaves_it),
                TEST(the_last_in_sync_replica_is_kept_and_leads_when_it_returns),
                TEST(a_bounced_broker_loses_leadership_and_hears_everything_again),
                TEST(a_returning_broker_gets_metadata_and_then_all_its_partitions_at_once),
                TEST(a_request_lost_with_its_connection_is_sent_again),
                TEST(a_replica_with_an_offline_directory_counts_as_dead),
                TEST(a_report_of_a_failed_directory_is_looked_into_and_deleted),
                TEST(a_new_controller_takes_the_cluster_as_it_finds_it),
                TEST(a_new_controller_finds_the_dead),
                TEST(a_conflicting_write_is_read_back_and_decided_anew),
                TEST(a_leader_changes_its_isr_through_the_controller),
                TEST(an_isr_change_without_a_broker_epoch_is_refused_and_counted),
                TEST(the_view_shows_brokers_topics_and_troubled_partitions),
        };

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
