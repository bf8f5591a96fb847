/* Elections that are asked for: ElectLeaders, and /admin/preferred_replica_election of the old tool
 * (R53–R56).
 *
 * Asking sets a wish in the partition (`prefer` or `unclean`) and marks it for the writer, which looks at the
 * partition as it is by then: a preferred replica gets leadership only when it is in sync, alive and neither
 * drains nor is about to leave (R54, D7). So a wish can lose against a drain, never fight it. The answer says
 * what has come of it once the brokers have been told. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "controller/topics_internal.h"
#include "wire/elect_leaders.h"
#include "wire/error.h"

#define PATIENCE_MS 5000 /* then a broker that does not acknowledge is not waited for any longer */

enum { TYPE_PREFERRED, TYPE_UNCLEAN, N_TYPES };

struct elect_item {
        const char *topic;
        struct elect_leaders_response_partition_result *out;
        bool waiting;
};

struct elect_request {
        struct ctl_call call;
        struct list node; /* controller->elections */
        const struct elect_leaders_request *req;
        controller_elect_leaders_fn fn;
        void *userdata;
        struct arena arena;
        struct elect_leaders_response res;
        struct elect_item *items;
        size_t n_items;
        struct sender_mark *marks; /* all is written; the brokers are being told */
        size_t n_marks;
        bool telling;
        int64_t deadline_ms, patient_until_ms;
};

static const struct {
        int16_t failed;
        const char *why;
} types[N_TYPES] = {
        [TYPE_PREFERRED] = {KAFKA_PREFERRED_LEADER_NOT_AVAILABLE,
                            "the preferred replica is not alive and in sync, or it is draining"},
        [TYPE_UNCLEAN] = {KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE, "no replica is alive that could lead"},
};

static void set_result(struct elect_item *it, int16_t code, const char *sentence)
{
        it->waiting = false;
        it->out->error_code = code;
        it->out->error_message = wire_str(sentence);
}

static void request_answer(struct elect_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        free(q->marks);
        arena_done(&q->arena);
        free(q);
}

/* --- asking --- */

static bool preferred_fits(const struct controller *c, const struct ctx_partition *p)
{
        struct election_replica replicas[ZNODE_MAX_REPLICAS];
        struct election_input in;

        ctx_election_input(&c->ctx, p, false, replicas, &in);
        return election_preferred(&in);
}

static bool anybody_fits(const struct ctx_partition *p)
{
        for (uint16_t i = 0; i < p->n_slots; i++)
                if (p->slots[i].broker->alive && !p->slots[i].dir_offline && !p->slots[i].broker->drain)
                        return true;
        return false;
}

static bool needed(const struct controller *c, const struct ctx_partition *p, int type)
{
        if (!ctx_partition_online(&c->ctx, p))
                return true;
        return type == TYPE_PREFERRED && p->leader != p->replicas[0];
}

static void begin_item(struct controller *c, struct elect_item *it, int type)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, it->topic);
        struct ctx_partition *p = t && !t->deleting ? ctx_topic_partition(t, it->out->partition_id) : NULL;

        if (!p)
                set_result(it, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "The partition does not exist.");
        else if (!needed(c, p, type))
                set_result(it, KAFKA_ELECTION_NOT_NEEDED, "Leader election not needed for topic partition.");
        else if (type == TYPE_PREFERRED ? !preferred_fits(c, p) : !anybody_fits(p))
                set_result(it, types[type].failed, types[type].why);
        else {
                it->waiting = true;
                p->prefer = p->prefer || type == TYPE_PREFERRED;
                p->unclean = p->unclean || type == TYPE_UNCLEAN;
                writer_mark(c, p, WRITER_NORMAL);
        }
}

static bool undecided(const struct ctx_partition *p)
{
        return p->in_flight || p->prefer || p->unclean;
}

static void progress_item(struct controller *c, struct elect_item *it, int type)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, it->topic);
        const struct ctx_partition *p =
                t && !t->deleting ? ctx_topic_partition(t, it->out->partition_id) : NULL;

        if (!p)
                set_result(it, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "It was deleted meanwhile.");
        else if (undecided(p))
                return;
        else if (needed(c, p, type))
                set_result(it, types[type].failed, types[type].why);
        else
                set_result(it, KAFKA_NONE, NULL);
}

/* --- waiting --- */

