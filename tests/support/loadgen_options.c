/* The command line, from one table that also prints the help. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "loadgen.h"

enum kind { OPT_TEXT, OPT_INT, OPT_DURATION, OPT_CHOICE, OPT_FLAG };

struct row {
        const char *name, *argument;
        enum kind kind;
        size_t offset;
        const char *default_text; /* NULL: none */
        int64_t min, max;
        const char *choices; /* "a|b|c" */
        const char *help;    /* NULL: not shown */
};

#define AT(member) offsetof(struct options, member)

static const struct row rows[] = {
        {"bootstrap", "H:P[,…]", OPT_TEXT, AT(bootstrap), NULL, 0, 0, NULL, "brokers to start from"},
        {"topic", "T", OPT_TEXT, AT(topic), NULL, 0, 0, NULL, "topic to write to and read back"},
        {"partitions", "N", OPT_INT, AT(partitions), "0", 0, 1000000, NULL,
         "write partitions 0 … N-1, in turn (0: all the topic has)"},
        {"only", "P[,…]", OPT_TEXT, AT(only), NULL, 0, 0, NULL, "write just these partitions: 3,7,10-19"},
        {"only-file", "F", OPT_TEXT, AT(only_file), NULL, 0, 0, NULL, "the same, from a file"},
        {"rate", "R", OPT_INT, AT(rate), "0", 0, 100000000, NULL, "messages a second in all (0: no limit)"},
        {"duration", "S", OPT_DURATION, AT(duration_ms), "0", 0, 0, NULL,
         "how long to write, in seconds unless it says ms, s, min (0: until SIGTERM or SIGINT)"},
        {"size", "B", OPT_INT, AT(size), "100", PAYLOAD_MIN_BYTES, 900000, NULL, "bytes of a message"},
        {"codec", "C", OPT_CHOICE, AT(codec), "none", 0, 0, "none|gzip|snappy|lz4|zstd", "compression"},
        {"acks", "A", OPT_CHOICE, AT(acks), "all", 0, 0, "all|1|0", "other than all turns idempotence off"},
        {"idempotence", "X", OPT_CHOICE, AT(idempotence), "on", 0, 0, "on|off", "idempotent producer"},
        {"linger", "MS", OPT_INT, AT(linger_ms), "5", 0, 60000, NULL, "batching delay in milliseconds"},
        {"delivery-timeout", "S", OPT_DURATION, AT(delivery_timeout_ms), "120s", 0, 0, NULL,
         "after this a message has failed"},
        {"drain-timeout", "S", OPT_DURATION, AT(drain_timeout_ms), "60s", 0, 0, NULL,
         "how long to wait at the end for acknowledgements, and again for the consumer"},
        {"leader-query", "MS", OPT_INT, AT(leader_query_ms), "10", 1, 60000, NULL,
         "how soon after NOT_LEADER the library asks who leads (its own default: 250)"},
        {"retry-backoff", "MS", OPT_INT, AT(retry_backoff_ms), "10", 1, 300000, NULL,
         "pause before a batch is sent again (its own default: 100)"},
        {"stats-file", "F", OPT_TEXT, AT(stats_file), NULL, 0, 0, NULL,
         "one JSON object, replaced atomically every interval"},
        {"gaps-file", "F", OPT_TEXT, AT(gaps_file), NULL, 0, 0, NULL,
         "written at SIGUSR2: partition, its longest gap and when that began, in microseconds"},
        {"interval", "MS", OPT_INT, AT(interval_ms), "200", 10, 60000, NULL, "of the statistics"},
        {"json", NULL, OPT_FLAG, AT(json), NULL, 0, 0, NULL, "a JSON line on stdout every interval"},
        {"debug", "C[,…]", OPT_TEXT, AT(debug), NULL, 0, 0, NULL,
         "contexts that the client library traces, such as msg,topic,metadata (implies --verbose)"},
        {"verbose", NULL, OPT_FLAG, AT(verbose), NULL, 0, 0, NULL, "what the client library says"},
        {"help", NULL, OPT_FLAG, AT(help), NULL, 0, 0, NULL, "this text"},
        {"mock", "N", OPT_INT, AT(mock), "0", 0, 100, NULL, NULL}, /* the library's own broker simulation */
};

