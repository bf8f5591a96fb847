/* DescribeConfigs: settings as they are in ZooKeeper now, over this broker's file, over the defaults. */
#pragma once

#include "server_internal.h"

/* See struct api_env. */
void server_describe_configs(const struct describe_configs_request *req, struct arena *a,
                             void (*fn)(const struct describe_configs_response *res, void *fn_userdata),
                             void *fn_userdata, void *userdata);
