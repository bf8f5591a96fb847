/* The state-change log (R52, R63): one line for every state change that this broker receives or its
 * controller makes, in Kafka's line format, merged across brokers by `stepdown state-changes`. [any thread]
 */
#pragma once

#include "base/util.h"

struct state_change_log;

/* Appends to @path; past 64 MiB the file becomes @path.1 (replacing an older one). -errno. */
int state_change_log_open(const char *path, int32_t broker_id, struct state_change_log **ret) must_check;
struct state_change_log *state_change_log_free(struct state_change_log *s);
DEFINE_FREEP(struct state_change_log, state_change_log_free)

/* @role: "Broker" or "Controller". @lines, separated by newlines, name their partitions as [topic,partition];
 * they get one time stamp. A write that fails is dropped and counted: diagnostics never hold up a state
 * change. */
void state_change_log_write(struct state_change_log *s, const char *role, const char *lines);
