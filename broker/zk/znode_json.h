/* Helpers of the znode decoders on top of jansson; nobody outside zk/ includes it. Pure. */
#pragma once

#include <jansson.h>

#include "base/buf.h"
#include "base/util.h"

/* Parse an object. @any: a bare scalar too. @lenient: a comma before a closing bracket is forgiven (R55).
 * -EBADMSG, -ENOMEM. */
int znode_parse(const char *s, size_t len, bool any, bool lenient, json_t **ret) must_check;
/* An integer, or one in quotes, within min..max; -EBADMSG otherwise, NULL included. */
int znode_int64(const json_t *j, int64_t min, int64_t max, int64_t *ret) must_check;
int znode_int32(const json_t *j, int32_t min, int32_t max, int32_t *ret) must_check;
/* A string of 1..max_len bytes, copied. */
int znode_string(const json_t *j, size_t max_len, char **ret) must_check;
/* An array of broker ids (>= 0), copied; an empty one gives NULL and 0. */
int znode_ids(const json_t *j, int32_t **ret, size_t *ret_n) must_check;

/* Writers. */
int znode_put_string(struct buf *out, const char *s) must_check; /* quoted and escaped */
int znode_put_ids(struct buf *out, const int32_t *ids, size_t n) must_check;
