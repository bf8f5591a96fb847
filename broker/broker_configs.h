/* This broker's dynamic settings from ZooKeeper: /config/brokers/<default>, and over it /config/brokers/N.
 * Control loop. */
#pragma once

#include "base/loop.h"
#include "settings.h"
#include "zk/zk.h"

struct broker_configs;

struct broker_configs_options {
        struct zk *zk;
        struct loop *loop;
        int32_t broker_id;
        /* They are known, or may have changed. */
        void (*on_config)(const struct broker_dynamic *c, void *userdata);
        void *userdata;
};

int broker_configs_new(const struct broker_configs_options *o, struct broker_configs **ret) must_check;
struct broker_configs *
broker_configs_free(struct broker_configs *b); /* after the zk was freed: completions come first */
DEFINE_FREEP(struct broker_configs, broker_configs_free)

/* The settings of broker @name, as in /config/brokers/NAME, may have changed; NULL: of any. */
void broker_configs_changed(struct broker_configs *b, const char *name);
