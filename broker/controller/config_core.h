/* One resource's configuration, and what a request makes of it (KIP-339). Pure. */
#pragma once

#include "controller/controller.h"
#include "wire/incremental_alter_configs.h"
#include "zk/znode.h"

enum config_op { CONFIG_SET, CONFIG_DELETE, CONFIG_APPEND, CONFIG_SUBTRACT, N_CONFIG_OPS };

#define CONFIG_TEXT_SIZE 320
/* A request's strings are bounded by its frame; a resource's settings by this. */
#define CONFIG_MAX_CHANGES 1000

/* What the merge has to know of the settings. */
struct config_rules {
        enum config_scope scope;
        bool replace; /* what is not named goes */
        int (*check)(enum config_scope scope, const char *name, const char *value, char error[256],
                     void *userdata);
        bool (*find)(enum config_scope scope, const char *name, struct config_setting *ret, void *userdata);
        void *userdata;
};

/* Are the changes well-formed, before anything is read: text, no name twice, operations that exist, values
 * where there must be one? A Kafka error and its sentence. */
int16_t config_changes_check(const struct incremental_alter_configs_request_resource *in,
                             char error[CONFIG_TEXT_SIZE]);
/* What @now becomes, in @a: its entries are borrowed from @now and @a. Settings that the request does not
 * name are kept as they are, also such as this broker does not know. *ret_changed: it is another than @now. A
 * Kafka error and its sentence. */
int16_t config_merge(const struct config_rules *rules, const struct znode_config *now,
                     const struct incremental_alter_configs_request_resource *in, struct arena *a,
                     struct znode_config *ret, bool *ret_changed, char error[CONFIG_TEXT_SIZE]);
