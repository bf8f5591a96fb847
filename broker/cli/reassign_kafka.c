#include "cli/reassign_kafka.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/partition_choice.h"
#include "wire/alter_partition_reassignments.h"
#include "wire/error.h"
#include "wire/list_partition_reassignments.h"

#define ALTER_REASSIGNMENTS 45
#define ALTER_MAX_VERSION   1
#define LIST_REASSIGNMENTS  46
#define LIST_MAX_VERSION    0

static int refused(struct cluster *c, int16_t error, struct wire_str message)
{
        (void)snprintf(c->error, sizeof(c->error), "the controller refuses: %s%s%.*s",
                       kafka_error_name(error), message.len > 0 ? ": " : "", (int)MAX(message.len, 0),
                       message.len > 0 ? message.data : "");
        return -EPROTO;
}

/* --- alter --- */

static bool alter_moved(const void *response)
{
        return ((const struct alter_partition_reassignments_response *)response)->error_code ==
               KAFKA_NOT_CONTROLLER;
}

static int fill_topic(struct arena *a, const struct znode_partition *items, size_t n, bool cancel,
                      struct alter_partition_reassignments_request_topic *t)
{
        t->name = wire_str(items[0].topic);
        t->partitions.items = WIRE_NEW(a, alter_partition_reassignments_request_partition, n);
        if (!t->partitions.items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                struct alter_partition_reassignments_request_partition *p =
                        &t->partitions.items[t->partitions.n++];

                p->partition_index = items[i].partition;
                if (cancel)
                        continue; /* null replicas, the default */
                p->replicas.items = items[i].replicas;
                p->replicas.n = (int32_t)items[i].n_replicas;
        }
        return 0;
}

static int take_result(struct cluster *c, const struct znode_partition_list *l, const char *topic,
                       const struct alter_partition_reassignments_response_partition *p,
                       struct reassign_result *ret)
{
        const struct znode_partition *found = partitions_find(l, topic, p->partition_index);
        struct reassign_result *out = found ? &ret[found - l->items] : NULL;

        if (!out)
                return 0; /* not asked for */
        out->error = p->error_code;
        if (p->error_message.len > 0) {
                out->message = arena_strndup(&c->arena, p->error_message.data, (size_t)p->error_message.len);
                return out->message ? 0 : -ENOMEM;
        }
        return 0;
}

static int take_results(struct cluster *c, const struct znode_partition_list *l,
                        const struct alter_partition_reassignments_response *res, struct reassign_result *ret)
{
        int r = 0;

        if (res->error_code != KAFKA_NONE)
                return refused(c, res->error_code, res->error_message);
        for (size_t i = 0; i < l->n; i++) /* until its answer is found */
                ret[i] = (struct reassign_result){.error = KAFKA_UNKNOWN_SERVER_ERROR,
                                                  .message = "the controller did not answer for it"};
        for (int32_t i = 0; r == 0 && i < res->responses.n; i++) {
                const struct alter_partition_reassignments_response_topic *t = &res->responses.items[i];
                char *topic = arena_strndup(&c->arena, t->name.data, (size_t)MAX(t->name.len, 0));

                r = topic ? 0 : -ENOMEM;
                for (int32_t k = 0; r == 0 && k < t->partitions.n; k++)
                        r = take_result(c, l, topic, &t->partitions.items[k], ret);
        }
        return r;
}

int reassign_kafka_alter(struct cluster *c, const struct znode_partition_list *l, bool cancel,
                         struct reassign_result *ret)
{
        const struct wire_api *api = wire_api_find(ALTER_REASSIGNMENTS);
        struct alter_partition_reassignments_request req;
        void *response;
        int r = 0;

        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)MIN(c->o->timeout_ms, (int64_t)INT32_MAX);
        req.topics.items = arena_alloc(&c->arena, l->n + 1, sizeof(*req.topics.items));
        if (!req.topics.items)
                return -ENOMEM;
        for (size_t i = 0, run; r == 0 && i < l->n; i += run) {
                run = partitions_run(l, i);
                r = fill_topic(&c->arena, &l->items[i], run, cancel, &req.topics.items[req.topics.n++]);
        }
        if (r == 0)
                r = kafka_admin_ask_controller(&c->kafka, api, ALTER_MAX_VERSION, &req, alter_moved,
                                               &response);
        return r < 0 ? r : take_results(c, l, response, ret);
}

