/* stepdown topics list and describe (R57): partitions, as lines in the format of Kafka 0.8, or as JSON. */
#pragma once

#include "cli/cluster.h"

struct topics_list_options {
        const char *topic; /* NULL: all */
        bool under_replicated, unavailable, heading, json;
};

/* Returns an exit status. */
int topics_list(struct cluster *c, const struct topics_list_options *o) must_check;
