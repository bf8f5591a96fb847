/* Every verb, one line each; main.c lists them. */
#pragma once

#include "cli/cli.h"

extern const struct cli_verb cli_verb_drain;
extern const struct cli_verb cli_verb_topics;
extern const struct cli_verb cli_verb_cluster;
