/* What the controller orders: LeaderAndIsr, StopReplica, UpdateMetadata. Control thread. */
#include "replica/replica_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "wire/error.h"
#include "wire/leader_and_isr.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

#define LINE_SIZE 1024
#define SAID_MAX  16384

/* --- epochs (R36, F3; §4.2 item 1) --- */

static int16_t check_epochs(struct replica_manager *m, int32_t controller_id, int32_t controller_epoch,
                            int64_t broker_epoch)
{
        int64_t own = atomic_load(&m->broker_epoch);

        if (broker_epoch >= 0 && broker_epoch < own) {
                slog_warning("stale-broker-epoch",
                             "a request for an earlier registration of this broker is refused",
                             SL_INT("controller", controller_id), SL_INT("request_epoch", broker_epoch),
                             SL_INT("broker_epoch", own));
                stale_refused(STALE_OF_BROKER);
                return KAFKA_STALE_BROKER_EPOCH;
        }
        if (controller_epoch < m->controller_epoch) {
                slog_warning("stale-controller-epoch", "a request of a replaced controller is refused",
                             SL_INT("controller", controller_id), SL_INT("request_epoch", controller_epoch),
                             SL_INT("controller_epoch", m->controller_epoch));
                stale_refused(STALE_OF_CONTROLLER);
                return KAFKA_STALE_CONTROLLER_EPOCH;
        }
        m->controller_epoch = controller_epoch;
        return KAFKA_NONE;
}

/* --- the state-change log (R52, R63) --- */

static void join_ids(const int32_t *ids, int32_t n, char *out, size_t size)
{
        size_t len = 0;

        out[0] = '\0';
        for (int32_t i = 0; i < n && len < size; i++)
                len += (size_t)snprintf(out + len, size - len, "%s%d", i > 0 ? "," : "", ids[i]);
}

static void hand_over_said(struct replica_manager *m)
{
        const char *lines = m->said.len > 0 ? buf_cstr(&m->said) : NULL;

        if (lines)
                m->ops.state_change(m->ops.userdata, lines);
        m->said.len = 0;
}

/* Lines of the same millisecond are handed over together: a write each was a fifth of what a hand-over of a
 * thousand partitions cost. Each request ends with hand_over_said(). */
static void say(struct replica_manager *m, const char *line)
{
        int64_t now_ms = clock_mono_ms();

        if (!m->ops.state_change)
                return;
        if (m->said.len + strlen(line) > SAID_MAX || now_ms != m->said_ms)
                hand_over_said(m);
        m->said_ms = now_ms;
        if (buf_printf(&m->said, "%s%s", m->said.len > 0 ? "\n" : "", line) < 0)
                m->ops.state_change(m->ops.userdata, line); /* no memory to collect it in */
}

static void say_state(struct replica_manager *m, const char *what, struct wire_str topic, int32_t index,
                      const struct partition_assignment *a, int32_t controller, int32_t controller_epoch)
{
        char line[LINE_SIZE], isr[256], replicas[256];

        if (!m->ops.state_change)
                return;
        join_ids(a->isr, a->n_isr, isr, sizeof(isr));
        join_ids(a->replicas, a->n_replicas, replicas, sizeof(replicas));
        (void)snprintf(line, sizeof(line),
                       "Broker %d %s (Leader:%d,ISR:%s,LeaderEpoch:%d,PartitionEpoch:%d,Replicas:%s) from "
                       "controller "
                       "%d epoch %d for partition [%.*s,%d]",
                       m->options.broker_id, what, a->leader, isr, a->leader_epoch, a->partition_epoch,
                       replicas, controller, controller_epoch, topic.len, topic.data, index);
        say(m, line);
}

/* --- LeaderAndIsr --- */

struct order { /* one partition of the request, whatever its version */
        struct wire_str topic;
        int32_t index;
        struct partition_assignment assignment;
        int16_t *error; /* in the response */
};

