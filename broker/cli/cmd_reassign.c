/* stepdown reassign: give partitions other replicas (R60–R62). A dry run unless --execute is given.
 *
 * Like the tool of Kafka 0.8 it only starts the move and leaves; --verify tells how far it is, --cancel stops
 * it. Over Kafka's protocol the controller answers for each partition; through ZooKeeper the list is written
 * for it to find. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "cli/json_out.h"
#include "cli/partition_choice.h"
#include "cli/reassign_kafka.h"
#include "cli/reassign_plan.h"
#include "cli/reassign_throttle.h"
#include "cli/verbs.h"
#include "cli/zk_cluster.h"
#include "wire/error.h"

#define DOING "reassignment"

struct reassign_options {
        struct cluster_options where;
        const char *manual_file, *topics_file, *status_file, *broker_list, *execute, *throttle;
        bool verify, cancel, additional, preserve_throttles;
};

#define AT(m) offsetof(struct reassign_options, m)

static const struct cli_option options[] = {
        {"manual-assignment-json-file", CLI_STRING, AT(manual_file), "FILE",
         "new replicas, as {\"partitions\":[{\"topic\":\"t\",\"partition\":0,\"replicas\":[1,2]}]}", 0, 0},
        {"topics-to-move-json-file", CLI_STRING, AT(topics_file), "FILE",
         "topics to spread over --broker-list, as {\"topics\":[{\"topic\":\"t\"}]}", 0, 0},
        {"broker-list", CLI_STRING, AT(broker_list), "0,1,2", "brokers to spread the topics over", 0, 0},
        {"execute", CLI_MAYBE, AT(execute), NULL, "do it (default: a dry run prints what would be done)", 0,
         0},
        {"verify", CLI_FLAG, AT(verify), NULL, "tell how far the assignment of the manual file is", 0, 0},
        {"status-check-json-file", CLI_STRING, AT(status_file), "FILE", "the same, with a file of its own", 0,
         0},
        {"cancel", CLI_FLAG, AT(cancel), NULL,
         "cancel the reassignments of the manual file's partitions, or without a file all of them", 0, 0},
        {"additional", CLI_FLAG, AT(additional), NULL,
         "with --execute: start though other reassignments are in progress", 0, 0},
        {"throttle", CLI_STRING, AT(throttle), "BYTES",
         "with --execute: copy at most so many bytes a second to and from each broker (with --additional "
         "also what is in "
         "progress)",
         0, 0},
        {"preserve-throttles", CLI_FLAG, AT(preserve_throttles), NULL,
         "with --verify or --cancel: leave the throttle when nothing moves any more", 0, 0},
        CLUSTER_OPTIONS(struct reassign_options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done; dry run: printed; --verify: completed"},
        {CLI_FAILED, "refused, or failed for some partitions; the others were started"},
        {CLI_USAGE, "the command line or a file is wrong"},
        {CLI_UNAVAILABLE, "no broker, controller or ZooKeeper answered"},
        {CLI_INCOMPLETE, "--verify: still in progress"},
        {0, NULL},
};

enum mode { MODE_PLAN, MODE_EXECUTE, MODE_VERIFY, MODE_CANCEL };

struct reassign {
        struct cluster *c;
        const struct reassign_options *o;
        enum mode mode;
        struct topic_names topics;
        int32_t *brokers, n_brokers;
        struct arena arena;                 /* of what the command line says */
        struct znode_partition_list list;   /* what is to be done; sorted */
        struct znode_partition_list before; /* --execute: the replicas until now, the way back */
        size_t skipped;
        int64_t rate;        /* --throttle; 0: none */
        const char *cleared; /* what became of a throttle that there was: "removed", "kept" */
        struct metadata_response *m;
};

static int complain(int status, const char *sentence)
{
        (void)fprintf(stderr, "stepdown reassign: %s\n", sentence);
        return status;
}

static void print_document(const struct znode_partition_list *l)
{
        cleanup_with(buf_donep) struct buf text = {0};

        if (znode_partitions_encode(l, &text) == 0 && buf_cstr(&text))
                puts((const char *)text.data);
}

/* --- results, one a partition --- */

static json_t *result_json(const struct znode_partition *p, const char *result, const char *error,
                           const char *message)
{
        json_t *j = json_pack("{s:s, s:i}", "topic", p->topic, "partition", (int)p->partition);

        if (p->replicas)
                (void)json_object_set_new(j, "replicas", json_out_ids(p->replicas, (int32_t)p->n_replicas));
        if (result)
                (void)json_object_set_new(j, "result", json_string(result));
        if (error)
                (void)json_object_set_new(j, "error", json_string(error));
        if (message)
                (void)json_object_set_new(j, "message", json_string(message));
        return j;
}

