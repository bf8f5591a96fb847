#include "log_testing.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/slog.h"
#include "log/log_manager.h"

static const char *dirs_of(void **state, int n)
{
        static char dirs[1024];
        size_t at = 0;

        dirs[0] = '\0';
        for (int i = 0; i < n; i++)
                at += (size_t)snprintf(dirs + at, sizeof(dirs) - at, "%s%s/d%d", i > 0 ? " , " : "",
                                       (char *)*state, i);
        return dirs;
}

static int try_open(void **state, int n_dirs, int32_t broker_id, const char *cluster_id,
                    struct log_manager **ret, char **ret_error)
{
        struct log_manager_options o = {.log_dirs = dirs_of(state, n_dirs),
                                        .broker_id = broker_id,
                                        .defaults = small_config(),
                                        .recovery_threads = 3};

        o.defaults.segment_bytes = 2000;
        *ret_error = NULL;
        return log_manager_open(&o, cluster_id, ret, ret_error);
}

static struct log_manager *open_manager(void **state, int n_dirs)
{
        struct log_manager *m = NULL;
        char *error;

        if (try_open(state, n_dirs, 1, NULL, &m, &error) < 0)
                fail_msg("%s", error);
        return m;
}

static void check_refused(void **state, int n_dirs, int32_t broker_id, const char *cluster_id, int want,
                          const char *word)
{
        struct log_manager *m;
        char *error;

        assert_int_equal(try_open(state, n_dirs, broker_id, cluster_id, &m, &error), want);
        assert_non_null(error);
        if (!strstr(error, word))
                fail_msg("\"%s\" does not say \"%s\"", error, word);
        free(error);
}

static struct partition_log *get(struct log_manager *m, const char *topic, int32_t partition)
{
        struct partition_log *l;

        assert_int_equal(log_manager_get(m, topic, partition, true, &l), 0);
        return l;
}

static void logs_are_created_where_the_fewest_are_and_found_again(void **state)
{
        struct log_manager *m = open_manager(state, 2);
        struct partition_log *l;

        assert_int_equal(log_manager_get(m, "t", 0, false, &l), -ENOENT);
        for (int32_t p = 0; p < 10; p++)
                append_many(get(m, "a-topic.with_signs", p), p, (struct made){0}, 1);
        assert_int_equal(
                count_files(tmpdir_path(state, "d0"), "") - count_files(tmpdir_path(state, "d1"), ""), 0);
        assert_int_equal(log_manager_close_clean(m), 0);

        m = open_manager(state, 2);
        for (int32_t p = 0; p < 10; p++) {
                assert_int_equal(log_manager_get(m, "a-topic.with_signs", p, false, &l), 0);
                assert_int_equal(partition_log_end_offset(l), p);
                assert_int_equal(partition_log_recovery_point(l), p);
                assert_ptr_equal(get(m, "a-topic.with_signs", p), l);
        }
        log_manager_free(m);
}

static void names_that_no_topic_has_are_refused(void **state)
{
        static const char *const bad[] = {"", ".", "..", "a/b", "../x", "a b", "ä", "a\n"};
        struct log_manager *m = open_manager(state, 1);
        struct partition_log *l;
        char name[251];

        for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
                assert_int_equal(log_manager_get(m, bad[i], 0, true, &l), -EINVAL);
        assert_int_equal(log_manager_get(m, "a", -1, true, &l), -EINVAL);
        memset(name, 'x', 250);
        name[250] = '\0';
        assert_int_equal(log_manager_get(m, name, 0, true, &l), -EINVAL);
        name[249] = '\0';
        assert_int_equal(log_manager_get(m, name, 99999, true, &l), 0);
        assert_int_equal(log_manager_delete(m, name, 99999), 0); /* its new name has room, too */
        log_manager_free(m);
}

static void a_directory_in_use_is_refused(void **state)
{
        struct log_manager *m = open_manager(state, 1);

        check_refused(state, 1, 1, NULL, -EBUSY, "d0/.lock");
        log_manager_free(m);
        log_manager_free(open_manager(state, 1));
}

