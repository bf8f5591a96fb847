/* stepdown partitions add (R59).
 *
 * Over Kafka's protocol the controller places the new partitions: it knows which brokers drain. Through
 * ZooKeeper they are placed here, as the tool of Kafka 0.8 does: they go on from where partition 0 began.
 * (The old tool took the id of that broker for its place in the sorted list; here it is the place.) */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster.h"
#include "cli/json_out.h"
#include "cli/placement.h"
#include "cli/verbs.h"
#include "cli/zk_cluster.h"
#include "wire/create_partitions.h"
#include "wire/error.h"

#define CREATE_PARTITIONS 37
#define MAX_VERSION       3

struct partitions_options {
        struct cluster_options where;
        const char *topic, *assignment;
        int32_t add;
};

#define AT(m) offsetof(struct partitions_options, m)

static const struct cli_option options[] = {
        {"topic", CLI_STRING, AT(topic), "TOPIC", "the topic (required)", 0, 0},
        {"partition", CLI_INT32, AT(add), "N", "how many partitions to add (required)", 1, 1000000},
        {"partitions", CLI_INT32, AT(add), "N", NULL, 1, 1000000},
        {"replica-assignment-list", CLI_STRING, AT(assignment), "1:2,2:3",
         "broker ids of each new partition's replicas, the preferred leader first", 0, 0},
        CLUSTER_OPTIONS(struct partitions_options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done; with --zookeeper: written, the controller follows"},
        {CLI_FAILED, "the cluster refused; the reason is on standard error"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no broker, no controller, or no ZooKeeper answered"},
        {0, NULL},
};

static int failed(const struct partitions_options *o, const char *error, const char *why)
{
        if (o->where.json)
                json_out_print(json_pack("{s:s, s:s, s:s?, s:s}", "topic", o->topic, "result", "failed",
                                         "error", error, "message", why));
        (void)fprintf(stderr, "adding partitions failed because of %s\n", why);
        return CLI_FAILED;
}

static json_t *partition_json(const struct znode_assignment *p)
{
        json_t *j = json_pack("{s:i}", "partition", (int)p->partition);

        if (p->n_replicas > 0)
                (void)json_object_set_new(j, "replicas", json_out_ids(p->replicas, (int32_t)p->n_replicas));
        return j;
}

static int succeeded(const struct partitions_options *o, const struct znode_topic *added)
{
        json_t *list;

        if (!o->where.json) {
                puts("adding partitions succeeded!");
                return CLI_OK;
        }
        list = json_array();
        for (size_t i = 0; i < added->n_partitions; i++)
                (void)json_array_append_new(list, partition_json(&added->partitions[i]));
        json_out_print(
                json_pack("{s:s, s:s, s:o}", "topic", o->topic, "result", "succeeded", "partitions", list));
        return CLI_OK;
}

/* --- where they go --- */

static int check_by_hand(const struct partitions_options *o, const struct znode_topic *t, int32_t factor,
                         const int32_t *brokers, int32_t n_brokers, char error[ASSIGNMENT_TEXT_SIZE])
{
        if (t->n_partitions != (size_t)o->add) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                               "%d partitions are to be added, but the replica assignment lists %zu", o->add,
                               t->n_partitions);
                return -EINVAL;
        }
        if (placement_check(t, brokers, n_brokers, error) < 0)
                return -EINVAL;
        if (t->partitions[0].n_replicas == (size_t)factor)
                return 0;
        (void)snprintf(error, ASSIGNMENT_TEXT_SIZE,
                       "the replication factor of the new partitions is %zu, but that of the topic is %d",
                       t->partitions[0].n_replicas, factor);
        return -EINVAL;
}

static uint32_t place_of(const int32_t *sorted, int32_t n, int32_t id)
{
        for (int32_t i = 0; i < n; i++)
                if (sorted[i] >= id)
                        return (uint32_t)i;
        return 0;
}

static int leave_to_controller(struct arena *a, const struct partitions_options *o, int32_t first,
                               struct znode_topic *ret)
{
        ret->partitions = arena_alloc(a, (size_t)o->add, sizeof(*ret->partitions));
        if (!ret->partitions)
                return -ENOMEM;
        ret->n_partitions = (size_t)o->add;
        for (int32_t i = 0; i < o->add; i++)
                ret->partitions[i].partition = first + i;
        return 0;
}

static int place(struct cluster *c, const struct partitions_options *o, const struct metadata_response *m,
                 const struct metadata_response_topic *topic, struct znode_topic *ret,
                 char error[ASSIGNMENT_TEXT_SIZE])
{
        const struct metadata_response_partition *zero = cluster_partition(topic, 0);
        struct assignment_request request = {.n_partitions = o->add, .start_partition = topic->partitions.n};
        int32_t *ids;
        int r;

        if (!zero || zero->replica_nodes.n <= 0) {
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, "nobody knows the replicas of [%s,0] now",
                               o->topic);
                return -EINVAL;
        }
        r = cluster_broker_ids(c, m, &ids, &request.n_brokers);
        if (r < 0)
                return r;
        if (o->assignment) {
                r = placement_parse(&c->arena, o->assignment, topic->partitions.n, ret);
                return r < 0 ? r
                             : check_by_hand(o, ret, zero->replica_nodes.n, ids, request.n_brokers, error);
        }
        if (!c->zk)
                return leave_to_controller(&c->arena, o, topic->partitions.n, ret);
        request.brokers = ids;
        request.replication_factor = zero->replica_nodes.n;
        request.start_index = request.start_shift =
                place_of(ids, request.n_brokers, zero->replica_nodes.items[0]);
        return placement_make(&c->arena, &request, ret, error);
}

