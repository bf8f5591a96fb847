/* How long a drain will take, from those that this cluster has had (D10). Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "zk/znode_drains.h"

/* Where nothing has been measured: what the slowest machine that was measured does, and then some. */
#define ESTIMATE_DEFAULT_PER_SECOND 200
#define ESTIMATE_DEFAULT_BASE_MS    5000
#define ESTIMATE_DRAINS             10 /* the last ones that count */

struct drain_estimate {
        bool measured;      /* false: the defaults above */
        int32_t drains;     /* measured: from how many */
        int64_t rate_milli; /* replicas a second that leave a broker, in thousandths */
        int64_t base_ms;    /* what even the smallest drain takes */
        int64_t ms;         /* base_ms + replicas / rate */
};

/* @replicas: partitions with RF > 1 that the broker leads or follows. @past: oldest first. */
void drain_estimate(const struct znode_drain *past, size_t n, int32_t replicas, struct drain_estimate *ret);
