/* stepdown topics list | describe | create | delete (R57, R58). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster.h"
#include "cli/json_out.h"
#include "cli/placement.h"
#include "cli/topics_list.h"
#include "cli/verbs.h"
#include "cli/zk_cluster.h"
#include "wire/create_topics.h"
#include "wire/delete_topics.h"
#include "wire/error.h"

#define CREATE_TOPICS 19
#define DELETE_TOPICS 20

struct topics_options {
        struct cluster_options where;
        const char *topic, *assignment, *config;
        int32_t partitions, replication_factor; /* 0: not given */
        bool under_replicated, unavailable;
};

#define AT(m) offsetof(struct topics_options, m)

static const struct cli_option options[] = {
        {"topic", CLI_STRING, AT(topic), "TOPIC", "the topic; list and describe: all topics without it", 0,
         0},
        {"under-replicated-partitions", CLI_FLAG, AT(under_replicated), NULL,
         "list only partitions with fewer replicas in sync than assigned", 0, 0},
        {"unavailable-partitions", CLI_FLAG, AT(unavailable), NULL,
         "list only partitions without a live leader; with the option above: either of the two", 0, 0},
        {"partitions", CLI_INT32, AT(partitions), "N",
         "create: number of partitions (default: the broker's num.partitions; with --zookeeper: 1)", 1,
         1000000},
        {"partition", CLI_INT32, AT(partitions), "N", NULL, 1, 1000000},
        {"replication-factor", CLI_INT32, AT(replication_factor), "N",
         "create: replicas of a partition (default: the broker's default.replication.factor; with "
         "--zookeeper: 1)",
         1, 32767},
        {"replica", CLI_INT32, AT(replication_factor), "N", NULL, 1, 32767},
        {"replica-assignment-list", CLI_STRING, AT(assignment), "1:2,2:3",
         "create: broker ids of each partition's replicas, the preferred leader first", 0, 0},
        {"config", CLI_STRING, AT(config), "KEY=VALUE,…", "create: settings of the topic", 0, 0},
        CLUSTER_OPTIONS(struct topics_options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done"},
        {CLI_FAILED, "the cluster refused; the reason is on standard error"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no broker, no controller, or no ZooKeeper answered"},
        {0, NULL},
};

/* The old tool's sentence; @error NULL: done. */
static int report(const struct topics_options *o, const char *doing, const char *error, struct wire_str why)
{
        if (o->where.json)
                json_out_print(json_pack("{s:s, s:s, s:s?, s:o}", "topic", o->topic, "result",
                                         error ? "failed" : "succeeded", "error", error, "message",
                                         json_out_str(why)));
        else if (!error)
                printf("%s succeeded!\n", doing);
        if (!error)
                return CLI_OK;
        (void)fprintf(stderr, "%s failed because of %.*s\n", doing, why.len > 0 ? (int)why.len : 1000,
                      why.len > 0 ? why.data : error);
        return CLI_FAILED;
}

static int report_code(const struct topics_options *o, const char *doing, int16_t error, struct wire_str why)
{
        return report(o, doing, error == KAFKA_NONE ? NULL : kafka_error_name(error), why);
}

/* --- settings --- */

static size_t count(const char *s, char c)
{
        size_t n = 0;

        for (; *s; s++)
                n += *s == c;
        return n;
}

/* "k=v,k=v" into the arena; not znode_config_done()d. */
static int parse_config(struct arena *a, const char *text, struct znode_config *ret)
{
        char *list = arena_strndup(a, text, strlen(text)), *rest = list, *one;

        ret->entries = arena_alloc(a, count(text, ',') + 1, sizeof(*ret->entries));
        if (!list || !ret->entries)
                return -ENOMEM;
        while ((one = strsep(&rest, ","))) {
                char *value = strchr(one, '=');

                if (!value)
                        return -EINVAL;
                *value++ = '\0';
                ret->entries[ret->n++] = (struct znode_config_entry){.key = one, .value = value};
        }
        return 0;
}

/* What the command line says of a topic. */
struct wanted {
        struct znode_topic assignment; /* no partitions: not given by hand */
        struct znode_config config;
};

/* CLI_OK, or a status after a line on stderr. */
static int read_wanted(struct cluster *c, const struct topics_options *o, struct wanted *ret)
{
        int r = 0;

        if (o->assignment && (o->partitions || o->replication_factor)) {
                (void)fprintf(stderr,
                              "stepdown topics: --replica-assignment-list says the number of partitions "
                              "and replicas itself\n");
                return CLI_USAGE;
        }
        if (o->assignment)
                r = placement_parse(&c->arena, o->assignment, 0, &ret->assignment);
        if (r == -EINVAL)
                (void)fprintf(stderr,
                              "stepdown topics: --replica-assignment-list '%s' is not of the form 1:2,2:3\n",
                              o->assignment);
        if (r == 0 && o->config) {
                r = parse_config(&c->arena, o->config, &ret->config);
                if (r == -EINVAL)
                        (void)fprintf(
                                stderr,
                                "stepdown topics: --config '%s' is not of the form KEY=VALUE,KEY=VALUE\n",
                                o->config);
        }
        return r == 0 ? CLI_OK : r == -EINVAL ? CLI_USAGE : cluster_fail(c, r);
}

/* --- create over Kafka's protocol --- */

static int fill_topic(struct arena *a, const struct topics_options *o, const struct wanted *w,
                      struct create_topics_request_topic *t)
{
        t->name = wire_str(o->topic);
        t->num_partitions = o->partitions ? o->partitions : -1;
        t->replication_factor = (int16_t)(o->replication_factor ? o->replication_factor : -1);
        t->assignments.items = arena_alloc(a, w->assignment.n_partitions + 1, sizeof(*t->assignments.items));
        t->configs.items = arena_alloc(a, w->config.n + 1, sizeof(*t->configs.items));
        if (!t->assignments.items || !t->configs.items)
                return -ENOMEM;
        for (size_t i = 0; i < w->assignment.n_partitions; i++) {
                const struct znode_assignment *p = &w->assignment.partitions[i];
                struct create_topics_request_assignment *out = &t->assignments.items[t->assignments.n++];

                out->partition_index = p->partition;
                out->broker_ids.items = p->replicas;
                out->broker_ids.n = (int32_t)p->n_replicas;
        }
        for (size_t i = 0; i < w->config.n; i++)
                t->configs.items[t->configs.n++] =
                        (struct create_topics_request_config){.name = wire_str(w->config.entries[i].key),
                                                              .value = wire_str(w->config.entries[i].value)};
        return 0;
}

static bool create_moved(const void *response)
{
        const struct create_topics_response *res = response;

        return res->topics.n > 0 && res->topics.items[0].error_code == KAFKA_NOT_CONTROLLER;
}

static int create_by_kafka(struct cluster *c, const struct topics_options *o, const struct wanted *w)
{
        struct create_topics_request_topic topic = {0};
        const struct wire_api *api = wire_api_find(CREATE_TOPICS);
        const struct create_topics_response *res;
        struct create_topics_request req;
        void *response;
        int r;

        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)MIN(o->where.timeout_ms, (int64_t)INT32_MAX);
        req.topics.items = &topic;
        req.topics.n = 1;
        r = fill_topic(&c->arena, o, w, &topic);
        if (r == 0)
                r = kafka_admin_ask_controller(&c->kafka, api, 7, &req, create_moved, &response);
        if (r < 0)
                return cluster_fail(c, r);
        res = response;
        if (res->topics.n != 1)
                return cluster_fail(c, -EBADMSG);
        return report_code(o, "creation", res->topics.items[0].error_code,
                           res->topics.items[0].error_message);
}

/* --- create through ZooKeeper --- */

static int place(struct cluster *c, const struct topics_options *o, const struct metadata_response *m,
                 struct wanted *w, char error[ASSIGNMENT_TEXT_SIZE])
{
        struct assignment_request request = {
                .n_partitions = o->partitions ? o->partitions : 1,
                .replication_factor = o->replication_factor ? o->replication_factor : 1,
        };
        int32_t *ids;
        int r;

        r = cluster_broker_ids(c, m, &ids, &request.n_brokers);
        if (r < 0)
                return r;
        if (o->assignment)
                return placement_check(&w->assignment, ids, request.n_brokers, error);
        request.brokers = ids;
        placement_random_start(&request);
        return placement_make(&c->arena, &request, &w->assignment, error);
}

static int collision(const struct metadata_response *m, const char *topic, char error[ASSIGNMENT_TEXT_SIZE])
{
        for (int32_t i = 0; strpbrk(topic, "._") && i < m->topics.n; i++)
                if (topic_names_collide(m->topics.items[i].name.data, topic)) {
                        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                                       "topic %s collides with existing topics: %s", topic,
                                       m->topics.items[i].name.data);
                        return -EINVAL;
                }
        return 0;
}

