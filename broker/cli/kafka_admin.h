/* What several verbs ask a cluster over Kafka's protocol: find a broker that answers, and the controller. */
#pragma once

#include "base/arena.h"
#include "wire/codec.h"
#include "wire/metadata.h"

struct kafka_admin {
        const char *bootstrap; /* "h:p,h:p": tried in order */
        int64_t timeout_ms;    /* a request */
        struct arena arena;    /* answers live here until kafka_admin_done() */
        char error[512];       /* after a failure: a sentence that names what was tried */
};

/* NULL: $STEPDOWN_BOOTSTRAP, else 127.0.0.1:9092. */
void kafka_admin_init(struct kafka_admin *k, const char *bootstrap, int64_t timeout_ms);
void kafka_admin_done(struct kafka_admin *k);
static inline void kafka_admin_donep(struct kafka_admin *k)
{
        kafka_admin_done(k);
}

/* Metadata of all topics (@topic NULL) or of one, from the first bootstrap broker that answers; never creates
 * a topic. -errno with k->error set. */
int kafka_admin_metadata(struct kafka_admin *k, const char *topic, struct metadata_response **ret) must_check;
/* Send @body to the active controller; @is_moved (may be NULL) says of a response that it came from a broker
 * that is not the controller any more: then the controller is looked up again, until timeout_ms is over. */
int kafka_admin_ask_controller(struct kafka_admin *k, const struct wire_api *api, int16_t max_version,
                               const void *body, bool (*is_moved)(const void *response), void **ret_response)
        must_check;
/* Where the active controller listens, by Metadata. -EAGAIN: there is none now. */
int kafka_admin_controller(struct kafka_admin *k, int32_t *ret_id, char host[256], uint16_t *ret_port)
        must_check;
/* One request to one broker at a version that is not negotiated: for APIs that brokers serve to each other
 * and do not advertise. */
int kafka_admin_ask_at(struct kafka_admin *k, const char *host, uint16_t port, const struct wire_api *api,
                       int16_t version, const void *body, void **ret_response) must_check;
