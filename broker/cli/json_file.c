#include "cli/json_file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fs.h"
#include "base/map.h"
#include "base/parse.h"

#define MAX_FILE_BYTES ((size_t)64 << 20)
#define MAX_TOPIC      249

static int refuse(char error[JSON_FILE_TEXT_SIZE], const char *path, const char *sentence, ...)
        printf_like(3, 4);
static int refuse(char error[JSON_FILE_TEXT_SIZE], const char *path, const char *sentence, ...)
{
        int used = snprintf(error, JSON_FILE_TEXT_SIZE, "%.200s: ", path);
        va_list args;

        va_start(args, sentence);
        (void)vsnprintf(error + used, JSON_FILE_TEXT_SIZE - (size_t)used, sentence, args); /* cut is fine */
        va_end(args);
        return -EBADMSG;
}

static bool is_blank(char c)
{
        return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Overwrite a comma that only white space separates from the closing bracket; the bytes keep their places, so
 * that line and column of a later error are those of the file. */
static void blank_trailing_commas(char *s, size_t len)
{
        size_t comma = SIZE_MAX;
        bool in_string = false;
        char last = '[';

        for (size_t i = 0; i < len; i++) {
                char c = s[i];

                if (in_string) {
                        in_string = c != '"';
                        i += c == '\\';
                        continue;
                }
                if (is_blank(c))
                        continue;
                if ((c == ']' || c == '}') && comma != SIZE_MAX)
                        s[comma] = ' ';
                comma = c == ',' && last != '[' && last != '{' && last != ',' ? i : SIZE_MAX;
                in_string = c == '"';
                last = c;
        }
}

int json_file_load(const char *path, json_t **ret, char error[JSON_FILE_TEXT_SIZE])
{
        cleanup_with(buf_donep) struct buf text = {0};
        cleanup_with(json_decrefp) json_t *j = NULL;
        json_error_t why;
        int r;

        buf_init(&text, 0);
        r = fs_read_file(path, MAX_FILE_BYTES, &text);
        if (r < 0) {
                (void)refuse(error, path, "%s", strerror(-r));
                return r;
        }
        blank_trailing_commas((char *)text.data, text.len);
        j = json_loadb((const char *)text.data, text.len, JSON_REJECT_DUPLICATES, &why);
        if (!j)
                return refuse(error, path, "malformed JSON at line %d, column %d: %s", MAX(why.line, 1),
                              MAX(why.column, 0), why.text);
        if (!json_is_object(j))
                return refuse(error, path, "malformed JSON at line 1, column 1: not an object");
        *ret = TAKE_PTR(j);
        return 0;
}

/* A number, or one in quotes. */
static int take_int32(const json_t *j, int32_t *ret)
{
        json_int_t v;

        if (json_is_string(j))
                return parse_int32(json_string_value(j), 0, INT32_MAX, ret);
        if (!json_is_integer(j))
                return -EINVAL;
        v = json_integer_value(j);
        if (v < 0 || v > INT32_MAX)
                return -ERANGE;
        *ret = (int32_t)v;
        return 0;
}

static int take_topic(const json_t *element, char **ret)
{
        const json_t *j = json_object_get(element, "topic");
        size_t len = json_is_string(j) ? json_string_length(j) : 0;

        if (len == 0 || len > MAX_TOPIC || strlen(json_string_value(j)) != len)
                return -EINVAL;
        *ret = strdup(json_string_value(j));
        return *ret ? 0 : -ENOMEM;
}

static int take_replicas(const json_t *element, struct znode_partition *p)
{
        const json_t *j = json_object_get(element, "replicas");
        size_t n = json_is_array(j) ? json_array_size(j) : 0;

        if (n == 0)
                return -EINVAL;
        p->replicas = calloc(n, sizeof(*p->replicas));
        if (!p->replicas)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                if (take_int32(json_array_get(j, i), &p->replicas[i]) < 0)
                        return -EINVAL;
                for (size_t k = 0; k < i; k++)
                        if (p->replicas[k] == p->replicas[i])
                                return -EEXIST;
        }
        p->n_replicas = n;
        return 0;
}

static int take_partition(const char *path, const json_t *element, size_t i, bool replicas,
                          struct znode_partition *p, char error[JSON_FILE_TEXT_SIZE])
{
        int r;