/* Those of @l that did (or did not) get what was asked for, as "[t,0], [t,1]". */
static size_t print_those(const struct znode_partition_list *l, const struct reassign_result *results,
                          bool failed, const char *sentence)
{
        size_t n = 0;

        for (size_t i = 0; i < l->n; i++)
                if ((results[i].error != KAFKA_NONE) == failed)
                        printf("%s[%s,%d]", n++ > 0 ? ", " : sentence, l->items[i].topic,
                               l->items[i].partition);
        if (n > 0)
                putchar('\n');
        return n;
}

static void print_results(const struct reassign *x, json_t *results)
{
        json_t *all = json_pack("{s:o, s:I}", "partitions", results, "skipped", (json_int_t)x->skipped);
        json_t *before = json_array();

        for (size_t i = 0; i < x->before.n; i++)
                (void)json_array_append_new(before, result_json(&x->before.items[i], NULL, NULL, NULL));
        (void)json_object_set_new(all, "before", before);
        if (x->rate > 0)
                (void)json_object_set_new(all, "throttle", json_integer(x->rate));
        if (x->cleared)
                (void)json_object_set_new(all, "throttle", json_string(x->cleared));
        json_out_print(all);
}

/* @done and @undone: the old tool's sentences. */
static int report(const struct reassign *x, const struct reassign_result *results, const char *word,
                  const char *done, const char *undone)
{
        int status = x->skipped > 0 ? CLI_FAILED : CLI_OK;
        json_t *list = json_array();

        for (size_t i = 0; i < x->list.n; i++) {
                const struct znode_partition *p = &x->list.items[i];
                bool failed = results[i].error != KAFKA_NONE;
                const char *error = failed ? kafka_error_name(results[i].error) : NULL;

                (void)json_array_append_new(list, result_json(p, failed ? "failed" : word, error,
                                                              failed ? results[i].message : NULL));
                if (!failed)
                        continue;
                status = CLI_FAILED;
                (void)fprintf(stderr, "stepdown reassign: [%s,%d]: %s%s%s\n", p->topic, p->partition, error,
                              results[i].message ? ": " : "", results[i].message ? results[i].message : "");
        }
        if (x->o->where.json) {
                print_results(x, list);
                return status;
        }
        json_decref(list);
        (void)print_those(&x->list, results, false, done);
        (void)print_those(&x->list, results, true, undone);
        return status;
}

static int no_results(struct reassign *x, int r)
{
        return r == -EPROTO ? complain(CLI_FAILED, x->c->error) : cluster_fail(x->c, r);
}

/* --- plan --- */

static int plan(struct reassign *x)
{
        char error[JSON_FILE_TEXT_SIZE];
        int r;

        r = cluster_metadata(x->c, NULL, &x->m);
        if (r < 0)
                return cluster_fail(x->c, r);
        if (x->o->topics_file) {
                r = reassign_spread(&x->topics, x->m, x->brokers, x->n_brokers, &x->list, &x->skipped, error);
                if (r < 0)
                        return r == -EINVAL ? complain(CLI_FAILED, error) : cluster_fail(x->c, r);
        }
        x->skipped += partitions_drop_unknown(&x->list, x->m, DOING);
        partitions_sort(&x->list);
        if (x->list.n == 0)
                return complain(CLI_FAILED, "there is no partition to reassign");
        return CLI_OK;
}

static int print_plan(const struct reassign *x)
{
        if (!x->o->where.json)
                puts("This is a dry run (Use --execute to do the actual reassignment. The following is the "
                     "replica "
                     "assignment. Save it for the status check option.");
        print_document(&x->list);
        return x->skipped > 0 ? CLI_FAILED : CLI_OK;
}

/* --- execute --- */

static int in_progress(const struct znode_partition_list *now)
{
        (void)fprintf(stderr, "Partition reassignment currently in progress for ");
        partitions_print(now, stderr);
        (void)fprintf(stderr, ". Aborting operation\n");
        return CLI_FAILED;
}

/* The way back, before anything is changed. */
static void print_before(const struct reassign *x)
{
        if (x->o->where.json)
                return;
        puts("Current replica assignment. Save it to go back with --manual-assignment-json-file.");
        print_document(&x->before);
        (void)fflush(stdout);
}

