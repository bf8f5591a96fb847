/* Shared by the requests that wait (topics.c, deletion.c, partitions.c, elections.c, reassign_api.c), and by
 * the senders: "has everybody been told what was queued by now?" */
#pragma once

#include "base/arena.h"
#include "base/replica_assignment.h"
#include "controller/controller_internal.h"
#include "wire/create_topics.h"

/* Requests that wait cost memory and time: each is looked at whenever anything progresses. */
#define TOPICS_MAX_PER_REQUEST 10000
#define TOPICS_MAX_WAITING     500 /* requests */
#define PARTITIONS_MAX_PER_REQUEST                                                                           \
        50000 /* a topic's as well; what its znode can carry is checked when written */
#define PARTITIONS_MAX_WAITING 200000          /* that are being created */
#define TOPICS_MAX_PATIENCE_MS (5 * 60 * 1000) /* whatever time-out a client asks for */

/* @node: of a request, which waits from now on, and until requests_wait_end(). */
static inline void requests_wait_begin(struct controller *c, struct list *waiting, struct list *node)
{
        list_push_back(waiting, node);
        c->n_waiting++;
}

static inline void requests_wait_end(struct controller *c, struct list *node)
{
        if (list_linked(node))
                c->n_waiting--;
        list_remove(node);
}

/* Until when: not for ever, because there is room for so many. */
static inline int64_t requests_deadline(const struct controller *c, int32_t timeout_ms)
{
        return loop_now_ms(c->loop) + MIN(MAX(timeout_ms, 0), TOPICS_MAX_PATIENCE_MS);
}

static inline bool requests_crowded(const struct controller *c)
{
        return c->n_waiting >= TOPICS_MAX_WAITING;
}

/* Each partition that a request names is looked at again and again: it may name those there are, and some by
 * mistake, not a million that nobody knows. */
static inline bool names_too_many(const struct controller *c, size_t n_partitions)
{
        return n_partitions > 2 * c->ctx.n_partitions + 1000;
}

struct sender_mark {
        int32_t broker_id;
        int64_t epoch;
        uint64_t lai, um;
};

/* What is queued for each live broker now. Caller frees *ret. -ENOMEM. */
int sender_marks_take(struct controller *c, struct sender_mark **ret, size_t *ret_n) must_check;
/* Has each of them, as far as it still lives, acknowledged that? */
bool sender_marks_passed(const struct controller *c, const struct sender_mark *marks, size_t n);

/* --- CreateTopics --- */

enum item_state { ITEM_WRITING, ITEM_STATES, ITEM_TELLING, ITEM_DONE };

struct create_request;
struct create_item {
        struct create_request *q;
        const struct create_topics_request_topic *in;
        struct create_topics_response_topic *out;
        enum item_state state;
        char *name;
        struct znode_topic topic; /* its arrays are in the request's arena */
        const char *topic_json, *config_json;
        int32_t min_isr;
        bool config_exists;
        int32_t config_version; /* when it exists */
        struct sender_mark *marks;
        size_t n_marks;
        int64_t patient_until_ms;
        bool claims;    /* controller->claimed has its name */
        bool duplicate; /* another item of the request has its name */
};

struct create_request {
        struct ctl_call call;
        struct list node; /* controller->creations */
        const struct create_topics_request *req;
        controller_create_topics_fn fn;
        void *userdata;
        struct arena arena;
        struct create_topics_response res;
        struct create_item *items;
        int32_t n_items, open; /* open: not done, and one for ourselves while beginning */
        int64_t deadline_ms;
        struct map *names;    /* of the request -> the first of its items with that name */
        int64_t n_partitions; /* that its items want so far */
};

/* Is what @it asks for valid? Then its topic, znodes and answer are filled in. A Kafka code, with a sentence
 * in
 * @error maybe. */
int16_t topics_check(struct controller *c, struct create_item *it, char error[ASSIGNMENT_TEXT_SIZE]);
/* The name is taken from here until topics_release(), although the topic is not in the context yet. -ENOMEM.
 */
int topics_claim(struct controller *c, struct create_item *it) must_check;
void topics_release(struct controller *c, struct create_item *it);