static void progress_request(struct controller *c, struct elect_request *q)
{
        int64_t now = loop_now_ms(c->loop);
        size_t waiting = 0;

        for (size_t i = 0; i < q->n_items; i++) {
                struct elect_item *it = &q->items[i];

                if (it->waiting)
                        progress_item(c, it, q->req->election_type);
                if (it->waiting && now >= q->deadline_ms)
                        set_result(it, KAFKA_REQUEST_TIMED_OUT, "It is still being tried.");
                waiting += it->waiting;
        }
        if (waiting > 0)
                return;
        if (!q->telling && sender_marks_take(c, &q->marks, &q->n_marks) == 0) {
                q->telling = true;
                q->patient_until_ms = MIN(now + PATIENCE_MS, q->deadline_ms);
        }
        if (!q->telling || sender_marks_passed(c, q->marks, q->n_marks) || now >= q->patient_until_ms)
                request_answer(q);
}

void elections_forget(struct controller *c)
{
        tool_znode_forget(&c->elections_znode);
        while (!list_empty(&c->elections)) {
                struct elect_request *q = list_entry(c->elections.next, struct elect_request, node);

                for (size_t i = 0; i < q->n_items; i++)
                        if (q->items[i].waiting)
                                set_result(&q->items[i], KAFKA_NOT_CONTROLLER, NULL);
                q->res.error_code = KAFKA_NOT_CONTROLLER;
                request_answer(q);
        }
}

/* --- a request --- */

static int add_topic(struct elect_request *q, const char *name, const int32_t *partitions, int32_t n)
{
        struct elect_leaders_response_replica_election_result *out =
                &q->res.replica_election_results.items[q->res.replica_election_results.n];

        out->topic = wire_str(name);
        out->partition_result.items =
                arena_alloc(&q->arena, (size_t)n + 1, sizeof(*out->partition_result.items));
        if (!out->partition_result.items)
                return -ENOMEM;
        out->partition_result.n = n;
        q->res.replica_election_results.n++;
        for (int32_t i = 0; i < n; i++) {
                out->partition_result.items[i] = (struct elect_leaders_response_partition_result){
                        .partition_id = partitions[i], .error_message = WIRE_NULL_STR};
                q->items[q->n_items++] =
                        (struct elect_item){.topic = name, .out = &out->partition_result.items[i]};
        }
        return 0;
}

static int reserve(struct elect_request *q, size_t topics, size_t items)
{
        q->items = arena_alloc(&q->arena, items + 1, sizeof(*q->items));
        q->res.replica_election_results.items =
                arena_alloc(&q->arena, topics + 1, sizeof(*q->res.replica_election_results.items));
        return q->items && q->res.replica_election_results.items ? 0 : -ENOMEM;
}

/* -E2BIG: more than there can be. */
static int take_named(const struct controller *c, struct elect_request *q)
{
        const struct elect_leaders_request *req = q->req;
        size_t n = 0;
        int r;

        for (int32_t i = 0; i < req->topic_partitions.n; i++)
                n += (size_t)MAX(req->topic_partitions.items[i].partitions.n, 0);
        if (names_too_many(c, n))
                return -E2BIG;
        r = reserve(q, (size_t)req->topic_partitions.n, n);
        for (int32_t i = 0; r == 0 && i < req->topic_partitions.n; i++) {
                const struct elect_leaders_request_topic_partitions *t = &req->topic_partitions.items[i];
                char *name = arena_strndup(&q->arena, t->topic.data, (size_t)MAX(t->topic.len, 0));

                r = name ? add_topic(q, name, t->partitions.items, MAX(t->partitions.n, 0)) : -ENOMEM;
        }
        return r;
}

