#include "replica_testing.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "wire/list_offsets.h"
#include "wire/record_batch.h"
#include "wire/stop_replica.h"

/* --- the node --- */

static bool lease_valid(void *userdata)
{
        struct node *n = userdata;

        return atomic_load(&n->lease);
}

static void state_change(void *userdata, const char *line)
{
        struct node *n = userdata;

        (void)snprintf(n->last_line, sizeof(n->last_line), "%s", line);
}

static void commit_all(struct node *n, const struct alter_partition_request *req, struct isr_batch *batch)
{
        struct alter_partition_response resp;
        struct arena a;

        arena_init(&a, 0);
        wire_init(&alter_partition_response_wire, &resp);
        resp.topics.items = WIRE_NEW(&a, alter_partition_response_topic, (size_t)req->topics.n);
        resp.topics.n = req->topics.n;
        for (int32_t i = 0; i < req->topics.n; i++) {
                const struct alter_partition_request_topic *t = &req->topics.items[i];
                struct alter_partition_response_topic *to = &resp.topics.items[i];

                to->topic_id = t->topic_id;
                to->partitions.items =
                        WIRE_NEW(&a, alter_partition_response_partition, (size_t)t->partitions.n);
                to->partitions.n = t->partitions.n;
                for (int32_t j = 0; j < t->partitions.n; j++) {
                        const struct alter_partition_request_partition *p = &t->partitions.items[j];
                        struct alter_partition_response_partition *q = &to->partitions.items[j];

                        q->partition_index = p->partition_index;
                        q->leader_id = n->options.broker_id;
                        q->leader_epoch = p->leader_epoch;
                        q->partition_epoch = p->partition_epoch + 1;
                        q->isr.items = arena_alloc(&a, (size_t)p->new_isr_with_epochs.n, sizeof(int32_t));
                        q->isr.n = p->new_isr_with_epochs.n;
                        for (int32_t k = 0; k < q->isr.n; k++)
                                q->isr.items[k] = p->new_isr_with_epochs.items[k].broker_id;
                }
        }
        replica_manager_on_alter_partition(n->rm, batch, 0, &resp);
        arena_done(&a);
}

static int alter_partition(void *userdata, int16_t version, const struct alter_partition_request *req,
                           struct isr_batch *batch)
{
        struct node *n = userdata;
        const struct alter_partition_request_partition *p = &req->topics.items[0].partitions.items[0];

        assert_int_equal(version, 3);
        if (n->auto_controller) {
                commit_all(n, req, batch);
                return 0;
        }
        if (n->silent_controller)
                return -ENOTCONN;
        pthread_mutex_lock(&n->lock);
        n->n_isr = p->new_isr_with_epochs.n;
        for (int32_t i = 0; i < n->n_isr; i++)
                n->isr[i] = p->new_isr_with_epochs.items[i].broker_id;
        n->leader_epoch = p->leader_epoch;
        n->partition_epoch = p->partition_epoch;
        n->batch = batch;
        pthread_mutex_unlock(&n->lock);
        return 0;
}

bool proposal_arrived(struct node *n)
{
        int64_t deadline_ms = clock_mono_ms() + 5000;
        bool there = false;

        while (!there && clock_mono_ms() < deadline_ms) {
                pthread_mutex_lock(&n->lock);
                there = n->batch;
                pthread_mutex_unlock(&n->lock);
                if (!there)
                        usleep(500);
        }
        return there;
}

void answer_proposal(struct node *n, int16_t error, int32_t partition_epoch)
{
        struct alter_partition_response_partition p;
        struct alter_partition_response_topic t;
        struct alter_partition_response resp;
        struct isr_batch *batch;

        pthread_mutex_lock(&n->lock);
        batch = TAKE_PTR(n->batch);
        pthread_mutex_unlock(&n->lock);
        assert_non_null(batch);
        wire_init(&alter_partition_response_wire, &resp);
        wire_init_struct(&alter_partition_response_topic_wire, &t);
        wire_init_struct(&alter_partition_response_partition_wire, &p);
        p.error_code = error;
        p.leader_id = n->options.broker_id;
        p.leader_epoch = n->leader_epoch;
        p.partition_epoch = partition_epoch;
        p.isr.items = n->isr;
        p.isr.n = n->n_isr;
        t.topic_id = topic_id_of(TOPIC);
        t.partitions.items = &p;
        t.partitions.n = 1;
        resp.topics.items = &t;
        resp.topics.n = 1;
        replica_manager_on_alter_partition(n->rm, batch, 0, &resp);
}

