/* Every verb; verbs.c lists them in the order in which people see them. */
#pragma once

#include "cli/cli.h"

extern const struct cli_verb *const cli_verbs[];
extern const size_t cli_n_verbs;

extern const struct cli_verb cli_verb_drain;
extern const struct cli_verb cli_verb_shutdown_broker;
extern const struct cli_verb cli_verb_preferred_election;
extern const struct cli_verb cli_verb_topics;
extern const struct cli_verb cli_verb_partitions;
extern const struct cli_verb cli_verb_reassign;
extern const struct cli_verb cli_verb_state_changes;
extern const struct cli_verb cli_verb_check;
extern const struct cli_verb cli_verb_broker;
extern const struct cli_verb cli_verb_drains;
extern const struct cli_verb cli_verb_cluster;
extern const struct cli_verb cli_verb_completion;
