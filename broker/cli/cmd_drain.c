/* `stepdown drain`: for people, and what ExecStop= and preStop run. */
#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"
#include "base/slog.h"
#include "cli/drain_session.h"
#include "cli/verbs.h"
#include "drain_record.h"
#include "sidecar_config.h"

struct options {
        int32_t broker;
        bool wait, status, json, undo, record_exit, force, cluster_shutdown;
        int64_t deadline_ms;
        const char *config, *socket, *endpoints, *reason, *result_file;
};

#define AT(member) offsetof(struct options, member)

static const struct cli_option options[] = {
        {"broker", CLI_INT32, AT(broker), "N", "the broker (default: the configured one, else this host's)",
         0, INT32_MAX},
        {"wait", CLI_FLAG, AT(wait), NULL, "wait until the broker leads nothing, or the deadline", 0, 0},
        {"deadline", CLI_DURATION_MS, AT(deadline_ms), "TIME", "limit, e.g. 25min (default: drain.deadline)",
         0, 0},
        {"status", CLI_FLAG, AT(status), NULL, "print how the drain stands, change nothing", 0, 0},
        {"undo", CLI_FLAG, AT(undo), NULL, "undo the drain: the broker may lead again", 0, 0},
        {"reason", CLI_STRING, AT(reason), "TEXT", "why; kept in the record", 0, 0},
        {"force", CLI_FLAG, AT(force), NULL,
         "do not wait: neither for the drain slot, whose holder's drain is undone, nor until stopping is "
         "safe; needs --reason",
         0, 0},
        {"cluster-shutdown", CLI_FLAG, AT(cluster_shutdown), NULL,
         "all of the cluster is being stopped: nothing is moved, and no broker waits for another", 0, 0},
        {"json", CLI_FLAG, AT(json), NULL, "print the status as JSON", 0, 0},
        {"config", CLI_STRING, AT(config), "FILE", "configuration (default " SIDECAR_CONFIG_DEFAULT ")", 0,
         0},
        {"socket", CLI_STRING, AT(socket), "PATH", "the sidecar's socket; '': do not ask it", 0, 0},
        {"endpoints", CLI_STRING, AT(endpoints), "LIST", "admin listeners, http://host:port,…", 0, 0},
        {"result-file", CLI_STRING, AT(result_file), "FILE",
         "with --wait: write the record there (default under ExecStop=: result.file)", 0, 0},
        {"record-exit", CLI_FLAG, AT(record_exit), NULL,
         "for ExecStopPost=: add the service's result to the record", 0, 0},
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "drained, or nothing to drain, or the whole cluster stops; --status and --undo: done"},
        {CLI_USAGE, "wrong usage or configuration"},
        {CLI_UNAVAILABLE, "no controller answered"},
        {CLI_INCOMPLETE, "incomplete: the deadline came, the drain was cancelled, or the wait was cut short"},
        {CLI_BROKER_GONE, "the broker ended before it was drained"},
        {0, NULL},
};

/* How systemd runs us. In ExecStop= and ExecStopPost= it sets SERVICE_RESULT; MAINPID is missing once the
 * main process has exited. */
static bool under_exec_stop(void)
{
        return getenv("SERVICE_RESULT") != NULL;
}

static int load_config(const struct options *o, struct sidecar_config *config)
{
        const char *path = o->config ? o->config : SIDECAR_CONFIG_DEFAULT, *overrides[2] = {NULL, NULL};
        cleanup_with(freep) char *error = NULL, *endpoints = NULL;
        int r;

        if (o->endpoints) {
                if (asprintf(&endpoints, "admin.endpoints=%s", o->endpoints) < 0) {
                        endpoints = NULL;
                        return -ENOMEM;
                }
                overrides[0] = endpoints;
        }
        if (!o->config && access(path, F_OK) < 0)
                path = NULL;
        r = sidecar_config_load(path, overrides, config, &error);
        if (r < 0)
                (void)fprintf(stderr, "stepdown drain: %s\n", error ? error : strerrordesc_np(-r));
        return r;
}