void options_print_help(void)
{
        printf("Usage: loadgen --bootstrap H:P --topic T [OPTION…]\n"
               "Writes numbered messages, reads them back, and says what was lost, reordered or "
               "doubled.\n\n");
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
                char left[64];

                if (!rows[i].help)
                        continue;
                (void)snprintf(left, sizeof(left), "--%s%s%s", rows[i].name, rows[i].argument ? " " : "",
                               rows[i].argument ? rows[i].argument : "");
                printf("  %-24s %s", left, rows[i].help);
                if (rows[i].choices)
                        printf(": %s", rows[i].choices);
                if (rows[i].default_text)
                        printf(" [%s]", rows[i].default_text);
                printf("\n");
        }
        printf("\nSIGUSR1 forgets the gaps so far, SIGUSR2 freezes them. A gap is the longest time between "
               "two\n"
               "acknowledgements of one partition.\n\n"
               "What a leader that moves costs a client: NOT_LEADER makes the library ask for metadata "
               "after\n"
               "--leader-query (topic.metadata.refresh.fast.interval.ms), and after twice that again while "
               "the\n"
               "answer does not help; the batch is repeated after --retry-backoff (retry.backoff.ms). Every "
               "partition\n"
               "of the topic that moves, written or not, costs the library about 0.05 ms more.\n\n"
               "Exit status: 0; 1 if anything was lost or out of order; 2 if it could not run.\n");
}

static const struct row *find_row(const char *name, size_t len)
{
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (strlen(rows[i].name) == len && memcmp(rows[i].name, name, len) == 0)
                        return &rows[i];
        return NULL;
}

static bool is_choice(const char *choices, const char *text)
{
        size_t len = strlen(text);

        for (const char *at = choices; len > 0 && at; at = strchr(at, '|')) {
                at += *at == '|';
                if (strncmp(at, text, len) == 0 && (at[len] == '|' || at[len] == '\0'))
                        return true;
        }
        return false;
}

static int set_value(const struct row *row, const char *text, struct options *o)
{
        void *member = (char *)o + row->offset;

        switch (row->kind) {
        case OPT_INT:
                return parse_int64(text, row->min, row->max, member);
        case OPT_DURATION:
                return parse_duration_ms(text, 1000, member);
        case OPT_CHOICE:
                if (!is_choice(row->choices, text))
                        return -EINVAL;
                *(const char **)member = text;
                return 0;
        case OPT_TEXT:
                *(const char **)member = text;
                return 0;
        case OPT_FLAG:
                *(bool *)member = true;
                return 0;
        }
        return -EINVAL;
}

static int complain(const char *what, const char *name)
{
        (void)fprintf(stderr, "loadgen: %s: %s (see --help)\n", name, what);
        return -EINVAL;
}

/* Takes one option and its argument; *at is moved past them. */
static int parse_one(int argc, char **argv, int *at, struct options *o)
{
        const char *name = argv[*at], *equals = strchr(name, '='), *value = NULL;
        const struct row *row;

        if (strncmp(name, "--", 2) != 0)
                return complain("not an option", name);
        row = find_row(name + 2, equals ? (size_t)(equals - name - 2) : strlen(name + 2));
        if (!row)
                return complain("unknown option", name);
        (*at)++;
        if (row->kind == OPT_FLAG)
                return equals ? complain("takes no value", name) : set_value(row, NULL, o);
        value = equals ? equals + 1 : *at < argc ? argv[(*at)++] : NULL;
        if (!value)
                return complain("needs a value", name);
        return set_value(row, value, o) < 0 ? complain("bad value", name) : 0;
}

static int check(struct options *o)
{
        if (o->help)
                return 0;
        if (!o->bootstrap && o->mock == 0)
                return complain("is needed", "--bootstrap");
        if (!o->topic)
                return complain("is needed", "--topic");
        if ((o->only != NULL) + (o->only_file != NULL) + (o->partitions > 0) > 1 && o->mock == 0)
                return complain("exclude each other", "--partitions, --only and --only-file");
        if (o->mock > 0 && o->partitions == 0)
                return complain("is needed with --mock", "--partitions");
        if (strcmp(o->acks, "all") != 0)
                o->idempotence = "off"; /* the library refuses the pair */
        return 0;
}

int options_parse(int argc, char **argv, struct options *ret)
{
        struct options o = {0};
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                if (rows[i].default_text && set_value(&rows[i], rows[i].default_text, &o) < 0)
                        abort(); /* a row of ours is wrong */
        for (int at = 1; at < argc;) {
                r = parse_one(argc, argv, &at, &o);
                if (r < 0)
                        return r;
        }
        r = check(&o);
        if (r < 0)
                return r;
        *ret = o;
        return 0;
}