        r = take_topic(element, &p->topic);
        if (r < 0)
                return r == -ENOMEM
                               ? r
                               : refuse(error, path, "partitions[%zu]: \"topic\" must be a topic's name", i);
        if (take_int32(json_object_get(element, "partition"), &p->partition) < 0)
                return refuse(error, path, "partitions[%zu]: \"partition\" must be a number from 0", i);
        if (!replicas)
                return 0;
        r = take_replicas(element, p);
        if (r == -EEXIST)
                return refuse(error, path, "partitions[%zu]: [%s,%d] has a broker twice among its replicas",
                              i, p->topic, p->partition);
        if (r < 0 && r != -ENOMEM)
                return refuse(error, path, "partitions[%zu]: \"replicas\" must be a list of broker ids", i);
        return r;
}

static int find_duplicate(const char *path, const struct znode_partition_list *l,
                          char error[JSON_FILE_TEXT_SIZE])
{
        cleanup_with(map_freep) struct map *seen = map_new();
        int r = seen ? 0 : -ENOMEM;

        for (size_t i = 0; r == 0 && i < l->n; i++) {
                char key[MAX_TOPIC + 16];

                (void)snprintf(key, sizeof(key), "%s,%d", l->items[i].topic,
                               l->items[i].partition); /* fits */
                r = map_put_str(seen, key, &l->items[i]);
                if (r == -EEXIST)
                        return refuse(error, path, "partitions[%zu]: [%s] stands there twice", i, key);
        }
        return r;
}

static int take_partitions(const char *path, const json_t *list, bool replicas,
                           struct znode_partition_list *l, char error[JSON_FILE_TEXT_SIZE])
{
        size_t n = json_array_size(list);
        int r;

        l->items = calloc(n + 1, sizeof(*l->items));
        if (!l->items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                l->n = i + 1; /* what a failure leaves half-filled is released with the rest */
                r = take_partition(path, json_array_get(list, i), i, replicas, &l->items[i], error);
                if (r < 0)
                        return r;
        }
        return find_duplicate(path, l, error);
}

int json_file_partitions(const char *path, bool replicas, struct znode_partition_list *ret,
                         char error[JSON_FILE_TEXT_SIZE])
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_partition_list l = {0};
        int r;

        r = json_file_load(path, &j, error);
        if (r < 0)
                return r;
        if (!json_is_array(json_object_get(j, "partitions")))
                return refuse(error, path, "\"partitions\" is missing or no list");
        r = take_partitions(path, json_object_get(j, "partitions"), replicas, &l, error);
        if (r < 0)
                znode_partitions_done(&l);
        else
                *ret = l;
        return r;
}

void topic_names_done(struct topic_names *t)
{
        for (size_t i = 0; i < t->n; i++)
                free(t->items[i]);
        free(t->items);
        *t = (struct topic_names){0};
}

static bool known(const struct topic_names *t, const char *name)
{
        for (size_t i = 0; i < t->n; i++)
                if (strcmp(t->items[i], name) == 0)
                        return true;
        return false;
}

static int take_names(const char *path, const json_t *list, struct topic_names *t,
                      char error[JSON_FILE_TEXT_SIZE])
{
        t->items = calloc(json_array_size(list) + 1, sizeof(*t->items));
        if (!t->items)
                return -ENOMEM;
        for (size_t i = 0; i < json_array_size(list); i++) {
                char *name = NULL;
                int r = take_topic(json_array_get(list, i), &name);

                if (r == -ENOMEM)
                        return r;
                if (r < 0)
                        return refuse(error, path, "topics[%zu]: \"topic\" must be a topic's name", i);
                if (known(t, name))
                        free(name);
                else
                        t->items[t->n++] = name;
        }
        return 0;
}

int json_file_topics(const char *path, struct topic_names *ret, char error[JSON_FILE_TEXT_SIZE])
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct topic_names t = {0};
        int r;

        r = json_file_load(path, &j, error);
        if (r < 0)
                return r;
        if (!json_is_array(json_object_get(j, "topics")))
                return refuse(error, path, "\"topics\" is missing or no list");
        r = take_names(path, json_object_get(j, "topics"), &t, error);
        if (r < 0)
                topic_names_done(&t);
        else
                *ret = t;
        return r;
}