static struct order order_of(struct wire_str topic, const struct uuid *id,
                             const struct leader_and_isr_request_partition_state *s,
                             struct leader_and_isr_response_partition_error *answer)
{
        *answer = (struct leader_and_isr_response_partition_error){.topic_name = topic,
                                                                   .partition_index = s->partition_index};
        return (struct order){
                .topic = topic,
                .index = s->partition_index,
                .assignment = {.topic_id = *id,
                               .leader = s->leader,
                               .leader_epoch = s->leader_epoch,
                               .partition_epoch = s->partition_epoch,
                               .replicas = s->replicas.items,
                               .isr = s->isr.items,
                               .n_replicas = MAX(s->replicas.n, 0),
                               .n_isr = MAX(s->isr.n, 0)},
                .error = &answer->error_code,
        };
}

static size_t count_orders(const struct leader_and_isr_request *req)
{
        size_t n = (size_t)MAX(req->ungrouped_partition_states.n, 0);

        for (int32_t i = 0; i < req->topic_states.n; i++)
                n += (size_t)MAX(req->topic_states.items[i].partition_states.n, 0);
        return n;
}

/* One answer a partition in request order; by topic from v5 on, flat before. */
static int lay_out(const struct leader_and_isr_request *req, int16_t version, struct arena *a,
                   struct order *orders, size_t n_orders, struct leader_and_isr_response *ret)
{
        static const struct uuid no_id;
        struct leader_and_isr_response_partition_error *answers =
                arena_alloc(a, n_orders + 1, sizeof(*answers));
        struct leader_and_isr_response_topic *topics =
                arena_alloc(a, (size_t)MAX(req->topic_states.n, 0) + 1, sizeof(*topics));
        size_t n = 0;

        if (!answers || !topics)
                return -ENOMEM;
        for (int32_t i = 0; i < req->ungrouped_partition_states.n; i++, n++)
                orders[n] = order_of(req->ungrouped_partition_states.items[i].topic_name, &no_id,
                                     &req->ungrouped_partition_states.items[i], &answers[n]);
        for (int32_t i = 0; i < req->topic_states.n; i++) {
                const struct leader_and_isr_request_topic_state *t = &req->topic_states.items[i];

                topics[i].topic_id = t->topic_id;
                topics[i].partition_errors.items = &answers[n];
                topics[i].partition_errors.n = MAX(t->partition_states.n, 0);
                for (int32_t j = 0; j < t->partition_states.n; j++, n++)
                        orders[n] = order_of(t->topic_name, &t->topic_id, &t->partition_states.items[j],
                                             &answers[n]);
        }
        if (version >= 5) {
                ret->topics.items = topics;
                ret->topics.n = MAX(req->topic_states.n, 0);
        } else {
                ret->partition_errors.items = answers;
                ret->partition_errors.n = (int32_t)n_orders;
        }
        return 0;
}

/* The replica exists from now on even if nobody leads it, so that its high watermark is kept (KAFKA-1647). */
static int16_t find_or_create(struct replica_manager *m, const struct order *o, struct partition **ret)
{
        char name[TOPIC_NAME_SIZE];
        int r;

        *ret = replica_find(m, o->topic, o->index);
        if (*ret)
                return KAFKA_NONE;
        if (!topic_name_valid(o->topic) || o->index < 0)
                return KAFKA_INVALID_TOPIC_EXCEPTION;
        if (!ids_contain(o->assignment.replicas, o->assignment.n_replicas, m->options.broker_id))
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        memcpy(name, o->topic.data, (size_t)o->topic.len);
        name[o->topic.len] = '\0';
        r = replica_create(m, name, o->index, ret);
        if (r == 0)
                return KAFKA_NONE;
        slog_error("replica-not-created", "the log of a new replica could not be opened",
                   SL_STR("topic", name), SL_INT("partition", o->index), SL_ERR(r));
        return KAFKA_STORAGE_ERROR;
}