/* --- over Kafka's protocol --- */

static bool moved(const void *response)
{
        const struct create_partitions_response *res = response;

        return res->results.n > 0 && res->results.items[0].error_code == KAFKA_NOT_CONTROLLER;
}

static int fill_topic(struct arena *a, const struct partitions_options *o, const struct znode_topic *added,
                      struct create_partitions_request_topic *t)
{
        t->name = wire_str(o->topic);
        t->count = added->partitions[0].partition + (int32_t)added->n_partitions;
        t->assignments.n = -1; /* the controller chooses */
        if (!o->assignment)
                return 0;
        t->assignments.items = arena_alloc(a, added->n_partitions, sizeof(*t->assignments.items));
        if (!t->assignments.items)
                return -ENOMEM;
        for (size_t i = 0; i < added->n_partitions; i++) {
                t->assignments.items[i].broker_ids.items = added->partitions[i].replicas;
                t->assignments.items[i].broker_ids.n = (int32_t)added->partitions[i].n_replicas;
        }
        t->assignments.n = (int32_t)added->n_partitions;
        return 0;
}

static int report(const struct partitions_options *o, const struct znode_topic *added,
                  const struct create_partitions_response_result *result)
{
        const char *error = kafka_error_name(result->error_code);
        char why[512];

        if (result->error_code == KAFKA_NONE)
                return succeeded(o, added);
        if (result->error_message.len <= 0)
                return failed(o, error, error);
        (void)snprintf(why, sizeof(why), "%.*s", (int)result->error_message.len, result->error_message.data);
        return failed(o, error, why);
}

static int by_kafka(struct cluster *c, const struct partitions_options *o, const struct znode_topic *added)
{
        const struct wire_api *api = wire_api_find(CREATE_PARTITIONS);
        struct create_partitions_request_topic topic = {0};
        const struct create_partitions_response *res;
        struct create_partitions_request req;
        void *response;
        int r;

        wire_init(api->request, &req);
        req.timeout_ms = (int32_t)MIN(o->where.timeout_ms, (int64_t)INT32_MAX);
        req.topics.items = &topic;
        req.topics.n = 1;
        r = fill_topic(&c->arena, o, added, &topic);
        if (r == 0)
                r = kafka_admin_ask_controller(&c->kafka, api, MAX_VERSION, &req, moved, &response);
        if (r < 0)
                return cluster_fail(c, r);
        res = response;
        if (res->results.n != 1)
                return cluster_fail(c, -EBADMSG);
        return report(o, added, &res->results.items[0]);
}

/* --- the verb --- */

static int add(struct cluster *c, const struct partitions_options *o)
{
        const struct metadata_response_topic *topic;
        char error[ASSIGNMENT_TEXT_SIZE] = "";
        struct znode_topic added = {0};
        struct metadata_response *m;
        int r;

        r = cluster_metadata(c, o->topic, &m);
        if (r < 0)
                return cluster_fail(c, r);
        topic = cluster_topic(m, o->topic);
        if (!topic) {
                (void)snprintf(error, sizeof(error), "The topic %s does not exist", o->topic);
                return failed(o, kafka_error_name(KAFKA_UNKNOWN_TOPIC_OR_PARTITION), error);
        }
        r = place(c, o, m, topic, &added, error);
        if (r == -EINVAL && error[0])
                return failed(o, kafka_error_name(KAFKA_INVALID_REPLICA_ASSIGNMENT), error);
        if (r == -EINVAL) {
                (void)fprintf(
                        stderr,
                        "stepdown partitions: --replica-assignment-list '%s' is not of the form 1:2,2:3\n",
                        o->assignment);
                return CLI_USAGE;
        }
        if (r == 0 && !c->zk)
                return by_kafka(c, o, &added);
        if (r == 0)
                r = zk_cluster_add_partitions(c->zk, o->topic, &added, c->error);
        return r < 0 ? cluster_fail(c, r) : succeeded(o, &added);
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct partitions_options o = {.where = CLUSTER_DEFAULTS};
        cleanup_with(cluster_closep) struct cluster c = {0};
        int n, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n != 1 || strcmp(argv[1], "add") != 0)
                return cli_usage(self, "say add");
        if (!o.topic || o.add <= 0) {
                (void)fprintf(
                        stderr,
                        "*** Adding partitions changes which partition a key goes to: use this only when "
                        "the topic's data has no keys. ***\n");
                return cli_usage(self, "add needs --topic and --partition");
        }
        r = cluster_open(&c, self->name, &o.where);
        return r != CLI_OK ? r : add(&c, &o);
}

const struct cli_verb cli_verb_partitions = {
        .name = "partitions",
        .synopsis = "add --topic TOPIC --partition N [--replica-assignment-list 1:2,2:3] [OPTIONS]",
        .summary = "add partitions to a topic",
        .details = "Only for topics whose data has no keys: the partition that a key goes to changes.\n"
                   "The new partitions have as many replicas as partition 0.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
        .actions = "add",
};
