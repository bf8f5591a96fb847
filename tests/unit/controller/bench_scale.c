/* How long the controller takes with many partitions: creation, a drain of a third of the leaders, and a new
 * controller's load. `bench_scale HELPER [partitions]`; prints one line a phase. */
#include "cluster_fixture.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/parse.h"
#include "wire/error.h"

#define PER_TOPIC 1000

static int32_t total = 30000;

static void phase(const char *what, int64_t began)
{
        print_message("scale: %s partitions=%d ms=%d\n", what, total, (int)(clock_mono_ms() - began));
}

static void the_phases(void **state)
{
        struct cluster *c = cluster_new();
        struct drain_seen seen;
        int64_t began;
        char name[32];

        (void)state;
        cluster_start(c, 3);
        wait_live(c, 1, 3);
        began = clock_mono_ms();
        for (int32_t i = 0; i < total / PER_TOPIC; i++) {
                (void)snprintf(name, sizeof(name), "topic-%d", i);
                assert_int_equal(make_topic(c, name, PER_TOPIC, 3, NULL), KAFKA_NONE);
        }
        phase("create", began);

        began = clock_mono_ms();
        drain_start(c, 3, -1, NULL, &seen);
        drain_wait(c, 3, DRAIN_DRAINED, &seen);
        phase("drain", began);
        print_message("scale: moved=%d\n", seen.status.leaders_moved);

        began = clock_mono_ms();
        node_stop(c, 1);
        (void)cluster_active(c);
        phase("failover", began);
        began = clock_mono_ms();
        (void)snprintf(name, sizeof(name), "topic-new");
        assert_int_equal(make_topic(c, name, 1, 2, NULL), KAFKA_NONE);
        phase("first-topic-after", began);
        cluster_free(c);
}

int main(int argc, char **argv)
{
        const struct CMUnitTest tests[] = {cmocka_unit_test(the_phases)};

        if (argc < 2)
                return 2;
        fixture_use_helper(argv[1]);
        if (argc > 2 && parse_int32(argv[2], PER_TOPIC, 1000000, &total) < 0)
                return 2;
        return cmocka_run_group_tests(tests, fixture_server_start, fixture_server_stop);
}
