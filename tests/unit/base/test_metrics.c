#include "testing.h"

#include <pthread.h>
#include <string.h>

#include "base/metrics.h"

static const char *print(struct buf *out)
{
        buf_done(out);
        assert_int_equal(metrics_print(out), 0);
        return buf_cstr(out);
}

static void a_counter_prints_help_type_and_value(void **state)
{
        METRIC_COUNTER(requests, "stepdown_requests_total", "Requests\\served\nso far");
        cleanup_with(buf_donep) struct buf out = {0};

        (void)state;
        metrics_register(&requests);
        metric_add(&requests, 41);
        metric_add(&requests, 1);
        assert_string_equal(print(&out), "# HELP stepdown_requests_total Requests\\\\served\\nso far\n"
                                         "# TYPE stepdown_requests_total counter\n"
                                         "stepdown_requests_total 42\n");
        metrics_unregister(&requests);
        assert_string_equal(print(&out), "");
}

static void rows_of_one_name_stand_together_under_one_header(void **state)
{
        struct metric a = {.type = METRIC_T_GAUGE, .name = "g", .help = "G", .labels = "x=\"1\""};
        struct metric other = {.type = METRIC_T_GAUGE, .name = "h", .help = "H"};
        struct metric b = {.type = METRIC_T_GAUGE, .name = "g", .help = "G", .labels = "x=\"2\""};
        cleanup_with(buf_donep) struct buf out = {0};

        (void)state;
        metrics_register(&a);
        metrics_register(&other);
        metrics_register(&b);
        metrics_register(&a); /* again: harmless */
        metric_set(&b, -5);
        assert_string_equal(print(&out), "# HELP g G\n# TYPE g gauge\ng{x=\"1\"} 0\ng{x=\"2\"} -5\n"
                                         "# HELP h H\n# TYPE h gauge\nh 0\n");
        metrics_unregister(&a);
        metrics_unregister(&b);
        metrics_unregister(&b);
        assert_string_equal(print(&out), "# HELP h H\n# TYPE h gauge\nh 0\n");
        metrics_unregister(&other);
}

static int64_t read_seven(void *userdata)
{
        return *(int *)userdata;
}

static void a_callback_is_read_when_printing(void **state)
{
        int seven = 7;
        struct metric c = {
                .type = METRIC_T_CALLBACK, .name = "c", .help = "C", .read = read_seven, .userdata = &seven};
        cleanup_with(buf_donep) struct buf out = {0};

        (void)state;
        metrics_register(&c);
        assert_non_null(strstr(print(&out), "# TYPE c gauge\nc 7\n"));
        metrics_unregister(&c);
}

static void histogram_buckets_are_cumulative_and_in_seconds(void **state)
{
        struct metric h = {
                .type = METRIC_T_HISTOGRAM, .name = "t_seconds", .help = "T", .labels = "api=\"Fetch\""};
        cleanup_with(buf_donep) struct buf out = {0};
        const char *text;

        (void)state;
        metrics_register(&h);
        metric_observe_us(&h, 100); /* bounds are inclusive */
        metric_observe_us(&h, 101);
        metric_observe_us(&h, 1000000);
        metric_observe_us(&h, 100000000); /* past the last bound */
        text = print(&out);
        assert_non_null(strstr(text,
                               "# TYPE t_seconds histogram\nt_seconds_bucket{api=\"Fetch\",le=\"0.0001\"} 1\n"
                               "t_seconds_bucket{api=\"Fetch\",le=\"0.0002\"} 2\n"));
        assert_non_null(strstr(text, "le=\"0.8192\"} 2\nt_seconds_bucket{api=\"Fetch\",le=\"1.6384\"} 3\n"));
        assert_non_null(
                strstr(text, "le=\"52.4288\"} 3\nt_seconds_bucket{api=\"Fetch\",le=\"+Inf\"} 4\n"
                             "t_seconds_sum{api=\"Fetch\"} 101.000201\nt_seconds_count{api=\"Fetch\"} 4\n"));
        metrics_unregister(&h);
}

static void *observe_often(void *userdata)
{
        for (int i = 0; i < 10000; i++)
                metric_observe_us(userdata, 100);
        return NULL;
}

static void updates_from_several_threads_all_count(void **state)
{
        METRIC_HISTOGRAM(h, "many_seconds", "Many");
        cleanup_with(buf_donep) struct buf out = {0};
        pthread_t threads[4];

        (void)state;
        metrics_register(&h);
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_create(&threads[i], NULL, observe_often, &h), 0);
        (void)print(&out); /* while they run */
        for (size_t i = 0; i < ARRAY_SIZE(threads); i++)
                assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_non_null(strstr(print(&out), "many_seconds_sum 4\nmany_seconds_count 40000\n"));
        metrics_unregister(&h);
}

static void a_full_buffer_is_reported(void **state)
{
        METRIC_GAUGE(g, "stepdown_something_with_a_name", "G");
        cleanup_with(buf_donep) struct buf out = {.ceiling = 10};

        (void)state;
        metrics_register(&g);
        assert_true(metrics_print(&out) < 0);
        metrics_unregister(&g);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_counter_prints_help_type_and_value),
                cmocka_unit_test(rows_of_one_name_stand_together_under_one_header),
                cmocka_unit_test(a_callback_is_read_when_printing),
                cmocka_unit_test(histogram_buckets_are_cumulative_and_in_seconds),
                cmocka_unit_test(updates_from_several_threads_all_count),
                cmocka_unit_test(a_full_buffer_is_reported),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
