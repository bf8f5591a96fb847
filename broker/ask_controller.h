/* Requests that clients send to any broker, passed on to the active controller wherever it is. */
#pragma once

#include "server_internal.h"

/* See struct api_env. */
void server_ask_controller(int16_t key, int16_t version, const void *body,
                           bool (*is_refused)(const void *response),
                           void (*fn)(const void *response, void *fn_userdata), void *fn_userdata,
                           void *userdata);
