/* CreatePartitions (R59, §1.7): validate, place, write the topic's znode, then wait until the brokers know
 * the new partitions, which come to life as those of a new topic do. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/replica_assignment.h"
#include "base/slog.h"
#include "controller/assignment_core.h"
#include "controller/topics_internal.h"
#include "wire/create_partitions.h"
#include "wire/error.h"

#define MAX_PARTITIONS PARTITIONS_MAX_PER_REQUEST /* a topic */
#define PATIENCE_MS    5000 /* then a broker that does not acknowledge is not waited for any longer */

enum grow_state { GROW_TO_WRITE, GROW_WRITING, GROW_STATES, GROW_TELLING, GROW_DONE };

struct grow_request;
struct grow_item {
        struct grow_request *q;
        const struct create_partitions_request_topic *in;
        struct create_partitions_response_result *out;
        enum grow_state state;
        bool uncertain; /* a write of ours may have been applied */
        bool duplicate; /* another item of the request has its name */
        int32_t had;    /* partitions before the first attempt */
        char *topic;
        struct sender_mark *marks;
        size_t n_marks;
        int64_t patient_until_ms;
};

struct grow_request {
        struct ctl_call call;
        struct list node; /* controller->growths */
        const struct create_partitions_request *req;
        controller_create_partitions_fn fn;
        void *userdata;
        struct arena arena;
        struct create_partitions_response res;
        struct grow_item *items;
        int32_t n_items, open;
        int64_t deadline_ms;
        int64_t n_partitions; /* that its items want so far */
};

static void request_answer(struct grow_request *q)
{
        requests_wait_end(q->call.c, &q->node);
        q->fn(&q->res, q->userdata);
        for (int32_t i = 0; i < q->n_items; i++)
                free(q->items[i].marks);
        arena_done(&q->arena);
        free(q);
}

static void close_one(struct grow_request *q)
{
        if (--q->open == 0)
                request_answer(q);
}

/* May end the request. */
static void item_done(struct grow_item *it, int16_t code, const char *sentence)
{
        if (it->state == GROW_DONE)
                return;
        it->state = GROW_DONE;
        it->out->error_code = code;
        it->out->error_message =
                wire_str(sentence ? arena_strndup(&it->q->arena, sentence, strlen(sentence)) : NULL);
        close_one(it->q);
}

/* --- validation --- */

static const int16_t fault_codes[N_ASSIGNMENT_FAULTS] = {
        [ASSIGNMENT_BAD_PARTITIONS] = KAFKA_INVALID_PARTITIONS,
        [ASSIGNMENT_BAD_FACTOR] = KAFKA_INVALID_REPLICATION_FACTOR,
        [ASSIGNMENT_BAD_REPLICAS] = KAFKA_INVALID_REPLICA_ASSIGNMENT,
        [ASSIGNMENT_BAD_NAME] = KAFKA_INVALID_TOPIC_EXCEPTION,
};

/* As in topics_check.c: a request of some bytes must not ask for millions, nor many requests together. */
static int16_t check_amount(const struct controller *c, const struct grow_item *it, int32_t more,
                            char error[ASSIGNMENT_TEXT_SIZE])
{
        if (it->q->n_partitions + more > PARTITIONS_MAX_PER_REQUEST) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "excessively large number of partitions in one request: at most %d",
                               PARTITIONS_MAX_PER_REQUEST);
                return KAFKA_POLICY_VIOLATION;
        }
        if (c->partitions_waiting + more > PARTITIONS_MAX_WAITING) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "too many partitions are being created; ask again");
                return KAFKA_REQUEST_TIMED_OUT;
        }
        return KAFKA_NONE;
}

static int16_t check_topic(struct controller *c, const struct grow_item *it, char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, it->topic);

        if (!t || t->deleting || t->n_partitions == 0 || !t->partitions[0]) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "The topic '%s' does not exist.", it->topic);
                return KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
        }
        for (int32_t i = 0; i < t->n_partitions; i++)
                if (t->partitions[i] && (t->partitions[i]->reassigning || t->partitions[i]->want)) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                                       "A partition reassignment is in progress for the topic '%s'.",
                                       it->topic);
                        return KAFKA_REASSIGNMENT_IN_PROGRESS;
                }
        if (it->in->count > t->n_partitions && it->in->count <= MAX_PARTITIONS)
                return check_amount(c, it, it->in->count - t->n_partitions, error);
        if (it->in->count == t->n_partitions)
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "Topic already has %d partitions.",
                               (int)t->n_partitions);
        else if (it->in->count > MAX_PARTITIONS)
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "number of partitions must be at most %d",
                               MAX_PARTITIONS);
        else
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "Topic currently has %d partitions, which is higher than the requested %d.",
                               (int)t->n_partitions, (int)it->in->count);
        return KAFKA_INVALID_PARTITIONS;
}

