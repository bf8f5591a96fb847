#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "controller/controller_internal.h"

static void partitions_go_the_ways_the_table_allows(void **state)
{
        (void)state;
        assert_true(partition_state_may(PARTITION_NEW, PARTITION_ONLINE));
        assert_true(partition_state_may(PARTITION_ONLINE, PARTITION_OFFLINE));
        assert_true(partition_state_may(PARTITION_OFFLINE, PARTITION_ONLINE));
        assert_true(partition_state_may(PARTITION_ONLINE, PARTITION_ONLINE));
        assert_false(partition_state_may(PARTITION_NONEXISTENT, PARTITION_ONLINE));
        assert_false(partition_state_may(PARTITION_ONLINE, PARTITION_NEW));
        for (int from = PARTITION_NEW; from < N_PARTITION_STATES; from++)
                assert_true(partition_state_may((enum partition_state)from, PARTITION_NONEXISTENT));
}

static void a_replica_is_deleted_only_through_started(void **state)
{
        (void)state;
        for (int from = 0; from < N_REPLICA_STATES; from++)
                assert_int_equal(replica_state_may((enum replica_state)from, REPLICA_DELETION_SUCCESSFUL),
                                 from == REPLICA_DELETION_STARTED);
        assert_true(replica_state_may(REPLICA_DELETION_INELIGIBLE, REPLICA_DELETION_STARTED));
        assert_false(replica_state_may(REPLICA_DELETION_STARTED, REPLICA_ONLINE));
}

static void every_state_has_kafkas_name(void **state)
{
        (void)state;
        assert_string_equal(partition_state_name(PARTITION_ONLINE), "OnlinePartition");
        assert_string_equal(replica_state_name(REPLICA_DELETION_INELIGIBLE), "ReplicaDeletionIneligible");
        for (int i = 0; i < N_PARTITION_STATES; i++)
                assert_non_null(partition_state_name((enum partition_state)i));
        for (int i = 0; i < N_REPLICA_STATES; i++)
                assert_non_null(replica_state_name((enum replica_state)i));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(partitions_go_the_ways_the_table_allows),
                cmocka_unit_test(a_replica_is_deleted_only_through_started),
                cmocka_unit_test(every_state_has_kafkas_name),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
