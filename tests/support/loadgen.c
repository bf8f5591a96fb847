/* loadgen: a producer and a verifying consumer on librdkafka, for the demo, the cluster tests and the
 * benches. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h> /* wants the line above */

#include "base/clock.h"
#include "loadgen.h"

#define TOPIC_TIMEOUT_MS 30000
#define PATIENCE_MS      5000

enum { EXIT_FINE = 0, EXIT_HARM = 1, EXIT_CANNOT = 2 };

static int64_t ms(int64_t us)
{
        return (us + 500) / 1000;
}

static void print_json(FILE *out, const struct run *run, const struct ledger_totals *t, int64_t elapsed_ms,
                       bool final)
{
        (void)fprintf(out,
                      "{\"elapsed_ms\":%" PRId64 ",\"sent\":%" PRId64 ",\"acked\":%" PRId64
                      ",\"failed\":%" PRId64 ",\"consumed\":%" PRId64 ",\"lost_so_far\":%" PRId64
                      ",\"out_of_order\":%" PRId64 ",\"duplicated\":%" PRId64 ",\"damaged\":%" PRId64
                      ",\"max_gap_ms\":%" PRId64 ",\"gap_p50_ms\":%" PRId64 ",\"gap_p99_ms\":%" PRId64
                      ",\"current_gap_ms\":%" PRId64 ",\"max_latency_ms\":%" PRId64 ",\"final\":%s}\n",
                      elapsed_ms, t->sent, t->acked, t->failed, t->consumed, t->lost, t->out_of_order,
                      t->duplicated, (int64_t)run->damaged, ms(t->max_gap_us), ms(t->gap_p50_us),
                      ms(t->gap_p99_us), ms(t->current_gap_us), ms(t->max_latency_us),
                      final ? "true" : "false");
}

/* Readers see the old or the new object. No sync: it is of no use after a crash. */
static void write_stats_file(const struct run *run, const struct ledger_totals *t, int64_t elapsed_ms,
                             bool final)
{
        char temporary[4096];
        FILE *out;

        (void)snprintf(temporary, sizeof(temporary), "%s.tmp", run->options.stats_file);
        out = fopen(temporary, "we");
        if (!out)
                return;
        print_json(out, run, t, elapsed_ms, final);
        if (fclose(out) == 0)
                (void)rename(temporary, run->options.stats_file);
}

static void write_gaps_file(const struct run *run)
{
        FILE *out = run->options.gaps_file ? fopen(run->options.gaps_file, "we") : NULL;

        if (!out)
                return;
        ledger_gaps_print(run->ledger, clock_real_ms() * 1000 - clock_mono_us(), out);
        (void)fclose(out);
}

static void report(struct run *run, int64_t began_ms, bool final, struct ledger_totals *ret)
{
        int64_t elapsed_ms = clock_mono_ms() - began_ms;

        ledger_sum(run->ledger, clock_mono_us(), final, ret);
        if (run->options.stats_file)
                write_stats_file(run, ret, elapsed_ms, final);
        if (run->options.json) {
                print_json(stdout, run, ret, elapsed_ms, final);
                (void)fflush(stdout);
        }
}

/* Wait for a signal until the interval is over; returns whether to stop writing. */
static bool wait_interval(struct run *run, const sigset_t *signals)
{
        const struct timespec interval = {.tv_sec = run->options.interval_ms / 1000,
                                          .tv_nsec = run->options.interval_ms % 1000 * 1000000};

        switch (sigtimedwait(signals, NULL, &interval)) {
        case SIGUSR1:
                ledger_gaps_reset(run->ledger, clock_mono_us());
                return false;
        case SIGUSR2:
                ledger_gaps_freeze(run->ledger, clock_mono_us());
                write_gaps_file(run);
                return false;
        case SIGTERM:
        case SIGINT:
                return true;
        default:
                return false;
        }
}

static void watch(struct run *run, const sigset_t *signals, int64_t began_ms)
{
        const struct options *o = &run->options;
        struct ledger_totals t;

        while (!run->producer_done) {
                if (wait_interval(run, signals))
                        run->stop_producing = true;
                if (o->duration_ms > 0 && clock_mono_ms() - began_ms >= o->duration_ms)
                        run->stop_producing = true;
                report(run, began_ms, false, &t);
        }
}

/* Until every acknowledged number has come back and every partition is read to its end. A number still
 * missing from partitions read to their end is lost; only a new leader's high watermark may lag a moment,
 * hence the patience. A second SIGTERM ends the waiting, not the accounting. */
static void wait_for_consumer(struct run *run, const sigset_t *signals, int64_t began_ms)
{
        int64_t until_ms = clock_mono_ms() + run->options.drain_timeout_ms, at_end_since_ms = 0;
        struct ledger_totals t;

        do {
                report(run, began_ms, false, &t);
                if (!consumer_caught_up(run))
                        at_end_since_ms = 0;
                else if (t.unread == 0)
                        return;
                else if (at_end_since_ms == 0)
                        at_end_since_ms = clock_mono_ms();
                else if (clock_mono_ms() - at_end_since_ms >= PATIENCE_MS)
                        break;
                if (wait_interval(run, signals))
                        break;
        } while (clock_mono_ms() < until_ms && !run->consumer_failed);
        (void)fprintf(stderr, "loadgen: %" PRId64 " acknowledged messages were not read; %s\n", t.unread,
                      at_end_since_ms ? "the consumer is at the end of every partition"
                                      : "the consumer did not reach the end");
}

