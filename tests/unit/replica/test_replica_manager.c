/* One broker's replicas: roles, produce, ISR, over real logs. Broker 1 of {1, 2, 3}; min ISR 2. */
#include "replica_testing.h"

#include <stdlib.h>
#include <string.h>

#include "base/metrics.h"
#include "wire/update_metadata.h"

static const int32_t only_me[] = {1}, me_and_2[] = {1, 2};

static int setup(void **state)
{
        struct node *n = calloc(1, sizeof(*n));

        assert_non_null(n);
        node_init(n, 1);
        node_start(n);
        *state = n;
        return 0;
}

static int teardown(void **state)
{
        struct node *n = *state;

        node_done(n);
        free(n);
        return 0;
}

static void lead(struct node *n, int32_t epoch)
{
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = epoch}), KAFKA_NONE);
}

static void become_follower(struct node *n, int32_t leader, int32_t epoch)
{
        assert_int_equal(lai(n, &(struct lai){.leader = leader, .epoch = epoch}), KAFKA_NONE);
}

/* --- LeaderAndIsr --- */

static void a_broker_serves_what_it_was_told_to_lead(void **state)
{
        struct node *n = *state;
        struct replica_info i;

        assert_int_equal(produce_now(n, 1), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        info(n, 0, &i);
        assert_int_equal(i.role, REPLICA_LEADER);
        assert_int_equal(i.end_offset, 1);
        assert_int_equal(i.high_watermark, 0);
}

static void older_epochs_are_refused(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(lai(n, &(struct lai){.leader = 2, .epoch = 4}), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(lai(n, &(struct lai){.leader = 2, .epoch = 5}), KAFKA_STALE_CONTROLLER_EPOCH);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE); /* still the leader */
}

static void a_repetition_is_fine(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
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

static void stale_controllers_and_registrations_are_refused_and_counted(void **state)
{
        static const char *const rows[] = {"stepdown_stale_requests_total{epoch=\"broker\"} ",
                                           "stepdown_stale_requests_total{epoch=\"controller\"} ",
                                           "stepdown_stale_requests_total{epoch=\"leader\"} "};
        struct node *n = *state;
        struct lai l = {.leader = 1, .epoch = 5, .controller_epoch = 7, .broker_epoch = 40};
        int64_t before[ARRAY_SIZE(rows)];

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                before[i] = counted(rows[i]);

        replica_manager_set_broker_epoch(n->rm, 41);
        assert_int_equal(lai(n, &l), KAFKA_STALE_BROKER_EPOCH);
        l.broker_epoch = 41;
        assert_int_equal(lai(n, &l), KAFKA_NONE);
        l.controller_epoch = 6;
        l.epoch = 6;
        assert_int_equal(lai(n, &l), KAFKA_STALE_CONTROLLER_EPOCH);
        l.controller_epoch = 7;
        l.epoch = 4;
        (void)lai(n, &l); /* the partition refuses it, the request is answered */
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                assert_int_equal(counted(rows[i]), before[i] + 1);
}

static void a_partition_of_others_is_not_created(void **state)
{
        struct node *n = *state;
        struct lai l = {.leader = 2, .epoch = 1, .replicas = (int32_t[]){2, 3}, .n_replicas = 2};
        struct replica_counts c;

        assert_int_equal(lai(n, &l), KAFKA_UNKNOWN_TOPIC_OR_PARTITION);
        replica_manager_get_counts(n->rm, &c);
        assert_int_equal(c.partitions, 0);
}

static void a_replica_without_a_leader_exists_all_the_same(void **state)
{
        /* KAFKA-1647 */
        struct node *n = *state;
        struct replica_counts c;

        become_follower(n, -1, 3);
        replica_manager_get_counts(n->rm, &c);
        assert_int_equal(c.followed, 1);
}

static void topic_ids_survive_a_restart(void **state)
{
        struct node *n = *state;
        struct uuid want = topic_id_of(TOPIC);
        struct replica_info i;

        lead(n, 5);
        node_stop(n);
        node_start(n);
        info(n, 0, &i);
        assert_true(uuid_equal(&i.topic_id, &want));
}

static void the_state_change_log_names_partitions_in_brackets(void **state)
{
        struct node *n = *state;

        lead(n, 5); /* R52 */
        assert_non_null(strstr(n->last_line, "[orders,0]"));
        assert_non_null(strstr(n->last_line, "received LeaderAndIsr request"));
        (void)stop_replica(n, 0, 5, false);
        assert_non_null(strstr(n->last_line, "StopReplica"));
}

/* --- produce --- */

static void acks_1_is_answered_at_once(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, 1, 1000, &o);
        assert_true(outcome_arrived(&o)); /* R64 */
        assert_int_equal(produced(&o)->base_offset, 0);
        outcome_done(&o);
}

static void acks_all_waits_for_the_whole_isr(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        produce(n, -1, 60000, &o);
        follow(n, 2, 2, 5);
        assert_false(outcome_arrived(&o)); /* 3 is missing */
        follow(n, 3, 1, 5);
        assert_false(outcome_arrived(&o)); /* it has one of two */
        follow(n, 3, 2, 5);                /* R67 */
        assert_true(outcome_arrived(&o));
        assert_int_equal(produced(&o)->error_code, KAFKA_NONE);
        assert_int_equal(produced(&o)->base_offset, 1); /* KAFKA-1255 */
        outcome_done(&o);
}

static void acks_all_times_out_per_partition(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 20, &o);
        outcome_await(&o);
        assert_int_equal(produced(&o)->error_code, KAFKA_REQUEST_TIMED_OUT);
        assert_int_equal(produced(&o)->base_offset, 0); /* R69: it is in the log */
        outcome_done(&o);
}

