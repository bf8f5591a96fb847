/* The daemon's loop: control socket in, drain_run out; what it promises is on disk before it is answered. */
#include "sidecar.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <systemd/sd-daemon.h>

#include "active_drain.h"
#include "api_json.h"
#include "base/clock.h"
#include "base/fs.h"
#include "base/slog.h"
#include "control_server.h"
#include "drain_record.h"
#include "drain_run.h"
#include "notify.h"

#define HEARTBEAT_MS 1000 /* clients take three of them missing for a dead sidecar */

struct sidecar {
        const struct sidecar_config *config;
        struct loop *loop;
        struct loop_timer *heartbeat, *refresh;
        struct loop_fd *signals;
        int signal_fd;
        struct control_server *control;
        struct drain_run *run;
        struct drain_record record;
        char *active_path, *last_path;
        struct active_drain written; /* what active_path holds; drain_id "" when nothing */
        bool terminating;            /* SIGTERM came; exit when no drain is active */
        bool disk_bad;               /* the state directory failed; said once */
};

/* --- state on disk --- */

static void note_disk(struct sidecar *s, const char *path, int error)
{
        if (error < 0 && !s->disk_bad)
                slog_warning("state-not-written", "cannot keep the drain's state; the drain itself goes on",
                             SL_STR("path", path), SL_ERR(error));
        s->disk_bad = error < 0;
}

static void save_active(struct sidecar *s, const struct drain_status *st)
{
        struct active_drain a = {
                .broker = st->broker,
                .epoch = st->epoch,
                .started_real_ms = st->started_real_ms,
        };
        int r;

        if (strcmp(s->written.drain_id, st->drain_id) == 0 && s->written.epoch == st->epoch)
                return;
        a.deadline_real_ms = clock_real_ms() + st->deadline_in_ms;
        memcpy(a.drain_id, st->drain_id, sizeof(a.drain_id));
        memcpy(a.reason, st->reason, sizeof(a.reason));
        memcpy(a.requested_by, st->requested_by, sizeof(a.requested_by));
        r = active_drain_write(s->active_path, &a);
        note_disk(s, s->active_path, r);
        s->written = a;
}

static void save_end(struct sidecar *s, const struct drain_status *st)
{
        int r;

        note_disk(s, s->last_path, drain_record_write(s->last_path, st));
        r = active_drain_remove(s->active_path);
        if (r < 0)
                note_disk(s, s->active_path, r);
        s->written.drain_id[0] = '\0';
}

/* --- what others see --- */

static json_t *status_line(const struct drain_status *st)
{
        json_t *status = drain_status_to_json(st);

        return status ? json_pack("{s:b, s:o}", "ok", 1, "status", status) : NULL;
}

static void publish(struct sidecar *s, const struct drain_status *st)
{
        json_t *line = status_line(st);

        if (line)
                control_publish(s->control, line);
        json_decref(line);
}

static void tell_systemd(struct sidecar *s, const struct drain_status *st)
{
        char text[64];

        if (st->state != DRAIN_IDLE) {
                notify_drain(st);
                return;
        }
        if (st->broker >= 0)
                (void)snprintf(text, sizeof(text), "Ready for broker %d; no drain", st->broker);
        else
                (void)snprintf(text, sizeof(text), "Ready; no drain");
        notify_status(text);
        if (s->terminating)
                loop_stop(s->loop);
}

static void on_change(struct drain_run *run, enum drain_phase from, void *userdata)
{
        const struct drain_status *st = drain_run_status(run);
        struct sidecar *s = userdata;

        drain_record_change(&s->record, st, from);
        if (drain_phase_is_ended(st->state) && st->state != from)
                save_end(s, st);
        else if (drain_phase_is_active(st->state) && st->state != DRAIN_UNDOING)
                save_active(s, st);
        if (st->state != from || drain_phase_is_active(st->state))
                publish(s, st);
        if (st->state != from)
                tell_systemd(s, st);
        if (s->terminating && !drain_phase_is_active(st->state))
                loop_stop(s->loop);
}

static int on_heartbeat(struct loop *l, void *userdata)
{
        struct sidecar *s = userdata;
        const struct drain_status *st = drain_run_status(s->run);

        (void)l;
        (void)sd_notify(0, "WATCHDOG=1"); /* ignored where no watchdog is set */
        if (drain_phase_is_active(st->state)) {
                publish(s, st);
                tell_systemd(s, st);
        }
        return 0;
}

static int on_refresh(struct loop *l, void *userdata)
{
        struct sidecar *s = userdata;

        (void)l;
        drain_run_refresh(s->run);
        return 0;
}