static void a_directory_of_another_broker_or_cluster_is_refused_with_both_ids(void **state)
{
        struct log_manager *m = open_manager(state, 2);
        cleanup_with(buf_donep) struct buf b = {0};

        assert_string_equal(log_manager_cluster_id(m), "");
        assert_int_equal(log_manager_set_cluster_id(m, "cluster-A"), 0);
        assert_int_equal(log_manager_set_cluster_id(m, "cluster-A"), 0);
        assert_int_equal(log_manager_set_cluster_id(m, "cluster-B"), -EEXIST);
        assert_int_equal(log_manager_close_clean(m), 0);
        file_read(tmpdir_path(state, "d1/meta.properties"), &b);
        assert_non_null(strstr(buf_cstr(&b), "version=0\nbroker.id=1\ncluster.id=cluster-A\n"));

        check_refused(state, 2, 2, NULL, -EINVAL, "broker.id=1, the configuration 2");
        check_refused(state, 2, 1, "cluster-B", -EINVAL, "cluster.id=cluster-A, ZooKeeper cluster-B");
        m = open_manager(state, 2);
        assert_string_equal(log_manager_cluster_id(m), "cluster-A");
        log_manager_free(m);

        file_write(tmpdir_path(state, "d1/meta.properties"), "version=1\nnode.id=1\n", 20);
        check_refused(state, 2, 1, NULL, -EINVAL, "version=1");
        file_write(tmpdir_path(state, "d1/meta.properties"), "garbage\n", 8);
        check_refused(state, 2, 1, NULL, -EBADMSG, "d1/meta.properties");
        /* and what Kafka writes besides is no garbage */
        file_write(tmpdir_path(state, "d1/meta.properties"),
                   "#\n#Mon Nov 30\r\nfuture.key=1\nbroker.id=1\nversion=0\n", 50);
        log_manager_free(open_manager(state, 2));
}

/* KAFKA-10471 */
static void the_clean_marker_is_there_after_a_clean_close_and_only_until_the_next_start(void **state)
{
        const char *marker = tmpdir_path(state, "d0/.kafka_cleanshutdown");
        struct log_manager *m = open_manager(state, 1);

        append_many(get(m, "t", 0), 5, (struct made){0}, 1);
        assert_int_equal(access(marker, F_OK), -1);
        assert_int_equal(log_manager_close_clean(m), 0);
        assert_int_equal(access(marker, F_OK), 0);
        m = open_manager(state, 1);
        assert_int_equal(access(marker, F_OK), -1);
        log_manager_free(m);
        assert_int_equal(access(marker, F_OK), -1);
}

static void after_a_crash_logs_are_recovered_from_their_recovery_points(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        struct partition_log *l;
        cleanup_with(buf_donep) struct buf b = {0};

        append_many(get(m, "t", 0), 30, (struct made){.value_bytes = 100}, 1);
        assert_int_equal(partition_log_flush(get(m, "t", 0)), 0);
        assert_int_equal(log_manager_write_recovery_points(m), 0);
        file_read(tmpdir_path(state, "d0/recovery-point-offset-checkpoint"), &b);
        assert_string_equal(buf_cstr(&b), "0\n1\nt 0 30\n");
        append_many(get(m, "t", 0), 5, (struct made){.value_bytes = 100}, 1);
        log_manager_free(m);
        assert_int_equal(truncate(last_file(tmpdir_path(state, "d0/t-0"), ".log"),
                                  file_size(last_file(tmpdir_path(state, "d0/t-0"), ".log")) - 1),
                         0);

        m = open_manager(state, 1);
        assert_int_equal(log_manager_get(m, "t", 0, false, &l), 0);
        assert_int_equal(partition_log_end_offset(l), 34);
        assert_int_equal(partition_log_recovery_point(l), 30);
        log_manager_free(m);
}