static void follow(struct replica_manager *m, struct partition *p, const struct partition_assignment *a)
{
        /* R9: a broker that is about to stop must not earn its way back into the ISR. */
        int32_t leader = atomic_load(&m->shutting_down) ? -1 : a->leader;

        fetchers_want(m->fetchers, p, leader, a->leader_epoch);
}

static int16_t carry_out(struct replica_manager *m, const struct order *o)
{
        cleanup_with(partition_unrefp) struct partition *p = NULL;
        struct partition_effects e;
        enum partition_outcome outcome;
        enum replica_role old;
        int16_t error;

        error = find_or_create(m, o, &p);
        if (error != KAFKA_NONE)
                return error;
        /* D9: before the first client is sent away, or it would be sent back here by our Metadata. */
        metadata_cache_lead(m->metadata, o->topic, o->index, o->assignment.leader,
                            o->assignment.leader_epoch);
        error = partition_apply(p, &o->assignment, clock_mono_ms(), &outcome, &old, &e);
        if (outcome == PARTITION_REFUSED || outcome == PARTITION_UNCHANGED)
                return error;
        replica_set_topic_id(m, p, &o->assignment.topic_id);
        if (outcome == PARTITION_LEADS)
                fetchers_want(m->fetchers, p, -1, o->assignment.leader_epoch);
        replica_perform(m, p, &e);
        /* R68: who waited for the old role or epoch gets an answer now, before the next partition's turn. */
        replica_check_waiting(p);
        if (outcome == PARTITION_FOLLOWS)
                follow(m, p, &o->assignment);
        return error;
}

/* Leaders first: until a new leader takes over nobody serves its partition, while a follower loses nothing by
 * waiting. */
static void carry_out_all(struct replica_manager *m, const struct leader_and_isr_request *req,
                          struct order *orders, size_t n, bool leaders)
{
        for (size_t i = 0; i < n; i++) {
                const struct order *o = &orders[i];

                if ((o->assignment.leader == m->options.broker_id) != leaders)
                        continue;
                say_state(m, "received LeaderAndIsr request", o->topic, o->index, &o->assignment,
                          req->controller_id, req->controller_epoch);
                *o->error = carry_out(m, o);
                if (*o->error == KAFKA_STALE_CONTROLLER_EPOCH)
                        stale_refused(STALE_OF_LEADER);
                if (*o->error != KAFKA_NONE)
                        say_state(m, kafka_error_name(*o->error), o->topic, o->index, &o->assignment,
                                  req->controller_id, req->controller_epoch);
        }
}

int replica_manager_leader_and_isr(struct replica_manager *m, const struct leader_and_isr_request *req,
                                   int16_t version, struct arena *a, struct leader_and_isr_response *ret)
{
        size_t n = count_orders(req);
        struct order *orders;
        int r;

        *ret = (struct leader_and_isr_response){0};
        ret->error_code = check_epochs(m, req->controller_id, req->controller_epoch, req->broker_epoch);
        if (ret->error_code != KAFKA_NONE)
                return 0;
        orders = arena_alloc(a, n + 1, sizeof(*orders));
        if (!orders)
                return -ENOMEM;
        r = lay_out(req, version, a, orders, n, ret);
        if (r < 0)
                return r;
        for (int32_t i = 0; i < req->live_leaders.n; i++)
                replica_set_endpoint(m, req->live_leaders.items[i].broker_id,
                                     req->live_leaders.items[i].host_name, req->live_leaders.items[i].port);
        carry_out_all(m, req, orders, n, true);
        carry_out_all(m, req, orders, n, false);
        hand_over_said(m);
        return 0;
}

/* --- StopReplica --- */

struct stop {
        struct wire_str topic;
        int32_t index, leader_epoch;
        bool delete;
};

static int16_t delete_log(struct replica_manager *m, struct wire_str topic, int32_t index)
{
        char name[TOPIC_NAME_SIZE];
        int r;

        if (topic.len < 1 || topic.len >= TOPIC_NAME_SIZE)
                return KAFKA_INVALID_TOPIC_EXCEPTION;
        memcpy(name, topic.data, (size_t)topic.len);
        name[topic.len] = '\0';
        r = log_manager_delete(m->logs, name, index);
        if (r == 0 || r == -ENOENT)
                return KAFKA_NONE;
        slog_error("replica-not-deleted", "the log of a deleted replica is still there",
                   SL_STR("topic", name), SL_INT("partition", index), SL_ERR(r));
        return KAFKA_STORAGE_ERROR;
}

