/* Topic configurations from ZooKeeper (/config/topics/T), read before a topic's first LeaderAndIsr takes
 * effect (KAFKA-9769) and again when /config/changes names them; what it says of brokers is passed on. All on
 * the control loop. */
#pragma once

#include "api/api.h"
#include "base/loop.h"
#include "settings.h"
#include "zk/zk.h"

struct topic_configs;

struct topic_configs_options {
        struct zk *zk;
        struct loop *loop;
        struct log_config defaults;
        /* A topic's configuration is known, or changed; valid during the call. */
        void (*on_config)(const char *topic, const struct topic_config *c, void *userdata);
        /* That of a broker changed, or may have: @name as in /config/brokers/NAME; NULL: any. NULL allowed.
         */
        void (*on_broker_change)(const char *name, void *userdata);
        void *userdata;
};

int topic_configs_new(const struct topic_configs_options *o, struct topic_configs **ret) must_check;
struct topic_configs *
topic_configs_free(struct topic_configs *t); /* after the zk was freed: completions come first */
DEFINE_FREEP(struct topic_configs, topic_configs_free)

/* Start (or, in a new session, start again) watching for changes. */
void topic_configs_on_session(struct topic_configs *t);
/* Make sure that these topics' configurations have been handed to on_config, then call @fn: at once when all
 * are known, else when ZooKeeper has answered. A topic whose configuration cannot be read keeps the defaults
 * and is read again with its next call. -ENOMEM: @fn was not called. */
int topic_configs_prepare(struct topic_configs *t, const struct api_topic *topics, size_t n,
                          void (*fn)(void *userdata), void *userdata) must_check;
