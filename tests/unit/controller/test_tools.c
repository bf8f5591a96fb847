/* The replication tools: partitions added, leaders elected on demand, replicas reassigned; with a real
 * ZooKeeper and fake brokers. */
#include "cluster_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "wire/alter_partition_reassignments.h"
#include "wire/create_partitions.h"
#include "wire/elect_leaders.h"
#include "wire/error.h"
#include "wire/list_partition_reassignments.h"
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

/* All of them are known to the controller. */
static void start(int n)
{
        cluster_start(c, n);
        wait_live(c, cluster_active_id(c), n);
}

/* --- requests --- */

struct answer {
        _Atomic bool done;
        int16_t code;
        char message[256];
        int n;
        int32_t adding[8], removing[8], n_adding, n_removing;
};

static bool is_done(void *userdata)
{
        return ((struct answer *)userdata)->done;
}

static void keep(struct answer *a, int16_t code, struct wire_str message)
{
        a->code = code;
        (void)snprintf(a->message, sizeof(a->message), "%.*s", message.len > 0 ? (int)message.len : 0,
                       message.len > 0 ? message.data : "");
        a->done = true;
}

static void on_grown(const struct create_partitions_response *res, void *userdata)
{
        assert_int_equal(res->results.n, 1);
        keep(userdata, res->results.items[0].error_code, res->results.items[0].error_message);
}

static struct answer grow(const char *name, int32_t count, const int32_t *ids, int32_t rows, int32_t rf,
                          bool validate_only)
{
        struct create_partitions_request_assignment as[8];
        struct create_partitions_request_topic t = {
                .name = wire_str(name), .count = count, .assignments = {as, ids ? rows : -1}};
        struct create_partitions_request req = {
                .topics = {&t, 1}, .timeout_ms = 10000, .validate_only = validate_only};
        struct answer a = {0};

        for (int32_t i = 0; ids && i < rows; i++) {
                as[i].broker_ids.items = (int32_t *)ids + i * rf;
                as[i].broker_ids.n = rf;
        }
        controller_create_partitions(cluster_active(c), &req, on_grown, &a);
        wait_until(is_done, &a);
        return a;
}

static void on_elected(const struct elect_leaders_response *res, void *userdata)
{
        struct answer *a = userdata;

        a->n = res->replica_election_results.n;
        if (a->n == 0)
                keep(a, res->error_code, WIRE_NULL_STR);
        else
                keep(a, res->replica_election_results.items[0].partition_result.items[0].error_code,
                     res->replica_election_results.items[0].partition_result.items[0].error_message);
}

static struct answer elect(const char *name, int32_t partition, int8_t type)
{
        struct elect_leaders_request_topic_partitions t = {.topic = wire_str(name ? name : ""),
                                                           .partitions = {&partition, 1}};
        struct elect_leaders_request req = {
                .election_type = type, .topic_partitions = {&t, name ? 1 : -1}, .timeout_ms = 10000};
        struct answer a = {0};

        controller_elect_leaders(cluster_active(c), &req, on_elected, &a);
        wait_until(is_done, &a);
        return a;
}

static void on_moved(const struct alter_partition_reassignments_response *res, void *userdata)
{
        if (res->error_code != KAFKA_NONE)
                keep(userdata, res->error_code, res->error_message);
        else
                keep(userdata, res->responses.items[0].partitions.items[0].error_code,
                     res->responses.items[0].partitions.items[0].error_message);
}

/* @n -1: cancel. */
static struct answer move(const char *name, int32_t partition, const int32_t *ids, int32_t n)
{
        struct alter_partition_reassignments_request_partition p = {.partition_index = partition,
                                                                    .replicas = {(int32_t *)ids, n}};
        struct alter_partition_reassignments_request_topic t = {.name = wire_str(name),
                                                                .partitions = {&p, 1}};
        struct alter_partition_reassignments_request req = {
                .timeout_ms = 10000, .allow_replication_factor_change = true, .topics = {&t, 1}};
        struct answer a = {0};

        controller_alter_reassignments(cluster_active(c), &req, on_moved, &a);
        wait_until(is_done, &a);
        return a;
}