/* --- requests --- */

static json_t *error_line(const char *error)
{
        return json_pack("{s:b, s:s}", "ok", 0, "error", error);
}

static const char *text_of(const json_t *o, const char *key)
{
        const char *text = json_string_value(json_object_get(o, key));

        return text ? text : "";
}

static int64_t int_of(const json_t *o, const char *key, int64_t absent)
{
        const json_t *v = json_object_get(o, key);

        return json_is_integer(v) ? json_integer_value(v) : absent;
}

/* NULL, or why this sidecar does not drain that broker. */
static const char *wrong_broker(struct sidecar *s, const json_t *request)
{
        int64_t wanted = int_of(request, "broker", -1);
        int32_t own = drain_run_status(s->run)->broker;

        if (wanted < 0 || wanted == own)
                return NULL;
        /* Not "then it is that one": a question about another broker must not tell us who we are. */
        return own >= 0 ? "wrong_broker" : "broker_not_known";
}

static json_t *do_drain(struct sidecar *s, const json_t *request)
{
        struct drain_job job = {
                .drain_id = text_of(request, "drain_id"),
                .reason = text_of(request, "reason"),
                .requested_by = text_of(request, "requested_by"),
                .epoch = int_of(request, "epoch", DRAIN_UNKNOWN),
                .deadline_ms = MAX(int_of(request, "deadline_ms", 0), INT64_C(0)),
                .replace = json_is_true(json_object_get(request, "replace")),
                .force = json_is_true(json_object_get(request, "force")),
                .cluster_stop = json_is_true(json_object_get(request, "cluster_shutdown")),
        };
        const char *wrong = wrong_broker(s, request);
        int r;

        if (wrong)
                return error_line(wrong);
        r = drain_run_start(s->run, &job);
        if (r == -EBUSY)
                return error_line("undoing");
        return r < 0 ? error_line("internal") : status_line(drain_run_status(s->run));
}

static json_t *do_undo(struct sidecar *s, const json_t *request)
{
        const char *wrong = wrong_broker(s, request);

        if (wrong)
                return error_line(wrong);
        drain_run_undo(s->run);
        return status_line(drain_run_status(s->run));
}

static json_t *do_status(struct sidecar *s, const json_t *request)
{
        const char *wrong = wrong_broker(s, request);

        return wrong ? error_line(wrong) : status_line(drain_run_status(s->run));
}

static const struct {
        const char *op;
        json_t *(*fn)(struct sidecar *s, const json_t *request);
} operations[] = {
        {"drain", do_drain},
        {"undo", do_undo},
        {"status", do_status},
        {"subscribe", do_status},
};

static void on_request(struct control_peer *p, const json_t *request, void *userdata)
{
        const char *op = text_of(request, "op");
        struct sidecar *s = userdata;

        for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
                json_t *reply;
                bool ok;

                if (strcmp(operations[i].op, op) != 0)
                        continue;
                reply = operations[i].fn(s, request);
                ok = json_is_true(json_object_get(reply, "ok"));
                control_reply(p, reply);
                /* Who was refused would take what becomes of somebody else's request for its own. */
                if (ok &&
                    (strcmp(op, "subscribe") == 0 || json_is_true(json_object_get(request, "subscribe"))))
                        control_subscribe(p);
                return;
        }
        control_reply(p, error_line("unknown_op"));
}

/* --- signals --- */

/* L6, L10: a stop of this unit during a drain waits for the drain, for systemd restarts no service of a
 * shutdown. The second signal ends it at once; the drain is on disk and with the controller. */