static void print_status(const struct options *o, const struct drain_status *st)
{
        cleanup_with(json_decrefp) json_t *object = o->json ? drain_status_to_json(st) : NULL;
        cleanup_with(freep) char *text =
                object ? json_dumps(object, JSON_INDENT(2) | JSON_PRESERVE_ORDER | JSON_REAL_PRECISION(12))
                       : NULL;
        char line[512];

        if (text) {
                printf("%s\n", text);
                return;
        }
        drain_status_line(st, line, sizeof(line));
        printf("%s\n", line);
}

static void print_blocked(const struct drain_status *st)
{
        for (size_t i = 0; i < st->n_blocked && st->remaining > 0; i++)
                printf("  [%s,%" PRId32 "] %s\n", st->blocked[i].topic, st->blocked[i].partition,
                       st->blocked[i].reason);
        if (st->remaining > 0 && st->blocked_total > (int32_t)st->n_blocked)
                printf("  and %" PRId32 " more\n", st->blocked_total - (int32_t)st->n_blocked);
}

static void write_result(const struct options *o, const struct sidecar_config *config, bool by_systemd,
                         const struct drain_status *st)
{
        const char *path = o->result_file ? o->result_file : config->result_file;
        int r;

        if (!o->result_file && !by_systemd)
                return;
        r = drain_record_write(path, st);
        if (r < 0)
                slog_warning("result-not-written", "cannot write the record of this stop",
                             SL_STR("path", path), SL_ERR(r));
}

static void record_none(const char *path, const char *why)
{
        int r = drain_record_none(path, why);

        if (r < 0)
                slog_warning("result-not-written", "cannot write the record of this stop",
                             SL_STR("path", path), SL_ERR(r));
}

static int64_t main_pid(void)
{
        const char *text = getenv("MAINPID");
        int64_t pid = 0;

        return text && parse_int64(text, 1, INT32_MAX, &pid) == 0 ? pid : 0;
}

static void fill_session(const struct options *o, const struct sidecar_config *config,
                         struct drain_session_options *ret)
{
        bool by_systemd = under_exec_stop();

        *ret = (struct drain_session_options){
                .broker = o->broker,
                .socket = o->socket ? o->socket : config->control_socket,
                .reason = o->reason    ? o->reason
                          : by_systemd ? "systemd stop"
                                       : "",
                .requested_by = by_systemd ? "systemd" : "stepdown drain",
                .deadline_ms = o->deadline_ms,
                .main_pid = by_systemd ? main_pid() : 0,
                .undo = o->undo,
                .force = o->force,
                .cluster_stop = o->cluster_shutdown,
                .wait = o->wait,
                .under_systemd = by_systemd,
                .live = !by_systemd && !o->json && isatty(STDERR_FILENO),
        };
}

static int do_status(const struct options *o, const struct sidecar_config *config, struct drain_status *st)
{
        struct drain_session_options session;
        int r;

        fill_session(o, config, &session);
        r = drain_session_status(&session, config, st);
        if (r < 0) {
                (void)fprintf(stderr, "stepdown drain: nobody answers: %s\n",
                              st->message[0] ? st->message : strerrordesc_np(-r));
                return CLI_UNAVAILABLE;
        }
        print_status(o, st);
        if (!o->json)
                print_blocked(st);
        return CLI_OK;
}

static int exit_status(const struct options *o, const struct drain_status *st)
{
        if (o->undo)
                return st->state == DRAIN_ABORTED && st->why == DRAIN_WHY_UNDONE ? CLI_OK : CLI_UNAVAILABLE;
        if (!drain_phase_is_ended(st->state))
                return o->wait ? CLI_INCOMPLETE
                               : CLI_OK; /* without --wait: accepted is all that was asked for */
        return drain_phase_exit_status(st->state);
}

