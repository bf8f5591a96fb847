/* Only drains that have reached their end count, and of them only the time in which something could be moved:
 * waiting for a replica to catch up says nothing about the next drain. */
#include "controller/estimate_core.h"

#include "base/util.h"

void drain_estimate(const struct znode_drain *past, size_t n, int32_t replicas, struct drain_estimate *ret)
{
        int64_t units = 0, busy_ms = 0, base_ms = INT64_MAX;

        *ret = (struct drain_estimate){.rate_milli = ESTIMATE_DEFAULT_PER_SECOND * INT64_C(1000),
                                       .base_ms = ESTIMATE_DEFAULT_BASE_MS};
        for (size_t i = n; i-- > 0 && ret->drains < ESTIMATE_DRAINS;) {
                if (past[i].drained_ms <= 0 || past[i].busy_ms <= 0 || past[i].replicas <= 0)
                        continue;
                units += past[i].replicas;
                busy_ms += past[i].busy_ms;
                base_ms = MIN(base_ms, past[i].busy_ms);
                ret->drains++;
        }
        if (ret->drains > 0) {
                /* The smallest drain is mostly what every drain costs; a large one's share of it is small. */
                ret->measured = true;
                ret->base_ms = base_ms;
                ret->rate_milli = MAX(units * 1000000 / busy_ms, INT64_C(1));
        }
        ret->ms = ret->base_ms + (int64_t)replicas * 1000000 / ret->rate_milli;
        if (replicas <= 0)
                ret->ms = 0;
}