static int on_signal(struct loop *l, int fd, uint32_t events, void *userdata)
{
        struct signalfd_siginfo info;
        struct sidecar *s = userdata;
        const struct drain_status *st;

        (void)l;
        (void)events;
        if (read(fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
                return 0;
        if (info.ssi_signo == SIGHUP) {
                slog_notice("reload-ignored",
                            "no setting of the sidecar can be reloaded; restart it to change one");
                return 0;
        }
        st = drain_run_status(s->run);
        if (s->terminating || !drain_phase_is_active(st->state)) {
                loop_stop(s->loop);
                return 0;
        }
        s->terminating = true;
        slog_notice("exit-deferred", "a drain is active: leaving when it has ended, or at the next signal",
                    SL_STR("drain_id", st->drain_id), SL_INT("leaders_remaining", st->remaining));
        notify_drain(st);
        return 0;
}

static int watch_signals(struct sidecar *s)
{
        sigset_t set;

        (void)sigemptyset(&set);
        (void)sigaddset(&set, SIGTERM);
        (void)sigaddset(&set, SIGINT);
        (void)sigaddset(&set, SIGHUP);
        if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
                return -errno;
        s->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (s->signal_fd < 0)
                return -errno;
        return loop_add_fd(s->loop, s->signal_fd, EPOLLIN, on_signal, s, &s->signals);
}

/* --- life --- */

/* L10: take up the drain that was active when the last sidecar died. */
static int resume(struct sidecar *s)
{
        struct active_drain a;
        struct drain_job job;
        int64_t left_ms;
        int r;

        r = active_drain_read(s->active_path, &a);
        if (r == -ENOENT)
                return 0;
        left_ms = r < 0 ? 0 : a.deadline_real_ms - clock_real_ms();
        if (r == 0 && left_ms <= 0)
                r = -ETIME;
        /* D2: which incarnation was to be drained is not known, and this may be the next one. */
        if (r == 0 && a.epoch == DRAIN_UNKNOWN)
                r = -ESTALE;
        if (r < 0) {
                slog_warning("resume-impossible", "the recorded drain cannot be taken up again",
                             SL_STR("path", s->active_path), SL_ERR(r));
                return active_drain_remove(s->active_path);
        }
        job = (struct drain_job){
                .drain_id = a.drain_id,
                .reason = a.reason,
                .requested_by = a.requested_by,
                .epoch = a.epoch,
                .deadline_ms = left_ms,
                .started_real_ms = a.started_real_ms,
        };
        slog_notice("drain-resumed", "taking up the drain that was active before",
                    SL_STR("drain_id", a.drain_id), SL_INT("broker", a.broker), SL_INT("left_ms", left_ms));
        if (a.broker >= 0 && s->config->broker_id < 0)
                drain_run_set_broker(s->run, a.broker);
        return drain_run_start(s->run, &job);
}

static int make_paths(struct sidecar *s)
{
        int r;

        r = fs_mkdir_p(s->config->state_dir, 0750);
        note_disk(s, s->config->state_dir, r);
        if (asprintf(&s->active_path, "%s/active-drain.json", s->config->state_dir) < 0) {
                s->active_path = NULL;
                return -ENOMEM;
        }
        if (asprintf(&s->last_path, "%s/last-drain.json", s->config->state_dir) < 0) {
                s->last_path = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int set_up(struct sidecar *s)
{
        int r;

        r = make_paths(s);
        if (r == 0)
                r = loop_new("sidecar", &s->loop);
        if (r == 0)
                r = watch_signals(s);
        if (r == 0)
                r = loop_add_timer(s->loop, on_heartbeat, s, &s->heartbeat);
        if (r == 0)
                r = loop_add_timer(s->loop, on_refresh, s, &s->refresh);
        if (r == 0)
                r = drain_run_new(s->loop, s->config, on_change, s, &s->run);
        if (r == 0)
                r = control_server_new(s->loop, s->config->control_socket, on_request, s, &s->control);
        return r;
}

int sidecar_new(const struct sidecar_config *config, struct sidecar **ret)
{
        cleanup_with(sidecar_freep) struct sidecar *s = calloc(1, sizeof(*s));
        int r;

        if (!s)
                return -ENOMEM;
        s->config = config;
        s->signal_fd = -1;
        r = set_up(s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

struct sidecar *sidecar_free(struct sidecar *s)
{
        if (!s)
                return NULL;
        (void)control_server_free(s->control);
        (void)drain_run_free(s->run);
        (void)loop_timer_remove(s->heartbeat);
        (void)loop_timer_remove(s->refresh);
        (void)loop_fd_remove(s->signals);
        closep(&s->signal_fd);
        (void)loop_free(s->loop);
        free(s->active_path);
        free(s->last_path);
        free(s);
        return NULL;
}

int sidecar_run(struct sidecar *s)
{
        int r;

        loop_timer_arm(s->heartbeat, HEARTBEAT_MS, HEARTBEAT_MS);
        loop_timer_arm(s->refresh, 0, s->config->refresh_ms);
        slog_info("sidecar-ready", "serving the control socket", SL_STR("socket", s->config->control_socket),
                  SL_INT("broker", s->config->broker_id), SL_STR("endpoints", s->config->admin_endpoints));
        notify_ready("Ready; no drain");
        r = resume(s);
        if (r < 0)
                slog_warning("resume-failed", "could not take up the recorded drain", SL_ERR(r));
        return loop_run(s->loop);
}
