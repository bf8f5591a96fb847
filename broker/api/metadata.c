/* Metadata (3), with topics created on first use when auto.create.topics.enable says so. */
#include "api/request.h"

#include "base/clock.h"
#include "replica/metadata_cache.h"
#include "wire/create_topics.h"
#include "wire/metadata.h"

/* Ask for the missing topics to be created and tell the client to come again (LEADER_NOT_AVAILABLE). */
static void create_missing(struct api_request *r, struct metadata_response *res)
{
        struct create_topics_request req;
        struct create_topics_request_topic *topics;
        int64_t now_ms;
        int32_t n = 0;

        topics = arena_alloc(&r->arena, (size_t)res->topics.n, sizeof(*topics));
        if (!topics)
                return; /* the client sees UNKNOWN_TOPIC_OR_PARTITION and asks again */
        now_ms = clock_mono_ms();
        for (int32_t i = 0; i < res->topics.n; i++) {
                struct metadata_response_topic *t = &res->topics.items[i];

                if (t->error_code != KAFKA_UNKNOWN_TOPIC_OR_PARTITION || t->name.len < 0)
                        continue;
                t->error_code = KAFKA_LEADER_NOT_AVAILABLE;
                if (auto_create_wants(&r->api->auto_create, t->name, now_ms))
                        topics[n++] = (struct create_topics_request_topic){
                                .name = t->name, .num_partitions = -1, .replication_factor = -1};
        }
        if (n == 0)
                return;
        wire_init(&create_topics_request_wire, &req);
        req.topics.items = topics;
        req.topics.n = n;
        r->api->env.auto_create(&req, r->api->env.userdata);
}

void api_handle_metadata(struct api_request *r)
{
        const struct metadata_request *req = r->body;
        struct metadata_response *res = api_response_new(r);

        if (!res || metadata_cache_fill_response(r->api->env.metadata, req, r->header.api_version, &r->arena,
                                                 res) < 0) {
                api_abort(r);
                return;
        }
        /* Before v4 the request had no word about it and creation was implied. */
        if (r->api->env.auto_create_topics && req->topics.n > 0 &&
            (r->header.api_version < 4 || req->allow_auto_topic_creation))
                create_missing(r, res);
        api_reply(r, res);
}