static void on_listed(const struct list_partition_reassignments_response *res, void *userdata)
{
        struct answer *a = userdata;

        a->n = res->topics.n;
        if (a->n > 0) {
                const struct list_partition_reassignments_response_partition *p =
                        &res->topics.items[0].partitions.items[0];

                a->n_adding = p->adding_replicas.n;
                memcpy(a->adding, p->adding_replicas.items, (size_t)a->n_adding * sizeof(int32_t));
                a->n_removing = p->removing_replicas.n;
                memcpy(a->removing, p->removing_replicas.items, (size_t)a->n_removing * sizeof(int32_t));
        }
        keep(a, res->error_code, res->error_message);
}

static struct answer list_moves(void)
{
        struct list_partition_reassignments_request req = {.topics = {NULL, -1}};
        struct answer a = {0};

        controller_list_reassignments(cluster_active(c), &req, on_listed, &a);
        wait_until(is_done, &a);
        return a;
}

/* --- looking --- */

static struct znode_topic topic_znode(const char *name, int32_t *ret_version)
{
        struct seen *seen = calloc(1, sizeof(*seen));
        struct znode_topic z = {0};
        char path[ZNODE_PATH_SIZE];

        assert_non_null(seen);
        znode_path_topic(name, path);
        assert_int_equal(do_get(c->admin, path, seen), 0);
        assert_int_equal(znode_topic_decode(seen->data, strlen(seen->data), &z), 0);
        if (ret_version)
                *ret_version = seen->stat.version;
        free(seen);
        return z;
}

/* "1 2" or "3+ 4+ 1- 2-" */
static bool assigned(const char *name, size_t partition, const char *want)
{
        struct znode_topic z = topic_znode(name, NULL);
        char text[256] = "";
        size_t used = 0;

        assert_true(partition < z.n_partitions);
        for (size_t i = 0; i < z.partitions[partition].n_replicas; i++) {
                const struct znode_assignment *a = &z.partitions[partition];
                bool adding = false, removing = false;

                for (size_t k = 0; k < a->n_adding; k++)
                        adding = adding || a->adding[k] == a->replicas[i];
                for (size_t k = 0; k < a->n_removing; k++)
                        removing = removing || a->removing[k] == a->replicas[i];
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d%s%s", i ? " " : "",
                                         a->replicas[i], adding ? "+" : "", removing ? "-" : "");
        }
        znode_topic_done(&z);
        return strcmp(text, want) == 0;
}

struct wanted_assignment {
        const char *topic, *want;
};

static bool is_assigned(void *userdata)
{
        const struct wanted_assignment *w = userdata;

        return assigned(w->topic, 0, w->want);
}

static void wait_assigned(const char *topic, const char *want)
{
        struct wanted_assignment w = {topic, want};

        wait_until(is_assigned, &w);
}

static bool is_absent(void *userdata)
{
        return do_exists(c->admin, userdata, NULL) == -ENOENT;
}

static void wait_absent(const char *path)
{
        wait_until(is_absent, (void *)path);
}

struct wanted_fetch {
        int32_t broker;
        bool fetches;
};

static bool fetch_is_so(void *userdata)
{
        const struct wanted_fetch *w = userdata;

        return fake_broker_fetches(c->nodes[w->broker].broker, "t", 0) == w->fetches;
}

static void wait_fetches(int32_t broker, bool fetches)
{
        struct wanted_fetch w = {broker, fetches};

        wait_until(fetch_is_so, &w);
}

/* What a leader does when its followers have caught up. */
static int16_t in_sync(const char *topic, const int32_t *ids, int n)
{
        int32_t version = 0;
        struct znode_state st;
        struct proposal p = {.topic = topic, .n_isr = n};

        (void)state_of(c, topic, 0);
        assert_true(read_state(c, topic, 0, &st, &version));
        p.leader = st.leader;
        p.leader_epoch = st.leader_epoch;
        p.partition_epoch = version;
        memcpy(p.isr, ids, (size_t)n * sizeof(*ids));
        return propose_isr(c, &p);
}

struct wanted_isr {
        const char *topic;
        int32_t ids[4];
        size_t n;
};

static bool isr_is(void *userdata)
{
        const struct wanted_isr *w = userdata;
        struct znode_state st;
        int32_t version;
        bool all;

        if (!read_state(c, w->topic, 0, &st, &version))
                return false;
        all = st.n_isr == w->n;
        for (size_t i = 0; i < w->n; i++)
                all = all && isr_has(&st, w->ids[i]);
        return all;
}