/* The fetcher first, then the state, then those who wait (KAFKA-10371, 9198). */
static int16_t stop_one(struct replica_manager *m, const struct stop *s)
{
        cleanup_with(partition_unrefp) struct partition *p = replica_find(m, s->topic, s->index);
        int16_t error;

        if (!p)
                return s->delete ? delete_log(m, s->topic, s->index) : KAFKA_NONE;
        error = partition_stop(p, s->leader_epoch);
        if (error == KAFKA_FENCED_LEADER_EPOCH)
                stale_refused(STALE_OF_LEADER);
        if (error == KAFKA_FENCED_LEADER_EPOCH || (error != KAFKA_NONE && !s->delete))
                return error; /* I12: a late request never deletes a newer replica (KAFKA-9539) */
        fetchers_want(m->fetchers, p, -1, s->leader_epoch);
        if (s->delete) {
                replica_remove(m, p);
                partition_detach_log(p);
        }
        replica_check_waiting(p);
        return s->delete ? delete_log(m, s->topic, s->index) : KAFKA_NONE;
}

static void stop_and_answer(struct replica_manager *m, const struct stop_replica_request *req,
                            const struct stop *s, struct stop_replica_response *ret)
{
        struct stop_replica_response_partition_error *e =
                &ret->partition_errors.items[ret->partition_errors.n++];
        char line[LINE_SIZE];

        *e = (struct stop_replica_response_partition_error){.topic_name = s->topic,
                                                            .partition_index = s->index};
        e->error_code = stop_one(m, s);
        (void)snprintf(line, sizeof(line),
                       "Broker %d handled StopReplica request (Delete:%s,LeaderEpoch:%d,Result:%s) from "
                       "controller %d "
                       "epoch %d for partition [%.*s,%d]",
                       m->options.broker_id, s->delete ? "true" : "false", s->leader_epoch,
                       kafka_error_name(e->error_code), req->controller_id, req->controller_epoch,
                       s->topic.len, s->topic.data, s->index);
        say(m, line);
}

static size_t count_stops(const struct stop_replica_request *req)
{
        size_t n = (size_t)MAX(req->ungrouped_partitions.n, 0);

        for (int32_t i = 0; i < req->topics.n; i++)
                n += (size_t)MAX(req->topics.items[i].partition_indexes.n, 0);
        for (int32_t i = 0; i < req->topic_states.n; i++)
                n += (size_t)MAX(req->topic_states.items[i].partition_states.n, 0);
        return n;
}

/* R48: what is listed is stopped; an empty list means nothing. */
static void stop_listed(struct replica_manager *m, const struct stop_replica_request *req,
                        struct stop_replica_response *ret)
{
        for (int32_t i = 0; i < req->ungrouped_partitions.n; i++) {
                const struct stop_replica_request_ungrouped_partition *u =
                        &req->ungrouped_partitions.items[i];

                stop_and_answer(m, req,
                                &(struct stop){u->topic_name, u->partition_index, -1, req->delete_partitions},
                                ret);
        }
        for (int32_t i = 0; i < req->topics.n; i++) {
                const struct stop_replica_request_topic *t = &req->topics.items[i];

                for (int32_t j = 0; j < t->partition_indexes.n; j++)
                        stop_and_answer(m, req,
                                        &(struct stop){t->name, t->partition_indexes.items[j], -1,
                                                       req->delete_partitions},
                                        ret);
        }
        for (int32_t i = 0; i < req->topic_states.n; i++) {
                const struct stop_replica_request_topic_state *t = &req->topic_states.items[i];

                for (int32_t j = 0; j < t->partition_states.n; j++) {
                        const struct stop_replica_request_partition_state *s = &t->partition_states.items[j];

                        stop_and_answer(m, req,
                                        &(struct stop){t->topic_name, s->partition_index, s->leader_epoch,
                                                       s->delete_partition},
                                        ret);
                }
        }
}

