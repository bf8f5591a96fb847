/* ISR proposals on their way to the controller: collected, sent several in a request, answered, retried.
 *
 * A partition has one proposal in flight at most (leader_core). What is queued is only "this partition has
 * something to propose": the proposal is read when the request is built, so a change in between cannot send
 * something stale. */
#include "replica/replica_internal.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "wire/alter_partition.h"
#include "wire/error.h"

#define ALTER_PARTITION_VERSION 3 /* with the broker epochs of the proposed ISR (KIP-903) */

static struct metric proposals_sent = {.type = METRIC_T_COUNTER,
                                       .name = "stepdown_isr_proposals_total",
                                       .help = "ISR changes proposed to the controller"};
static struct metric proposals_failed = {.type = METRIC_T_COUNTER,
                                         .name = "stepdown_isr_proposals_failed_total",
                                         .help = "ISR proposals that were refused or got no answer"};

struct isr_entry {
        struct partition *p;
        struct partition_proposal proposal;
        bool answered;
};

struct isr_batch {
        struct arena arena;
        struct isr_entry *entries;
        size_t n;
};

/* --- the queues --- */

void replica_isr_queue(struct replica_manager *m, struct partition *p, bool delayed)
{
        bool post = false;

        if (!m->ops.alter_partition || atomic_load(&m->closed))
                return;
        pthread_mutex_lock(&m->isr_lock);
        if (!list_linked(&p->isr_node)) {
                (void)partition_ref(p);
                list_push_back(delayed ? &m->isr_delayed : &m->isr_ready, &p->isr_node);
        }
        if (!m->isr_task_posted)
                post = m->isr_task_posted = true;
        pthread_mutex_unlock(&m->isr_lock);
        if (post)
                loop_post_task(m->replication, &m->isr_task);
}

static struct partition *pop(struct list *l)
{
        struct list *first = l->next;

        if (list_empty(l))
                return NULL;
        list_remove(first);
        return list_entry(first, struct partition, isr_node);
}

void replica_isr_drop(struct replica_manager *m)
{
        struct list all;

        list_init(&all);
        pthread_mutex_lock(&m->isr_lock);
        list_splice_back(&all, &m->isr_ready);
        list_splice_back(&all, &m->isr_delayed);
        while (!list_empty(&all))
                (void)partition_unref(pop(&all));
        pthread_mutex_unlock(&m->isr_lock);
}

static struct isr_batch *batch_free(struct isr_batch *b)
{
        if (!b)
                return NULL;
        for (size_t i = 0; i < b->n; i++)
                (void)partition_unref(b->entries[i].p);
        arena_done(&b->arena);
        free(b->entries);
        free(b);
        return NULL;
}
DEFINE_FREEP(struct isr_batch, batch_free)

static int compare_entries(const void *a, const void *b)
{
        const struct isr_entry *x = a, *y = b;
        int c = memcmp(&x->proposal.topic_id, &y->proposal.topic_id, sizeof(struct uuid));

        return c != 0 ? c : (x->p->index > y->p->index) - (x->p->index < y->p->index);
}

/* Everything that is ready, by topic. -ENOMEM: what is left stays queued, for later. */
static int collect(struct replica_manager *m, struct isr_batch *b)
{
        int64_t own_epoch = atomic_load(&m->broker_epoch);
        size_t cap = 0;
        int r = 0;

        pthread_mutex_lock(&m->isr_lock);
        list_for_each (it, &m->isr_ready)
                cap++;
        b->entries = calloc(cap + 1, sizeof(*b->entries));
        while (b->entries && r >= 0 && b->n < cap) {
                struct partition *p = pop(&m->isr_ready);

                pthread_mutex_unlock(&m->isr_lock);
                r = partition_isr_proposal(p, own_epoch, &b->arena, &b->entries[b->n].proposal);
                pthread_mutex_lock(&m->isr_lock);
                if (r == 1) {
                        b->entries[b->n++].p = p;
                        continue;
                }
                cap--;
                if (r == 0) {
                        (void)partition_unref(p);
                } else if (!list_linked(&p->isr_node)) {
                        list_push_back(&m->isr_delayed, &p->isr_node);
                } else {
                        (void)partition_unref(p);
                }
        }
        pthread_mutex_unlock(&m->isr_lock);
        if (!b->entries || r < 0)
                return -ENOMEM;
        qsort(b->entries, b->n, sizeof(*b->entries), compare_entries);
        return 0;
}