static int refuse_second(struct reassign *x)
{
        struct znode_partition_list now = {0};
        int r, status = CLI_OK;

        if (x->o->additional)
                return CLI_OK;
        r = reassign_kafka_list(x->c, &now);
        if (r < 0)
                return no_results(x, r);
        if (now.n > 0)
                status = in_progress(&now);
        znode_partitions_done(&now);
        return status;
}

/* Before the first byte is copied; those who do not ask for it leave everything as it is. */
static int set_throttle(struct reassign *x)
{
        int r;

        if (x->rate == 0)
                return CLI_OK;
        r = reassign_throttle_set(x->c, &x->list, &x->before, x->rate);
        if (r < 0)
                return no_results(x, r);
        if (!x->o->where.json)
                printf("Warning: You must run --verify periodically, until the reassignment completes, to "
                       "ensure the "
                       "throttle is removed.\n"
                       "The inter-broker throttle limit was set to %" PRId64 " B/s\n",
                       x->rate);
        (void)fflush(stdout);
        return CLI_OK;
}

static int execute_by_kafka(struct reassign *x, struct reassign_result *results)
{
        int status, r;

        status = refuse_second(x);
        if (status != CLI_OK)
                return status;
        print_before(x);
        status = set_throttle(x);
        if (status != CLI_OK)
                return status;
        r = reassign_kafka_alter(x->c, &x->list, false, results);
        return r < 0 ? no_results(x, r) : CLI_OK;
}

static int execute_by_zookeeper(struct reassign *x)
{
        struct znode_partition_list now = {0};
        int r, status;

        print_before(x);
        r = zk_cluster_submitted(x->c->zk, ZNODE_REASSIGN,
                                 &now); /* the throttle of another move is its own */
        status = r < 0 ? cluster_fail(x->c, r) : now.n > 0 ? in_progress(&now) : set_throttle(x);
        znode_partitions_done(&now);
        if (status != CLI_OK)
                return status;
        r = zk_cluster_submit(x->c->zk, ZNODE_REASSIGN, &x->list, x->c->error);
        if (r != -EEXIST)
                return r < 0 ? cluster_fail(x->c, r) : CLI_OK;
        r = zk_cluster_submitted(x->c->zk, ZNODE_REASSIGN, &now);
        status = r < 0 ? cluster_fail(x->c, r) : in_progress(&now);
        znode_partitions_done(&now);
        return status;
}

static int execute(struct reassign *x)
{
        struct reassign_result *results = arena_alloc(&x->c->arena, x->list.n + 1, sizeof(*results));
        char error[JSON_FILE_TEXT_SIZE];
        int status;

        if (!results || reassign_current(&x->list, x->m, &x->before) < 0)
                return cluster_fail(x->c, -ENOMEM);
        if (reassign_check_brokers(&x->list, x->m, error) < 0)
                return complain(CLI_FAILED, error);
        status = x->c->zk ? execute_by_zookeeper(x) : execute_by_kafka(x, results);
        if (status != CLI_OK)
                return status;
        return report(x, results, "started", "Successfully started reassignment of partitions ",
                      "Failed to reassign partitions ");
}

/* --- verify --- */

static const char *state_of(const struct reassign *x, const struct znode_partition *p,
                            const struct znode_partition_list *moving)
{
        const struct metadata_response_topic *t = cluster_topic(x->m, p->topic);
        const struct metadata_response_partition *now = t ? cluster_partition(t, p->partition) : NULL;

        if (partitions_find(moving, p->topic, p->partition))
                return "is still in progress";
        if (now && (size_t)MAX(now->replica_nodes.n, 0) == p->n_replicas &&
            memcmp(now->replica_nodes.items, p->replicas, p->n_replicas * sizeof(*p->replicas)) == 0)
                return "completed successfully";
        return "failed";
}

/* A throttle is for a move: with the last one it goes. */
static int end_throttle(struct reassign *x, bool moving)
{
        bool was = false, keep = moving || x->o->preserve_throttles;
        int r = keep ? reassign_throttle_find(x->c, &x->list, &was)
                     : reassign_throttle_clear(x->c, &x->list, x->m, x->o->where.json, &was);

        if (r < 0)
                return no_results(x, r);
        if (was)
                x->cleared = keep ? "kept" : "removed";
        return CLI_OK;
}

