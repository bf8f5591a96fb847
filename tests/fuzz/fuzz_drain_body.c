/* Any bytes as the body of PUT /v1/brokers/{id}/drain. What is refused comes with a sentence that can be put
 * into JSON; what is accepted is within the bounds its users rely on. */
#include "fuzz.h"

#include <string.h>

#include "admin/drain_body.h"

static void check_text(const char *s)
{
        FUZZ_CHECK(memchr(s, 0, DRAIN_TEXT_SIZE));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char error[DRAIN_BODY_ERROR_SIZE];
        struct drain_body b;
        const char *code = NULL;

        if (drain_body_parse(data, size, &b, &code, error) < 0) {
                FUZZ_CHECK(code && memchr(error, 0, sizeof(error)) && error[0]);
                for (const char *p = error; *p; p++)
                        FUZZ_CHECK(*p >= ' ' && *p <= '~');
                return 0;
        }
        check_text(b.drain_id);
        check_text(b.reason);
        check_text(b.requested_by);
        FUZZ_CHECK(b.deadline_ms >= 0 && b.deadline_ms <= INT64_C(366) * 86400 * 1000);
        return 0;
}
