/* What stopping a broker would mean (D4, D10), over the partitions in the controller's memory. Controller
 * thread; changes nothing. Internal to controller/. */
#pragma once

#include "controller/controller_internal.h"
#include "controller/stop_check_core.h"

/* Judge every partition that @b hosts. Up to @max partitions a risk are listed, in no order; lists and all
 * they refer to live in @a and in the context: use them before anything changes. 0: counts only. -ENOMEM. */
int stop_check_broker(const struct controller *c, const struct ctx_broker *b, size_t max, struct arena *a,
                      struct stop_check *ret) must_check;
