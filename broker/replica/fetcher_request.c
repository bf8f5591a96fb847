/* One Fetch of a lane: what is asked, and what is done with each partition of the answer. */
#include "replica/fetcher_internal.h"

#include <errno.h>
#include <string.h>

#include "base/slog.h"
#include "wire/fetch.h"

#define FETCH_API        1
#define VERSION_WITH_IDS 17
#define VERSION_WITH_NAMES                                                                                   \
        12 /* the newest that goes without topic ids; has LastFetchedEpoch (KAFKA-10554)                     \
            */
#define FIRST_BACKOFF_MS      10 /* LeaderAndIsr reaches the leader and us at about the same time */
#define CONNECTION_BACKOFF_MS 50

/* --- the request --- */

static int16_t version_of(const struct fetch_lane *lane)
{
        for (size_t i = 0; i < lane->n_sent; i++) {
                if (lane->sent[i] && uuid_is_zero(&lane->sent[i]->position.topic_id))
                        return VERSION_WITH_NAMES;
        }
        return VERSION_WITH_IDS;
}

bool fetch_entry_position(struct fetch_entry *e)
{
        if (!e->has_position)
                e->has_position = partition_follow_position(e->p, e->epoch, &e->position);
        return e->has_position;
}

/* Take the position of each partition; those that follow somebody else by now leave. Returns how many stay.
 */
static size_t take_positions(struct fetch_lane *lane, struct fetch_request_partition *partitions)
{
        size_t n = 0;

        for (size_t i = 0; i < lane->n_sent; i++) {
                struct fetch_entry *e = lane->sent[i];

                if (!fetch_entry_position(e)) {
                        fetch_entry_drop(e); /* clears lane->sent[i] */
                        continue;
                }
                partitions[i].partition = e->p->index;
                partitions[i].current_leader_epoch = e->epoch; /* always (F2, §2.5) */
                partitions[i].fetch_offset = e->position.offset;
                partitions[i].last_fetched_epoch = e->position.last_epoch;
                partitions[i].log_start_offset = e->position.log_start_offset;
                partitions[i].partition_max_bytes = e->ask_bytes > 0
                                                            ? (int32_t)e->ask_bytes
                                                            : e->f->owner->m->options.replica_fetch_max_bytes;
                n++;
        }
        return n;
}

/* Close the gaps that take_positions() left. */
static void compact(struct fetch_lane *lane, struct fetch_request_partition *partitions)
{
        size_t n = 0;

        for (size_t i = 0; i < lane->n_sent; i++) {
                if (!lane->sent[i])
                        continue;
                lane->sent[n] = lane->sent[i];
                lane->sent[n]->sent_at = n;
                partitions[n++] = partitions[i];
        }
        lane->n_sent = n;
}

static bool same_topic(const struct fetch_entry *a, const struct fetch_entry *b)
{
        return uuid_equal(&a->position.topic_id, &b->position.topic_id) &&
               strcmp(a->p->topic, b->p->topic) == 0;
}

/* Neighbours of the same topic share an entry. LeaderAndIsr brings partitions by topic, so runs are long. */
static void group_by_topic(struct fetch_lane *lane, struct fetch_request_topic *topics,
                           struct fetch_request_partition *partitions, struct fetch_request *req)
{
        req->topics.items = topics;
        for (size_t i = 0; i < lane->n_sent; i++) {
                const struct fetch_entry *e = lane->sent[i];

                if (i == 0 || !same_topic(e, lane->sent[i - 1])) {
                        topics[req->topics.n].topic = wire_str(e->p->topic);
                        topics[req->topics.n].topic_id = e->position.topic_id;
                        topics[req->topics.n++].partitions.items = &partitions[i];
                }
                topics[req->topics.n - 1].partitions.n++;
        }
}

static int send(struct fetch_lane *lane, struct fetch_request *req, int64_t max_wait_ms)
{
        const struct replica_manager *m = lane->f->owner->m;
        int16_t version = version_of(lane);

        req->max_wait_ms = (int32_t)max_wait_ms;
        req->min_bytes = m->options.replica_fetch_min_bytes;
        req->max_bytes = m->options.replica_fetch_response_max_bytes;
        if (version >= 15) {
                req->replica_state.replica_id = m->options.broker_id;
                req->replica_state.replica_epoch = atomic_load(&m->broker_epoch);
        } else {
                req->replica_id = m->options.broker_id;
        }
        return kclient_request(lane->client, wire_api_find(FETCH_API), version, req,
                               max_wait_ms + m->options.replica_socket_timeout_ms, fetcher_on_fetched, lane);
}

int fetcher_send(struct fetch_lane *lane, int64_t max_wait_ms)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct fetch_request_partition *partitions;
        struct fetch_request_topic *topics;
        struct fetch_request req;

        arena_init(&a, 0);
        wire_init(&fetch_request_wire, &req);
        partitions = WIRE_NEW(&a, fetch_request_partition, lane->n_sent);
        topics = WIRE_NEW(&a, fetch_request_topic, lane->n_sent);
        if (!partitions || !topics)
                return -ENOMEM;
        if (take_positions(lane, partitions) == 0) {
                lane->n_sent = 0;
                return -ENODATA;
        }
        compact(lane, partitions);
        group_by_topic(lane, topics, partitions, &req);
        return send(lane, &req, max_wait_ms);
}

/* --- the answer --- */