/* --- the request --- */

static int fill_partition(struct isr_batch *b, const struct isr_entry *e,
                          struct alter_partition_request_partition *to)
{
        to->partition_index = e->p->index;
        to->leader_epoch = e->proposal.leader_epoch;
        to->partition_epoch = e->proposal.partition_epoch;
        to->new_isr_with_epochs.items =
                WIRE_NEW(&b->arena, alter_partition_request_new_isr_with_epoch, (size_t)e->proposal.n_isr);
        if (!to->new_isr_with_epochs.items)
                return -ENOMEM;
        to->new_isr_with_epochs.n = e->proposal.n_isr;
        for (int32_t i = 0; i < e->proposal.n_isr; i++)
                to->new_isr_with_epochs.items[i] = (struct alter_partition_request_new_isr_with_epoch){
                        .broker_id = e->proposal.isr[i].id, .broker_epoch = e->proposal.isr[i].broker_epoch};
        return 0;
}

/* The entries are sorted, so each topic is one run of them. */
static int fill_topics(struct isr_batch *b, struct alter_partition_request *req)
{
        struct alter_partition_request_partition *partitions =
                WIRE_NEW(&b->arena, alter_partition_request_partition, b->n);
        struct alter_partition_request_topic *topic = NULL;
        int r;

        req->topics.items = WIRE_NEW(&b->arena, alter_partition_request_topic, b->n);
        if (!partitions || !req->topics.items)
                return -ENOMEM;
        for (size_t i = 0; i < b->n; i++) {
                const struct isr_entry *e = &b->entries[i];

                if (!topic || !uuid_equal(&topic->topic_id, &e->proposal.topic_id)) {
                        topic = &req->topics.items[req->topics.n++];
                        topic->topic_name = wire_str(e->p->topic);
                        topic->topic_id = e->proposal.topic_id;
                        topic->partitions.items = &partitions[i];
                }
                r = fill_partition(b, e, &partitions[i]);
                if (r < 0)
                        return r;
                topic->partitions.n++;
        }
        return 0;
}

static void retry(struct replica_manager *m, struct isr_batch *b)
{
        metric_add(&proposals_failed, (int64_t)b->n);
        for (size_t i = 0; i < b->n; i++)
                replica_isr_queue(m, b->entries[i].p, true);
}

static int send_batch(struct replica_manager *m, struct isr_batch *b)
{
        struct alter_partition_request req;
        int r;

        wire_init(&alter_partition_request_wire, &req);
        req.broker_id = m->options.broker_id;
        req.broker_epoch = atomic_load(&m->broker_epoch);
        r = fill_topics(b, &req);
        if (r < 0)
                return r;
        metric_add(&proposals_sent, (int64_t)b->n);
        return m->ops.alter_partition(m->ops.userdata, ALTER_PARTITION_VERSION, &req, b);
}

static void dispatch(struct replica_manager *m)
{
        cleanup_with(batch_freep) struct isr_batch *b = calloc(1, sizeof(*b));
        int r;

        if (!b) {
                loop_timer_arm(m->isr_retry, m->options.alter_partition_retry_ms, 0);
                return;
        }
        arena_init(&b->arena, 0);
        r = collect(m, b);
        if (r == 0 && b->n == 0)
                return;
        if (r == 0)
                r = send_batch(m, b);
        if (r == 0)
                (void)TAKE_PTR(b); /* comes back with the answer */
        else
                retry(m, b);
}

void replica_isr_on_task(void *userdata)
{
        struct replica_manager *m = userdata;
        bool ready, delayed;

        if (atomic_load(&m->closed)) {
                replica_isr_drop(m);
                return;
        }
        pthread_mutex_lock(&m->isr_lock);
        m->isr_task_posted = false;
        ready = !list_empty(&m->isr_ready);
        delayed = !list_empty(&m->isr_delayed);
        pthread_mutex_unlock(&m->isr_lock);
        if (delayed && !loop_timer_armed(m->isr_retry))
                loop_timer_arm(m->isr_retry, m->options.alter_partition_retry_ms, 0);
        if (ready)
                dispatch(m);
}