void lose_proposal(struct node *n)
{
        struct isr_batch *batch;

        pthread_mutex_lock(&n->lock);
        batch = TAKE_PTR(n->batch);
        pthread_mutex_unlock(&n->lock);
        assert_non_null(batch);
        replica_manager_on_alter_partition(n->rm, batch, -ECONNRESET, NULL);
}

void node_init(struct node *n, int32_t id)
{
        *n = (struct node){.lock = PTHREAD_MUTEX_INITIALIZER};
        (void)snprintf(n->dir, sizeof(n->dir), "%s/stepdown-replica-XXXXXX",
                       getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
        assert_non_null(mkdtemp(n->dir));
        replica_options_default(&n->options);
        n->options.broker_id = id;
        n->options.min_insync_replicas = 2;
        n->options.replica_fetch_backoff_ms = 50;
        n->options.alter_partition_retry_ms = 5;
        atomic_init(&n->lease, true);
}

void node_start(struct node *n)
{
        const struct replica_ops ops = {.userdata = n,
                                        .alter_partition = alter_partition,
                                        .lease_valid = lease_valid,
                                        .state_change = state_change};
        struct log_manager_options lo = {
                .log_dirs = n->dir, .broker_id = n->options.broker_id, .recovery_threads = 1};
        char *error = NULL;

        log_config_default(&lo.defaults);
        assert_int_equal(log_manager_open(&lo, "test-cluster", &n->logs, &error), 0);
        assert_int_equal(metadata_cache_new("test-cluster", NULL, &n->metadata), 0);
        assert_int_equal(replica_manager_new(&n->options, &ops, n->logs, n->metadata, &n->rm), 0);
}

static void stop(struct node *n)
{
        replica_manager_shutdown(n->rm);
        if (n->batch)
                replica_manager_on_alter_partition(n->rm, TAKE_PTR(n->batch), -ECANCELED, NULL);
        n->rm = replica_manager_free(n->rm);
        n->metadata = metadata_cache_free(n->metadata);
}

void node_stop(struct node *n)
{
        stop(n);
        assert_int_equal(log_manager_close_clean(TAKE_PTR(n->logs)), 0);
}

/* The checkpoint that shutdown writes is put back, as if it had not come to that. */
void node_crash(struct node *n)
{
        char hw[300], saved[310];

        (void)snprintf(hw, sizeof(hw), "%s/replication-offset-checkpoint", n->dir);
        (void)snprintf(saved, sizeof(saved), "%s.saved", hw);
        (void)unlink(saved);
        (void)!link(hw, saved); /* fails when none was written yet */
        stop(n);
        n->logs = log_manager_free(n->logs);
        if (rename(saved, hw) < 0)
                (void)unlink(hw);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *ftw)
{
        (void)st;
        (void)flag;
        (void)ftw;
        return remove(path);
}

void node_done(struct node *n)
{
        if (n->rm)
                node_stop(n);
        assert_int_equal(nftw(n->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* --- control --- */

struct uuid topic_id_of(const char *topic)
{
        struct uuid u;

        memset(&u, topic[0], sizeof(u));
        return u;
}

int16_t lai(struct node *n, const struct lai *l)
{
        static const int32_t three[] = {1, 2, 3};
        struct leader_and_isr_request_partition_state s;
        struct leader_and_isr_request_topic_state t;
        struct leader_and_isr_request_live_leader live = {
                .broker_id = l->leader, .host_name = wire_str("127.0.0.1"), .port = l->leader_port};
        struct leader_and_isr_request req;
        struct leader_and_isr_response resp;
        struct arena a;
        int16_t error;

        wire_init(&leader_and_isr_request_wire, &req);
        wire_init_struct(&leader_and_isr_request_topic_state_wire, &t);
        wire_init_struct(&leader_and_isr_request_partition_state_wire, &s);
        s.partition_index = l->partition;
        s.leader = l->leader;
        s.leader_epoch = l->epoch;
        s.partition_epoch = l->partition_epoch;
        s.replicas.items = (int32_t *)(uintptr_t)(l->replicas ? l->replicas : three);
        s.replicas.n = l->replicas ? l->n_replicas : 3;
        s.isr.items = l->isr ? (int32_t *)(uintptr_t)l->isr : s.replicas.items;
        s.isr.n = l->isr ? l->n_isr : s.replicas.n;
        t.topic_name = wire_str(l->topic ? l->topic : TOPIC);
        t.topic_id = topic_id_of(l->topic ? l->topic : TOPIC);
        t.partition_states.items = &s;
        t.partition_states.n = 1;
        req.controller_id = CONTROLLER;
        req.controller_epoch = l->controller_epoch;
        req.broker_epoch = l->broker_epoch ? l->broker_epoch : -1;
        req.topic_states.items = &t;
        req.topic_states.n = 1;
        req.live_leaders.items = &live;
        req.live_leaders.n = l->leader_port ? 1 : 0;
        arena_init(&a, 0);
        assert_int_equal(replica_manager_leader_and_isr(n->rm, &req, 7, &a, &resp), 0);
        error = resp.error_code ? resp.error_code : resp.topics.items[0].partition_errors.items[0].error_code;
        arena_done(&a);
        return error;
}

int16_t stop_replica(struct node *n, int32_t partition, int32_t epoch, bool delete)
{
        struct stop_replica_request_partition_state s = {
                .partition_index = partition, .leader_epoch = epoch, .delete_partition = delete};
        struct stop_replica_request_topic_state t;
        struct stop_replica_request req;
        struct stop_replica_response resp;
        struct arena a;
        int16_t error;

        wire_init(&stop_replica_request_wire, &req);
        wire_init_struct(&stop_replica_request_topic_state_wire, &t);
        t.topic_name = wire_str(TOPIC);
        t.partition_states.items = &s;
        t.partition_states.n = 1;
        req.controller_id = CONTROLLER;
        req.topic_states.items = &t;
        req.topic_states.n = 1;
        arena_init(&a, 0);
        assert_int_equal(replica_manager_stop_replica(n->rm, &req, 4, &a, &resp), 0);
        error = resp.error_code ? resp.error_code : resp.partition_errors.items[0].error_code;
        arena_done(&a);
        return error;
}

/* --- outcomes --- */

void outcome_init(struct outcome *o)
{
        *o = (struct outcome){.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
}

void outcome_done(struct outcome *o)
{
        o->response = replica_response_free(o->response);
        o->n_done = 0;
}

static void on_done(struct replica_response *r, void *userdata)
{
        struct outcome *o = userdata;

        assert_non_null(r);
        pthread_mutex_lock(&o->lock);
        assert_int_equal(o->n_done, 0); /* I10 */
        o->n_done++;
        o->response = r;
        pthread_cond_signal(&o->changed);
        pthread_mutex_unlock(&o->lock);
}

bool outcome_arrived(struct outcome *o)
{
        bool there;

        pthread_mutex_lock(&o->lock);
        there = o->n_done > 0;
        pthread_mutex_unlock(&o->lock);
        return there;
}

void outcome_await(struct outcome *o)
{
        struct timespec until;
        int r = 0;

        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 5;
        pthread_mutex_lock(&o->lock);
        while (o->n_done == 0 && r == 0)
                r = pthread_cond_timedwait(&o->changed, &o->lock, &until);
        pthread_mutex_unlock(&o->lock);
        assert_int_equal(r, 0);
}

const struct produce_response_partition *produced(struct outcome *o)
{
        const struct produce_response *b = o->response->body;

        return &b->responses.items[0].partition_responses.items[0];
}

const struct fetch_response_partition *fetched(struct outcome *o)
{
        const struct fetch_response *b = o->response->body;

        return &b->responses.items[0].partitions.items[0];
}

/* --- data --- */

void make_batch(struct buf *out, const struct batch *b)
{
        int32_t n = b->n_records ? b->n_records : 1, bytes = b->value_bytes ? b->value_bytes : 10;
        struct record_batch_spec spec = RECORD_BATCH_SPEC_PLAIN;
        struct record_spec *records = calloc((size_t)n, sizeof(*records));
        char *value = malloc((size_t)bytes);

        assert_true(records && value);
        memset(value, 'x', (size_t)bytes);
        for (int32_t i = 0; i < n; i++)
                records[i] = (struct record_spec){.timestamp_ms = 1000 + i,
                                                  .key = WIRE_NULL_BYTES,
                                                  .value = {.data = (uint8_t *)value, .len = bytes}};
        spec.base_offset = b->base_offset;
        spec.leader_epoch = b->epoch;
        assert_int_equal(record_batch_build(&spec, records, (size_t)n, out), 0);
        free(records);
        free(value);
}

void produce_to(struct node *n, const char *topic, int32_t partition, int16_t acks, int32_t timeout_ms,
                const struct batch *b, struct outcome *o)
{
        cleanup_with(buf_donep) struct buf data = {0};
        struct produce_request_partition p;
        struct produce_request_topic t;
        struct produce_request req;
        const struct replica_call call = {.version = 11, .on_done = on_done, .userdata = o};

        buf_init(&data, 0);
        make_batch(&data, b);
        wire_init(&produce_request_wire, &req);
        p.index = partition;
        p.records = (struct wire_bytes){.data = data.data, .len = (int32_t)data.len};
        t.name = wire_str(topic);
        t.partition_data.items = &p;
        t.partition_data.n = 1;
        req.acks = acks;
        req.timeout_ms = timeout_ms;
        req.topic_data.items = &t;
        req.topic_data.n = 1;
        replica_manager_produce(n->rm, &req, &call);
}

void produce(struct node *n, int16_t acks, int32_t timeout_ms, struct outcome *o)
{
        produce_to(n, TOPIC, 0, acks, timeout_ms, &(struct batch){0}, o);
}

int16_t produce_now(struct node *n, int16_t acks)
{
        struct outcome o;
        int16_t error;

        outcome_init(&o);
        produce(n, acks, 60000, &o);
        assert_true(outcome_arrived(&o));
        error = produced(&o)->error_code;
        outcome_done(&o);
        return error;
}

void fetch(struct node *n, const struct ask *a, struct outcome *o)
{
        const struct replica_call call = {
                .version = a->version ? a->version : 17, .on_done = on_done, .userdata = o};
        struct fetch_request_partition p;
        struct fetch_request_topic t;
        struct fetch_request req;

        wire_init(&fetch_request_wire, &req);
        wire_init_struct(&fetch_request_topic_wire, &t);
        wire_init_struct(&fetch_request_partition_wire, &p);
        p.partition = a->partition;
        p.fetch_offset = a->offset;
        p.current_leader_epoch = a->epoch ? a->epoch : -1;
        p.last_fetched_epoch = a->last_epoch ? a->last_epoch : -1;
        p.partition_max_bytes = a->partition_max_bytes ? a->partition_max_bytes : 1 << 20;
        t.topic = wire_str(TOPIC);
        t.topic_id = topic_id_of(TOPIC);
        t.partitions.items = &p;
        t.partitions.n = 1;
        if (call.version >= 15)
                req.replica_state.replica_id = a->replica_id ? a->replica_id : -1;
        else
                req.replica_id = a->replica_id ? a->replica_id : -1;
        req.max_wait_ms = a->max_wait_ms;
        req.min_bytes = a->min_bytes;
        req.max_bytes = a->max_bytes ? a->max_bytes : 1 << 20;
        req.topics.items = &t;
        req.topics.n = 1;
        replica_manager_fetch(n->rm, &req, &call);
}

int32_t fetch_now(struct node *n, const struct ask *a, int64_t *ret_hw)
{
        struct outcome o;
        int32_t result;

        outcome_init(&o);
        fetch(n, a, &o);
        assert_true(outcome_arrived(&o));
        result = fetched(&o)->error_code ? -fetched(&o)->error_code : fetched(&o)->records.len;
        if (ret_hw)
                *ret_hw = fetched(&o)->high_watermark;
        outcome_done(&o);
        return result;
}

void follow(struct node *n, int32_t id, int64_t offset, int32_t epoch)
{
        assert_true(fetch_now(n, &(struct ask){.replica_id = id, .offset = offset, .epoch = epoch}, NULL) >=
                    0);
}

int64_t list_offset(struct node *n, int64_t timestamp, int32_t replica_id, int16_t *ret_error)
{
        struct list_offsets_request_partition p = {
                .partition_index = 0, .current_leader_epoch = -1, .timestamp = timestamp};
        struct list_offsets_request_topic t = {.name = wire_str(TOPIC)};
        struct list_offsets_request req;
        struct list_offsets_response resp;
        struct arena a;
        int64_t offset;

        wire_init(&list_offsets_request_wire, &req);
        t.partitions.items = &p;
        t.partitions.n = 1;
        req.replica_id = replica_id;
        req.topics.items = &t;
        req.topics.n = 1;
        arena_init(&a, 0);
        assert_int_equal(replica_manager_list_offsets(n->rm, &req, 7, &a, &resp), 0);
        offset = resp.topics.items[0].partitions.items[0].offset;
        *ret_error = resp.topics.items[0].partitions.items[0].error_code;
        arena_done(&a);
        return offset;
}

struct info_query {
        int32_t partition;
        struct replica_info *ret;
        bool found;
};

static void take_info(const struct replica_info *i, void *userdata)
{
        struct info_query *q = userdata;

        if (strcmp(i->topic, TOPIC) != 0 || i->partition != q->partition)
                return;
        *q->ret = *i;
        q->found = true;
}

void info(struct node *n, int32_t partition, struct replica_info *ret)
{
        struct info_query q = {.partition = partition, .ret = ret};

        replica_manager_each(n->rm, take_info, &q);
        assert_true(q.found);
}