/* As in Kafka, those that need nothing are not listed when all are asked for. */
static int take_all(struct controller *c, struct elect_request *q)
{
        size_t cursor = 0;
        void *v;
        int r;

        r = reserve(q, map_count(c->ctx.topics), c->ctx.n_partitions);
        while (r == 0 && map_next(c->ctx.topics, &cursor, NULL, NULL, &v)) {
                const struct ctx_topic *t = v;
                char *name = arena_strndup(&q->arena, t->name, strlen(t->name));
                int32_t *numbers = arena_alloc(&q->arena, (size_t)t->n_partitions + 1, sizeof(*numbers)),
                        n = 0;

                if (!name || !numbers)
                        return -ENOMEM;
                for (int32_t i = 0; i < t->n_partitions && !t->deleting; i++)
                        if (t->partitions[i] && needed(c, t->partitions[i], q->req->election_type))
                                numbers[n++] = i;
                if (n > 0)
                        r = add_topic(q, name, numbers, n);
        }
        return r;
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct elect_request *q = container_of(call, struct elect_request, call);
        int type = q->req->election_type, r = 0;

        if (q->req->topic_partitions.n >= 0)
                r = take_named(c, q);
        else if (active && type >= 0 && type < N_TYPES)
                r = take_all(c, q);
        q->res.error_code = !active                         ? KAFKA_NOT_CONTROLLER
                            : r == -E2BIG                   ? KAFKA_INVALID_REQUEST
                            : r < 0                         ? KAFKA_UNKNOWN_SERVER_ERROR
                            : requests_crowded(c)           ? KAFKA_REQUEST_TIMED_OUT
                            : (type < 0 || type >= N_TYPES) ? KAFKA_INVALID_REQUEST
                                                            : KAFKA_NONE;
        if (q->res.error_code != KAFKA_NONE) {
                /* Version 0 has no error of its own: each partition says it. */
                for (size_t i = 0; i < q->n_items; i++)
                        set_result(&q->items[i], q->res.error_code, NULL);
                request_answer(q);
                return;
        }
        q->deadline_ms = requests_deadline(c, q->req->timeout_ms);
        requests_wait_begin(c, &c->elections, &q->node);
        for (size_t i = 0; i < q->n_items; i++)
                begin_item(c, &q->items[i], type);
        ctl_progress(c);
}

void controller_elect_leaders(struct controller *c, const struct elect_leaders_request *req,
                              controller_elect_leaders_fn fn, void *userdata)
{
        struct elect_leaders_response oom = {.error_code = KAFKA_UNKNOWN_SERVER_ERROR};
        struct elect_request *q = calloc(1, sizeof(*q));

        if (!q) {
                fn(&oom, userdata);
                return;
        }
        list_init(&q->node);
        arena_init(&q->arena, 0);
        q->req = req;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run);
}

/* --- the old tool's znode --- */

static struct ctx_partition *partition_of(struct controller *c, const struct znode_partition *item)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, item->topic);

        return t && !t->deleting ? ctx_topic_partition(t, item->partition) : NULL;
}

/* What the tool asks for is marked at once; the node goes when all of it has been decided, one way or the
 * other (R56: who is not in sync stays a follower; run it again later). KAFKA-840: also after an election. */
void elections_take_znode(struct controller *c)
{
        const struct znode_partition_list *l = &c->elections_znode.list;

        for (size_t i = 0; i < l->n; i++) {
                struct ctx_partition *p = partition_of(c, &l->items[i]);

                if (!p) {
                        slog_warning("preferred-election-unknown",
                                     "a preferred leader was asked for in a partition that does not exist",
                                     SL_STR("topic", l->items[i].topic),
                                     SL_INT("partition", l->items[i].partition));
                } else if (needed(c, p, TYPE_PREFERRED) && preferred_fits(c, p)) {
                        p->prefer = true;
                        writer_mark(c, p, WRITER_NORMAL);
                } else if (needed(c, p, TYPE_PREFERRED)) {
                        slog_warning(
                                "preferred-election-refused",
                                "a preferred replica cannot lead now: it is not alive and in sync, or drains",
                                SL_STR("topic", p->topic->name), SL_INT("partition", p->number),
                                SL_INT("replica", p->replicas[0]));
                }
        }
        slog_notice("preferred-election", "a tool asked for preferred leaders", SL_INT("partitions", l->n));
        ctl_progress(c);
}

static void progress_znode(struct controller *c)
{
        struct tool_znode *z = &c->elections_znode;

        if (!z->pending || z->writing)
                return;
        for (size_t i = 0; i < z->list.n; i++) {
                const struct ctx_partition *p = partition_of(c, &z->list.items[i]);

                if (p && undecided(p))
                        return;
        }
        znode_partitions_done(&z->list);
        z->list = (struct znode_partition_list){0};
        tool_znode_write(c, WATCH_ELECTIONS);
}

void elections_on_znode(struct controller *c)
{
        tool_znode_read(c, WATCH_ELECTIONS);
}

void elections_progress(struct controller *c)
{
        progress_znode(c);
        list_for_each_safe (it, tmp, &c->elections)
                progress_request(c, list_entry(it, struct elect_request, node));
}