static void sealed_segments_are_flushed_before_the_recovery_points_are_written(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        cleanup_with(buf_donep) struct buf b = {0};

        append_many(get(m, "t", 0), 3, (struct made){.value_bytes = 100}, 1);
        append_many(get(m, "t", 1), 30, (struct made){.value_bytes = 100}, 1);
        assert_true(partition_log_flush_wanted(get(m, "t", 1)));
        assert_int_equal(log_manager_write_recovery_points(m), 0);
        assert_false(partition_log_flush_wanted(get(m, "t", 1)));
        file_read(tmpdir_path(state, "d0/recovery-point-offset-checkpoint"), &b);
        assert_non_null(strstr(buf_cstr(&b), "t 0 0\n")); /* replication is what keeps this one */
        assert_non_null(strstr(buf_cstr(&b), "t 1 30\n"));
        log_manager_free(m);
}

static void what_retention_deleted_is_unlinked_with_the_recovery_points(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        struct log_config c = small_config();

        c.retention_bytes = 1;
        append_many(get(m, "t", 0), 40, (struct made){.value_bytes = 100}, 1);
        partition_log_set_config(get(m, "t", 0), &c);
        assert_int_equal(log_manager_write_recovery_points(m), 0);
        assert_true(partition_log_retain(get(m, "t", 0), 0, 40) > 0);
        assert_true(count_files(tmpdir_path(state, "d0/t-0"), ".deleted") > 0);
        assert_int_equal(log_manager_write_recovery_points(m), 0);
        assert_int_equal(count_files(tmpdir_path(state, "d0/t-0"), ".deleted"), 0);
        log_manager_free(m);
}

static void high_watermarks_come_back_for_every_partition(void **state)
{
        struct log_manager *m = open_manager(state, 2);
        const struct log_hw hws[] = {{"t", 0, 7}, {"t", 1, 3}, {"gone", 0, 9}};

        for (int32_t p = 0; p < 3; p++)
                append_many(get(m, "t", p), 10, (struct made){0}, 1);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 0), 0);
        assert_int_equal(log_manager_write_hw_checkpoint(m, hws, 3), 0);
        log_manager_free(m);

        m = open_manager(state, 2);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 0), 7);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 1), 3);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 2), 0);
        assert_int_equal(log_manager_checkpointed_hw(m, "none", 2), 0);
        /* a partition that is not told of keeps what it had (KAFKA-769) */
        assert_int_equal(log_manager_write_hw_checkpoint(m, &(struct log_hw){"t", 2, 4}, 1), 0);
        assert_int_equal(log_manager_close_clean(m), 0);
        m = open_manager(state, 2);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 0), 7);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 2), 4);
        /* at most the log's end (KAFKA-539) */
        assert_int_equal(partition_log_truncate_to(get(m, "t", 0), 5), 0);
        assert_int_equal(log_manager_close_clean(m), 0);
        m = open_manager(state, 2);
        assert_int_equal(log_manager_checkpointed_hw(m, "t", 0), 5);
        log_manager_free(m);
}

/* KAFKA-405, 509: named in the error; and any damage is refused or means what it says. */
static void a_malformed_checkpoint_stops_the_start(void **state)
{
        static const char *const files[] = {"replication-offset-checkpoint",
                                            "recovery-point-offset-checkpoint"};
        static const char *const bad[] = {"",
                                          "0\n",
                                          "0\n2\nt 0 1\n",
                                          "0\n1\nt 0\n",
                                          "0\n1\nt x 1\n",
                                          "0\n1\nt 0 -1\n",
                                          "0\n1\nt 0 1",
                                          "1\n0\n",
                                          "0\n0\nt 0 1\n",
                                          "0\n1\n 0 1\n"};
        char path[64];

        log_manager_free(open_manager(state, 1));
        for (size_t f = 0; f < ARRAY_SIZE(files); f++) {
                (void)snprintf(path, sizeof(path), "d0/%s", files[f]);
                for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
                        file_write(tmpdir_path(state, path), bad[i], strlen(bad[i]));
                        check_refused(state, 1, 1, NULL, -EBADMSG, files[f]);
                }
                assert_int_equal(unlink(tmpdir_path(state, path)), 0);
                log_manager_free(open_manager(state, 1));
        }
}