static void add_change(struct topic_rewrite *rw, int32_t partition, const int32_t *ids, size_t n)
{
        struct topic_change *ch = &rw->changes[rw->n++];

        ch->partition = partition;
        for (size_t i = 0; i < n; i++)
                ch->to[ch->n++] = (struct ctx_assigned){.id = ids[i]};
}

static int16_t take_manual(struct controller *c, const struct grow_item *it, const struct ctx_topic *t,
                           struct topic_rewrite *rw, char error[ASSIGNMENT_TEXT_SIZE])
{
        int32_t n = it->in->assignments.n, more = it->in->count - t->n_partitions, n_brokers = 0;
        cleanup_with(freep) int32_t *brokers = ctx_alive_ids(&c->ctx, true, &n_brokers);
        enum assignment_fault fault;

        if (n != more) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "Increasing the number of partitions by %d but %d assignments provided.",
                               (int)more, (int)n);
                return KAFKA_INVALID_REPLICA_ASSIGNMENT;
        }
        if (!brokers)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; i < n; i++) {
                const struct create_partitions_request_assignment *a = &it->in->assignments.items[i];

                if (assignment_check(t->n_partitions + i, a->broker_ids.items, a->broker_ids.n,
                                     t->partitions[0]->n_slots, brokers, n_brokers, error, &fault) < 0)
                        return fault_codes[fault];
                add_change(rw, t->n_partitions + i, a->broker_ids.items, (size_t)a->broker_ids.n);
        }
        return KAFKA_NONE;
}

/* Goes on from the first partition's place, as the old tool did; it took a broker's id where its index in the
 * list is meant (§1.7). Brokers that drain get nothing new while there are enough others. */
static int16_t place(struct controller *c, const struct grow_item *it, const struct ctx_topic *t,
                     struct topic_rewrite *rw, char error[ASSIGNMENT_TEXT_SIZE])
{
        struct assignment_request r = {.n_partitions = it->in->count - t->n_partitions,
                                       .replication_factor = t->partitions[0]->n_slots,
                                       .start_partition = t->n_partitions};
        cleanup_with(freep) int32_t *brokers = ctx_alive_ids(&c->ctx, false, &r.n_brokers);
        cleanup_with(freep) int32_t *ids = NULL;
        enum assignment_fault fault;

        if (brokers && r.n_brokers < r.replication_factor) {
                free(brokers);
                brokers = ctx_alive_ids(&c->ctx, true, &r.n_brokers);
        }
        ids = calloc((size_t)r.n_partitions * (size_t)r.replication_factor, sizeof(*ids));
        if (!brokers || !ids)
                return KAFKA_UNKNOWN_SERVER_ERROR;
        r.brokers = brokers;
        for (int32_t i = 0; i < r.n_brokers; i++)
                if (brokers[i] == t->partitions[0]->replicas[0])
                        r.start_index = r.start_shift = (uint32_t)i;
        if (assignment_make(&r, ids, error, &fault) < 0)
                return fault_codes[fault];
        for (int32_t i = 0; i < r.n_partitions; i++)
                add_change(rw, t->n_partitions + i, ids + (size_t)i * (size_t)r.replication_factor,
                           (size_t)r.replication_factor);
        return KAFKA_NONE;
}

/* --- writing --- */

/* The request may have been answered meanwhile; its items are found again by the topic. */
static void on_rewritten(struct controller *c, struct ctx_topic *t, const struct topic_rewrite *rw, int r)
{
        c->partitions_waiting -= (int64_t)rw->n;
        list_for_each_safe (node, tmp, &c->growths) {
                struct grow_request *q = list_entry(node, struct grow_request, node);

                q->open++;
                for (int32_t i = 0; i < q->n_items; i++) {
                        struct grow_item *it = &q->items[i];

                        if (it->state != GROW_WRITING || strcmp(it->topic, rw->topic) != 0)
                                continue;
                        if (r == 0)
                                it->state = GROW_STATES;
                        else if (r == -EAGAIN && t)
                                it->state = GROW_TO_WRITE;
                        else
                                item_done(it,
                                          r == -E2BIG ? KAFKA_INVALID_PARTITIONS : KAFKA_UNKNOWN_SERVER_ERROR,
                                          r == -E2BIG ? "the assignment is too large for one znode"
                                                      : "ZooKeeper refused it");
                        it->uncertain = r == -EAGAIN;
                }
                close_one(q);
        }
        if (r == 0)
                slog_notice("partitions-created", "partitions were added to a topic",
                            SL_STR("topic", rw->topic), SL_INT("added", rw->n),
                            SL_INT("partitions", t->n_partitions));
}