static int finish(struct run *run, int64_t began_ms)
{
        struct ledger_totals t;

        report(run, began_ms, true, &t);
        if (run->damaged > 0)
                (void)fprintf(stderr, "loadgen: %" PRId64 " messages came back damaged\n",
                              (int64_t)run->damaged);
        printf("loadgen: acked=%" PRId64 " failed=%" PRId64 " consumed=%" PRId64 " lost=%" PRId64
               " out_of_order=%" PRId64 " duplicated=%" PRId64 " max_gap_ms=%" PRId64 " gap_p50_ms=%" PRId64
               " gap_p99_ms=%" PRId64 "\n",
               t.acked, t.failed, t.consumed, t.lost, t.out_of_order, t.duplicated, ms(t.max_gap_us),
               ms(t.gap_p50_us), ms(t.gap_p99_us));
        if (t.lost > 0 || t.out_of_order > 0 || run->damaged > 0)
                return EXIT_HARM;
        return run->producer_failed || run->consumer_failed ? EXIT_CANNOT : EXIT_FINE;
}

static int run_threads(struct run *run, const sigset_t *signals)
{
        int64_t began_ms = clock_mono_ms();
        pthread_t producer, consumer;
        bool started;

        if (pthread_create(&consumer, NULL, consumer_main, run) != 0)
                return EXIT_CANNOT;
        started = pthread_create(&producer, NULL, producer_main, run) == 0;
        if (!started)
                run->producer_failed = run->producer_done = true;
        watch(run, signals, began_ms);
        if (started)
                (void)pthread_join(producer, NULL);
        wait_for_consumer(run, signals, began_ms);
        run->stop_consuming = true;
        (void)pthread_join(consumer, NULL);
        return finish(run, began_ms);
}

/* The partitions named by the options; n stays 0 where that is "all the topic has". */
static int choose_partitions(struct run *run)
{
        const struct options *o = &run->options;
        int r = 0;

        if (o->only)
                r = partitions_parse(o->only, &run->partitions);
        else if (o->only_file)
                r = partitions_read(o->only_file, &run->partitions);
        else if (o->partitions > 0)
                r = partitions_first((int32_t)o->partitions, &run->partitions);
        if (r < 0)
                (void)fprintf(stderr, "loadgen: bad list of partitions: %s\n", strerror(-r));
        return r;
}

static int prepare(struct run *run)
{
        int32_t n, wanted;

        if (choose_partitions(run) < 0)
                return -EINVAL;
        wanted = MAX(run->partitions.end, 1);

        run->producer = producer_new(run);
        run->consumer = consumer_new(run);
        if (!run->producer || !run->consumer)
                return -EINVAL;
        if (client_wait_topic(run->producer, run->options.topic, wanted, TOPIC_TIMEOUT_MS, &n) < 0) {
                (void)fprintf(stderr, "loadgen: %s: no topic '%s' with %" PRId32 " partitions within %d s\n",
                              run->bootstrap, run->options.topic, wanted, TOPIC_TIMEOUT_MS / 1000);
                return -ETIMEDOUT;
        }
        if (run->partitions.n == 0 && partitions_first(n, &run->partitions) < 0)
                return -ENOMEM;
        run->ledger = ledger_new(run->partitions.end);
        run->positions = calloc((size_t)run->partitions.end, sizeof(*run->positions));
        return run->ledger && run->positions ? 0 : -ENOMEM;
}

static int run_all(struct run *run, const sigset_t *signals)
{
        int status = prepare(run) < 0 ? EXIT_CANNOT : run_threads(run, signals);

        if (run->producer)
                rd_kafka_destroy(run->producer);
        if (run->consumer)
                rd_kafka_destroy(run->consumer);
        run->ledger = ledger_free(run->ledger);
        free(run->positions);
        partitions_done(&run->partitions);
        return status;
}

/* The library's simulated brokers, for trying this program without a real one. */
static int run_mock(struct run *run, const sigset_t *signals)
{
        const struct property none[] = {{NULL, NULL}};
        rd_kafka_t *host = client_new(RD_KAFKA_PRODUCER, none, run->options.verbose, NULL, NULL);
        rd_kafka_mock_cluster_t *cluster;
        int status = EXIT_CANNOT;

        if (!host)
                return EXIT_CANNOT;
        cluster = rd_kafka_mock_cluster_new(host, (int)run->options.mock);
        if (cluster && rd_kafka_mock_topic_create(cluster, run->options.topic, (int)run->options.partitions,
                                                  (int)run->options.mock) == RD_KAFKA_RESP_ERR_NO_ERROR) {
                run->bootstrap = rd_kafka_mock_cluster_bootstraps(cluster);
                status = run_all(run, signals);
        }
        if (cluster)
                rd_kafka_mock_cluster_destroy(cluster);
        rd_kafka_destroy(host);
        return status;
}

static void block_signals(sigset_t *ret)
{
        (void)sigemptyset(ret);
        (void)sigaddset(ret, SIGTERM);
        (void)sigaddset(ret, SIGINT);
        (void)sigaddset(ret, SIGUSR1);
        (void)sigaddset(ret, SIGUSR2);
        (void)pthread_sigmask(SIG_BLOCK, ret, NULL); /* before any thread: they inherit it */
}

int main(int argc, char **argv)
{
        struct run run = {0};
        sigset_t signals;

        if (options_parse(argc, argv, &run.options) < 0)
                return EXIT_CANNOT;
        if (run.options.help) {
                options_print_help();
                return EXIT_FINE;
        }
        if (getrandom(&run.id, sizeof(run.id), 0) != sizeof(run.id))
                return EXIT_CANNOT;
        block_signals(&signals);
        run.bootstrap = run.options.bootstrap;
        return run.options.mock > 0 ? run_mock(&run, &signals) : run_all(&run, &signals);
}
