/* stepdown preferred-election: leadership back to each partition's first replica (R53–R56).
 *
 * Over Kafka's protocol the controller answers for each partition. Through ZooKeeper it works as the tool of
 * Kafka 0.8: the list is written for the controller to find, and the tool leaves (R54). */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/cluster.h"
#include "cli/json_file.h"
#include "cli/json_out.h"
#include "cli/partition_choice.h"
#include "cli/verbs.h"
#include "cli/zk_cluster.h"
#include "wire/elect_leaders.h"
#include "wire/error.h"

#define ELECT_LEADERS 43
#define MAX_VERSION   2
#define PREFERRED     0
#define DOING         "preferred replica leader election"

struct election_options {
        struct cluster_options where;
        const char *file, *topic;
        int32_t partition;
};

#define AT(m) offsetof(struct election_options, m)

static const struct cli_option options[] = {
        {"path-to-json-file", CLI_STRING, AT(file), "FILE",
         "the partitions, as {\"partitions\":[{\"topic\":\"t\",\"partition\":0}]} (default: all)", 0, 0},
        {"topic", CLI_STRING, AT(topic), "TOPIC", "all partitions of one topic", 0, 0},
        {"partition", CLI_INT32, AT(partition), "P", "with --topic: one partition of it", 0, INT32_MAX},
        CLUSTER_OPTIONS(struct election_options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done; with --zookeeper: handed to the controller"},
        {CLI_FAILED, "refused, or a partition does not exist; the others were done"},
        {CLI_USAGE, "the command line or the file is wrong"},
        {CLI_UNAVAILABLE, "no broker, controller or ZooKeeper answered"},
        {CLI_INCOMPLETE, "a preferred replica is not in sync: run it again when it is (R56)"},
        {0, NULL},
};

struct election {
        struct cluster *c;
        const struct election_options *o;
        struct znode_partition_list list;
        size_t skipped;
        bool all;        /* nobody named partitions */
        json_t *results; /* NULL: text is wanted */
        int status;
};

/* Keep the worst: a refusal outweighs "try again", which outweighs success. */
static void worsen(struct election *e, int status)
{
        if (e->status == CLI_OK || status == CLI_FAILED)
                e->status = status;
}

/* --- over Kafka's protocol --- */

static bool moved(const void *response)
{
        const struct elect_leaders_response *res = response;

        if (res->error_code == KAFKA_NOT_CONTROLLER)
                return true;
        return res->replica_election_results.n > 0 &&
               res->replica_election_results.items[0].partition_result.n > 0 &&
               res->replica_election_results.items[0].partition_result.items[0].error_code ==
                       KAFKA_NOT_CONTROLLER;
}

/* May it succeed later, without anybody changing the request? */
static bool is_temporary(int16_t error)
{
        switch (error) {
        case KAFKA_PREFERRED_LEADER_NOT_AVAILABLE:
        case KAFKA_ELIGIBLE_LEADERS_NOT_AVAILABLE:
        case KAFKA_LEADER_NOT_AVAILABLE:
        case KAFKA_REQUEST_TIMED_OUT:
        case KAFKA_NOT_CONTROLLER:
                return true;
        default:
                return false;
        }
}

static int fill_request(struct election *e, struct elect_leaders_request *req)
{
        const struct znode_partition_list *l = &e->list;
        struct arena *a = &e->c->arena;

        wire_init(&elect_leaders_request_wire, req);
        req->election_type = PREFERRED;
        req->timeout_ms = (int32_t)MIN(e->o->where.timeout_ms, (int64_t)INT32_MAX);
        if (e->all) {
                req->topic_partitions.n = -1;
                return 0;
        }
        req->topic_partitions.items = arena_alloc(a, l->n + 1, sizeof(*req->topic_partitions.items));
        if (!req->topic_partitions.items)
                return -ENOMEM;
        for (size_t i = 0, run; i < l->n; i += run) {
                struct elect_leaders_request_topic_partitions *t =
                        &req->topic_partitions.items[req->topic_partitions.n++];

                run = partitions_run(l, i);
                t->topic = wire_str(l->items[i].topic);
                t->partitions.items = arena_alloc(a, run, sizeof(int32_t));
                if (!t->partitions.items)
                        return -ENOMEM;
                for (size_t k = 0; k < run; k++)
                        t->partitions.items[t->partitions.n++] = l->items[i + k].partition;
        }
        return 0;
}

static void report_one(struct election *e, struct wire_str topic,
                       const struct elect_leaders_response_partition_result *p)
{
        bool needed = p->error_code != KAFKA_ELECTION_NOT_NEEDED,
             failed = needed && p->error_code != KAFKA_NONE;
        json_t *o;

        if (failed) {
                (void)fprintf(stderr,
                              "stepdown preferred-election: partition [%.*s,%d] keeps its leader: %s%s%.*s\n",
                              (int)topic.len, topic.data, p->partition_id, kafka_error_name(p->error_code),
                              p->error_message.len > 0 ? ": " : "", (int)MAX(p->error_message.len, 0),
                              p->error_message.len > 0 ? p->error_message.data : "");
                worsen(e, is_temporary(p->error_code) ? CLI_INCOMPLETE : CLI_FAILED);
        }
        if (!e->results)
                return;
        o = json_pack("{s:o, s:i, s:s}", "topic", json_out_str(topic), "partition", (int)p->partition_id,
                      "result",
                      !needed  ? "already-preferred"
                      : failed ? "failed"
                               : "elected");
        if (failed)
                (void)json_object_set_new(o, "error", json_string(kafka_error_name(p->error_code)));
        (void)json_array_append_new(e->results, o);
}

/* What the controller was asked for and did not fail to do, in the old tool's words. */
static void print_started(const struct election *e, const struct elect_leaders_response *res)
{
        const char *comma = "";

        printf("Successfully started preferred replica election for partitions ");
        for (int32_t i = 0; i < res->replica_election_results.n; i++) {
                const struct elect_leaders_response_replica_election_result *t =
                        &res->replica_election_results.items[i];

                for (int32_t k = 0; k < t->partition_result.n; k++) {
                        int16_t error = t->partition_result.items[k].error_code;

                        if (error != KAFKA_NONE && error != KAFKA_ELECTION_NOT_NEEDED)
                                continue;
                        printf("%s[%.*s,%d]", comma, (int)t->topic.len, t->topic.data,
                               t->partition_result.items[k].partition_id);
                        comma = ", ";
                }
        }
        puts(*comma ? "" : e->all ? "(each has its preferred leader)" : "(none)");
}

static int refused(const char *why)
{
        puts("Failed to start preferred replica election");
        (void)fflush(stdout);
        (void)fprintf(stderr, "stepdown preferred-election: %s\n", why);
        return CLI_FAILED;
}

static int by_kafka(struct election *e)
{
        const struct elect_leaders_response *res;
        struct elect_leaders_request req;
        void *response;
        int r;

        r = fill_request(e, &req);
        if (r == 0)
                r = kafka_admin_ask_controller(&e->c->kafka, wire_api_find(ELECT_LEADERS), MAX_VERSION, &req,
                                               moved, &response);
        if (r < 0)
                return cluster_fail(e->c, r);
        res = response;
        if (res->error_code != KAFKA_NONE)
                return refused(kafka_error_name(res->error_code));
        for (int32_t i = 0; i < res->replica_election_results.n; i++)
                for (int32_t k = 0; k < res->replica_election_results.items[i].partition_result.n; k++)
                        report_one(e, res->replica_election_results.items[i].topic,
                                   &res->replica_election_results.items[i].partition_result.items[k]);
        if (!e->results)
                print_started(e, res);
        return e->status;
}

/* --- through ZooKeeper --- */

static int in_progress(struct election *e)
{
        struct znode_partition_list now = {0};

        if (zk_cluster_submitted(e->c->zk, ZNODE_PREFERRED_ELECTION, &now) < 0)
                now = (struct znode_partition_list){0};
        (void)fprintf(stderr, "Preferred replica leader election currently in progress for ");
        partitions_print(&now, stderr);
        (void)fprintf(stderr, ". Aborting operation\n");
        znode_partitions_done(&now);
        return CLI_FAILED;
}

static int by_zookeeper(struct election *e)
{
        int r;

        r = zk_cluster_submit(e->c->zk, ZNODE_PREFERRED_ELECTION, &e->list, e->c->error);
        if (r == -EEXIST) {
                if (!e->results)
                        puts("Failed to start preferred replica election");
                (void)fflush(stdout);
                return in_progress(e);
        }
        if (r < 0)
                return cluster_fail(e->c, r);
        for (size_t i = 0; e->results && i < e->list.n; i++)
                (void)json_array_append_new(
                        e->results, json_pack("{s:s, s:i, s:s}", "topic", e->list.items[i].topic, "partition",
                                              (int)e->list.items[i].partition, "result", "submitted"));
        if (!e->results) {
                printf("Successfully started preferred replica election for partitions ");
                partitions_print(&e->list, stdout);
                putchar('\n');
        }
        return e->status;
}

/* --- which partitions --- */

static int choose(struct election *e)
{
        struct metadata_response *m;
        int r;

        e->all = !e->o->file && !e->o->topic;
        if (e->all && !e->c->zk)
                return CLI_OK;
        r = cluster_metadata(e->c, e->o->topic, &m);
        if (r == 0 && e->o->topic && !cluster_topic(m, e->o->topic)) {
                (void)fprintf(stderr, "stepdown preferred-election: topic %s doesn't exist!\n", e->o->topic);
                return CLI_FAILED;
        }
        if (r == 0 && !e->o->file)
                r = partitions_choose(m, e->o->topic, e->o->partition, &e->list);
        if (r < 0)
                return cluster_fail(e->c, r);
        e->skipped = partitions_drop_unknown(&e->list, m, DOING);
        partitions_sort(&e->list);
        if (e->list.n == 0)
                return refused("there is no partition to elect a leader for");
        if (e->skipped > 0)
                worsen(e, CLI_FAILED);
        return CLI_OK;
}

/* Before anything is asked: a malformed file needs no cluster. */
static int read_file(struct election *e)
{
        char error[JSON_FILE_TEXT_SIZE];

        if (!e->o->file || json_file_partitions(e->o->file, false, &e->list, error) == 0)
                return CLI_OK;
        (void)fprintf(stderr, "stepdown preferred-election: %s\n", error);
        return CLI_USAGE;
}

static int elect(struct election *e)
{
        int status;

        status = choose(e);
        if (status != CLI_OK)
                return status;
        e->results = e->o->where.json ? json_array() : NULL;
        status = e->c->zk ? by_zookeeper(e) : by_kafka(e);
        if (e->results)
                json_out_print(
                        json_pack("{s:o, s:I}", "partitions", e->results, "skipped", (json_int_t)e->skipped));
        return status;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct election_options o = {.where = CLUSTER_DEFAULTS, .partition = -1};
        cleanup_with(cluster_closep) struct cluster c = {0};
        struct election e = {.c = &c, .o = &o};
        int n, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0)
                return cli_usage(self, "no argument is expected");
        if (o.file && o.topic)
                return cli_usage(self, "either --path-to-json-file or --topic");
        if (o.partition >= 0 && !o.topic)
                return cli_usage(self, "--partition needs --topic");
        r = read_file(&e);
        if (r == CLI_OK)
                r = cluster_open(&c, self->name, &o.where);
        if (r == CLI_OK)
                r = elect(&e);
        znode_partitions_done(&e.list);
        return r;
}

const struct cli_verb cli_verb_preferred_election = {
        .name = "preferred-election",
        .synopsis = "[--path-to-json-file FILE | --topic TOPIC [--partition P]] [OPTIONS]",
        .summary = "give leadership back to each partition's first replica",
        .details = "A replica that is not in sync does not become leader; run the tool again when it is.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