static bool is_unfinished_rewrite(const struct ctx_topic *t)
{
        return t && (t->rewriting || t->reading);
}

static void rewrite_free(struct topic_rewrite *rw)
{
        free(rw->topic);
        free(rw->changes);
        free(rw);
}

static void try_item(struct controller *c, struct grow_item *it)
{
        struct ctx_topic *t = ctx_topic(&c->ctx, it->topic);
        char error[ASSIGNMENT_TEXT_SIZE] = "";
        struct topic_rewrite *rw;
        int16_t code;

        if (is_unfinished_rewrite(t))
                return; /* what is known of it now may be old */
        if (it->uncertain && t && t->n_partitions == it->in->count) {
                it->state = GROW_STATES; /* the write whose reply was lost */
                return;
        }
        code = check_topic(c, it, error);
        if (code != KAFKA_NONE) {
                item_done(it, code, error);
                return;
        }
        rw = topic_rewrite_new(t, (size_t)(it->in->count - t->n_partitions));
        if (!rw) {
                item_done(it, KAFKA_UNKNOWN_SERVER_ERROR, NULL);
                return;
        }
        code = it->in->assignments.n >= 0 ? take_manual(c, it, t, rw, error) : place(c, it, t, rw, error);
        if (code == KAFKA_NONE && !it->q->req->validate_only && ctl_lease(c)) {
                rw->done = on_rewritten;
                c->partitions_waiting += (int64_t)rw->n;
                it->q->n_partitions += (int64_t)rw->n;
                it->state = GROW_WRITING;
                topic_rewrite(c, t, rw);
                return;
        }
        rewrite_free(rw);
        if (code != KAFKA_NONE || it->q->req->validate_only)
                item_done(it, code, error[0] ? error : NULL);
        else
                item_done(it, KAFKA_NOT_CONTROLLER, "ZooKeeper does not answer; nothing can be written");
}

/* --- waiting --- */

static bool have_states(const struct ctx_topic *t)
{
        for (int32_t i = 0; i < t->n_partitions; i++) {
                const struct ctx_partition *p = t->partitions[i];
                bool alive = false;

                for (uint16_t k = 0; p && k < p->n_slots; k++)
                        alive = alive || p->slots[k].broker->alive;
                if (p && !p->has_state && alive)
                        return false;
        }
        return true;
}

static void progress_item(struct controller *c, struct grow_item *it)
{
        const struct ctx_topic *t = ctx_topic(&c->ctx, it->topic);
        int64_t now = loop_now_ms(c->loop);

        if (it->state == GROW_TO_WRITE)
                try_item(c, it);
        if (it->state == GROW_DONE)
                return;
        if ((it->state == GROW_STATES || it->state == GROW_TELLING) && (!t || t->deleting)) {
                item_done(it, KAFKA_UNKNOWN_TOPIC_OR_PARTITION, "the topic was deleted meanwhile");
                return;
        }
        if (it->state == GROW_STATES && have_states(t) &&
            sender_marks_take(c, &it->marks, &it->n_marks) == 0) {
                it->state = GROW_TELLING;
                it->patient_until_ms = now + PATIENCE_MS;
        }
        if (it->state == GROW_TELLING &&
            (sender_marks_passed(c, it->marks, it->n_marks) || now >= it->patient_until_ms))
                item_done(it, KAFKA_NONE, NULL);
        else if (now >= it->q->deadline_ms)
                item_done(it, KAFKA_REQUEST_TIMED_OUT,
                          it->state >= GROW_STATES ? "the partitions exist; not all of them have a leader yet"
                                                   : "it could not be written in time");
}

