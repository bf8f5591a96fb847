/* stepdown shutdown-broker: the tool of Kafka 0.8 (R43–R45). It asks the controller, waits for its answer and
 * tries again; it never ends the broker's process.
 *
 * The old tool went through the controller's JMX port; this one sends what a broker itself sends when it
 * stops, ControlledShutdown, without a broker epoch (kafka-semantics §2.6). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "cli/cluster.h"
#include "cli/json_out.h"
#include "cli/verbs.h"
#include "cli/zk_cluster.h"
#include "wire/controlled_shutdown.h"
#include "wire/error.h"

#define CONTROLLED_SHUTDOWN 7
#define VERSION             3
#define SLOT_WAIT_MS        1000 /* an attempt; the interval between them is who asks's own */
#define MIN_INTERVAL_MS     1000
#define LISTED              20 /* partitions, for people; --json lists them all */

struct shutdown_options {
        struct cluster_options where;
        int32_t broker, num_retries, retry_interval_ms;
};

#define AT(m) offsetof(struct shutdown_options, m)

static const struct cli_option options[] = {
        {"broker", CLI_INT32, AT(broker), "N", "the broker whose leadership is to be moved (required)", 0,
         INT32_MAX},
        {"num-retries", CLI_INT32, AT(num_retries), "N", "attempts after the first (default 0)", 0,
         INT32_MAX},
        {"num.retries", CLI_INT32, AT(num_retries), "N", NULL, 0, INT32_MAX},
        {"retry-interval-ms", CLI_INT32, AT(retry_interval_ms), "MS",
         "between attempts; at least, and by default, 1000", 0, INT32_MAX},
        {"retry.interval.ms", CLI_INT32, AT(retry_interval_ms), "MS", NULL, 0, INT32_MAX},
        CLUSTER_OPTIONS(struct shutdown_options, where),
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "complete: the broker leads nothing that another replica could lead"},
        {CLI_FAILED, "refused; no such broker"},
        {CLI_USAGE, "the command line is wrong"},
        {CLI_UNAVAILABLE, "no controller answered"},
        {CLI_INCOMPLETE, "incomplete: partitions remain; try again when their replicas are in sync"},
        {0, NULL},
};

/* The last attempt. */
struct outcome {
        int status;
        int32_t attempts;
        int16_t error;
        const struct controlled_shutdown_response *res; /* NULL: no answer */
};

static int find_controller(struct cluster *c, char host[256], uint16_t *ret_port)
{
        int32_t id;

        c->error[0] = c->kafka.error[0] = '\0';
        return c->zk ? zk_cluster_controller(c->zk, &id, host, ret_port, c->error)
                     : kafka_admin_controller(&c->kafka, &id, host, ret_port);
}

/* R44: whatever is thrown is a failed attempt. */
static int controller_failed(const char *why, struct outcome *ret)
{
        (void)fprintf(stderr, "stepdown shutdown-broker: Operation failed due to controller failure: %s\n",
                      why);
        ret->status = CLI_UNAVAILABLE;
        return ret->status;
}

static const char *why_not(const struct cluster *c, int r)
{
        if (c->error[0])
                return c->error;
        if (c->kafka.error[0])
                return c->kafka.error;
        return c->zk && zk_admin_error(c->zk)[0] ? zk_admin_error(c->zk) : strerror(-r);
}

static int judge_error(const struct shutdown_options *o, struct outcome *ret)
{
        switch (ret->error) {
        case KAFKA_NOT_CONTROLLER:
        case KAFKA_STALE_CONTROLLER_EPOCH:
                return controller_failed("the controller moved to another broker", ret);
        case KAFKA_BROKER_NOT_AVAILABLE:
                (void)fprintf(stderr, "stepdown shutdown-broker: broker %" PRId32 " is not registered\n",
                              o->broker);
                break;
        default:
                (void)fprintf(stderr, "stepdown shutdown-broker: the controller refuses: %s\n",
                              kafka_error_name(ret->error));
        }
        ret->status = CLI_FAILED;
        return ret->status;
}

/* D3, D4: the controller has waited a while for its turn, and nothing has begun. */
static int waits(struct outcome *ret)
{
        if (ret->res->slot_holder.data)
                (void)fprintf(stderr, "stepdown shutdown-broker: the drain slot is held by %.*s\n",
                              (int)ret->res->slot_holder.len, ret->res->slot_holder.data);
        else
                (void)fputs("stepdown shutdown-broker: stopping the broker is not safe yet; see `stepdown "
                            "check`\n",
                            stderr);
        ret->status = CLI_INCOMPLETE;
        return ret->status;
}

