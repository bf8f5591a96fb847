#include "active_drain.h"

#include <errno.h>
#include <string.h>

#include "api_json.h"
#include "base/fs.h"

#define FILE_BYTES 16384

int active_drain_write(const char *path, const struct active_drain *a)
{
        cleanup_with(json_decrefp) json_t *o = NULL;
        cleanup_with(freep) char *text = NULL;

        o = json_pack("{s:s, s:s, s:s, s:i, s:I, s:I, s:I}", "drain_id", a->drain_id, "reason", a->reason,
                      "requested_by", a->requested_by, "broker", (int)a->broker, "epoch",
                      (json_int_t)a->epoch, "started_ms", (json_int_t)a->started_real_ms, "deadline_ms",
                      (json_int_t)a->deadline_real_ms);
        text = o ? json_dumps(o, JSON_COMPACT) : NULL;
        return text ? fs_write_atomic(path, text, strlen(text)) : -ENOMEM;
}

int active_drain_read(const char *path, struct active_drain *ret)
{
        cleanup_with(json_decrefp) json_t *o = NULL;
        cleanup_with(buf_donep) struct buf b = {0};
        const char *id, *reason, *by;
        json_int_t epoch, started, deadline;
        int broker, r;

        buf_init(&b, FILE_BYTES);
        r = fs_read_file(path, FILE_BYTES, &b);
        if (r < 0)
                return r;
        o = json_loadb((const char *)b.data, b.len, JSON_REJECT_DUPLICATES, NULL);
        if (!o || json_unpack(o, "{s:s, s:s, s:s, s:i, s:I, s:I, s:I}", "drain_id", &id, "reason", &reason,
                              "requested_by", &by, "broker", &broker, "epoch", &epoch, "started_ms", &started,
                              "deadline_ms", &deadline) < 0)
                return -EBADMSG;
        *ret = (struct active_drain){
                .broker = broker, .epoch = epoch, .started_real_ms = started, .deadline_real_ms = deadline};
        text_copy(ret->drain_id, sizeof(ret->drain_id), id);
        text_copy(ret->reason, sizeof(ret->reason), reason);
        text_copy(ret->requested_by, sizeof(ret->requested_by), by);
        return 0;
}

int active_drain_remove(const char *path)
{
        return unlink(path) == 0 || errno == ENOENT ? 0 : -errno;
}