static int create_by_zookeeper(struct cluster *c, const struct topics_options *o, struct wanted *w)
{
        char error[ASSIGNMENT_TEXT_SIZE] = "";
        struct metadata_response *m;
        int r;

        if (topic_name_check(o->topic, strlen(o->topic), error) < 0)
                return report(o, "creation", "INVALID_TOPIC_EXCEPTION", wire_str(error));
        r = cluster_metadata(c, NULL, &m);
        if (r < 0)
                return cluster_fail(c, r);
        r = cluster_topic(m, o->topic) ? -EEXIST : collision(m, o->topic, error);
        if (r == 0)
                r = place(c, o, m, w, error);
        if (r == 0)
                r = uuid_random(&w->assignment.id);
        if (r == 0)
                r = zk_cluster_create_topic(c->zk, o->topic, &w->assignment, &w->config);
        if (r == -EEXIST) {
                (void)snprintf(error, sizeof(error), "topic %s already exists", o->topic);
                return report(o, "creation", "TOPIC_ALREADY_EXISTS", wire_str(error));
        }
        if (r == -EINVAL && error[0])
                return report(o, "creation", "INVALID_REQUEST", wire_str(error));
        return r < 0 ? cluster_fail(c, r) : report(o, "creation", NULL, WIRE_NULL_STR);
}