static void a_deleted_log_is_gone_and_an_interrupted_deletion_is_finished(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        struct partition_log *l;

        append_many(get(m, "t", 0), 5, (struct made){0}, 1);
        append_many(get(m, "t", 1), 5, (struct made){0}, 1);
        assert_int_equal(log_manager_delete(m, "t", 0), 0);
        assert_int_equal(log_manager_delete(m, "t", 0), -ENOENT);
        assert_int_equal(access(tmpdir_path(state, "d0/t-0"), F_OK), -1);
        assert_int_equal(count_files(tmpdir_path(state, "d0"), "-delete"), 1); /* only renamed */
        assert_int_equal(log_manager_write_recovery_points(m), 0);
        assert_int_equal(count_files(tmpdir_path(state, "d0"), "-delete"), 0);
        assert_int_equal(partition_log_end_offset(get(m, "t", 0)), 0); /* made anew */
        log_manager_free(m);

        assert_int_equal(
                rename(tmpdir_path(state, "d0/t-1"), tmpdir_path(state, "d0/t-1.0123456789abcdef-delete")),
                0);
        m = open_manager(state, 1);
        assert_int_equal(log_manager_get(m, "t", 1, false, &l), -ENOENT);
        assert_int_equal(count_files(tmpdir_path(state, "d0"), "-delete"), 0);
        log_manager_free(m);
}

static void a_deleted_log_stays_readable_for_who_holds_it(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        struct partition_log *l = partition_log_ref(get(m, "t", 0));
        int64_t first, last;

        append_many(l, 5, (struct made){0}, 1);
        assert_int_equal(log_manager_delete(m, "t", 0), 0);
        read_range(l, 0, 5, 1 << 20, true, &first, &last);
        assert_int_equal(last, 4);
        assert_int_equal(append_made(l, &(struct made){0}, 1, NULL), -EIO);
        partition_log_unref(l);
        log_manager_free(m);
}

static void a_topics_id_stays_with_its_partitions(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        struct uuid id, other, back;
        cleanup_with(buf_donep) struct buf b = {0};

        assert_int_equal(uuid_random(&id), 0);
        assert_int_equal(uuid_random(&other), 0);
        assert_int_equal(log_manager_set_topic_id(m, "t", 0, &id), -ENOENT);
        (void)get(m, "t", 0);
        assert_int_equal(log_manager_topic_id(m, "t", 0, &back), -ENOENT);
        assert_int_equal(log_manager_set_topic_id(m, "t", 0, &id), 0);
        log_manager_free(m);
        m = open_manager(state, 1);
        assert_int_equal(log_manager_topic_id(m, "t", 0, &back), 0);
        assert_true(uuid_equal(&id, &back));
        assert_int_equal(log_manager_set_topic_id(m, "t", 0, &id), 0);
        assert_int_equal(log_manager_set_topic_id(m, "t", 0, &other), -EEXIST);
        log_manager_free(m);

        file_read(tmpdir_path(state, "d0/t-0/partition.metadata"), &b);
        assert_memory_equal(buf_cstr(&b), "version: 0\ntopic_id: ", 21);
        slog_set_level(SLOG_ERROR);
        for (size_t i = 0; i < 33; i++) { /* cut short by a power loss: told again */
                file_write(tmpdir_path(state, "d0/t-0/partition.metadata"), b.data, i);
                m = open_manager(state, 1);
                assert_int_equal(log_manager_topic_id(m, "t", 0, &back), -ENOENT);
                log_manager_free(m);
        }
}

