/* Work that takes as long as the disk takes (loading logs after a crash, flushing them at the end), on a
 * thread of its own, so that the control loop goes on: signals are heard, and systemd's timer is extended. */
#pragma once

#include "base/loop.h"

struct blocking;

struct blocking_work {
        const char *status;                  /* for the unit's status line, "Loading logs" */
        int (*run)(void *userdata);          /* on the new thread */
        void (*done)(int r, void *userdata); /* on the loop, once; @r is what run() returned */
        void *userdata;
};

/* Start it. While it runs the start or stop timer of the unit is extended (L6), as long as the process makes
 * progress: one that neither computes nor reads nor writes for ten minutes hangs, and is systemd's to end.
 * -ENOMEM, -EAGAIN (no thread). */
int blocking_start(struct loop *l, const struct blocking_work *w, struct blocking **ret) must_check;
/* Waits for the work's end; done() is not called any more. On the loop's thread, before loop_free(). */
struct blocking *blocking_free(struct blocking *b);
DEFINE_FREEP(struct blocking, blocking_free)
