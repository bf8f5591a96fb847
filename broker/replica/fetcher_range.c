/* OFFSET_OUT_OF_RANGE: ask the leader where its log starts and ends, then truncate, start afresh or just go
 * on. */
#include "replica/fetcher_internal.h"

#include <errno.h>

#include "base/slog.h"
#include "wire/list_offsets.h"

#define LIST_OFFSETS_API     2
#define LIST_OFFSETS_VERSION 5
#define LATEST               (-1)
#define EARLIEST             (-2)

struct range_question {
        struct fetcher *f;
        struct partition *p; /* a reference */
        int32_t epoch;
        int64_t leader_end; /* -1: not yet asked */
};

static struct range_question *question_free(struct range_question *q)
{
        if (!q)
                return NULL;
        (void)partition_unref(q->p);
        free(q);
        return NULL;
}
DEFINE_FREEP(struct range_question, question_free)

static void on_listed(int r, const void *response, struct arena *arena, void *userdata);

/* Takes over @q if it succeeds. */
static int ask(struct range_question *q)
{
        const struct replica_options *o = &q->f->owner->m->options;
        struct list_offsets_request_partition partition;
        struct list_offsets_request_topic topic;
        struct list_offsets_request req;
        int r;

        r = fetcher_client(q->f, &q->f->range_client);
        if (r < 0)
                return r;
        wire_init(&list_offsets_request_wire, &req);
        wire_init_struct(&list_offsets_request_topic_wire, &topic);
        wire_init_struct(&list_offsets_request_partition_wire, &partition);
        partition.partition_index = q->p->index;
        partition.current_leader_epoch = q->epoch;
        partition.timestamp = q->leader_end < 0 ? LATEST : EARLIEST;
        topic.name = wire_str(q->p->topic);
        topic.partitions.items = &partition;
        topic.partitions.n = 1;
        req.replica_id = o->broker_id;
        req.topics.items = &topic;
        req.topics.n = 1;
        return kclient_request(q->f->range_client, wire_api_find(LIST_OFFSETS_API), LIST_OFFSETS_VERSION,
                               &req, o->replica_socket_timeout_ms, on_listed, q);
}

/* The partition may follow somebody else by now. */
static struct fetch_entry *entry_of(const struct range_question *q)
{
        struct fetch_entry *e = q->p->fetch;

        return e && e->f == q->f && e->epoch == q->epoch && e->state == FETCH_RANGING ? e : NULL;
}

static void give_up(const struct range_question *q)
{
        struct fetch_entry *e = entry_of(q);

        if (e)
                fetch_entry_delay(e, q->f->owner->m->options.replica_fetch_backoff_ms);
}

static void act(const struct range_question *q, int64_t leader_start)
{
        struct fetch_entry *e = entry_of(q);
        int r;

        if (!e)
                return;
        e->has_position = false;
        r = partition_follow_range(q->p, q->epoch, leader_start, q->leader_end);
        if (r == -ESTALE)
                fetch_entry_drop(e);
        else if (r < 0)
                fetch_entry_delay(e, q->f->owner->m->options.replica_fetch_backoff_ms);
        else
                fetch_entry_ready(e, LANE_ANY);
}

static int read_offset(const struct list_offsets_response *resp, int64_t *ret)
{
        const struct list_offsets_response_partition *p;

        if (resp->topics.n != 1 || resp->topics.items[0].partitions.n != 1)
                return -EBADMSG;
        p = &resp->topics.items[0].partitions.items[0];
        if (p->error_code != KAFKA_NONE || p->offset < 0)
                return -EAGAIN;
        *ret = p->offset;
        return 0;
}

static void on_listed(int r, const void *response, struct arena *arena, void *userdata)
{
        cleanup_with(question_freep) struct range_question *q = userdata;
        struct fetcher *f = q->f;
        int64_t offset = -1;

        (void)arena;
        if (r == 0)
                r = read_offset(response, &offset);
        if (r < 0) {
                give_up(q);
        } else if (q->leader_end >= 0) {
                act(q, offset);
        } else {
                q->leader_end = offset;
                if (ask(q) == 0)
                        (void)TAKE_PTR(q);
                else
                        give_up(q);
        }
        fetcher_schedule(f);
}

void fetcher_find_range(struct fetch_entry *e)
{
        cleanup_with(question_freep) struct range_question *q = calloc(1, sizeof(*q));

        if (!q) {
                fetch_entry_delay(e, e->f->owner->m->options.replica_fetch_backoff_ms);
                return;
        }
        q->f = e->f;
        q->p = partition_ref(e->p);
        q->epoch = e->epoch;
        q->leader_end = -1;
        fetch_entry_ranging(e);
        if (ask(q) == 0)
                (void)TAKE_PTR(q);
        else
                give_up(q);
}
