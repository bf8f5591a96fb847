/* Shared by topics.c, deletion.c and the senders: "has everybody been told what was queued by now?" */
#pragma once

#include "controller/controller_internal.h"

struct sender_mark {
        int32_t broker_id;
        int64_t epoch;
        uint64_t lai, um;
};

/* What is queued for each live broker now. Caller frees *ret. -ENOMEM. */
int sender_marks_take(struct controller *c, struct sender_mark **ret, size_t *ret_n) must_check;
/* Has each of them, as far as it still lives, acknowledged that? */
bool sender_marks_passed(const struct controller *c, const struct sender_mark *marks, size_t n);
