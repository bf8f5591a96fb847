/* Events of a session: lines of the sidecar, changes of our own run, the main process's end, a signal, a
 * timer. Each leads to see(), the one place that looks at a status and decides whether the session is over.
 */
#include "cli/drain_session.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "api_json.h"
#include "base/clock.h"
#include "base/slog.h"
#include "drain_record.h"
#include "drain_run.h"
#include "json_lines.h"
#include "notify.h"

#define SILENCE_MS    3500 /* the sidecar speaks every second */
#define ASK_AGAIN_MS  200
#define LINE_BYTES    (256 * 1024)
#define REQUEST_BYTES 8192

struct session {
        const struct drain_session_options *o;
        const struct sidecar_config *config;
        struct drain_params params;
        struct loop *loop;
        struct json_conn *sidecar; /* NULL: we do the work, or nobody does yet */
        struct drain_run *run;
        struct loop_timer *tick, *silence, *again, *deadline;
        struct loop_fd *signals, *main_process;
        int signal_fd, pid_fd;
        int64_t started_ms;
        struct drain_status last;
        struct drain_record record;
        int error;
        bool over;
};

static void go_direct(struct session *s, const char *why);

/* --- what is seen --- */

/* In place: a line that wraps would leave its upper half behind, again and again. */
static void show_live(const struct session *s, const struct drain_status *st)
{
        struct winsize w = {0};
        char line[512];
        size_t len = 0;

        if (!s->o->live)
                return;
        drain_status_line(st, line, sizeof(line));
        if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col == 0)
                w.ws_col = 80;
        for (int columns = 0; line[len]; len++) {
                columns += ((unsigned char)line[len] & 0xc0) != 0x80; /* not for the rest of a character */
                if (columns >= w.ws_col)
                        break;
        }
        (void)fprintf(stderr, "\r\033[K%.*s", (int)len, line);
}

static bool is_enough(const struct session *s, const struct drain_status *st)
{
        if (drain_phase_is_ended(st->state))
                return true;
        return !s->o->wait && !s->o->undo && (st->state == DRAIN_DRAINING || st->state == DRAIN_CONFIRMING);
}

static void leave(struct session *s)
{
        s->over = true;
        loop_stop(s->loop);
}

static void see(struct session *s, const struct drain_status *st)
{
        enum drain_phase from = s->last.state;

        if (s->over)
                return;
        s->last = *st;
        drain_record_change(&s->record, st, from);
        show_live(s, st);
        if (s->o->under_systemd && st->state != from)
                notify_drain(st);
        if (is_enough(s, st))
                leave(s);
}

/* End by a verdict of our own, whatever the sidecar goes on doing. */
static void see_verdict(struct session *s, enum drain_phase verdict, enum drain_why why)
{
        struct drain_status st = s->last;

        if (drain_phase_is_ended(st.state))
                return;
        st.state = verdict;
        st.why = why;
        text_copy(st.message, sizeof(st.message), drain_why_text(why));
        st.ended_real_ms = clock_real_ms();
        st.may_extend = false;
        st.deadline_in_ms = 0;
        if (st.started_real_ms == 0)
                st.started_real_ms = st.ended_real_ms - (clock_mono_ms() - s->started_ms);
        st.elapsed_ms = st.ended_real_ms - st.started_real_ms;
        see(s, &st);
}

/* --- by the sidecar --- */

static int on_silence(struct loop *l, void *userdata)
{
        (void)l;
        go_direct(userdata, "the sidecar does not answer");
        return 0;
}

/* The sidecar's DELETE of the drain before is on its way. A PUT of our own might overtake it, and be undone
 * by it. */
static void ask_again_later(struct session *s)
{
        loop_timer_disarm(s->silence);
        loop_timer_arm(s->again, ASK_AGAIN_MS, 0);
}

