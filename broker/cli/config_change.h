/* Settings of topics and brokers, changed over Kafka's protocol (IncrementalAlterConfigs) or in ZooKeeper,
 * where the brokers are told by a notification as Kafka's own tools do. Errors are those of kafka_admin.h and
 * zk_admin.h; cluster_fail() says why. */
#pragma once

#include "cli/cluster.h"

enum config_entity { CONFIG_ENTITY_TOPIC = 2, CONFIG_ENTITY_BROKER = 4 }; /* Kafka's resource types */

struct config_edit_setting {
        const char *key, *value; /* value NULL: take it away */
};
struct config_edit {
        enum config_entity entity;
        const char *name;
        const struct config_edit_setting *settings;
        size_t n;
};

/* All of them, one after the other; what is so already is not written. -EPROTO: one was refused, and those
 * behind it may not have been tried. */
int config_change(struct cluster *c, const struct config_edit *edits, size_t n) must_check;
/* Does any of the topics set one of the two keys to something? Topics that are not there, and brokers that
 * cannot tell, set nothing. */
int config_topics_set(struct cluster *c, const char *const *topics, size_t n, const char *const keys[2],
                      bool *ret) must_check;