static void a_small_isr_refuses_before_the_append(void **state)
{
        struct node *n = *state;
        struct replica_info i;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = only_me, .n_isr = 1}),
                         KAFKA_NONE);
        assert_int_equal(produce_now(n, -1), KAFKA_NOT_ENOUGH_REPLICAS);
        info(n, 0, &i);
        assert_int_equal(i.end_offset, 0); /* I11 */
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
}

static void min_isr_of_a_topic_counts(void **state)
{
        struct node *n = *state;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = only_me, .n_isr = 1}),
                         KAFKA_NONE);
        assert_int_equal(
                replica_manager_set_topic_config(n->rm, TOPIC, &(struct replica_topic_config){.min_isr = 1}),
                0);
        assert_int_equal(produce_now(n, -1), KAFKA_NONE);
        assert_int_equal(
                replica_manager_set_topic_config(n->rm, TOPIC, &(struct replica_topic_config){.min_isr = 3}),
                0);
        assert_int_equal(produce_now(n, -1), KAFKA_NOT_ENOUGH_REPLICAS);
}

static void a_committed_shrink_below_min_isr_answers_after_append(void **state)
{
        /* Code 20: min ISR 2, HW reached by {1, 2} but the ISR is {1} when it is looked at. */
        struct node *n = *state;
        struct outcome o;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = me_and_2, .n_isr = 2}),
                         KAFKA_NONE);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 6, .isr = only_me, .n_isr = 1}),
                         KAFKA_NONE);
        assert_false(outcome_arrived(&o)); /* KAFKA-15583: the HW stands */
        assert_int_equal(
                replica_manager_set_topic_config(n->rm, TOPIC, &(struct replica_topic_config){.min_isr = 1}),
                0);
        assert_true(outcome_arrived(&o)); /* now it moves */
        assert_int_equal(produced(&o)->error_code, KAFKA_NONE);
        outcome_done(&o);
}

static void a_single_replica_commits_alone(void **state)
{
        struct node *n = *state;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .replicas = only_me, .n_replicas = 1}),
                         KAFKA_NONE);
        assert_int_equal(produce_now(n, -1), KAFKA_NONE); /* KAFKA-420 */
}

static void other_acks_are_invalid(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(produce_now(n, 2), KAFKA_INVALID_REQUIRED_ACKS);
}

static void corrupt_records_are_refused(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce_to(n, TOPIC, 0, 1, 0, &(struct batch){.value_bytes = 2 << 20}, &o);
        assert_int_equal(produced(&o)->error_code, KAFKA_MESSAGE_TOO_LARGE);
        assert_true(o.response->failed); /* R46: with acks=0 the connection is closed */
        outcome_done(&o);
}

