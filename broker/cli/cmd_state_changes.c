/* stepdown state-changes: the brokers' state-change logs merged in order of time (R63), as
 * kafka.tools.StateChangeLogMerger does. */
#include <dirent.h>
#include <errno.h>
#include <jansson.h>
#include <regex.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "cli/state_log.h"
#include "cli/verbs.h"

#define FIRST_TIME "0000-00-00 00:00:00,000"
#define LAST_TIME  "9999-12-31 23:59:59,999"

struct merge_options {
        const char *logs, *logs_regex, *topic, *partitions, *start_time, *end_time;
        bool json;
};

#define AT(m) offsetof(struct merge_options, m)

static const struct cli_option options[] = {
        {"logs", CLI_STRING, AT(logs), "FILE,…", "the log files to merge", 0, 0},
        {"logs-regex", CLI_STRING, AT(logs_regex), "DIR/REGEX",
         "all files of a folder whose whole names match an extended regular expression", 0, 0},
        {"topic", CLI_STRING, AT(topic), "TOPIC", "only this topic (default: all)", 0, 0},
        {"partitions", CLI_STRING, AT(partitions), "0,1,2", "only these partitions of --topic", 0, 0},
        {"start-time", CLI_STRING, AT(start_time), "TIME", "from here on (default \"" FIRST_TIME "\")", 0, 0},
        {"end-time", CLI_STRING, AT(end_time), "TIME", "until here (default \"" LAST_TIME "\")", 0, 0},
        {"json", CLI_FLAG, AT(json), NULL, "print one JSON object a line", 0, 0},
};

static const struct cli_exit_row exits[] = {
        {CLI_OK, "done"},
        {CLI_FAILED, "a file cannot be read; nothing or a part was printed"},
        {CLI_USAGE, "the command line is wrong"},
        {0, NULL},
};

struct files {
        struct arena arena;
        const char **items;
        size_t n, room;
};

static int add_file(struct files *f, const char *path, size_t len)
{
        char *copy = arena_strndup(&f->arena, path, len);

        if (f->n == f->room) {
                const char **more = reallocarray(f->items, f->room * 2 + 16, sizeof(*more));

                if (!more)
                        return -ENOMEM;
                f->items = more;
                f->room = f->room * 2 + 16;
        }
        if (!copy)
                return -ENOMEM;
        f->items[f->n++] = copy;
        return 0;
}

static int list_files(const char *logs, struct files *f)
{
        int r = 0;

        for (const char *p = logs; r == 0 && *p; p += strspn(p, ",")) {
                size_t len = strcspn(p, ",");

                if (len > 0)
                        r = add_file(f, p, len);
                p += len;
        }
        return r;
}

/* --- the regular expression --- */

static int compile(const char *expression, regex_t *ret)
{
        char whole[1024], why[256];
        int r;

        /* The whole name must match, as with Java's matches(). */
        if (snprintf(whole, sizeof(whole), "^(%s)$", expression) >= (int)sizeof(whole))
                return -EINVAL;
        r = regcomp(ret, whole, REG_EXTENDED | REG_NOSUB);
        if (r == 0)
                return 0;
        (void)regerror(r, ret, why, sizeof(why));
        (void)fprintf(stderr, "stepdown state-changes: --logs-regex '%s': %s\n", expression, why);
        return -EINVAL;
}

