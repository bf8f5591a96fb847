/* …/partitions/P/state and the other small ones. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "zk/znode.h"
#include "zk/znode_json.h"

/* --- partition state --- */

static char *put_text(char *at, const char *s, size_t len)
{
        memcpy(at, s, len);
        return at + len;
}
#define PUT(at, literal) put_text(at, literal, sizeof(literal) - 1)

static char *put_int(char *at, int32_t v)
{
        char digits[12];
        size_t n = 0;
        uint32_t u = v < 0 ? 0U - (uint32_t)v : (uint32_t)v;

        do {
                digits[n++] = (char)('0' + u % 10);
                u /= 10;
        } while (u > 0);
        if (v < 0)
                *at++ = '-';
        while (n > 0)
                *at++ = digits[--n];
        return at;
}

size_t znode_state_encode(const struct znode_state *st, char out[ZNODE_STATE_SIZE])
{
        size_t n_isr = MIN(st->n_isr, (size_t)ZNODE_MAX_REPLICAS);
        char *at = out;

        at = PUT(at, "{\"controller_epoch\":");
        at = put_int(at, st->controller_epoch);
        at = PUT(at, ",\"leader\":");
        at = put_int(at, st->leader);
        at = PUT(at, ",\"version\":1,\"leader_epoch\":");
        at = put_int(at, st->leader_epoch);
        at = PUT(at, ",\"isr\":[");
        for (size_t i = 0; i < n_isr; i++) {
                if (i > 0)
                        *at++ = ',';
                at = put_int(at, st->isr[i]);
        }
        at = st->recovering ? PUT(at, "],\"leader_recovery_state\":1}") : PUT(at, "]}");
        *at = '\0';
        return (size_t)(at - out);
}

static int decode_isr(const json_t *j, struct znode_state *st)
{
        size_t n = json_array_size(j);
        int r;

        if (!json_is_array(j) || n > ZNODE_MAX_REPLICAS)
                return -EBADMSG;
        for (size_t i = 0; i < n; i++) {
                r = znode_int32(json_array_get(j, i), 0, INT32_MAX, &st->isr[i]);
                if (r < 0)
                        return r;
        }
        st->n_isr = n;
        return 0;
}

int znode_state_decode(const char *s, size_t len, struct znode_state *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        const json_t *recovery;
        struct znode_state st = {0};
        int32_t recovery_state = 0;
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "controller_epoch"), INT32_MIN, ZNODE_MAX_EPOCH,
                                &st.controller_epoch);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "leader"), -2, INT32_MAX, &st.leader);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "leader_epoch"), INT32_MIN, ZNODE_MAX_EPOCH,
                                &st.leader_epoch);
        if (r >= 0)
                r = decode_isr(json_object_get(j, "isr"), &st);
        recovery = r >= 0 ? json_object_get(j, "leader_recovery_state") : NULL;
        if (recovery)
                r = znode_int32(recovery, 0, 1, &recovery_state);
        if (r < 0)
                return r;
        st.recovering = recovery_state == 1;
        *ret = st;
        return 0;
}

bool znode_state_equal(const struct znode_state *a, const struct znode_state *b)
{
        return a->controller_epoch == b->controller_epoch && a->leader == b->leader &&
               a->leader_epoch == b->leader_epoch && a->recovering == b->recovering && a->n_isr == b->n_isr &&
               memcmp(a->isr, b->isr, a->n_isr * sizeof(a->isr[0])) == 0;
}

/* --- /controller and /controller_epoch --- */

size_t znode_controller_encode(const struct znode_controller *c, char out[ZNODE_SMALL_SIZE])
{
        return (size_t)snprintf(
                out, ZNODE_SMALL_SIZE,
                "{\"version\":2,\"brokerid\":%d,\"timestamp\":\"%lld\",\"kraftControllerEpoch\":-1}",
                c->broker_id, (long long)c->timestamp_ms); /* at most 98 bytes */
}