static int create(struct cluster *c, const struct topics_options *o)
{
        struct wanted w = {0};
        int status;

        status = read_wanted(c, o, &w);
        if (status != CLI_OK)
                return status;
        return c->zk ? create_by_zookeeper(c, o, &w) : create_by_kafka(c, o, &w);
}

/* --- delete --- */

static bool delete_moved(const void *response)
{
        const struct delete_topics_response *res = response;

        return res->responses.n > 0 && res->responses.items[0].error_code == KAFKA_NOT_CONTROLLER;
}

static int delete_by_kafka(struct cluster *c, const struct topics_options *o)
{
        struct wire_str name = wire_str(o->topic);
        const struct wire_api *api = wire_api_find(DELETE_TOPICS);
        const struct delete_topics_response *res;
        struct delete_topics_request req;
        void *response;
        int r;

        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)MIN(o->where.timeout_ms, (int64_t)INT32_MAX);
        req.topic_names.items = &name;
        req.topic_names.n = 1;
        r = kafka_admin_ask_controller(&c->kafka, api, 5, &req, delete_moved, &response);
        if (r < 0)
                return cluster_fail(c, r);
        res = response;
        if (res->responses.n != 1)
                return cluster_fail(c, -EBADMSG);
        return report_code(o, "deletion", res->responses.items[0].error_code,
                           res->responses.items[0].error_message);
}

/* The controller deletes it some time later; asking twice is no error. */
static int delete_by_zookeeper(struct cluster *c, const struct topics_options *o)
{
        struct metadata_response *m;
        int r;

        r = cluster_metadata(c, o->topic, &m);
        if (r < 0)
                return cluster_fail(c, r);
        if (!cluster_topic(m, o->topic))
                return report_code(o, "deletion", KAFKA_UNKNOWN_TOPIC_OR_PARTITION, WIRE_NULL_STR);
        r = zk_cluster_delete_topic(c->zk, o->topic);
        if (r < 0 && r != -EEXIST)
                return cluster_fail(c, r);
        return report(o, "deletion", NULL, WIRE_NULL_STR);
}

/* --- the verb --- */

static int list(struct cluster *c, const struct topics_options *o, bool heading)
{
        const struct topics_list_options l = {.topic = o->topic,
                                              .under_replicated = o->under_replicated,
                                              .unavailable = o->unavailable,
                                              .heading = heading,
                                              .json = o->where.json};

        return topics_list(c, &l);
}

static int act(const struct cli_verb *self, const char *action, struct topics_options *o)
{
        cleanup_with(cluster_closep) struct cluster c = {0};
        bool lists = strcmp(action, "list") == 0 || strcmp(action, "describe") == 0;
        bool creates = strcmp(action, "create") == 0;
        int status;

        if (!lists && !creates && strcmp(action, "delete") != 0)
                return cli_usage(self, "say list, describe, create or delete");
        if (!lists && !o->topic)
                return cli_usage(self, "%s needs --topic", action);
        status = cluster_open(&c, self->name, &o->where);
        if (status != CLI_OK)
                return status;
        if (lists)
                return list(&c, o, action[0] == 'd');
        if (creates)
                return create(&c, o);
        return c.zk ? delete_by_zookeeper(&c, o) : delete_by_kafka(&c, o);
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct topics_options o = {.where = CLUSTER_DEFAULTS};
        int n = 0, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n == 2 && !o.topic)
                o.topic = argv[2];
        else if (n > 1)
                return cli_usage(self, "too many arguments");
        return act(self, n > 0 ? argv[1] : "", &o);
}

const struct cli_verb cli_verb_topics = {
        .name = "topics",
        .synopsis = "list|describe|create|delete [TOPIC] [OPTIONS]",
        .summary = "list, describe, create and delete topics",
        .details = "list prints a line a partition: topic, partition, leader, replicas, in-sync replicas.\n"
                   "create also takes the old names --partition and --replica.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
        .actions = "list|describe|create|delete",
};
