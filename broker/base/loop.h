/* An epoll event loop: file descriptors (level-triggered), timers, and tasks posted from any thread.
 *
 * One thread runs a loop; every function not marked [any thread] belongs to that thread (or is called
 * before it starts). Callbacks returning a negative errno end that one source and log it; the loop goes on.
 * A source may be removed from inside any callback, its own included; its memory goes at the end of the
 * iteration. A source that its callback's error ended still belongs to its owner, who removes it. Time is
 * read once an iteration. */
#pragma once

#include <stdint.h>
#include <sys/epoll.h>

#include "base/list.h"
#include "base/util.h"

struct loop;
struct loop_fd;
struct loop_timer;

typedef int (*loop_fd_fn)(struct loop *l, int fd, uint32_t events, void *userdata);
typedef int (*loop_timer_fn)(struct loop *l, void *userdata);
typedef void (*loop_task_fn)(void *userdata);

int loop_new(const char *name, struct loop **ret) must_check;
struct loop *loop_free(struct loop *l); /* runs tasks still posted, drops sources; not while it runs */
DEFINE_FREEP(struct loop, loop_free)

int loop_run(struct loop *l);   /* until loop_stop(); 0 or -errno of epoll_wait */
void loop_stop(struct loop *l); /* [any thread] idempotent; before loop_run(): that run ends at once */
/* Run it in a thread of its own with all signals blocked; the thread bears the loop's name (15 bytes). */
int loop_thread_start(struct loop *l) must_check;
void loop_thread_join(struct loop *l);      /* loop_stop() it first */
bool loop_is_current(const struct loop *l); /* [any thread] am I the thread that runs it? */
int64_t loop_now_ms(const struct loop *l);  /* CLOCK_MONOTONIC at the start of this iteration */

/* The fd stays the caller's: removing the source does not close it. Remove the source before closing the fd,
 * whose number may be another file's a moment later. @events: EPOLLIN | EPOLLOUT …; EPOLLERR and EPOLLHUP
 * come always. -ENOMEM, -EEXIST (already watched), -EPERM (a regular file), -EBADF. */
int loop_add_fd(struct loop *l, int fd, uint32_t events, loop_fd_fn fn, void *userdata, struct loop_fd **ret)
        must_check;
/* -ESTALE: the source was ended by its callback's error. */
int loop_fd_set_events(struct loop_fd *s, uint32_t events) must_check;
struct loop_fd *loop_fd_remove(struct loop_fd *s); /* accepts NULL, returns NULL */

/* A timer is born disarmed. @period_ms 0: once. Arming again replaces what was armed and may be done inside
 * the callback; a late loop skips the beats it missed. Timers due together fire in the order they were armed.
 */
int loop_add_timer(struct loop *l, loop_timer_fn fn, void *userdata, struct loop_timer **ret) must_check;
void loop_timer_arm(struct loop_timer *t, int64_t delay_ms, int64_t period_ms);
void loop_timer_disarm(struct loop_timer *t);
bool loop_timer_armed(const struct loop_timer *t);
struct loop_timer *loop_timer_remove(struct loop_timer *t); /* accepts NULL, returns NULL */

/* A task embedded in its owner's memory: posting it cannot fail. It must not be posted again before it ran.
 */
struct loop_task {
        struct list node;
        loop_task_fn fn;
        void *userdata;
};
void loop_post_task(struct loop *l, struct loop_task *t); /* [any thread] FIFO with loop_post() */
/* [any thread] As above with memory of the loop's own. -ENOMEM. */
int loop_post(struct loop *l, loop_task_fn fn, void *userdata) must_check;
/* [any thread but the loop's own] Post and wait until it ran; runs inline when called on the loop's thread.
 */
int loop_call(struct loop *l, loop_task_fn fn, void *userdata) must_check;