/* What follower_core decided is done, except for asking again. */
static void next_step(struct fetch_entry *e, enum fetch_lane_id lane, enum follower_action action,
                      bool had_data)
{
        int64_t max_ms = e->f->owner->m->options.replica_fetch_backoff_ms;

        switch (action) {
        case FOLLOWER_APPEND:
                if (had_data)
                        e->last_data_ms = loop_now_ms(e->f->owner->loop);
                e->failures = 0;
                fetch_entry_ready(e, lane);
                break;
        case FOLLOWER_IGNORE:
        case FOLLOWER_TRUNCATE:
                fetch_entry_ready(e, lane);
                break;
        case FOLLOWER_FIND_RANGE:
                fetcher_find_range(e);
                break;
        case FOLLOWER_RETRY_SOON:
                fetch_entry_delay(e, follower_backoff_ms(++e->failures, FIRST_BACKOFF_MS, max_ms));
                break;
        case FOLLOWER_RETRY_LATER:
                fetch_entry_delay(e, max_ms);
                break;
        }
}

/* Of the hundreds of partitions in an answer most have no news. */
static bool has_news(const struct fetch_entry *e, const struct fetch_response_partition *a)
{
        return a->error_code != KAFKA_NONE || a->diverging_epoch.epoch >= 0 || a->records.len > 0 ||
               a->high_watermark != e->leader_hw;
}

static void on_partition(struct fetch_entry *e, enum fetch_lane_id lane,
                         const struct fetch_response_partition *a)
{
        struct partition_answer answer = {
                .answer = {.error = a->error_code,
                           .diverging_epoch = a->diverging_epoch.epoch,
                           .diverging_end_offset = a->diverging_epoch.end_offset,
                           .fetch_offset = e->position.offset},
                .records = a->records,
                .leader_hw = a->high_watermark,
        };
        enum follower_action action = FOLLOWER_IGNORE;
        int r;

        e->given_bytes = a->records.len;
        e->starved = e->ask_bytes > 0 && a->records.len == 0 && a->error_code == KAFKA_NONE;
        if (!has_news(e, a)) {
                next_step(e, lane, FOLLOWER_APPEND, false);
                return;
        }
        e->has_position = false;
        r = partition_follow_answer(e->p, e->epoch, &answer, &action);
        if (r == 0) {
                e->leader_hw = action == FOLLOWER_APPEND ? a->high_watermark : -1;
                next_step(e, lane, action, a->records.len > 0);
                return;
        }
        if (r == -ESTALE) { /* KAFKA-7786: it has a new role, whose fetching is on its way */
                fetch_entry_drop(e);
                return;
        }
        slog_warning("follower-append-failed",
                     "what the leader sent could not be appended; fetched again later",
                     SL_STR("topic", e->p->topic), SL_INT("partition", e->p->index),
                     SL_INT("leader", e->f->broker_id), SL_INT("offset", e->position.offset), SL_ERR(r));
        fetch_entry_delay(e, e->f->owner->m->options.replica_fetch_backoff_ms);
}

/* Answers come in the order of the request, mostly: look from where the last one was found. */
static struct fetch_entry *match(struct fetch_lane *lane, size_t *at, const struct fetch_response_topic *t,
                                 int32_t index)
{
        for (size_t i = 0; i < lane->n_sent; i++) {
                size_t k = (*at + i) % lane->n_sent;
                struct fetch_entry *e = lane->sent[k];

                if (!e || e->p->index != index)
                        continue;
                if (uuid_is_zero(&t->topic_id) ? !wire_str_equal(t->topic, e->p->topic)
                                               : !uuid_equal(&t->topic_id, &e->position.topic_id))
                        continue;
                *at = k + 1;
                return e;
        }
        return NULL;
}

static void on_partitions(struct fetch_lane *lane, const struct fetch_response *resp)
{
        size_t at = 0;

        for (int32_t i = 0; i < resp->responses.n; i++) {
                const struct fetch_response_topic *t = &resp->responses.items[i];

                for (int32_t j = 0; j < t->partitions.n; j++) {
                        struct fetch_entry *e = match(lane, &at, t, t->partitions.items[j].partition_index);

                        if (e)
                                on_partition(e, lane->id, &t->partitions.items[j]);
                }
        }
}

/* The whole request failed: the leader is gone or does not understand us. */
static int64_t on_failure(struct fetch_lane *lane, int r, int16_t error)
{
        lane->failures++;
        if (lane->failures == 1 && r != -ECANCELED)
                slog_info("fetch-failed", "a fetch from a leader failed; tried again",
                          SL_INT("leader", lane->f->broker_id), SL_INT("partitions", lane->n_sent),
                          r < 0 ? SL_ERR(r) : SL_INT("code", error));
        return follower_backoff_ms(lane->failures, CONNECTION_BACKOFF_MS,
                                   lane->f->owner->m->options.replica_fetch_backoff_ms);
}

void fetcher_on_fetched(int r, const void *response, struct arena *arena, void *userdata)
{
        struct fetch_lane *lane = userdata;
        const struct fetch_response *resp = response;
        int64_t pause_ms = FIRST_BACKOFF_MS;

        (void)arena;
        fetch_lanes_returned(&lane->f->core, lane->id, loop_now_ms(lane->f->owner->loop));
        if (r < 0 || resp->error_code != 0) {
                pause_ms = on_failure(lane, r, r < 0 ? (int16_t)0 : resp->error_code);
        } else {
                lane->failures = 0;
                on_partitions(lane, resp);
        }
        for (size_t i = 0; i < lane->n_sent; i++) { /* those without an answer */
                if (lane->sent[i])
                        fetch_entry_delay(lane->sent[i], pause_ms);
        }
        lane->n_sent = 0;
        fetcher_schedule(lane->f);
}
