/* People's JSON files: what is forgiven, and where a refusal points (R55, R61). The golden tests of the tools
 * show the sentences. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/json_file.h"

static char path[] = "/tmp/stepdown-json-XXXXXX";

static int make_file(void **state)
{
        int fd = mkstemp(path);

        (void)state;
        return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
        (void)state;
        return unlink(path);
}

static void write_file(const char *text)
{
        FILE *f = fopen(path, "w");

        assert_non_null(f);
        assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
        assert_int_equal(fclose(f), 0);
}

static int read_partitions(const char *text, bool replicas, struct znode_partition_list *ret)
{
        char error[JSON_FILE_TEXT_SIZE];

        write_file(text);
        return json_file_partitions(path, replicas, ret, error);
}

static void numbers_in_quotes_and_trailing_commas_are_forgiven(void **state)
{
        struct znode_partition_list l;

        (void)state;
        assert_int_equal(read_partitions("{\"partitions\": [ {\"topic\":\"a,]\\\"\", \"partition\":\"07\",\n"
                                         "\"replicas\":[\"1\",2,],},\t],\n}",
                                         true, &l),
                         0);
        assert_int_equal(l.n, 1);
        assert_string_equal(l.items[0].topic, "a,]\"");
        assert_int_equal(l.items[0].partition, 7);
        assert_int_equal(l.items[0].n_replicas, 2);
        assert_int_equal(l.items[0].replicas[0], 1);
        assert_int_equal(l.items[0].replicas[1], 2);
        znode_partitions_done(&l);
}

static void commas_alone_are_not(void **state)
{
        static const char *const texts[] = {"{\"partitions\":[,]}", "{,}", "{\"partitions\":[],,}",
                                            "{\"partitions\":[{\"topic\":\"a\",\"partition\":0},,]}"};
        struct znode_partition_list l;

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
                assert_int_equal(read_partitions(texts[i], false, &l), -EBADMSG);
}

static void replicas_are_looked_at_when_they_are_needed(void **state)
{
        const char *text = "{\"partitions\":[{\"topic\":\"a\",\"partition\":0,\"replicas\":\"?\"}]}";
        struct znode_partition_list l;

        (void)state;
        assert_int_equal(read_partitions(text, true, &l), -EBADMSG);
        assert_int_equal(read_partitions(text, false, &l), 0);
        assert_null(l.items[0].replicas);
        znode_partitions_done(&l);
}

static void an_empty_list_is_a_list(void **state)
{
        struct znode_partition_list l;

        (void)state;
        assert_int_equal(read_partitions("{\"version\":1,\"partitions\":[]}", true, &l), 0);
        assert_int_equal(l.n, 0);
        znode_partitions_done(&l);
}

/* Cut at every byte: refused, never a crash or a leak. */
static void a_torn_file_is_refused(void **state)
{
        const char whole[] =
                "{\"partitions\":[{\"topic\":\"a\",\"partition\":\"0\",\"replicas\":[1,2,],},],}";
        struct znode_partition_list l;
        char text[sizeof(whole)];

        (void)state;
        for (size_t len = 0; len + 1 < sizeof(whole); len++) {
                memcpy(text, whole, len);
                text[len] = '\0';
                assert_int_equal(read_partitions(text, true, &l), -EBADMSG);
        }
        assert_int_equal(read_partitions(whole, true, &l), 0);
        znode_partitions_done(&l);
}

static void topics_count_once(void **state)
{
        char error[JSON_FILE_TEXT_SIZE];
        struct topic_names t;

        (void)state;
        write_file("{\"topics\":[{\"topic\":\"b\"},{\"topic\":\"a\"},{\"topic\":\"b\"},],\"version\":1}");
        assert_int_equal(json_file_topics(path, &t, error), 0);
        assert_int_equal(t.n, 2);
        assert_string_equal(t.items[0], "b");
        assert_string_equal(t.items[1], "a");
        topic_names_done(&t);
        write_file("{\"topics\":[{\"topic\":\"b\"},{\"topic\":\"\"}]}");
        assert_int_equal(json_file_topics(path, &t, error), -EBADMSG);
        assert_non_null(strstr(error, "topics[1]: "));
}

static void a_name_longer_than_kafkas_is_refused(void **state)
{
        char text[400], name[251];
        struct znode_partition_list l;

        (void)state;
        for (size_t len = 249; len <= 250; len++) {
                memset(name, 'n', len);
                name[len] = '\0';
                (void)snprintf(text, sizeof(text), "{\"partitions\":[{\"topic\":\"%s\",\"partition\":0}]}",
                               name);
                assert_int_equal(read_partitions(text, false, &l), len == 249 ? 0 : -EBADMSG);
                if (len == 249)
                        znode_partitions_done(&l);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(numbers_in_quotes_and_trailing_commas_are_forgiven),
                cmocka_unit_test(commas_alone_are_not),
                cmocka_unit_test(replicas_are_looked_at_when_they_are_needed),
                cmocka_unit_test(an_empty_list_is_a_list),
                cmocka_unit_test(a_torn_file_is_refused),
                cmocka_unit_test(topics_count_once),
                cmocka_unit_test(a_name_longer_than_kafkas_is_refused),
        };

        return cmocka_run_group_tests(tests, make_file, remove_file);
}