static const int32_t one_two[] = {1, 2}, two_one[] = {2, 1}, three_four[] = {3, 4}, all_four[] = {1, 2, 3, 4};

/* Partition 0 on {2, 1}, led by 1 although 2 is in sync. */
static void led_by_the_second(const char *topic)
{
        struct drain_seen *seen = calloc(1, sizeof(*seen));

        assert_non_null(seen);
        assert_int_equal(make_topic(c, topic, 1, 2, two_one), KAFKA_NONE);
        drain_start(c, 2, -1, "away", seen);
        drain_wait(c, 2, DRAIN_DRAINED, seen);
        drain_undo(c, 2, seen);
        free(seen);
        wait_leader(c, topic, 0, 1);
        while (in_sync(topic, one_two, 2) != KAFKA_NONE)
                continue; /* until the renewal of the epoch is written */
}

/* --- partitions --- */

static void partitions_are_added_and_brokers_know_them(void **state)
{
        struct answer a;

        (void)state;
        start(3);
        assert_int_equal(make_topic(c, "t", 2, 2, (const int32_t[]){2, 3, 3, 1}), KAFKA_NONE);
        a = grow("t", 5, NULL, 0, 0, false);
        assert_int_equal(a.code, KAFKA_NONE);
        for (int32_t i = 2; i < 5; i++) {
                struct znode_state st = state_of(c, "t", i);
                struct told told;

                assert_int_equal(st.n_isr, 2);
                for (int32_t b = 1; b <= 3; b++) /* told before the answer */
                        assert_true(fake_broker_last(c->nodes[b].broker, TOLD_UM, "t", i, &told));
                assert_true(fake_broker_leads(c->nodes[st.leader].broker, "t", i));
        }
        /* §1.7: on from the place of the first replica of partition 0, by index: 2 is the second of {1, 2,
         * 3}. */
        assert_true(assigned("t", 2, "1 3") || assigned("t", 2, "1 2"));
        assert_true(assigned("t", 0, "2 3") && assigned("t", 1, "3 1"));
}