static int attempt(struct cluster *c, const struct shutdown_options *o, struct outcome *ret)
{
        const struct wire_api *api = wire_api_find(CONTROLLED_SHUTDOWN);
        struct controlled_shutdown_request req;
        void *response;
        uint16_t port;
        char host[256];
        int r;

        ret->attempts++;
        ret->res = NULL;
        ret->error = KAFKA_NONE;
        r = find_controller(c, host, &port);
        if (r == -EINVAL || r == -EPERM)
                return ret->status = cluster_fail(c, r);
        if (r == 0) {
                wire_init(api->request, &req);
                req.broker_id = o->broker;
                req.broker_epoch = -1;
                req.slot_wait_ms = SLOT_WAIT_MS;
                r = kafka_admin_ask_at(&c->kafka, host, port, api, VERSION, &req, &response);
        }
        if (r < 0)
                return controller_failed(why_not(c, r), ret);
        ret->res = response;
        ret->error = ret->res->error_code;
        if (ret->error == KAFKA_OPERATION_NOT_ATTEMPTED)
                return waits(ret);
        if (ret->error != KAFKA_NONE)
                return judge_error(o, ret);
        ret->status = ret->res->remaining_partitions.n > 0 ? CLI_INCOMPLETE : CLI_OK;
        return ret->status;
}

static void print_text(const struct outcome *out)
{
        const struct controlled_shutdown_response *res = out->res;

        if (out->status == CLI_OK)
                puts("Shutdown status: complete");
        if (out->status != CLI_INCOMPLETE)
                return;
        if (out->error != KAFKA_NONE) {
                puts("Shutdown status: incomplete (it is not its turn)");
                return;
        }
        printf("Shutdown status: incomplete (broker still leads %d partitions)\n",
               res->remaining_partitions.n);
        for (int32_t i = 0; i < MIN(res->remaining_partitions.n, LISTED); i++)
                printf("  [%.*s,%d]\n", (int)res->remaining_partitions.items[i].topic_name.len,
                       res->remaining_partitions.items[i].topic_name.data,
                       res->remaining_partitions.items[i].partition_index);
        if (res->remaining_partitions.n > LISTED)
                printf("  and %d more\n", res->remaining_partitions.n - LISTED);
        (void)fflush(stdout);
}

static void print_json(const struct shutdown_options *o, const struct outcome *out)
{
        bool answered = out->status == CLI_OK || out->status == CLI_INCOMPLETE;
        json_t *list = json_array();

        for (int32_t i = 0; answered && i < out->res->remaining_partitions.n; i++) {
                const struct controlled_shutdown_response_remaining_partition *p =
                        &out->res->remaining_partitions.items[i];

                (void)json_array_append_new(list,
                                            json_pack("{s:o, s:i}", "topic", json_out_str(p->topic_name),
                                                      "partition", (int)p->partition_index));
        }
        json_out_print(json_pack("{s:i, s:s, s:i, s:s?, s:o}", "broker", (int)o->broker, "status",
                                 out->status == CLI_OK           ? "complete"
                                 : out->status == CLI_INCOMPLETE ? "incomplete"
                                                                 : "failed",
                                 "attempts", (int)out->attempts, "error",
                                 out->error != KAFKA_NONE ? kafka_error_name(out->error) : NULL, "remaining",
                                 list));
}

static void pause_ms(int64_t ms)
{
        struct timespec t = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

        while (nanosleep(&t, &t) < 0 && errno == EINTR)
                ;
}

static int try_all(struct cluster *c, const struct shutdown_options *o)
{
        int64_t interval_ms = MAX(o->retry_interval_ms, MIN_INTERVAL_MS);
        struct outcome out = {0};

        for (int32_t left = o->num_retries;; left--) {
                int status = attempt(c, o, &out);

                if (!o->where.json)
                        print_text(&out);
                if (status != CLI_INCOMPLETE && status != CLI_UNAVAILABLE)
                        break;
                if (left == 0)
                        break;
                pause_ms(interval_ms);
        }
        if (o->where.json)
                print_json(o, &out);
        return out.status;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct shutdown_options o = {
                .where = CLUSTER_DEFAULTS, .broker = -1, .retry_interval_ms = MIN_INTERVAL_MS};
        cleanup_with(cluster_closep) struct cluster c = {0};
        int n, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0 || o.broker < 0)
                return cli_usage(self, n > 0 ? "no argument is expected" : "--broker N is required");
        r = cluster_open(&c, self->name, &o.where);
        return r != CLI_OK ? r : try_all(&c, &o);
}

const struct cli_verb cli_verb_shutdown_broker = {
        .name = "shutdown-broker",
        .synopsis = "--broker N [--zookeeper HOST:PORT,…] [OPTIONS]",
        .summary = "move a broker's leadership away, as the tool of Kafka 0.8 did",
        .details = "Asks the controller and prints \"Shutdown status: complete\" or \"incomplete\". The "
                   "broker's\n"
                   "process is not ended. `stepdown drain --wait` does the same and waits until it is done.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
