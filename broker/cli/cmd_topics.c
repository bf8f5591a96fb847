/* stepdown topics list | describe | create | delete (R57, R58). */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "cli/cli.h"
#include "cli/kafka_admin.h"
#include "cli/verbs.h"
#include "wire/create_topics.h"
#include "wire/delete_topics.h"
#include "wire/error.h"

struct topics_options {
        const char *bootstrap, *topic, *assignment, *config;
        int32_t partitions, replication_factor;
        int64_t timeout_ms;
        bool under_replicated, unavailable, json;
};

#define AT(m) offsetof(struct topics_options, m)

static const struct cli_option options[] = {
        {"bootstrap", CLI_STRING, AT(bootstrap), "HOST:PORT,…",
         "brokers to ask, tried in order (default: $STEPDOWN_BOOTSTRAP or 127.0.0.1:9092)", 0, 0},
        {"topic", CLI_STRING, AT(topic), "TOPIC", "the topic; list and describe: all topics without it", 0,
         0},
        {"under-replicated-partitions", CLI_FLAG, AT(under_replicated), NULL,
         "list only partitions with fewer replicas in sync than assigned", 0, 0},
        {"unavailable-partitions", CLI_FLAG, AT(unavailable), NULL,
         "list only partitions without a live leader; with the option above: either of the two", 0, 0},
        {"partitions", CLI_INT32, AT(partitions), "N",
         "create: number of partitions (default: the broker's num.partitions)", 1, 1000000},
        {"replication-factor", CLI_INT32, AT(replication_factor), "N",
         "create: replicas of a partition (default: the broker's default.replication.factor)", 1, 32767},
        {"replica-assignment-list", CLI_STRING, AT(assignment), "1:2,2:3",
         "create: broker ids of each partition's replicas, the preferred leader first", 0, 0},
        {"config", CLI_STRING, AT(config), "KEY=VALUE,…", "create: settings of the topic", 0, 0},
        {"timeout", CLI_DURATION_MS, AT(timeout_ms), "TIME", "how long to wait for an answer (default 30s)",
         0, 0},
        {"json", CLI_FLAG, AT(json), NULL, "list and describe: one JSON document", 0, 0},
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done"},
        {CLI_FAILED, "the cluster refused; the reason is on standard error"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no broker, or no controller, answered"},
        {0, NULL},
};

/* --- list and describe --- */

static bool is_live(const struct metadata_response *m, int32_t broker)
{
        for (int32_t i = 0; i < m->brokers.n; i++)
                if (m->brokers.items[i].node_id == broker)
                        return true;
        return false;
}

static bool is_wanted(const struct topics_options *o, const struct metadata_response *m,
                      const struct metadata_response_partition *p)
{
        bool under = p->isr_nodes.n < p->replica_nodes.n;
        bool unavailable = p->leader_id < 0 || !is_live(m, p->leader_id);

        if (!o->under_replicated && !o->unavailable)
                return true;
        return (o->under_replicated && under) || (o->unavailable && unavailable);
}

static void print_ids(const char *label, const int32_t *ids, int32_t n)
{
        printf("\t%s: ", label);
        for (int32_t i = 0; i < n; i++)
                printf("%s%d", i ? "," : "", ids[i]);
}

static void print_partition(const struct metadata_response_topic *t,
                            const struct metadata_response_partition *p)
{
        printf("topic: %.*s\tpartition: %d\tleader: ", (int)t->name.len, t->name.data, p->partition_index);
        if (p->leader_id < 0)
                printf("none");
        else
                printf("%d", p->leader_id);
        print_ids("replicas", p->replica_nodes.items, p->replica_nodes.n);
        print_ids("isr", p->isr_nodes.items, p->isr_nodes.n);
        putchar('\n');
}

static json_t *ids_json(const int32_t *ids, int32_t n)
{
        json_t *a = json_array();

        for (int32_t i = 0; i < n; i++)
                (void)json_array_append_new(a, json_integer(ids[i]));
        return a;
}

static json_t *partition_json(const struct metadata_response_partition *p)
{
        json_t *o = json_pack("{s:i, s:i, s:i}", "partition", (int)p->partition_index, "leader",
                              (int)p->leader_id, "leader_epoch", (int)p->leader_epoch);

        (void)json_object_set_new(o, "replicas", ids_json(p->replica_nodes.items, p->replica_nodes.n));
        (void)json_object_set_new(o, "isr", ids_json(p->isr_nodes.items, p->isr_nodes.n));
        return o;
}

static json_t *topic_json(const struct topics_options *o, const struct metadata_response *m,
                          const struct metadata_response_topic *t)
{
        json_t *list = json_array(), *topic;
        char id[UUID_TEXT_SIZE];

        uuid_format(&t->topic_id, id);
        for (int32_t i = 0; i < t->partitions.n; i++)
                if (is_wanted(o, m, &t->partitions.items[i]))
                        (void)json_array_append_new(list, partition_json(&t->partitions.items[i]));
        topic = json_pack("{s:o, s:s}", "topic", json_stringn(t->name.data, (size_t)t->name.len), "id", id);
        (void)json_object_set_new(topic, "partitions", list);
        return topic;
}

static void print_json(const struct topics_options *o, const struct metadata_response *m)
{
        json_t *list = json_array(), *all;

        for (int32_t i = 0; i < m->topics.n; i++)
                (void)json_array_append_new(list, topic_json(o, m, &m->topics.items[i]));
        all = json_pack("{s:o}", "topics", list);
        (void)json_dumpf(all, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
        putchar('\n');
        json_decref(all);
}

static void print_topic(const struct topics_options *o, const struct metadata_response *m,
                        const struct metadata_response_topic *t, bool heading)
{
        char id[UUID_TEXT_SIZE];

        uuid_format(&t->topic_id, id);
        if (heading)
                printf("topic: %.*s\tid: %s\tpartitions: %d\treplication factor: %d\n", (int)t->name.len,
                       t->name.data, id, t->partitions.n,
                       t->partitions.n > 0 ? t->partitions.items[0].replica_nodes.n : 0);
        for (int32_t i = 0; i < t->partitions.n; i++)
                if (is_wanted(o, m, &t->partitions.items[i]))
                        print_partition(t, &t->partitions.items[i]);
}

static int by_partition(const void *a, const void *b)
{
        const struct metadata_response_partition *x = a, *y = b;

        return (x->partition_index > y->partition_index) - (x->partition_index < y->partition_index);
}

static int by_name(const void *a, const void *b)
{
        const struct metadata_response_topic *x = a, *y = b;
        int c = memcmp(x->name.data, y->name.data, (size_t)MIN(x->name.len, y->name.len));

        return c ? c : x->name.len - y->name.len;
}

static void sort_topics(struct metadata_response *m)
{
        qsort(m->topics.items, (size_t)MAX(m->topics.n, 0), sizeof(*m->topics.items), by_name);
        for (int32_t i = 0; i < m->topics.n; i++)
                qsort(m->topics.items[i].partitions.items, (size_t)MAX(m->topics.items[i].partitions.n, 0),
                      sizeof(*m->topics.items[i].partitions.items), by_partition);
}

static int fail(const struct kafka_admin *k, int r)
{
        fprintf(stderr, "stepdown topics: %s\n", k->error[0] ? k->error : strerror(-r));
        return r == -EINVAL ? CLI_USAGE : CLI_UNAVAILABLE;
}

static int run_list(struct kafka_admin *k, const struct topics_options *o, bool heading)
{
        struct metadata_response *m;
        int r;

        r = kafka_admin_metadata(k, o->topic, &m);
        if (r < 0)
                return fail(k, r);
        if (o->topic && m->topics.n == 1 &&
            m->topics.items[0].error_code == KAFKA_UNKNOWN_TOPIC_OR_PARTITION) {
                fprintf(stderr, "stepdown topics: topic %s doesn't exist!\n", o->topic);
                return CLI_FAILED;
        }
        sort_topics(m);
        if (o->json) {
                print_json(o, m);
                return CLI_OK;
        }
        if (m->topics.n == 0)
                puts("no topics exist!");
        for (int32_t i = 0; i < m->topics.n; i++)
                print_topic(o, m, &m->topics.items[i], heading);
        return CLI_OK;
}

/* --- create --- */

static size_t count(const char *s, char c)
{
        size_t n = 0;

        for (; *s; s++)
                n += *s == c;
        return n;
}

static int parse_replicas(struct arena *a, const char *text, size_t len,
                          struct create_topics_request_assignment *ret)
{
        char *list = arena_strndup(a, text, len), *rest = list, *one;

        if (!list)
                return -ENOMEM;
        ret->broker_ids.items = arena_alloc(a, count(list, ':') + 1, sizeof(int32_t));
        if (!ret->broker_ids.items)
                return -ENOMEM;
        while ((one = strsep(&rest, ":")))
                if (parse_int32(one, 0, INT32_MAX, &ret->broker_ids.items[ret->broker_ids.n++]) < 0)
                        return -EINVAL;
        return 0;
}

static int parse_assignment(struct arena *a, const char *text, struct create_topics_request_topic *t)
{
        int r;

        t->assignments.items = arena_alloc(a, count(text, ',') + 1, sizeof(*t->assignments.items));
        if (!t->assignments.items)
                return -ENOMEM;
        for (const char *p = text; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
                struct create_topics_request_assignment *one = &t->assignments.items[t->assignments.n];

                one->partition_index = t->assignments.n++;
                r = parse_replicas(a, p, strcspn(p, ","), one);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int parse_config(struct arena *a, const char *text, struct create_topics_request_topic *t)
{
        char *list = arena_strndup(a, text, strlen(text)), *rest = list, *one;

        t->configs.items = arena_alloc(a, count(text, ',') + 1, sizeof(*t->configs.items));
        if (!list || !t->configs.items)
                return -ENOMEM;
        while ((one = strsep(&rest, ","))) {
                char *value = strchr(one, '=');

                if (!value)
                        return -EINVAL;
                *value++ = '\0';
                t->configs.items[t->configs.n++] = (struct create_topics_request_config){
                        .name = wire_str(one), .value = wire_str(value)};
        }
        return 0;
}

static int fill_topic(struct kafka_admin *k, const struct topics_options *o,
                      struct create_topics_request_topic *t)
{
        int r = 0;

        t->name = wire_str(o->topic);
        t->num_partitions = o->assignment || o->partitions == 0 ? -1 : o->partitions;
        t->replication_factor =
                (int16_t)(o->assignment || o->replication_factor == 0 ? -1 : o->replication_factor);
        if (o->assignment)
                r = parse_assignment(&k->arena, o->assignment, t);
        if (r == -EINVAL)
                fprintf(stderr,
                        "stepdown topics: --replica-assignment-list '%s' is not of the form 1:2,2:3\n",
                        o->assignment);
        if (r < 0 || !o->config)
                return r;
        r = parse_config(&k->arena, o->config, t);
        if (r == -EINVAL)
                fprintf(stderr, "stepdown topics: --config '%s' is not of the form KEY=VALUE,KEY=VALUE\n",
                        o->config);
        return r;
}

static bool create_moved(const void *response)
{
        const struct create_topics_response *res = response;

        return res->topics.n > 0 && res->topics.items[0].error_code == KAFKA_NOT_CONTROLLER;
}

static int report(const char *verb, const char *topic, int16_t error, struct wire_str why)
{
        if (error == KAFKA_NONE) {
                printf("%s of topic %s succeeded!\n", verb, topic);
                return CLI_OK;
        }
        fprintf(stderr, "stepdown topics: %s of topic %s failed because of %s%s%.*s\n", verb, topic,
                kafka_error_name(error), why.len > 0 ? ": " : "", (int)MAX(why.len, 0),
                why.data ? why.data : "");
        return CLI_FAILED;
}

static int run_create(struct kafka_admin *k, const struct topics_options *o)
{
        struct create_topics_request_topic topic = {0};
        const struct wire_api *api = wire_api_find(19);
        const struct create_topics_response *res;
        struct create_topics_request req;
        void *response;
        int r;

        r = fill_topic(k, o, &topic);
        if (r < 0)
                return r == -EINVAL ? CLI_USAGE : fail(k, r);
        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)o->timeout_ms;
        req.topics.items = &topic;
        req.topics.n = 1;
        r = kafka_admin_ask_controller(k, api, 7, &req, create_moved, &response);
        if (r < 0)
                return fail(k, r);
        res = response;
        if (res->topics.n != 1)
                return fail(k, -EBADMSG);
        return report("creation", o->topic, res->topics.items[0].error_code,
                      res->topics.items[0].error_message);
}

/* --- delete --- */

static bool delete_moved(const void *response)
{
        const struct delete_topics_response *res = response;

        return res->responses.n > 0 && res->responses.items[0].error_code == KAFKA_NOT_CONTROLLER;
}

static int run_delete(struct kafka_admin *k, const struct topics_options *o)
{
        struct wire_str name = wire_str(o->topic);
        const struct wire_api *api = wire_api_find(20);
        const struct delete_topics_response *res;
        struct delete_topics_request req;
        void *response;
        int r;

        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)o->timeout_ms;
        req.topic_names.items = &name;
        req.topic_names.n = 1;
        r = kafka_admin_ask_controller(k, api, 5, &req, delete_moved, &response);
        if (r < 0)
                return fail(k, r);
        res = response;
        if (res->responses.n != 1)
                return fail(k, -EBADMSG);
        return report("deletion", o->topic, res->responses.items[0].error_code,
                      res->responses.items[0].error_message);
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct topics_options o = {.timeout_ms = 30000};
        cleanup_with(kafka_admin_donep) struct kafka_admin k = {0};
        const char *what;
        int n = 0, r;

        kafka_admin_init(&k, NULL, o.timeout_ms);
        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        kafka_admin_init(&k, o.bootstrap, o.timeout_ms);
        what = n > 0 ? argv[1] : "";
        if (n == 2 && !o.topic)
                o.topic = argv[2];
        else if (n > 1) {
                fprintf(stderr, "stepdown topics: too many arguments; try 'stepdown topics --help'\n");
                return CLI_USAGE;
        }
        if (strcmp(what, "list") == 0 || strcmp(what, "describe") == 0)
                return run_list(&k, &o, what[0] == 'd');
        if (strcmp(what, "create") != 0 && strcmp(what, "delete") != 0) {
                fprintf(stderr, "stepdown topics: say list, describe, create or delete; try 'stepdown topics "
                                "--help'\n");
                return CLI_USAGE;
        }
        if (!o.topic) {
                fprintf(stderr, "stepdown topics: %s needs --topic\n", what);
                return CLI_USAGE;
        }
        return what[0] == 'c' ? run_create(&k, &o) : run_delete(&k, &o);
}

const struct cli_verb cli_verb_topics = {
        .name = "topics",
        .synopsis = "list|describe|create|delete [TOPIC] [OPTIONS]",
        .summary = "list, describe, create and delete topics",
        .details = "list prints a line a partition: topic, partition, leader, replicas, in-sync replicas.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