static int print_states(struct reassign *x, const struct znode_partition_list *moving)
{
        json_t *list = json_array(), *all = json_pack("{s:o}", "partitions", list);
        int status = CLI_OK, ended;

        if (!x->o->where.json)
                puts("Status of partition reassignment:");
        for (size_t i = 0; i < x->list.n; i++) {
                const struct znode_partition *p = &x->list.items[i];
                const char *state = state_of(x, p, moving);

                if (state[0] == 'f')
                        status = CLI_FAILED;
                else if (state[0] == 'i' && status == CLI_OK)
                        status = CLI_INCOMPLETE;
                if (!x->o->where.json)
                        printf("Reassignment of partition [%s,%d] %s\n", p->topic, p->partition, state);
                (void)json_array_append_new(list, result_json(p,
                                                              state[0] == 'f'   ? "failed"
                                                              : state[0] == 'i' ? "in-progress"
                                                                                : "completed",
                                                              NULL, NULL));
        }
        ended = end_throttle(x, moving->n > 0);
        if (x->cleared)
                (void)json_object_set_new(all, "throttle", json_string(x->cleared));
        if (x->o->where.json)
                json_out_print(all);
        else
                json_decref(all);
        return status == CLI_OK ? ended : status;
}

static int verify(struct reassign *x)
{
        struct znode_partition_list moving = {0};
        int r, status;

        /* What moves is asked before what is: a partition that finishes in between then counts as in
         * progress, never as failed. */
        r = x->c->zk ? zk_cluster_reassigning(x->c->zk, &moving, x->c->error)
                     : reassign_kafka_list(x->c, &moving);
        if (r == 0)
                r = cluster_metadata(x->c, NULL, &x->m);
        partitions_sort(&x->list);
        partitions_sort(&moving);
        status = r < 0 ? no_results(x, r) : print_states(x, &moving);
        znode_partitions_done(&moving);
        return status;
}

/* --- cancel --- */

/* Is something in progress that was not just cancelled? */
static int moves_on(struct reassign *x, bool *ret)
{
        struct znode_partition_list now = {0};
        int r = reassign_kafka_list(x->c, &now);

        *ret = false;
        for (size_t i = 0; r == 0 && i < now.n; i++)
                *ret = *ret || !partitions_find(&x->list, now.items[i].topic, now.items[i].partition);
        znode_partitions_done(&now);
        return r;
}

static int end_throttle_of_cancelled(struct reassign *x)
{
        bool was = false, moving = false;
        int r;

        r = reassign_throttle_find(x->c, &x->list, &was);
        if (r == 0 && was)
                r = moves_on(x, &moving);
        if (r == 0 && was)
                r = cluster_metadata(x->c, NULL, &x->m);
        if (r < 0)
                return no_results(x, r);
        return was ? end_throttle(x, moving) : CLI_OK;
}

static int cancel(struct reassign *x)
{
        struct reassign_result *results;
        int r = 0, status, ended;

        if (!x->o->manual_file)
                r = reassign_kafka_list(x->c, &x->list);
        if (r < 0)
                return no_results(x, r);
        if (x->list.n == 0 && !x->o->where.json) {
                puts("No reassignment is in progress");
                return CLI_OK;
        }
        partitions_sort(&x->list);
        results = arena_alloc(&x->c->arena, x->list.n + 1, sizeof(*results));
        r = results ? 0 : -ENOMEM;
        if (r == 0 && x->list.n > 0)
                r = reassign_kafka_alter(x->c, &x->list, true, results);
        if (r < 0)
                return no_results(x, r);
        for (size_t i = 0; i < x->list.n; i++) {
                if (results[i].error != KAFKA_NO_REASSIGNMENT_IN_PROGRESS)
                        continue;
                results[i].error = KAFKA_NONE; /* it was over by itself: what was asked for is so */
                (void)fprintf(stderr, "No reassignment of partition [%s,%d] is in progress\n",
                              x->list.items[i].topic, x->list.items[i].partition);
        }
        ended = end_throttle_of_cancelled(x);
        status = report(x, results, "cancelled", "Successfully cancelled reassignment of partitions ",
                        "Failed to cancel reassignment of partitions ");
        return status == CLI_OK ? ended : status;
}

/* --- the verb --- */

static int act(struct reassign *x)
{
        int status;

        if (x->mode == MODE_VERIFY)
                return verify(x);
        if (x->mode == MODE_CANCEL)
                return cancel(x);
        status = plan(x);
        if (status != CLI_OK)
                return status;
        return x->mode == MODE_EXECUTE ? execute(x) : print_plan(x);
}

/* Before anything is asked: malformed files need no cluster. */
static int read_files(struct reassign *x)
{
        const char *file = x->o->status_file ? x->o->status_file : x->o->manual_file;
        char error[JSON_FILE_TEXT_SIZE];
        int r = 0;

        if (x->o->topics_file)
                r = json_file_topics(x->o->topics_file, &x->topics, error);
        else if (file)
                r = json_file_partitions(file, true, &x->list, error);
        if (r < 0)
                return complain(CLI_USAGE, error);
        if ((file && x->list.n == 0) || (x->o->topics_file && x->topics.n == 0)) {
                (void)fprintf(stderr, "stepdown reassign: Partition reassignment data file %s is empty\n",
                              file ? file : x->o->topics_file);
                return CLI_USAGE;
        }
        return CLI_OK;
}

