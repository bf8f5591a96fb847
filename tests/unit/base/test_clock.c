#include "testing.h"

#include <time.h>

#include "base/clock.h"

static void clocks_never_step_back_and_agree_on_units(void **state)
{
        int64_t us = clock_mono_us(), ms = clock_mono_ms(), boot = clock_boot_ms();

        (void)state;
        assert_true(ms >= us / 1000);
        assert_true(clock_mono_us() >= us);
        assert_true(boot >= ms); /* boot time counts suspends on top (F2) */
        assert_true(clock_boot_ms() >= boot);
}

static void real_time_is_that_of_the_system(void **state)
{
        int64_t before = (int64_t)time(NULL), ms = clock_real_ms();

        (void)state;
        assert_true(ms / 1000 >= before - 1);
        assert_true(ms / 1000 <= (int64_t)time(NULL) + 1);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(clocks_never_step_back_and_agree_on_units),
                cmocka_unit_test(real_time_is_that_of_the_system),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