int znode_controller_decode(const char *s, size_t len, struct znode_controller *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_controller c = {0};
        const json_t *timestamp;
        int r;

        r = znode_parse(s, len, true, false, &j);
        if (r < 0)
                return r;
        if (!json_is_object(j)) {
                r = json_is_integer(j) ? znode_int32(j, 0, INT32_MAX, &c.broker_id) : -EBADMSG;
        } else {
                r = znode_int32(json_object_get(j, "brokerid"), 0, INT32_MAX, &c.broker_id);
                timestamp = json_object_get(j, "timestamp");
                if (r >= 0 && timestamp)
                        r = znode_int64(timestamp, INT64_MIN, INT64_MAX, &c.timestamp_ms);
        }
        if (r < 0)
                return r;
        *ret = c;
        return 0;
}

size_t znode_epoch_encode(int32_t epoch, char out[ZNODE_SMALL_SIZE])
{
        return (size_t)snprintf(out, ZNODE_SMALL_SIZE, "%d", epoch);
}

int znode_epoch_decode(const char *s, size_t len, int32_t *ret)
{
        char text[16];

        if (!s || len == 0 || len >= sizeof(text) || memchr(s, '\0', len))
                return -EBADMSG;
        memcpy(text, s, len);
        text[len] = '\0';
        return parse_int32(text, 0, ZNODE_MAX_EPOCH, ret) < 0 ? -EBADMSG : 0;
}

/* --- /cluster/id --- */

size_t znode_cluster_id_encode(const struct uuid *id, char out[ZNODE_SMALL_SIZE])
{
        char text[UUID_TEXT_SIZE];

        uuid_format(id, text);
        return (size_t)snprintf(out, ZNODE_SMALL_SIZE, "{\"version\":\"1\",\"id\":\"%s\"}", text);
}

int znode_cluster_id_decode(const char *s, size_t len, char ret[ZNODE_SMALL_SIZE])
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        cleanup_with(freep) char *id = NULL;
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r < 0)
                return r;
        r = znode_string(json_object_get(j, "id"), ZNODE_SMALL_SIZE - 1, &id);
        if (r < 0)
                return r;
        memcpy(ret, id, strlen(id) + 1);
        return 0;
}

/* --- /latest_producer_id_block --- */

size_t znode_producer_ids_encode(const struct znode_producer_ids *p, char out[ZNODE_STATE_SIZE])
{
        return (size_t)snprintf(
                out, ZNODE_STATE_SIZE,
                "{\"version\":1,\"broker\":%d,\"block_start\":\"%lld\",\"block_end\":\"%lld\"}", p->broker_id,
                (long long)p->first, (long long)p->last);
}

int znode_producer_ids_decode(const char *s, size_t len, struct znode_producer_ids *ret)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        struct znode_producer_ids p = {0};
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "broker"), INT32_MIN, INT32_MAX, &p.broker_id);
        if (r >= 0)
                r = znode_int64(json_object_get(j, "block_start"), 0, INT64_MAX, &p.first);
        if (r >= 0)
                r = znode_int64(json_object_get(j, "block_end"), p.first, INT64_MAX, &p.last);
        if (r < 0)
                return r;
        *ret = p;
        return 0;
}

/* --- log_dir_event_ --- */

size_t znode_log_dir_event_encode(int32_t broker_id, char out[ZNODE_SMALL_SIZE])
{
        return (size_t)snprintf(out, ZNODE_SMALL_SIZE, "{\"version\":1,\"broker\":%d,\"event\":1}",
                                broker_id);
}

int znode_log_dir_event_decode(const char *s, size_t len, int32_t *ret_broker_id)
{
        cleanup_with(json_decrefp) json_t *j = NULL;
        int32_t id, event;
        int r;

        r = znode_parse(s, len, false, false, &j);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "broker"), 0, INT32_MAX, &id);
        if (r >= 0)
                r = znode_int32(json_object_get(j, "event"), 1, 1, &event);
        if (r < 0)
                return r;
        *ret_broker_id = id;
        return 0;
}
