/* The table of verbs. A new verb is a line here. */
#include "cli/verbs.h"

const struct cli_verb *const cli_verbs[] = {
        &cli_verb_drain,         &cli_verb_check,           &cli_verb_broker,
        &cli_verb_drains,        &cli_verb_shutdown_broker, &cli_verb_preferred_election,
        &cli_verb_topics,        &cli_verb_partitions,      &cli_verb_reassign,
        &cli_verb_state_changes, &cli_verb_cluster,         &cli_verb_completion,
};
const size_t cli_n_verbs = ARRAY_SIZE(cli_verbs);