/* --- leadership goes while produce waits --- */

/* What UpdateMetadata said last: broker @leader leads at @epoch. */
static void metadata_says(struct node *n, int32_t leader, int32_t epoch)
{
        struct update_metadata_request_partition_state p;
        struct update_metadata_request_topic_state t;
        struct update_metadata_request req;

        wire_init(&update_metadata_request_wire, &req);
        wire_init_struct(&update_metadata_request_topic_state_wire, &t);
        wire_init_struct(&update_metadata_request_partition_state_wire, &p);
        p.leader = leader;
        p.leader_epoch = epoch;
        t.topic_name = wire_str(TOPIC);
        t.topic_id = topic_id_of(TOPIC);
        t.partition_states.items = &p;
        t.partition_states.n = 1;
        req.topic_states.items = &t;
        req.topic_states.n = 1;
        assert_int_equal(metadata_cache_apply(n->metadata, &req, 8), 0);
}

/* D9: UpdateMetadata comes later than LeaderAndIsr; who is sent away by the one must not be sent back by what
 * the other has not said yet. */
static void metadata_names_the_new_leader_as_soon_as_the_old_one_refuses(void **state)
{
        struct node *n = *state;
        struct metadata_leader l;

        lead(n, 5);
        metadata_says(n, 1, 5);
        become_follower(n, 2, 6);
        assert_int_equal(produce_now(n, 1), KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_true(metadata_cache_leader(n->metadata, wire_str(TOPIC), 0, &l));
        assert_int_equal(l.leader_id, 2);
        assert_int_equal(l.leader_epoch, 6);
}

/* UpdateMetadata of partition 0: broker 2 leads it, on @replicas. */
static void told_of_replicas(struct node *n, const char *id_of, const int32_t *replicas, int32_t n_replicas)
{
        struct update_metadata_request_partition_state p;
        struct update_metadata_request_topic_state t;
        struct update_metadata_request req;
        struct update_metadata_response res;

        wire_init(&update_metadata_request_wire, &req);
        wire_init_struct(&update_metadata_request_topic_state_wire, &t);
        wire_init_struct(&update_metadata_request_partition_state_wire, &p);
        p.leader = 2;
        p.leader_epoch = 6;
        p.replicas.items = (int32_t *)replicas;
        p.replicas.n = n_replicas;
        t.topic_name = wire_str(TOPIC);
        t.topic_id = topic_id_of(id_of);
        t.partition_states.items = &p;
        t.partition_states.n = 1;
        req.controller_epoch = 100;
        req.topic_states.items = &t;
        req.topic_states.n = 1;
        assert_int_equal(replica_manager_update_metadata(n->rm, &req, 8, &res), 0);
        assert_int_equal(res.error_code, KAFKA_NONE);
}

static bool has_log(struct node *n)
{
        struct partition_log *l;

        return log_manager_get(n->logs, TOPIC, 0, false, &l) == 0;
}

static void a_replica_that_went_to_others_during_its_absence_is_deleted(void **state)
{
        static const int32_t with_me[] = {2, 1}, others[] = {2, 3};
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        node_stop(n);
        node_start(n);
        told_of_replicas(n, TOPIC, with_me, 2);
        assert_true(has_log(n));
        told_of_replicas(n, "another topic of that name", others, 2);
        assert_true(has_log(n));
        told_of_replicas(n, TOPIC, others, 2);
        assert_false(has_log(n));
}

/* What LeaderAndIsr has named in this life goes by StopReplica alone. */
static void metadata_alone_deletes_no_replica_in_use(void **state)
{
        static const int32_t others[] = {2, 3};
        struct node *n = *state;

        lead(n, 5);
        told_of_replicas(n, TOPIC, others, 2);
        assert_true(has_log(n));
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
}

static void losing_leadership_answers_who_waits(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        become_follower(n, 2, 6); /* R68 */
        assert_true(outcome_arrived(&o));
        assert_int_equal(produced(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(produced(&o)->current_leader.leader_id, 2); /* D9, KIP-951 */
        assert_int_equal(produced(&o)->current_leader.leader_epoch, 6);
        outcome_done(&o);
}

static void stop_replica_answers_who_waits(void **state)
{
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        assert_int_equal(stop_replica(n, 0, 5, false), KAFKA_NONE); /* KAFKA-9198, 13972 */
        assert_int_equal(produced(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        outcome_done(&o);
}

static void deleting_answers_who_waits(void **state)
{
        struct node *n = *state;
        struct outcome o, r;
        struct replica_counts c;

        lead(n, 5);
        outcome_init(&o);
        outcome_init(&r);
        produce(n, -1, 60000, &o);
        fetch(n, &(struct ask){.max_wait_ms = 60000, .min_bytes = 1}, &r);
        assert_int_equal(stop_replica(n, 0, -2, true), KAFKA_NONE);
        assert_true(outcome_arrived(&o) && outcome_arrived(&r));
        assert_int_equal(fetched(&r)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        replica_manager_get_counts(n->rm, &c);
        assert_int_equal(c.partitions, 0);
        assert_int_equal(c.fetch_waiting + c.produce_waiting, 0);
        outcome_done(&o);
        outcome_done(&r);
        lead(n, 1); /* a new topic of that name starts empty */
        assert_int_equal(list_offset(n, -1, 2, &(int16_t){0}), 0);
}

static void a_late_stop_does_not_touch_a_newer_replica(void **state)
{
        struct node *n = *state;

        lead(n, 5);
        assert_int_equal(stop_replica(n, 0, 4, true), KAFKA_FENCED_LEADER_EPOCH); /* I12, KAFKA-9539 */
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
}

static void going_on_leading_does_not_fail_who_waits(void **state)
{
        /* The controller takes a drained follower out of the ISR with a new epoch; our log stays as it is. */
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 6, .isr = me_and_2, .n_isr = 2}),
                         KAFKA_NONE);
        assert_false(outcome_arrived(&o));
        follow(n, 2, 1, 6);
        assert_true(outcome_arrived(&o));
        assert_int_equal(produced(&o)->error_code, KAFKA_NONE);
        outcome_done(&o);
}

static void leadership_lost_and_regained_stays_an_error(void **state)
{
        /* R73: partition 1 keeps the request waiting while partition 0 is lost and comes back. The purgatory
         * asks about both at each step, so the outcome of 0 was fixed when it was lost; and an append of an
         * old term is an error even when nobody asked in between. */
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        become_follower(n, 2, 6);
        lead(n, 7);
        follow(n, 2, 1, 7);
        follow(n, 3, 1, 7);
        assert_int_equal(produced(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        outcome_done(&o);
}

static void stepping_down_stops_serving_until_the_controller_speaks(void **state)
{
        /* zk-fencing §2.5 rule 4 */
        struct node *n = *state;
        struct outcome o;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        assert_int_equal(replica_manager_step_down(n->rm, "session lost"), 1);
        assert_int_equal(produced(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        outcome_done(&o);
        assert_int_equal(produce_now(n, 1), KAFKA_NOT_LEADER_OR_FOLLOWER);
        lead(n, 5); /* the same epoch: nobody led in between */
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
}

/* --- the lease (F2) --- */

static void without_the_lease_nothing_is_acknowledged_or_served(void **state)
{
        struct node *n = *state;
        struct outcome o;
        int64_t hw;

        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        atomic_store(&n->lease, false);
        assert_int_equal(produce_now(n, 1), KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(fetch_now(n, &(struct ask){.offset = 0}, NULL), -KAFKA_NOT_LEADER_OR_FOLLOWER);
        /* followers may go on, but the HW stands still */
        assert_true(fetch_now(n, &(struct ask){.replica_id = 2, .offset = 1, .epoch = 5}, &hw) >= 0);
        assert_true(fetch_now(n, &(struct ask){.replica_id = 3, .offset = 1, .epoch = 5}, &hw) >= 0);
        assert_int_equal(hw, 0);
        assert_false(outcome_arrived(&o) && produced(&o)->error_code == KAFKA_NONE);
        atomic_store(&n->lease, true);
        follow(n, 3, 1, 5);
        outcome_await(&o);
        outcome_done(&o);
}

/* --- ISR --- */

static void a_follower_that_has_caught_up_is_proposed_and_joins(void **state)
{
        struct node *n = *state;
        struct replica_info i;

        assert_int_equal(
                lai(n,
                    &(struct lai){
                            .leader = 1, .epoch = 5, .partition_epoch = 3, .isr = me_and_2, .n_isr = 2}),
                KAFKA_NONE);
        follow(n, 3, 0, 5);
        assert_true(proposal_arrived(n));
        assert_int_equal(n->n_isr, 3);
        assert_int_equal(n->partition_epoch, 3);
        answer_proposal(n, KAFKA_NONE, 4);
        info(n, 0, &i);
        assert_int_equal(i.n_isr, 3);
        assert_int_equal(i.partition_epoch, 4);
}

static void a_proposal_that_fails_is_sent_again(void **state)
{
        struct node *n = *state;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = me_and_2, .n_isr = 2}),
                         KAFKA_NONE);
        follow(n, 3, 0, 5);
        assert_true(proposal_arrived(n));
        answer_proposal(n, KAFKA_NOT_CONTROLLER, 0);
        assert_true(proposal_arrived(n));
        answer_proposal(n, KAFKA_NONE, 1);
}

static void a_proposal_without_an_answer_is_sent_again(void **state)
{
        struct node *n = *state;

        assert_int_equal(lai(n, &(struct lai){.leader = 1, .epoch = 5, .isr = me_and_2, .n_isr = 2}),
                         KAFKA_NONE);
        n->silent_controller = true;
        follow(n, 3, 0, 5);
        usleep(20000); /* a few attempts fail */
        n->silent_controller = false;
        assert_true(proposal_arrived(n));
        lose_proposal(n);
        assert_true(proposal_arrived(n));
        answer_proposal(n, KAFKA_NONE, 1);
}

static void who_falls_behind_is_proposed_out(void **state)
{
        struct node *n = *state;
        struct outcome o;
        struct replica_info i;

        node_stop(n);
        n->options.replica_lag_time_max_ms = 100;
        node_start(n);
        lead(n, 5);
        outcome_init(&o);
        produce(n, -1, 60000, &o);
        assert_true(proposal_arrived(n)); /* nobody fetches: {1} alone would be left, of {1, 2, 3} */
        assert_int_equal(n->n_isr, 1);
        assert_int_equal(n->isr[0], 1);
        answer_proposal(n, KAFKA_NONE, 1);
        info(n, 0, &i);
        assert_int_equal(i.n_isr, 1);
        assert_int_equal(i.high_watermark, 0); /* min ISR 2 */
        become_follower(n, 2, 6);
        outcome_await(&o);
        outcome_done(&o);
}

static void counts_tell_what_a_drain_has_to_move(void **state)
{
        struct node *n = *state;
        struct replica_counts c;

        lead(n, 5);
        assert_int_equal(
                lai(n, &(struct lai){.partition = 1, .leader = 1, .epoch = 5, .isr = me_and_2, .n_isr = 2}),
                0);
        assert_int_equal(
                lai(n,
                    &(struct lai){
                            .partition = 2, .leader = 1, .epoch = 5, .replicas = only_me, .n_replicas = 1}),
                0);
        assert_int_equal(lai(n, &(struct lai){.partition = 3, .leader = -1, .epoch = 5}), 0);
        replica_manager_get_counts(n->rm, &c);
        assert_int_equal(c.partitions, 4);
        assert_int_equal(c.led, 3);
        assert_int_equal(c.led_replicated, 2); /* R16 */
        assert_int_equal(c.under_replicated, 1);
        assert_int_equal(c.at_min_isr, 2);
        assert_int_equal(c.followed, 1);
        assert_int_equal(c.lagging, 1);
}

/* --- restarts --- */

static void the_hw_survives_a_restart(void **state)
{
        struct node *n = *state;
        struct replica_info i;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        follow(n, 2, 1, 5);
        follow(n, 3, 1, 5);
        node_stop(n);
        node_start(n);
        info(n, 0, &i); /* KAFKA-769: known before any LeaderAndIsr */
        assert_int_equal(i.role, REPLICA_NONE);
        assert_int_equal(i.high_watermark, 1);
        node_stop(n); /* and still in the checkpoint when none came at all */
        node_start(n);
        info(n, 0, &i);
        assert_int_equal(i.high_watermark, 1);
}

static void a_stopped_replica_keeps_its_hw(void **state)
{
        struct node *n = *state;
        struct replica_info i;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        follow(n, 2, 1, 5);
        follow(n, 3, 1, 5);
        assert_int_equal(stop_replica(n, 0, 5, false), KAFKA_NONE);
        node_stop(n);
        node_start(n);
        info(n, 0, &i);
        assert_int_equal(i.high_watermark, 1); /* KAFKA-858 */
}

static void a_lost_checkpoint_costs_no_record(void **state)
{
        /* KAFKA-1211: the HW is 0 after the crash; what was acknowledged stays. */
        struct node *n = *state;
        struct replica_info i;

        lead(n, 5);
        assert_int_equal(produce_now(n, 1), KAFKA_NONE);
        follow(n, 2, 1, 5);
        follow(n, 3, 1, 5);
        node_crash(n);
        node_start(n);
        lead(n, 6);
        info(n, 0, &i);
        assert_int_equal(i.end_offset, 1);
        follow(n, 2, 1, 6);
        follow(n, 3, 1, 6);
        info(n, 0, &i);
        assert_int_equal(i.high_watermark, 1);
}

static void shutting_down_answers_everybody(void **state)
{
        struct node *n = *state;
        struct outcome o, f;

        lead(n, 5);
        outcome_init(&o);
        outcome_init(&f);
        produce(n, -1, 60000, &o);
        fetch(n, &(struct ask){.max_wait_ms = 60000, .min_bytes = 1}, &f);
        replica_manager_shutdown(n->rm);
        assert_true(outcome_arrived(&o) && outcome_arrived(&f));
        assert_int_equal(produced(&o)->error_code, KAFKA_NOT_LEADER_OR_FOLLOWER);
        assert_int_equal(produce_now(n, 1), KAFKA_NOT_LEADER_OR_FOLLOWER);
        outcome_done(&o);
        outcome_done(&f);
}

int main(void)
{
#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
        const struct CMUnitTest tests[] = {
                TEST(a_broker_serves_what_it_was_told_to_lead),
                TEST(older_epochs_are_refused),
                TEST(a_repetition_is_fine),
                TEST(stale_controllers_and_registrations_are_refused_and_counted),
                TEST(a_partition_of_others_is_not_created),
                TEST(a_replica_without_a_leader_exists_all_the_same),
                TEST(topic_ids_survive_a_restart),
                TEST(the_state_change_log_names_partitions_in_brackets),
                TEST(acks_1_is_answered_at_once),
                TEST(acks_all_waits_for_the_whole_isr),
                TEST(acks_all_times_out_per_partition),
                TEST(a_small_isr_refuses_before_the_append),
                TEST(min_isr_of_a_topic_counts),
                TEST(a_committed_shrink_below_min_isr_answers_after_append),
                TEST(a_single_replica_commits_alone),
                TEST(other_acks_are_invalid),
                TEST(corrupt_records_are_refused),
                TEST(metadata_names_the_new_leader_as_soon_as_the_old_one_refuses),
                TEST(losing_leadership_answers_who_waits),
                TEST(stop_replica_answers_who_waits),
                TEST(deleting_answers_who_waits),
                TEST(a_late_stop_does_not_touch_a_newer_replica),
                TEST(going_on_leading_does_not_fail_who_waits),
                TEST(leadership_lost_and_regained_stays_an_error),
                TEST(stepping_down_stops_serving_until_the_controller_speaks),
                TEST(without_the_lease_nothing_is_acknowledged_or_served),
                TEST(a_follower_that_has_caught_up_is_proposed_and_joins),
                TEST(a_proposal_that_fails_is_sent_again),
                TEST(a_proposal_without_an_answer_is_sent_again),
                TEST(who_falls_behind_is_proposed_out),
                TEST(counts_tell_what_a_drain_has_to_move),
                TEST(the_hw_survives_a_restart),
                TEST(a_stopped_replica_keeps_its_hw),
                TEST(a_replica_that_went_to_others_during_its_absence_is_deleted),
                TEST(metadata_alone_deletes_no_replica_in_use),
                TEST(a_lost_checkpoint_costs_no_record),
                TEST(shutting_down_answers_everybody),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