static int by_path(const void *a, const void *b)
{
        return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static int scan(const char *folder, size_t folder_len, DIR *dir, const regex_t *re, struct files *f)
{
        struct dirent *e;
        int r = 0;

        while (r == 0 && (e = readdir(dir))) {
                cleanup_with(freep) char *path = NULL;

                if (e->d_name[0] == '.' || regexec(re, e->d_name, 0, NULL, 0) != 0)
                        continue;
                if (asprintf(&path, "%.*s%s", (int)folder_len, folder, e->d_name) < 0) {
                        path = NULL;
                        return -ENOMEM;
                }
                r = add_file(f, path, strlen(path));
        }
        return r;
}

/* The last component is the expression, what stands before it the folder. */
static int match_files(const char *where, struct files *f)
{
        const char *slash = strrchr(where, '/'), *expression = slash ? slash + 1 : where;
        size_t folder_len = (size_t)(expression - where);
        cleanup_with(freep) char *folder = folder_len ? strndup(where, folder_len) : strdup("./");
        DIR *dir;
        regex_t re;
        int r;

        r = folder ? compile(expression, &re) : -ENOMEM;
        if (r < 0)
                return r;
        dir = opendir(folder);
        r = dir ? scan(where, folder_len, dir, &re, f) : -errno;
        if (r < 0)
                (void)fprintf(stderr, "stepdown state-changes: %s: %s\n", folder, strerror(-r));
        if (dir)
                (void)closedir(dir);
        regfree(&re);
        if (f->n > 1)
                qsort(f->items, f->n, sizeof(*f->items), by_path);
        if (r == 0 && f->n == 0) {
                (void)fprintf(stderr, "stepdown state-changes: no file in %s matches '%s'\n", folder,
                              expression);
                r = -ENOENT;
        }
        return r;
}

/* --- output --- */

static int print_line(const struct state_change *c, void *userdata)
{
        (void)userdata;
        if (fwrite(c->line, 1, c->len, stdout) < c->len || putchar('\n') == EOF)
                return -EIO;
        return 0;
}

static int print_json(const struct state_change *c, void *userdata)
{
        json_t *line = json_stringn(c->line, c->len), *j;

        (void)userdata;
        if (!line) /* not UTF-8: the text is left out rather than the event */
                line = json_null();
        j = json_pack("{s:o, s:o, s:I, s:s, s:o}", "time", json_stringn(c->time, STATE_LOG_TIME_LEN), "topic",
                      json_stringn(c->topic, c->topic_len), "partition", (json_int_t)c->partition, "file",
                      c->file, "line", line);
        (void)json_dumpf(j, stdout, JSON_COMPACT | JSON_PRESERVE_ORDER);
        json_decref(j);
        return putchar('\n') == EOF ? -EIO : 0;
}

/* --- the verb --- */

static int parse_partitions(struct arena *a, const char *text, struct state_log_filter *f)
{
        char *copy = arena_strndup(a, text, strlen(text)), *rest = copy, *one;
        int32_t *ids = arena_alloc(a, strlen(text) + 1, sizeof(*ids));

        if (!copy || !ids)
                return -ENOMEM;
        while ((one = strsep(&rest, ","))) {
                one += strspn(one, " ");
                one[strcspn(one, " ")] = '\0';
                if (parse_int32(one, 0, INT32_MAX, &ids[f->n_partitions++]) < 0)
                        return -EINVAL;
        }
        f->partitions = ids;
        return 0;
}

static int usage_with_help(const struct cli_verb *self, const char *sentence)
{
        (void)fprintf(stderr, "%s\n", sentence);
        cli_print_verb_help(self, stderr);
        return CLI_USAGE;
}

static int fill_filter(const struct cli_verb *self, const struct merge_options *o, struct arena *a,
                       struct state_log_filter *f)
{
        f->topic = o->topic;
        if ((o->logs != NULL) + (o->logs_regex != NULL) != 1)
                return usage_with_help(self,
                                       "Provide arguments to exactly one of the two options \"[logs]\" or "
                                       "\"[logs-regex]\"");
        if (o->partitions && !o->topic)
                return usage_with_help(self, "The option \"[topic]\" is needed when partitions are given");
        if (o->partitions && parse_partitions(a, o->partitions, f) < 0)
                return cli_usage(self, "--partitions '%s' is not of the form 0,1,2", o->partitions);
        if (state_log_time(o->start_time, FIRST_TIME, f->start) < 0)
                return cli_usage(self, "--start-time '%s' is not of the form " FIRST_TIME, o->start_time);
        if (state_log_time(o->end_time, LAST_TIME, f->end) < 0)
                return cli_usage(self, "--end-time '%s' is not of the form " LAST_TIME, o->end_time);
        return CLI_OK;
}

static int merge(const struct merge_options *o, const struct state_log_filter *filter, struct files *files)
{
        char error[STATE_LOG_TEXT_SIZE];
        int r;

        r = o->logs ? list_files(o->logs, files) : match_files(o->logs_regex, files);
        if (r < 0)
                return r == -EINVAL ? CLI_USAGE : CLI_FAILED;
        r = state_log_merge(files->items, files->n, filter, o->json ? print_json : print_line, NULL, error);
        if (r == 0 && fflush(stdout) == EOF)
                r = -EIO;
        if (r == 0)
                return CLI_OK;
        (void)fprintf(stderr, "stepdown state-changes: %s\n", error[0] ? error : "cannot write the output");
        return CLI_FAILED;
}

static int run(const struct cli_verb *self, int argc, char **argv)
{
        struct merge_options o = {.start_time = FIRST_TIME, .end_time = LAST_TIME};
        struct state_log_filter filter = {0};
        struct files files = {0};
        int n, status, r;

        r = cli_parse(self, argc, argv, &o, &n);
        if (r != 0)
                return r > 0 ? CLI_OK : CLI_USAGE;
        if (n > 0)
                return cli_usage(self, "no argument is expected");
        arena_init(&files.arena, 0);
        status = fill_filter(self, &o, &files.arena, &filter);
        if (status == CLI_OK)
                status = merge(&o, &filter, &files);
        free(files.items);
        arena_done(&files.arena);
        return status;
}

const struct cli_verb cli_verb_state_changes = {
        .name = "state-changes",
        .synopsis = "--logs FILE,… | --logs-regex DIR/REGEX [OPTIONS]",
        .summary = "merge state-change logs of several brokers in order of time",
        .details =
                "Only lines with a time and a [topic,partition] are printed. A time may be cut short:\n"
                "\"2026-11-30 14:05\" begins, or ends, with that minute. Each file is taken to be in order.",
        .options = options,
        .n_options = ARRAY_SIZE(options),
        .exits = exits,
        .run = run,
};