static void what_is_no_partition_is_left_alone(void **state)
{
        static const char *const others[] = {"d0/lost+found", "d0/t-x",  "d0/t-01", "d0/-1",
                                             "d0/t-",         "d0/t--1", "d0/t-+1", "d0/notes"};
        struct log_manager *m;

        log_manager_free(open_manager(state, 1));
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                assert_int_equal(mkdir(tmpdir_path(state, others[i]), 0755), 0);
        m = open_manager(state, 1);
        assert_int_equal(log_manager_close_clean(m), 0);
        for (size_t i = 0; i < ARRAY_SIZE(others); i++)
                assert_int_equal(access(tmpdir_path(state, others[i]), F_OK), 0);
}

static void a_partition_in_two_directories_is_refused(void **state)
{
        struct log_manager *m = open_manager(state, 2);

        (void)get(m, "t", 0);
        log_manager_free(m);
        assert_int_equal(mkdir(tmpdir_path(state, "d1/t-0"), 0755), 0);
        check_refused(state, 2, 1, NULL, -EEXIST, "keep one");
}

static void a_log_that_cannot_be_read_is_named(void **state)
{
        struct log_manager *m = open_manager(state, 1);

        append_many(get(m, "t", 3), 5, (struct made){0}, 1);
        log_manager_free(m);
        assert_int_equal(unlink(last_file(tmpdir_path(state, "d0/t-3"), ".log")), 0);
        assert_int_equal(mkdir(tmpdir_path(state, "d0/t-3/00000000000000000000.log"), 0755), 0);
        check_refused(state, 1, 1, NULL, -EISDIR, "t-3");
}

/* More than are synced one by one. */
static void many_logs_close_clean_and_open_again(void **state)
{
        struct log_manager *m = open_manager(state, 1);

        for (int32_t p = 0; p < 100; p++)
                append_many(get(m, "t", p), 3, (struct made){.producer_id = 4}, 1);
        assert_int_equal(log_manager_close_clean(m), 0);
        m = open_manager(state, 1);
        for (int32_t p = 0; p < 100; p++) {
                struct log_append_info info;

                assert_int_equal(partition_log_recovery_point(get(m, "t", p)), 3);
                assert_int_equal(append_made(get(m, "t", p), &(struct made){.producer_id = 4, .sequence = 2},
                                             1, &info),
                                 0);
                assert_true(info.duplicate);
        }
        log_manager_free(m);
}

static void count_log(const char *topic, int32_t partition, struct partition_log *l, void *userdata)
{
        assert_string_equal(topic, "t");
        assert_int_equal(partition_log_end_offset(l), partition);
        *(int *)userdata += 1;
}

static void each_visits_every_log_once(void **state)
{
        struct log_manager *m = open_manager(state, 1);
        int n = 0;

        for (int32_t p = 0; p < 7; p++)
                append_many(get(m, "t", p), p, (struct made){0}, 1);
        log_manager_each(m, count_log, &n);
        assert_int_equal(n, 7);
        log_manager_free(m);
}

static int quiet_setup(void **state)
{
        slog_set_level(SLOG_WARNING);
        return tmpdir_setup(state);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, quiet_setup, tmpdir_teardown)
                T(logs_are_created_where_the_fewest_are_and_found_again),
                T(names_that_no_topic_has_are_refused),
                T(a_directory_in_use_is_refused),
                T(a_directory_of_another_broker_or_cluster_is_refused_with_both_ids),
                T(the_clean_marker_is_there_after_a_clean_close_and_only_until_the_next_start),
                T(after_a_crash_logs_are_recovered_from_their_recovery_points),
                T(sealed_segments_are_flushed_before_the_recovery_points_are_written),
                T(what_retention_deleted_is_unlinked_with_the_recovery_points),
                T(high_watermarks_come_back_for_every_partition),
                T(a_malformed_checkpoint_stops_the_start),
                T(a_deleted_log_is_gone_and_an_interrupted_deletion_is_finished),
                T(a_deleted_log_stays_readable_for_who_holds_it),
                T(a_topics_id_stays_with_its_partitions),
                T(what_is_no_partition_is_left_alone),
                T(a_partition_in_two_directories_is_refused),
                T(a_log_that_cannot_be_read_is_named),
                T(many_logs_close_clean_and_open_again),
                T(each_visits_every_log_once),
#undef T
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