static void on_line(struct json_conn *c, json_t *o, void *userdata)
{
        cleanup_with(freep) struct drain_status *st = malloc(sizeof(*st));
        const char *error = json_string_value(json_object_get(o, "error"));
        struct session *s = userdata;

        (void)c;
        loop_timer_arm(s->silence, SILENCE_MS, 0);
        if (error && strcmp(error, "undoing") == 0 && !s->o->undo)
                ask_again_later(s);
        else if (error)
                go_direct(s, error);
        else if (!st || drain_status_from_json(json_object_get(o, "status"), st) < 0)
                go_direct(s, "the sidecar's answer is none");
        else
                see(s, st);
}

static void on_line_end(struct json_conn *c, int error, void *userdata)
{
        (void)c;
        (void)error;
        go_direct(userdata, "the sidecar has gone");
}

static const struct json_conn_ops sidecar_ops = {on_line, on_line_end};

static int connect_sidecar(const char *path)
{
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        cleanup_with(closep) int fd = -1;

        if (path[0] == '\0')
                return -ENOENT;
        if (strlen(path) >= sizeof(a.sun_path))
                return -ENAMETOOLONG;
        memcpy(a.sun_path, path, strlen(path) + 1);
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || connect(fd, (const struct sockaddr *)&a, sizeof(a)) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static json_t *request_json(const struct session *s, const char *op)
{
        char reason[DRAIN_TEXT_MAX], by[DRAIN_TEXT_MAX];
        json_t *o;

        text_copy(reason, sizeof(reason), s->o->reason);
        text_copy(by, sizeof(by), s->o->requested_by);
        o = json_pack("{s:s, s:s, s:s, s:I, s:b}", "op", op, "reason", reason, "requested_by", by,
                      "deadline_ms", (json_int_t)s->params.deadline_ms, "subscribe", 1);
        /* a failure shows in the send */
        if (o && s->o->force) {
                (void)json_object_set_new(o, "replace", json_true());
                (void)json_object_set_new(o, "force", json_true());
        }
        if (o && s->o->cluster_stop)
                (void)json_object_set_new(o, "cluster_shutdown", json_true());
        if (o && s->o->broker >= 0)
                (void)json_object_set_new(o, "broker",
                                          json_integer(s->o->broker)); /* a failure shows in the send */
        return o;
}

static int on_again(struct loop *l, void *userdata)
{
        struct session *s = userdata;
        cleanup_with(json_decrefp) json_t *request = NULL;

        (void)l;
        if (s->over || !s->sidecar)
                return 0;
        request = request_json(s, "drain");
        if (!request || json_conn_send(s->sidecar, request) < 0)
                go_direct(s, "the sidecar takes no request");
        else
                loop_timer_arm(s->silence, SILENCE_MS, 0);
        return 0;
}

static int ask_sidecar(struct session *s, const char *op)
{
        cleanup_with(json_decrefp) json_t *request = request_json(s, op);
        int fd = connect_sidecar(s->o->socket), r;

        if (fd < 0)
                return fd;
        r = json_conn_new(s->loop, fd, LINE_BYTES, REQUEST_BYTES, &sidecar_ops, s, &s->sidecar);
        if (r < 0)
                return r;
        r = request ? json_conn_send(s->sidecar, request) : -ENOMEM;
        if (r < 0)
                s->sidecar = json_conn_free(s->sidecar);
        else
                loop_timer_arm(s->silence, SILENCE_MS, 0);
        return r;
}

/* --- by ourselves --- */

static void on_run_change(struct drain_run *run, enum drain_phase from, void *userdata)
{
        (void)from;
        see(userdata, drain_run_status(run));
}

static int start_direct(struct session *s)
{
        int64_t left_ms = s->params.deadline_ms - (clock_mono_ms() - s->started_ms);
        struct drain_job job = {
                .drain_id = s->last.drain_id, /* the sidecar's, if it got as far as to name one */
                .reason = s->o->reason,
                .requested_by = s->o->requested_by,
                .epoch = s->last.drain_id[0] != '\0' ? s->last.epoch : DRAIN_UNKNOWN,
                .deadline_ms = MAX(left_ms, INT64_C(1)),
                .started_real_ms = s->last.started_real_ms,
                .replace = s->o->force,
                .force = s->o->force,
                .cluster_stop = s->o->cluster_stop,
        };
        int r;

        r = drain_run_new(s->loop, s->config, on_run_change, s, &s->run);
        if (r < 0)
                return r;
        if (s->o->broker >= 0)
                drain_run_set_broker(s->run, s->o->broker);
        else if (s->last.drain_id[0] != '\0' && s->last.broker >= 0)
                drain_run_set_broker(s->run, s->last.broker);
        if (!s->o->undo)
                return drain_run_start(s->run, &job);
        drain_run_undo(s->run);
        return 0;
}

static void go_direct(struct session *s, const char *why)
{
        if (s->over || s->run)
                return;
        loop_timer_disarm(s->silence);
        s->sidecar = json_conn_free(s->sidecar);
        slog_notice("drain-direct", "doing the work without the sidecar", SL_STR("why", why),
                    SL_STR("drain_id", s->last.drain_id));
        s->error = start_direct(s);
        if (s->error < 0)
                leave(s);
}

/* --- timers, signals, the main process --- */

static int on_tick(struct loop *l, void *userdata)
{
        struct session *s = userdata;

        (void)l;
        if (s->run)
                s->last = *drain_run_status(s->run);
        if (s->o->under_systemd)
                notify_drain(&s->last);
        show_live(s, &s->last);
        return 0;
}

/* L2: our deadline may be shorter than that of a drain we joined. */
static int on_deadline(struct loop *l, void *userdata)
{
        struct session *s = userdata;

        (void)l;
        if (!s->run)
                see_verdict(s, DRAIN_INCOMPLETE, DRAIN_WHY_DEADLINE);
        return 0;
}

/* `systemctl kill --kill-who=control`, Ctrl-C: stop waiting at once. The controller goes on moving leaders.
 */
static int on_signal(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct signalfd_siginfo info;

        (void)l;
        (void)events;
        if (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
                see_verdict(userdata, DRAIN_SKIPPED, DRAIN_WHY_TERMINATED);
        return 0;
}

static int on_main_exit(struct loop *l, int fd, uint32_t events, void *userdata)
{
        (void)l;
        (void)fd;
        (void)events;
        see_verdict(userdata, DRAIN_BROKER_GONE, DRAIN_WHY_NONE);
        return 0;
}

static int watch_signals(struct session *s)
{
        sigset_t set;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        /* A closed terminal ends the wait. Under systemd there is none, and SIGHUP asks a service to reload:
         * `systemctl kill --signal=HUP` sends it to us, too, and must not cost the drain. */
        if (s->o->under_systemd)
                (void)sigdelset(&set, SIGHUP);
        s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (s->signal_fd < 0)
                return -errno;
        return loop_add_fd(s->loop, s->signal_fd, EPOLLIN, on_signal, s, &s->signals);
}

/* -ESRCH: it has ended already. */
static int watch_main_process(struct session *s)
{
        if (s->o->main_pid == 0)
                return 0;
        s->pid_fd = pidfd_open((pid_t)s->o->main_pid, 0);
        if (s->pid_fd < 0)
                return -errno;
        return loop_add_fd(s->loop, s->pid_fd, EPOLLIN, on_main_exit, s, &s->main_process);
}

/* --- a session --- */

static int set_up(struct session *s)
{
        int r;

        r = loop_new("drain", &s->loop);
        if (r == 0)
                r = loop_add_timer(s->loop, on_tick, s, &s->tick);
        if (r == 0)
                r = loop_add_timer(s->loop, on_silence, s, &s->silence);
        if (r == 0)
                r = loop_add_timer(s->loop, on_again, s, &s->again);
        if (r == 0)
                r = loop_add_timer(s->loop, on_deadline, s, &s->deadline);
        return r;
}

static void session_done(struct session *s)
{
        (void)json_conn_free(s->sidecar);
        (void)drain_run_free(s->run);
        (void)loop_timer_remove(s->tick);
        (void)loop_timer_remove(s->silence);
        (void)loop_timer_remove(s->again);
        (void)loop_timer_remove(s->deadline);
        (void)loop_fd_remove(s->signals);
        (void)loop_fd_remove(s->main_process);
        (void)loop_free(s->loop);
        closep(&s->signal_fd);
        closep(&s->pid_fd);
}

static void session_init(struct session *s, const struct drain_session_options *o,
                         const struct sidecar_config *config)
{
        *s = (struct session){
                .o = o,
                .config = config,
                .signal_fd = -1,
                .pid_fd = -1,
                .started_ms = clock_mono_ms(),
                .last = {.broker = o->broker >= 0 ? o->broker : config->broker_id,
                         .controller = -1,
                         .epoch = DRAIN_UNKNOWN,
                         .remaining = DRAIN_UNKNOWN,
                         .initial = DRAIN_UNKNOWN,
                         .leaders = DRAIN_UNKNOWN},
        };
        sidecar_config_params(config, o->deadline_ms, &s->params);
}

static int wait_for_verdict(struct session *s)
{
        int64_t limit_ms = s->params.policy == DRAIN_HOLD ? s->params.hard_limit_ms : s->params.deadline_ms;
        int r;

        loop_timer_arm(s->tick, 0, NOTIFY_PERIOD_MS);
        /* the sidecar's own verdict at the same deadline comes first */
        loop_timer_arm(s->deadline, limit_ms + (s->params.policy == DRAIN_ABORT ? s->params.undo_ms : 1000),
                       0);
        r = ask_sidecar(s, s->o->undo ? "undo" : "drain");
        if (r < 0)
                go_direct(s, r == -ENOENT ? "there is no sidecar" : strerrordesc_np(-r));
        if (!s->over)
                r = loop_run(s->loop);
        else
                r = 0;
        return s->error < 0 ? s->error : MIN(r, 0);
}

int drain_session_run(const struct drain_session_options *o, const struct sidecar_config *config,
                      struct drain_status *ret)
{
        cleanup_with(freep) struct session *s = malloc(sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        session_init(s, o, config);
        if (o->under_systemd)
                notify_extend(); /* at once: TimeoutStopSec= may be as short as connecting takes */
        r = set_up(s);
        if (r == 0)
                r = watch_signals(s);
        if (r == 0)
                r = watch_main_process(s);
        if (r == -ESRCH) {
                see_verdict(s, DRAIN_BROKER_GONE, DRAIN_WHY_NONE);
                r = 0;
        } else if (r == 0) {
                r = wait_for_verdict(s);
        }
        if (o->live)
                (void)fputs("\r\033[K", stderr);
        if (r == 0)
                *ret = s->last;
        session_done(s);
        if (o->under_systemd)
                notify_barrier();
        return r;
}

/* --- one look --- */

static void on_status_line(struct json_conn *c, json_t *o, void *userdata)
{
        struct session *s = userdata;
        const json_t *status = json_object_get(o, "status");

        (void)c;
        s->error = status ? drain_status_from_json(status, &s->last) : -EBADMSG;
        leave(s);
}

static void on_status_end(struct json_conn *c, int error, void *userdata)
{
        struct session *s = userdata;

        (void)c;
        s->error = error < 0 ? error : -ECONNRESET;
        leave(s);
}

static int on_status_silence(struct loop *l, void *userdata)
{
        struct session *s = userdata;

        (void)l;
        s->error = -ETIMEDOUT;
        leave(s);
        return 0;
}

static const struct json_conn_ops status_ops = {on_status_line, on_status_end};

static int status_by_sidecar(struct session *s)
{
        cleanup_with(json_decrefp) json_t *request = request_json(s, "status");
        int fd = connect_sidecar(s->o->socket), r;

        if (fd < 0)
                return fd;
        r = loop_add_timer(s->loop, on_status_silence, s, &s->silence);
        if (r < 0) {
                (void)close(fd);
                return r;
        }
        r = json_conn_new(s->loop, fd, LINE_BYTES, REQUEST_BYTES, &status_ops, s, &s->sidecar);
        if (r == 0)
                r = request ? json_conn_send(s->sidecar, request) : -ENOMEM;
        loop_timer_arm(s->silence, SILENCE_MS, 0);
        if (r == 0)
                r = loop_run(s->loop);
        return r < 0 ? r : s->error;
}

static void on_query(const struct drain_answer *a, const char *message, void *userdata)
{
        static const enum drain_phase phases[N_CONTROLLER_DRAIN_STATES] = {
                [CONTROLLER_NONE] = DRAIN_IDLE,       [CONTROLLER_DRAINING] = DRAIN_DRAINING,
                [CONTROLLER_DRAINED] = DRAIN_DRAINED, [CONTROLLER_INCOMPLETE] = DRAIN_INCOMPLETE,
                [CONTROLLER_STALE] = DRAIN_STALE,     [CONTROLLER_CANCELLED] = DRAIN_ABORTED,
                [CONTROLLER_WAITING] = DRAIN_WAITING, [CONTROLLER_CLUSTER_STOP] = DRAIN_CLUSTER_STOP,
        };
        struct session *s = userdata;
        struct drain_status *st = &s->last;

        s->error = a ? 0 : -EHOSTUNREACH;
        if (a) {
                memset(st, 0, sizeof(*st)); /* whatever the sidecar said of an ended one */
                st->initial = st->leaders = DRAIN_UNKNOWN;
                st->broker = a->broker;
                st->controller = a->controller;
                st->epoch = a->epoch;
                st->slot = a->slot;
                st->state = phases[a->state];
                st->remaining = a->state == CONTROLLER_NONE ? DRAIN_UNKNOWN : a->remaining;
                st->moved = a->moved;
                st->rf1_led = a->rf1_led;
                st->blocked_total = a->blocked_total;
                st->n_blocked = a->n_blocked;
                if (a->n_blocked > 0)
                        memcpy(st->blocked, a->blocked, a->n_blocked * sizeof(a->blocked[0]));
                memcpy(st->drain_id, a->drain_id, sizeof(st->drain_id));
        }
        text_copy(st->message, sizeof(st->message), message);
        leave(s);
}

static int status_by_controller(struct session *s)
{
        int r;

        s->over = false;
        s->loop = loop_free(s->loop);
        r = loop_new("drain", &s->loop);
        if (r == 0)
                r = drain_run_new(s->loop, s->config, NULL, NULL, &s->run);
        if (r == 0 && s->o->broker >= 0)
                drain_run_set_broker(s->run, s->o->broker);
        if (r == 0)
                r = drain_run_query(s->run, on_query, s);
        if (r == 0)
                r = loop_run(s->loop);
        return r < 0 ? r : s->error;
}

int drain_session_status(const struct drain_session_options *o, const struct sidecar_config *config,
                         struct drain_status *ret)
{
        cleanup_with(freep) struct session *s = malloc(sizeof(*s));
        bool known;
        int r;

        if (!s)
                return -ENOMEM;
        session_init(s, o, config);
        r = loop_new("drain", &s->loop);
        if (r == 0)
                r = status_by_sidecar(s);
        known = r == 0;
        *ret = s->last;
        /* How the sidecar's last drain ended is not how things stand now: the controller knows. */
        if (!known || !drain_phase_is_active(s->last.state)) {
                s->sidecar = json_conn_free(s->sidecar);
                s->silence = loop_timer_remove(s->silence);
                r = status_by_controller(s);
                if (r == 0 || !known)
                        *ret = s->last;
        }
        session_done(s);
        return known ? 0 : r;
}