int replica_isr_on_retry(struct loop *l, void *userdata)
{
        struct replica_manager *m = userdata;

        (void)l;
        pthread_mutex_lock(&m->isr_lock);
        list_splice_back(&m->isr_ready, &m->isr_delayed);
        pthread_mutex_unlock(&m->isr_lock);
        dispatch(m);
        return 0;
}

/* --- the answer --- */

static void on_result(struct replica_manager *m, struct isr_entry *e,
                      const struct alter_partition_response_partition *a)
{
        struct partition_effects effects;

        e->answered = true;
        if (a->error_code != KAFKA_NONE)
                metric_add(&proposals_failed, 1);
        partition_isr_result(e->p,
                             &(struct leader_isr_result){.proposal = e->proposal.number,
                                                         .error = a->error_code,
                                                         .leader_epoch = a->leader_epoch,
                                                         .partition_epoch = a->partition_epoch,
                                                         .isr = a->isr.items,
                                                         .n_isr = MAX(a->isr.n, 0),
                                                         .now_ms = clock_mono_ms()},
                             &effects);
        replica_perform(m, e->p, &effects);
        /* A shrink may decide what waits even where the HW stands: code 20 (R74). */
        (void)purgatory_check(&e->p->produce_key);
}

static struct isr_entry *find_entry(struct isr_batch *b, const struct uuid *topic_id, int32_t index)
{
        struct partition key_partition = {.index = index};
        struct isr_entry key = {.p = &key_partition, .proposal.topic_id = *topic_id};

        return bsearch(&key, b->entries, b->n, sizeof(*b->entries), compare_entries);
}

/* One line an answer, not one a partition: a drained broker that follows a thousand is refused a thousand
 * times, and again each second, which is as it should be (D7). */
static void say_refused(const struct isr_entry *first, int16_t error, int32_t n)
{
        const struct slog_field fields[] = {SL_STR("code", kafka_error_name(error)),
                                            SL_INT("partitions", n),
                                            SL_STR("topic", first->p->topic),
                                            SL_INT("partition", first->p->index),
                                            {.key = NULL}};
        enum slog_level level = error == KAFKA_INELIGIBLE_REPLICA ? SLOG_DEBUG : SLOG_INFO;

        if (level <= slog_level_now())
                slog_emit(level, "isr-proposals-refused", "the controller did not take ISR proposals",
                          fields);
}

static void on_results(struct replica_manager *m, struct isr_batch *b,
                       const struct alter_partition_response *resp)
{
        const struct isr_entry *first = NULL;
        int16_t error = KAFKA_NONE;
        int32_t n_refused = 0;

        for (int32_t i = 0; i < resp->topics.n; i++) {
                const struct alter_partition_response_topic *t = &resp->topics.items[i];

                for (int32_t j = 0; j < t->partitions.n; j++) {
                        const struct alter_partition_response_partition *a = &t->partitions.items[j];
                        struct isr_entry *e = find_entry(b, &t->topic_id, a->partition_index);

                        if (!e || e->answered)
                                continue;
                        on_result(m, e, a);
                        if (a->error_code == KAFKA_NONE)
                                continue;
                        n_refused++;
                        first = e;
                        error = a->error_code;
                }
        }
        if (first)
                say_refused(first, error, n_refused);
        for (size_t i = 0; i < b->n; i++) {
                if (!b->entries[i].answered)
                        replica_isr_queue(m, b->entries[i].p, true);
        }
}

void replica_manager_on_alter_partition(struct replica_manager *m, struct isr_batch *batch, int r,
                                        const struct alter_partition_response *resp)
{
        cleanup_with(batch_freep) struct isr_batch *b = batch;

        if (r < 0 || resp->error_code != KAFKA_NONE) {
                slog_info("isr-proposals-retried", "ISR proposals got no answer from the controller",
                          SL_INT("partitions", b->n), r < 0 ? SL_ERR(r) : SL_INT("code", resp->error_code));
                retry(m, b);
                return;
        }
        on_results(m, b, resp);
}

void replica_isr_register_metrics(void)
{
        metrics_register(&proposals_sent);
        metrics_register(&proposals_failed);
}