/* --execute takes an argument that the old tool ignored; here one that says no is not ignored. */
static int choose_mode(const struct cli_verb *self, const struct reassign_options *o, enum mode *ret)
{
        bool yes = true;

        if (o->execute && o->execute[0] && parse_bool(o->execute, &yes) < 0)
                return cli_usage(self, "--execute takes no value but true or false");
        if ((o->status_file || o->verify) + o->cancel + (o->execute && yes) > 1)
                return cli_usage(self, "only one of --execute, --verify and --cancel");
        *ret = o->status_file || o->verify ? MODE_VERIFY
               : o->cancel                 ? MODE_CANCEL
               : o->execute && yes         ? MODE_EXECUTE
                                           : MODE_PLAN;
        return CLI_OK;
}

static int check_usage(const struct cli_verb *self, const struct reassign_options *o, enum mode mode)
{
        if ((o->manual_file != NULL) + (o->topics_file != NULL) + (o->status_file != NULL) > 1)
                return cli_usage(self, "Only one of the json files should be specified");
        if (!o->manual_file && !o->topics_file && !o->status_file && mode != MODE_CANCEL)
                return cli_usage(self, "Missing json file. One of the files needs to be specified");
        if (o->topics_file && (mode == MODE_VERIFY || mode == MODE_CANCEL))
                return cli_usage(self,
                                 "--verify and --cancel need the partitions: --manual-assignment-json-file");
        if ((o->topics_file != NULL) != (o->broker_list != NULL))
                return cli_usage(self, "--topics-to-move-json-file and --broker-list belong together");
        if (o->where.zookeeper && (mode == MODE_CANCEL || o->additional))
                return cli_usage(self, "--cancel and --additional need the brokers: --bootstrap");
        return CLI_OK;
}

static int check_throttle(const struct cli_verb *self, struct reassign *x)
{
        if (x->o->throttle && parse_int64(x->o->throttle, 1, INT64_MAX, &x->rate) < 0)
                return cli_usage(self, "--throttle '%s' is not a number of bytes a second", x->o->throttle);
        if (x->o->throttle && x->mode != MODE_EXECUTE)
                return cli_usage(self, "--throttle belongs to --execute; --verify and --cancel remove it");
        if (x->o->preserve_throttles && x->mode != MODE_VERIFY && x->mode != MODE_CANCEL)
                return cli_usage(self, "--preserve-throttles belongs to --verify and --cancel");
        return CLI_OK;
}

static int prepare(const struct cli_verb *self, struct reassign *x)
{
        int status;

        status = choose_mode(self, x->o, &x->mode);
        if (status == CLI_OK)
                status = check_usage(self, x->o, x->mode);
        if (status == CLI_OK)
                status = check_throttle(self, x);
        if (status == CLI_OK)
                status = read_files(x);
        if (status == CLI_OK && x->o->broker_list &&
            reassign_parse_brokers(&x->arena, x->o->broker_list, &x->brokers, &x->n_brokers) < 0)
                status = cli_usage(self, "--broker-list '%s' is not of the form 0,1,2", x->o->broker_list);
        if (status == CLI_OK)
                status = cluster_open(x->c, self->name, &x->o->where);
        return status;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct reassign_options o = {.where = CLUSTER_DEFAULTS};
        cleanup_with(cluster_closep) struct cluster c = {0};
        struct reassign x = {.c = &c, .o = &o};
        int n, status, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0)
                return cli_usage(self, "no argument is expected");
        arena_init(&x.arena, 0);
        status = prepare(self, &x);
        if (status == CLI_OK)
                status = act(&x);
        znode_partitions_done(&x.list);
        znode_partitions_done(&x.before);
        topic_names_done(&x.topics);
        arena_done(&x.arena);
        return status;
}

const struct cli_verb cli_verb_reassign = {
        .name = "reassign",
        .synopsis =
                "--manual-assignment-json-file FILE | --topics-to-move-json-file FILE --broker-list 0,1,2\n"
                "       [--execute | --verify | --cancel] [OPTIONS]",
        .summary = "give partitions other replicas",
        .details = "Without --execute it prints the assignment to save and changes nothing. With it the move "
                   "is\n"
                   "started, not waited for: ask with --verify.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