static void what_cannot_be_added_is_refused_with_kafkas_words(void **state)
{
        const int32_t ids[] = {1, 2, 9, 1, 2, 2};
        struct answer a;
        int32_t version;

        (void)state;
        start(2);
        assert_int_equal(make_topic(c, "t", 2, 2, NULL), KAFKA_NONE);
        a = grow("nix", 3, NULL, 0, 0, false);
        assert_int_equal(a.code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        assert_string_equal(a.message, "The topic 'nix' does not exist.");
        a = grow("t", 2, NULL, 0, 0, false);
        assert_int_equal(a.code, KAFKA_INVALID_PARTITIONS);
        assert_string_equal(a.message, "Topic already has 2 partitions.");
        a = grow("t", 1, NULL, 0, 0, false);
        assert_int_equal(a.code, KAFKA_INVALID_PARTITIONS);
        assert_string_equal(a.message,
                            "Topic currently has 2 partitions, which is higher than the requested 1.");
        a = grow("t", 4, ids, 1, 2, false);
        assert_int_equal(a.code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_string_equal(a.message,
                            "Increasing the number of partitions by 2 but 1 assignments provided.");
        a = grow("t", 3, ids + 2, 1, 2, false);
        assert_int_equal(a.code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        a = grow("t", 3, ids + 4, 1, 2, false);
        assert_int_equal(a.code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        a = grow("t", 3, ids, 1, 1, false);
        assert_int_equal(a.code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        a = grow("t", 3, NULL, 0, 0, true);
        assert_int_equal(a.code, KAFKA_NONE);
        {
                struct znode_topic z = topic_znode("t", &version);

                assert_int_equal(z.n_partitions, 2);
                assert_int_equal(version, 0);
                znode_topic_done(&z);
        }
        a = grow("t", 3, two_one, 1, 2, false);
        assert_int_equal(a.code, KAFKA_NONE);
        assert_true(assigned("t", 2, "2 1"));
}

static void partitions_that_an_old_tool_adds_are_noticed(void **state)
{
        struct znode_topic z;
        struct buf out = {0};
        char path[ZNODE_PATH_SIZE];
        int32_t version;

        (void)state;
        start(2);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        for (int32_t more = 1; more <= 2; more++) { /* twice: the watch is armed again */
                z = topic_znode("t", &version);
                z.partitions = reallocarray(z.partitions, z.n_partitions + 1, sizeof(*z.partitions));
                assert_non_null(z.partitions);
                z.partitions[z.n_partitions] = (struct znode_assignment){
                        .partition = more,
                        .replicas = memcpy(malloc(sizeof(two_one)), two_one, sizeof(two_one)),
                        .n_replicas = 2};
                z.n_partitions++;
                buf_init(&out, 0);
                assert_int_equal(znode_topic_encode(&z, &out), 0);
                assert_int_equal(buf_append(&out, "", 1), 0);
                znode_path_topic("t", path);
                assert_int_equal(do_set(c->admin, path, (const char *)out.data, version), 0);
                buf_done(&out);
                znode_topic_done(&z);
                wait_leader(c, "t", more, 2);
        }
        /* and what is added here afterwards knows of them */
        assert_int_equal(grow("t", 4, NULL, 0, 0, false).code, KAFKA_NONE);
        assert_true(assigned("t", 2, "2 1"));
}

/* --- elections --- */

static void the_preferred_replica_gets_leadership_back_on_demand(void **state)
{
        struct told told;

        (void)state;
        start(3);
        led_by_the_second("t");
        assert_int_equal(elect("t", 0, 0).code, KAFKA_NONE);
        assert_int_equal(state_of(c, "t", 0).leader, 2);
        assert_int_equal(state_of(c, "t", 0).n_isr, 2);
        assert_true(fake_broker_last(c->nodes[3].broker, TOLD_UM, "t", 0, &told));
        assert_int_equal(told.leader, 2);
        assert_int_equal(elect("t", 0, 0).code, KAFKA_ELECTION_NOT_NEEDED);
        assert_int_equal(elect("t", 0, 1).code, KAFKA_ELECTION_NOT_NEEDED);
        assert_int_equal(elect("t", 7, 0).code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(elect("t", 0, 2).code, KAFKA_INVALID_REQUEST);
        assert_int_equal(elect(NULL, 0, 0).n, 0); /* all of them: nothing to do is not listed */
}

static void all_partitions_are_meant_by_none(void **state)
{
        struct answer a;

        (void)state;
        start(3);
        led_by_the_second("t");
        assert_int_equal(make_topic(c, "u", 1, 2, one_two), KAFKA_NONE);
        a = elect(NULL, 0, 0);
        assert_int_equal(a.n, 1);
        assert_int_equal(a.code, KAFKA_NONE);
        assert_int_equal(state_of(c, "t", 0).leader, 2);
}

static void neither_one_out_of_sync_nor_one_that_drains_is_elected(void **state)
{
        struct drain_seen *seen = calloc(1, sizeof(*seen));
        const int32_t one[] = {1};

        (void)state;
        assert_non_null(seen);
        start(3);
        led_by_the_second("t");
        assert_int_equal(in_sync("t", one, 1), KAFKA_NONE); /* the leader drops its follower */
        assert_int_equal(elect("t", 0, 0).code, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE); /* R56 */
        assert_int_equal(in_sync("t", one_two, 2), KAFKA_NONE);
        drain_start(c, 2, -1, "d", seen);
        assert_int_equal(elect("t", 0, 0).code, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE); /* D7 */
        assert_int_equal(state_of(c, "t", 0).leader, 1);
        free(seen);
}

static void an_unclean_election_is_made_only_when_asked_for(void **state)
{
        const int32_t two[] = {2};

        (void)state;
        start(2);
        assert_int_equal(make_topic(c, "t", 1, 2, two_one), KAFKA_NONE);
        assert_int_equal(in_sync("t", two, 1), KAFKA_NONE);
        node_stop(c, 2);
        wait_leader(c, "t", 0, -1);
        assert_int_equal(elect("t", 0, 0).code, KAFKA_PREFERRED_LEADER_NOT_AVAILABLE);
        assert_int_equal(elect("t", 0, 1).code, KAFKA_NONE);
        assert_int_equal(state_of(c, "t", 0).leader, 1);
}

#define PREFERRED_JSON "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0}]}"

static void the_old_tools_znode_is_obeyed_and_deleted(void **state)
{
        (void)state;
        start(3);
        led_by_the_second("t");
        assert_int_equal(do_create(c->admin, ZNODE_PREFERRED_ELECTION, PREFERRED_JSON, false), 0);
        wait_leader(c, "t", 0, 2);
        wait_absent(ZNODE_PREFERRED_ELECTION);
        /* and once more, to see that it is watched still; nothing is to be done */
        assert_int_equal(do_create(c->admin, ZNODE_PREFERRED_ELECTION, PREFERRED_JSON, false), 0);
        wait_absent(ZNODE_PREFERRED_ELECTION);
}

static void garbage_in_the_tools_znodes_is_deleted_and_harms_nobody(void **state)
{
        static const char *const garbage[] = {
                "",
                "garbage",
                "[]",
                "{\"partitions\":7}",
                "{\"partitions\":[{\"topic\":5,\"partition\":\"x\"}]}",
                "{\"version\":1,\"partitions\":[{\"topic\":\"nix\",\"partition\":0,\"replicas\":[1]}]}",
                "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":99,\"replicas\":[1]}]}",
                "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[]}]}",
                "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1,1]}]}",
                "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[77]}]}",
                "{\"version\":1,\"partitions\":[]}",
        };
        struct controller *active;

        (void)state;
        start(2);
        active = cluster_active(c);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
                assert_int_equal(do_create(c->admin, ZNODE_PREFERRED_ELECTION, garbage[i], false), 0);
                assert_int_equal(do_create(c->admin, ZNODE_REASSIGN, garbage[i], false), 0);
                wait_absent(ZNODE_PREFERRED_ELECTION);
                wait_absent(ZNODE_REASSIGN);
        }
        assert_true(controller_is_active(active));
        assert_true(assigned("t", 0, "1 2"));
}

static void what_tools_ask_for_while_nobody_is_controller_is_done_by_the_next(void **state)
{
        (void)state;
        start(3);
        led_by_the_second("t");
        for (int32_t i = 1; i <= 3; i++)
                node_stop(c, i);
        assert_int_equal(do_create(c->admin, ZNODE_PREFERRED_ELECTION, PREFERRED_JSON, false), 0);
        node_start(c, 1, NODE_CONTROLLER); /* KAFKA-840 */
        node_start(c, 2, NODE_BROKER);
        node_start(c, 3, NODE_BROKER);
        wait_absent(ZNODE_PREFERRED_ELECTION);
        assert_int_equal(make_topic(c, "later", 1, 1, NULL), KAFKA_NONE);
}

static void leadership_goes_back_by_itself_but_never_during_a_drain(void **state)
{
        struct drain_seen *seen = calloc(1, sizeof(*seen));
        struct wanted_isr w = {"t", {1, 2}, 2};
        struct znode_state st;
        int64_t until_ms;

        (void)state;
        assert_non_null(seen);
        fixture_rebalance_ms = 50;
        start(3);
        assert_int_equal(make_topic(c, "t", 1, 2, two_one), KAFKA_NONE);
        drain_start(c, 2, -1, "away", seen);
        drain_wait(c, 2, DRAIN_DRAINED, seen);
        drain_replace(c, 3, "other", seen); /* of another broker: nothing goes back meanwhile */
        drain_wait(c, 3, DRAIN_DRAINED, seen);
        wait_leader(c, "t", 0, 1);
        while (in_sync("t", one_two, 2) != KAFKA_NONE)
                continue;
        wait_until(isr_is, &w);
        st = state_of(c, "t", 0);
        until_ms = clock_mono_ms() + 6 * fixture_rebalance_ms;
        while (clock_mono_ms() < until_ms)
                assert_int_equal(list_moves().n, 0);
        assert_int_equal(state_of(c, "t", 0).leader, 1);
        assert_int_equal(state_of(c, "t", 0).leader_epoch, st.leader_epoch);
        drain_undo(c, 3, seen);
        wait_leader(c, "t", 0, 2);
        free(seen);
}

/* --- reassignment --- */

static void replicas_are_moved_and_what_is_left_over_is_deleted(void **state)
{
        struct wanted_isr w = {"t", {3, 4}, 2};
        struct told told;
        struct answer a;

        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        assert_true(assigned("t", 0, "3+ 4+ 1- 2-"));
        a = list_moves();
        assert_int_equal(a.n, 1);
        assert_int_equal(a.n_adding, 2);
        assert_int_equal(a.n_removing, 2);
        assert_int_equal(grow("t", 2, NULL, 0, 0, false).code, KAFKA_REASSIGNMENT_IN_PROGRESS);
        wait_fetches(3, true);
        wait_fetches(4, true);
        assert_int_equal(state_of(c, "t", 0).leader, 1); /* nothing moves before they are in sync */
        while (in_sync("t", all_four, 4) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
        wait_until(isr_is, &w);
        assert_true(state_of(c, "t", 0).leader >= 3);
        for (int32_t i = 1; i <= 2; i++) {
                assert_true(fake_broker_last(c->nodes[i].broker, TOLD_STOP, "t", 0, &told));
                assert_true(told.delete_partition);
                assert_false(fake_broker_has(c->nodes[i].broker, "t", 0));
        }
        assert_int_equal(list_moves().n, 0);
        /* KAFKA-1097: nobody lets the old replicas in again */
        assert_int_not_equal(in_sync("t", all_four, 4), KAFKA_NONE);
        wait_until(isr_is, &w);
}

static void a_cancelled_reassignment_leaves_no_trace(void **state)
{
        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(move("t", 0, NULL, -1).code, KAFKA_NO_REASSIGNMENT_IN_PROGRESS);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        wait_fetches(3, true);
        assert_int_equal(move("t", 0, NULL, -1).code, KAFKA_NONE);
        wait_assigned("t", "1 2");
        assert_int_equal(state_of(c, "t", 0).leader, 1);
        assert_false(fake_broker_has(c->nodes[3].broker, "t", 0));
        assert_false(fake_broker_has(c->nodes[4].broker, "t", 0));
        assert_int_equal(list_moves().n, 0);
}

static void another_target_replaces_the_first(void **state)
{
        const int32_t two_three[] = {2, 3}, in[] = {1, 2, 3};

        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        wait_fetches(4, true);
        assert_int_equal(move("t", 0, two_three, 2).code, KAFKA_NONE);
        assert_true(assigned("t", 0, "2 3+ 4+- 1-"));
        while (in_sync("t", in, 3) != KAFKA_NONE)
                continue;
        wait_assigned("t", "2 3");
        assert_false(fake_broker_has(c->nodes[4].broker, "t", 0));
        assert_false(fake_broker_has(c->nodes[1].broker, "t", 0));
}

static void bad_targets_are_refused(void **state)
{
        const int32_t twice[] = {1, 1}, unknown[] = {1, 9}, negative[] = {-1};

        (void)state;
        start(2);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(move("t", 0, twice, 2).code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(move("t", 0, unknown, 2).code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(move("t", 0, negative, 1).code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(move("t", 0, one_two, 0).code, KAFKA_INVALID_REPLICA_ASSIGNMENT);
        assert_int_equal(move("t", 5, one_two, 2).code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        assert_int_equal(move("nix", 0, one_two, 2).code, KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        assert_true(assigned("t", 0, "1 2"));
        /* only the order: the preferred replica is another */
        assert_int_equal(move("t", 0, two_one, 2).code, KAFKA_NONE);
        assert_true(assigned("t", 0, "2 1"));
}

#define MOVE_JSON "{\"version\":1,\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[3,4]}]}"

static void the_old_tools_znode_moves_replicas_and_goes(void **state)
{
        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(do_create(c->admin, ZNODE_REASSIGN, MOVE_JSON, false), 0);
        wait_assigned("t", "3+ 4+ 1- 2-");
        wait_fetches(4, true);
        while (in_sync("t", all_four, 4) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
        wait_absent(ZNODE_REASSIGN);
}

static void a_new_controller_goes_on_with_a_reassignment(void **state)
{
        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, (const int32_t[]){2, 1}), KAFKA_NONE);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        wait_fetches(4, true);
        node_stop(c, cluster_active_id(c));
        (void)cluster_active(c);
        wait_until(is_absent, (void *)"/brokers/ids/1");
        while (in_sync("t", (const int32_t[]){2, 3, 4}, 3) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
        assert_false(fake_broker_has(c->nodes[2].broker, "t", 0));
}

/* The one before may have ended between the topic's znode and the requests: who leads takes news of its
 * replicas only with a new epoch, and would refuse the fetches of a new one for ever. */
static void a_new_controller_tells_of_a_reassignment_under_a_new_epoch(void **state)
{
        int32_t epoch;

        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, (const int32_t[]){2, 3}), KAFKA_NONE);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        wait_fetches(4, true);
        epoch = state_of(c, "t", 0).leader_epoch;
        assert_int_equal(cluster_active_id(c), 1); /* whose end changes no ISR */
        node_stop(c, 1);
        (void)cluster_active(c);
        while (state_of(c, "t", 0).leader_epoch == epoch)
                continue;
        while (in_sync("t", (const int32_t[]){2, 3, 4}, 3) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
}

static void a_reassignment_towards_a_draining_broker_waits(void **state)
{
        struct drain_seen *seen = calloc(1, sizeof(*seen));

        (void)state;
        assert_non_null(seen);
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        drain_start(c, 4, -1, "d", seen);
        drain_wait(c, 4, DRAIN_DRAINED, seen);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        wait_fetches(3, true);
        assert_int_equal(in_sync("t", all_four, 4), KAFKA_INELIGIBLE_REPLICA); /* D7 */
        while (in_sync("t", (const int32_t[]){1, 2, 3}, 3) != KAFKA_NONE)
                continue;
        assert_true(assigned("t", 0, "3+ 4+ 1- 2-"));
        drain_undo(c, 4, seen);
        while (in_sync("t", all_four, 4) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
        free(seen);
}

static void a_broker_may_be_drained_while_replicas_leave_it(void **state)
{
        struct drain_seen *seen = calloc(1, sizeof(*seen));

        (void)state;
        assert_non_null(seen);
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(move("t", 0, three_four, 2).code, KAFKA_NONE);
        drain_start(c, 1, -1, "d", seen);
        drain_wait(c, 1, DRAIN_DRAINED, seen);
        wait_leader(c, "t", 0, 2);
        wait_fetches(4, true);
        while (in_sync("t", (const int32_t[]){2, 3, 4}, 3) != KAFKA_NONE)
                continue;
        wait_assigned("t", "3 4");
        assert_false(fake_broker_has(c->nodes[1].broker, "t", 0));
        drain_get(c, 1, seen);
        assert_int_equal(seen->status.state, DRAIN_DRAINED);
        free(seen);
}

static void deleting_a_topic_ends_its_reassignment(void **state)
{
        (void)state;
        start(4);
        assert_int_equal(make_topic(c, "t", 1, 2, one_two), KAFKA_NONE);
        assert_int_equal(do_create(c->admin, ZNODE_REASSIGN, MOVE_JSON, false), 0);
        wait_fetches(4, true);
        assert_int_equal(drop_topic(c, "t"), KAFKA_NONE);
        wait_absent(ZNODE_REASSIGN);
        for (int32_t i = 1; i <= 4; i++)
                assert_false(fake_broker_has(c->nodes[i].broker, "t", 0));
        assert_int_equal(list_moves().n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {
                TEST(partitions_are_added_and_brokers_know_them),
                TEST(what_cannot_be_added_is_refused_with_kafkas_words),
                TEST(partitions_that_an_old_tool_adds_are_noticed),
                TEST(the_preferred_replica_gets_leadership_back_on_demand),
                TEST(all_partitions_are_meant_by_none),
                TEST(neither_one_out_of_sync_nor_one_that_drains_is_elected),
                TEST(an_unclean_election_is_made_only_when_asked_for),
                TEST(leadership_goes_back_by_itself_but_never_during_a_drain),
                TEST(the_old_tools_znode_is_obeyed_and_deleted),
                TEST(garbage_in_the_tools_znodes_is_deleted_and_harms_nobody),
                TEST(what_tools_ask_for_while_nobody_is_controller_is_done_by_the_next),
                TEST(replicas_are_moved_and_what_is_left_over_is_deleted),
                TEST(a_cancelled_reassignment_leaves_no_trace),
                TEST(another_target_replaces_the_first),
                TEST(bad_targets_are_refused),
                TEST(the_old_tools_znode_moves_replicas_and_goes),
                TEST(a_new_controller_goes_on_with_a_reassignment),
                TEST(a_new_controller_tells_of_a_reassignment_under_a_new_epoch),
                TEST(a_reassignment_towards_a_draining_broker_waits),
                TEST(a_broker_may_be_drained_while_replicas_leave_it),
                TEST(deleting_a_topic_ends_its_reassignment),
        };

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2)
                cmocka_set_test_filter(argv[2]);
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