void growths_progress(struct controller *c)
{
        list_for_each_safe (node, tmp, &c->growths) {
                struct grow_request *q = list_entry(node, struct grow_request, node);

                q->open++; /* it must not go while its items are walked */
                for (int32_t i = 0; i < q->n_items; i++)
                        progress_item(c, &q->items[i]);
                close_one(q);
        }
}

void growths_forget(struct controller *c)
{
        while (!list_empty(&c->growths)) {
                struct grow_request *q = list_entry(c->growths.next, struct grow_request, node);

                for (int32_t i = 0; i < q->n_items; i++)
                        if (q->items[i].state != GROW_DONE)
                                q->items[i].out->error_code = KAFKA_NOT_CONTROLLER;
                request_answer(q);
        }
}

/* --- beginning --- */

/* KAFKA_NONE: its topics may be looked at. */
static int16_t admit(const struct controller *c, int32_t n, bool active)
{
        if (!active)
                return KAFKA_NOT_CONTROLLER;
        if (n > TOPICS_MAX_PER_REQUEST)
                return KAFKA_INVALID_REQUEST;
        return requests_crowded(c) ? KAFKA_REQUEST_TIMED_OUT : KAFKA_NONE;
}

/* Each that has its name with another: all of them are refused. -ENOMEM. */
static int mark_duplicates(struct grow_request *q)
{
        cleanup_with(map_freep) struct map *names = map_new();

        if (!names)
                return -ENOMEM;
        for (int32_t i = 0; i < q->n_items; i++) {
                struct grow_item *it = &q->items[i], *first;
                int r = it->topic ? map_put_str(names, it->topic, it) : 0;

                if (r == -ENOMEM)
                        return r;
                if (r == 0)
                        continue;
                first = map_get_str(names, it->topic);
                first->duplicate = it->duplicate = true;
        }
        return 0;
}

/* A name is text: what stands behind a NUL would be overlooked. */
static char *name_of(struct arena *a, struct wire_str s)
{
        size_t n = (size_t)MAX(s.len, 0);

        return arena_strndup(a, s.data, n > 0 && memchr(s.data, 0, n) ? 0 : n);
}

static void run(struct controller *c, struct ctl_call *call, bool active)
{
        struct grow_request *q = container_of(call, struct grow_request, call);
        int32_t n = MAX(q->req->topics.n, 0);
        int16_t refused = admit(c, n, active);

        q->items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->items));
        q->res.results.items = arena_alloc(&q->arena, (size_t)n + 1, sizeof(*q->res.results.items));
        if (!q->items || !q->res.results.items) {
                request_answer(q);
                return;
        }
        if (refused == KAFKA_NONE) {
                q->deadline_ms = requests_deadline(c, q->req->timeout_ms);
                requests_wait_begin(c, &c->growths, &q->node);
        }
        q->open = n + 1;
        q->n_items = q->res.results.n = n;
        for (int32_t i = 0; i < n; i++) {
                const struct create_partitions_request_topic *in = &q->req->topics.items[i];

                q->res.results.items[i] = (struct create_partitions_response_result){
                        .name = in->name, .error_message = WIRE_NULL_STR};
                q->items[i] = (struct grow_item){.q = q,
                                                 .in = in,
                                                 .out = &q->res.results.items[i],
                                                 .topic = name_of(&q->arena, in->name)};
        }
        if (refused == KAFKA_NONE && mark_duplicates(q) < 0)
                refused = KAFKA_UNKNOWN_SERVER_ERROR;
        for (int32_t i = 0; i < n; i++) {
                if (refused != KAFKA_NONE)
                        item_done(&q->items[i], refused, NULL);
                else if (!q->items[i].topic)
                        item_done(&q->items[i], KAFKA_UNKNOWN_SERVER_ERROR, NULL);
                else if (q->items[i].duplicate)
                        item_done(&q->items[i], KAFKA_INVALID_REQUEST, "Duplicate topic in request.");
                else
                        try_item(c, &q->items[i]);
        }
        if (active)
                ctl_progress(c);
        close_one(q);
}

void controller_create_partitions(struct controller *c, const struct create_partitions_request *req,
                                  controller_create_partitions_fn fn, void *userdata)
{
        struct grow_request *q = calloc(1, sizeof(*q));
        struct create_partitions_response nothing = {0};

        if (!q) {
                fn(&nothing, userdata);
                return;
        }
        list_init(&q->node);
        arena_init(&q->arena, 0);
        q->req = req;
        q->fn = fn;
        q->userdata = userdata;
        ctl_post(c, &q->call, run);
}