/* --- list --- */

static bool list_moved(const void *response)
{
        return ((const struct list_partition_reassignments_response *)response)->error_code ==
               KAFKA_NOT_CONTROLLER;
}

static size_t count(const struct list_partition_reassignments_response *res)
{
        size_t n = 0;

        for (int32_t i = 0; i < res->topics.n; i++)
                n += (size_t)MAX(res->topics.items[i].partitions.n, 0);
        return n;
}

static int take_list(const struct list_partition_reassignments_response *res, struct znode_partition_list *l)
{
        l->items = calloc(count(res) + 1, sizeof(*l->items));
        if (!l->items)
                return -ENOMEM;
        for (int32_t i = 0; i < res->topics.n; i++)
                for (int32_t k = 0; k < res->topics.items[i].partitions.n; k++) {
                        struct wire_str name = res->topics.items[i].name;

                        l->items[l->n] = (struct znode_partition){
                                .topic = strndup(name.data, (size_t)MAX(name.len, 0)),
                                .partition = res->topics.items[i].partitions.items[k].partition_index,
                        };
                        if (!l->items[l->n].topic)
                                return -ENOMEM;
                        l->n++;
                }
        return 0;
}

static int ask_list(struct cluster *c, const struct list_partition_reassignments_response **ret)
{
        const struct wire_api *api = wire_api_find(LIST_REASSIGNMENTS);
        const struct list_partition_reassignments_response *res;
        struct list_partition_reassignments_request req;
        void *response;
        int r;

        wire_init(api->request, &req); /* null topics, the default: all of them */
        req.timeout_ms = (int32_t)MIN(c->o->timeout_ms, (int64_t)INT32_MAX);
        r = kafka_admin_ask_controller(&c->kafka, api, LIST_MAX_VERSION, &req, list_moved, &response);
        if (r < 0)
                return r;
        res = response;
        if (res->error_code != KAFKA_NONE)
                return refused(c, res->error_code, res->error_message);
        *ret = res;
        return 0;
}

int reassign_kafka_list(struct cluster *c, struct znode_partition_list *ret)
{
        const struct list_partition_reassignments_response *res;
        struct znode_partition_list l = {0};
        int r;

        r = ask_list(c, &res);
        if (r < 0)
                return r;
        r = take_list(res, &l);
        partitions_sort(&l);
        if (r < 0)
                znode_partitions_done(&l);
        else
                *ret = l;
        return r;
}

static int by_topic(const void *a, const void *b)
{
        const struct reassign_moving *x = a, *y = b;
        int c = strcmp(x->topic, y->topic);

        return c ? c : (x->partition > y->partition) - (x->partition < y->partition);
}

int reassign_kafka_moving(struct cluster *c, struct reassign_moving **ret, size_t *ret_n)
{
        const struct list_partition_reassignments_response *res;
        struct reassign_moving *all;
        size_t n = 0;
        int r;

        r = ask_list(c, &res);
        if (r < 0)
                return r;
        all = arena_alloc(&c->arena, count(res) + 1, sizeof(*all));
        if (!all)
                return -ENOMEM;
        for (int32_t i = 0; i < res->topics.n; i++) {
                const struct list_partition_reassignments_response_topic *t = &res->topics.items[i];
                const char *topic = arena_strndup(&c->arena, t->name.data, (size_t)MAX(t->name.len, 0));

                if (!topic)
                        return -ENOMEM;
                for (int32_t k = 0; k < t->partitions.n; k++)
                        all[n++] = (struct reassign_moving){
                                .topic = topic,
                                .partition = t->partitions.items[k].partition_index,
                                .replicas = t->partitions.items[k].replicas.items,
                                .adding = t->partitions.items[k].adding_replicas.items,
                                .n_replicas = (size_t)MAX(t->partitions.items[k].replicas.n, 0),
                                .n_adding = (size_t)MAX(t->partitions.items[k].adding_replicas.n, 0),
                        };
        }
        qsort(all, n, sizeof(*all), by_topic);
        *ret = all;
        *ret_n = n;
        return 0;
}