int replica_manager_stop_replica(struct replica_manager *m, const struct stop_replica_request *req,
                                 int16_t version, struct arena *a, struct stop_replica_response *ret)
{
        (void)version; /* the arrays of other versions are empty */
        *ret = (struct stop_replica_response){0};
        ret->error_code = check_epochs(m, req->controller_id, req->controller_epoch, req->broker_epoch);
        if (ret->error_code != KAFKA_NONE)
                return 0;
        ret->partition_errors.items =
                arena_alloc(a, count_stops(req) + 1, sizeof(*ret->partition_errors.items));
        if (!ret->partition_errors.items)
                return -ENOMEM;
        stop_listed(m, req, ret);
        hand_over_said(m);
        return 0;
}

/* --- UpdateMetadata --- */

static void say_metadata(struct replica_manager *m, const struct update_metadata_request *req,
                         struct wire_str topic, const struct update_metadata_request_partition_state *s)
{
        say_state(m, "cached leader info", topic, s->partition_index,
                  &(struct partition_assignment){.leader = s->leader,
                                                 .leader_epoch = s->leader_epoch,
                                                 .partition_epoch = s->zk_version,
                                                 .replicas = s->replicas.items,
                                                 .isr = s->isr.items,
                                                 .n_replicas = s->replicas.n,
                                                 .n_isr = s->isr.n},
                  req->controller_id, req->controller_epoch);
}

/* A replica that was reassigned away while this broker was down: nobody waits for it to be deleted, and
 * LeaderAndIsr will not name it. It goes only by what is known, never for want of knowledge: no LeaderAndIsr
 * of this life has named it, and the topic of its own id has this partition, with a leader, on others. */
static void drop_stray(struct replica_manager *m, const struct update_metadata_request_topic_state *t,
                       const struct update_metadata_request_partition_state *s)
{
        cleanup_with(partition_unrefp) struct partition *p = NULL;
        int16_t error;

        if (ids_contain(s->replicas.items, s->replicas.n, m->options.broker_id))
                return;
        p = s->leader >= 0 ? replica_find(m, t->topic_name, s->partition_index) : NULL;
        if (!p || uuid_is_zero(&t->topic_id) || !partition_is_unclaimed(p, &t->topic_id))
                return;
        error = stop_one(m, &(struct stop){t->topic_name, s->partition_index, -1, true});
        slog_notice("stray-replica", "a replica that was given to other brokers meanwhile is deleted",
                    SL_STR("topic", p->topic), SL_INT("partition", p->index),
                    SL_STR("code", kafka_error_name(error)));
}

int replica_manager_update_metadata(struct replica_manager *m, const struct update_metadata_request *req,
                                    int16_t version, struct update_metadata_response *ret)
{
        int r;

        *ret = (struct update_metadata_response){0};
        ret->error_code = check_epochs(m, req->controller_id, req->controller_epoch, req->broker_epoch);
        if (ret->error_code != KAFKA_NONE)
                return 0;
        r = metadata_cache_apply(m->metadata, req, version);
        if (r < 0)
                return r;
        for (int32_t i = 0; i < req->ungrouped_partition_states.n; i++)
                say_metadata(m, req, req->ungrouped_partition_states.items[i].topic_name,
                             &req->ungrouped_partition_states.items[i]);
        for (int32_t i = 0; i < req->topic_states.n; i++) {
                const struct update_metadata_request_topic_state *t = &req->topic_states.items[i];

                for (int32_t j = 0; j < t->partition_states.n; j++) {
                        say_metadata(m, req, t->topic_name, &t->partition_states.items[j]);
                        drop_stray(m, t, &t->partition_states.items[j]);
                }
        }
        hand_over_said(m);
        return 0;
}