static int do_drain(const struct options *o, const struct sidecar_config *config, struct drain_status *st)
{
        struct drain_session_options session;
        int r;

        fill_session(o, config, &session);
        if (session.live)
                slog_set_level(SLOG_WARNING); /* the live line says it all */
        r = drain_session_run(&session, config, st);
        if (r < 0) {
                (void)fprintf(stderr, "stepdown drain: %s\n", strerrordesc_np(-r));
                if (session.under_systemd && o->wait)
                        record_none(o->result_file ? o->result_file : config->result_file, "failed");
                return CLI_FAILED;
        }
        if (o->wait && !o->undo)
                write_result(o, config, session.under_systemd, st);
        /* Under systemd the journal has it as an event, and the unit's status shows it. */
        if (!session.under_systemd)
                print_status(o, st);
        if (!session.under_systemd && !o->json && st->state == DRAIN_INCOMPLETE)
                print_blocked(st);
        return exit_status(o, st);
}

static int check_usage(const struct options *o, int n_args)
{
        int modes = o->status + o->undo + o->record_exit;

        if (o->force && (!o->reason || o->reason[0] == '\0')) {
                (void)fprintf(stderr, "stepdown drain: --force needs --reason TEXT, which is recorded\n");
                return -EINVAL;
        }
        if (n_args == 0 && modes <= 1 && !(modes == 1 && o->wait && !o->undo))
                return 0;
        (void)fprintf(stderr, "stepdown drain: %s; see stepdown drain --help\n",
                      n_args > 0 ? "no argument is expected (the broker is given with --broker N)"
                                 : "only one of --wait, --status, --undo, --record-exit");
        return -EINVAL;
}

static int do_record_exit(const struct options *o, const struct sidecar_config *config)
{
        const char *path = o->result_file ? o->result_file : config->result_file;
        int r = drain_record_exit(path);

        if (r < 0)
                (void)fprintf(stderr, "stepdown drain: %s: %s\n", path, strerrordesc_np(-r));
        return r < 0 ? CLI_FAILED : CLI_OK;
}

static int run_with_config(const struct options *o, const struct sidecar_config *config)
{
        cleanup_with(freep) struct drain_status *st = calloc(1, sizeof(*st));
        int status;

        (void)signal(SIGPIPE, SIG_IGN); /* a reader of what we say may go away; the drain goes on */
        if (!st || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
                return CLI_FAILED;
        status = o->status ? do_status(o, config, st) : do_drain(o, config, st);
        curl_global_cleanup();
        return status;
}

/* A stop whose drain did not even begin, for the configuration is wrong: the record says so, and the one of
 * an earlier stop must not stand for it (L6). Where the record belongs is in that configuration; what is left
 * is the default. */
static void record_no_config(const struct options *o)
{
        const char *path = o->result_file ? o->result_file : "/var/lib/stepdown-broker/last-stop.json";

        if (!under_exec_stop() || o->status || o->undo)
                return;
        record_none(path, "configuration");
        if (o->record_exit)
                (void)!drain_record_exit(path); /* a failure was told of just now */
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        cleanup_with(sidecar_config_donep) struct sidecar_config config = {0};
        struct options o = {.broker = -1};
        int n_args, r;

        r = cli_parse(self, argc, argv, &o, &n_args);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (check_usage(&o, n_args) < 0)
                return CLI_USAGE;
        /* ExecStop= of a service whose main process has exited by itself: there is nothing to drain, and
         * waiting would only delay the restart. */
        if (!o.record_exit && !o.status && !o.undo && under_exec_stop() && main_pid() == 0) {
                slog_info("drain-nothing", "the main process has exited already: nothing to drain");
                return CLI_OK;
        }
        if (load_config(&o, &config) < 0) {
                record_no_config(&o);
                return CLI_USAGE;
        }
        return o.record_exit ? do_record_exit(&o, &config) : run_with_config(&o, &config);
}

const struct cli_verb cli_verb_drain = {
        .name = "drain",
        .synopsis = "[--wait] [--deadline TIME] [--broker N] [--status | --undo | --record-exit] [OPTIONS]",
        .summary = "hand a broker's partition leadership over to in-sync replicas",
        .details = "Starts the drain, or joins the one in progress. The sidecar does the work; where it does "
                   "not\n"
                   "answer, this process does. As ExecStop= of a systemd unit with NotifyAccess=exec it "
                   "keeps the\n"
                   "unit's status line current, extends the stop timer while the drain makes progress, and "
                   "leaves\n"
                   "at once when the main process ends or on SIGTERM.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
