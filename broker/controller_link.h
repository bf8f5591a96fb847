/* This broker's way to the active controller, wherever it is: AlterPartition, ControlledShutdown,
 * CreateTopics for topics created on first use. Follows the controller when it moves; knows no retries of its
 * own. */
#pragma once

#include "base/loop.h"
#include "client/kclient.h"

struct controller;
struct controller_link;

/* @l: where the connection lives. @controller is borrowed; it says where the active one is. */
int controller_link_new(struct loop *l, struct controller *controller, struct controller_link **ret)
        must_check;
/* On @l's thread or while it doesn't run: fails what is in flight with -ECANCELED. */
struct controller_link *controller_link_free(struct controller_link *k);
DEFINE_FREEP(struct controller_link, controller_link_free)

/* [any thread] The active controller changed: what waits for the answer of a former one fails with
 * -ECANCELED. */
void controller_link_on_change(struct controller_link *k);

/* [any thread] Encodes @body at once. @fn (may be NULL) runs exactly once on @l's thread unless this call
 * fails; besides kclient's errors -ENOENT: no controller is known. */
int controller_link_request(struct controller_link *k, const struct wire_api *api, int16_t version,
                            const void *body, int64_t timeout_ms, kclient_fn fn, void *userdata) must_check;
