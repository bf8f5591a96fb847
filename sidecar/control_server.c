/* Accept, check who it is, pass lines on. */
#include "control_server.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include "base/list.h"
#include "base/slog.h"
#include "json_lines.h"

#define PEERS_MAX     32
#define LINE_BYTES    8192         /* of a request */
#define BACKLOG_BYTES (512 * 1024) /* of answers that a peer has not read */

struct control_server {
        struct loop *loop;
        struct loop_fd *source;
        int fd;
        char path[sizeof(((struct sockaddr_un *)0)->sun_path)];
        struct list peers;
        int n_peers;
        control_request_fn fn;
        void *userdata;
};

struct control_peer {
        struct list node;
        struct control_server *server;
        struct json_conn *conn;
        bool subscribed;
        bool broken; /* a send failed; it goes when its stream ends */
};

static struct control_peer *peer_free(struct control_peer *p)
{
        list_remove(&p->node);
        p->server->n_peers--;
        (void)json_conn_free(p->conn);
        free(p);
        return NULL;
}

static void on_message(struct json_conn *c, json_t *o, void *userdata)
{
        struct control_peer *p = userdata;

        (void)c;
        p->server->fn(p, o, p->server->userdata);
}

static void on_end(struct json_conn *c, int error, void *userdata)
{
        (void)c;
        if (error == -EMSGSIZE || error == -EBADMSG)
                slog_warning("control-bad-request",
                             "a client of the control socket sent what is no request line", SL_ERR(error));
        (void)peer_free(userdata);
}

static const struct json_conn_ops peer_ops = {on_message, on_end};

static bool may_ask(int fd)
{
        struct ucred who;
        socklen_t len = sizeof(who);

        return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
               (who.uid == 0 || who.uid == geteuid());
}

static void refuse(int fd, const char *why)
{
        char line[128];
        int n = snprintf(line, sizeof(line), "{\"ok\":false,\"error\":\"%s\"}\n", why);

        (void)send(fd, line, (size_t)n, MSG_NOSIGNAL | MSG_DONTWAIT); /* a courtesy */
        (void)close(fd);
}

static int add_peer(struct control_server *s, int fd)
{
        struct control_peer *p = calloc(1, sizeof(*p));
        int r;

        if (!p) {
                (void)close(fd);
                return -ENOMEM;
        }
        p->server = s;
        r = json_conn_new(s->loop, fd, LINE_BYTES, BACKLOG_BYTES, &peer_ops, p, &p->conn);
        if (r < 0) {
                free(p);
                return r;
        }
        list_push_back(&s->peers, &p->node);
        s->n_peers++;
        return 0;
}

static int on_accept(struct loop *l, int listener, uint32_t events, void *userdata)
{
        struct control_server *s = userdata;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        (void)l;
        (void)events;
        if (fd < 0)
                return 0; /* the client is gone already, or no descriptor is left: the next wake-up tries
                             again */
        if (!may_ask(fd)) {
                slog_warning("control-refused",
                             "refused a client of the control socket: neither root nor this user");
                refuse(fd, "permission_denied");
        } else if (s->n_peers >= PEERS_MAX) {
                refuse(fd, "too_many_clients");
        } else if (add_peer(s, fd) < 0) {
                slog_warning("control-no-memory", "could not take a client of the control socket");
        }
        return 0;
}

/* Only ever a socket: a path mistyped in the configuration must not cost somebody a file. */
static int remove_stale(const char *path)
{
        struct stat st;

        if (lstat(path, &st) < 0)
                return errno == ENOENT ? 0 : -errno;
        if (!S_ISSOCK(st.st_mode))
                return -EEXIST;
        return unlink(path) < 0 && errno != ENOENT ? -errno : 0;
}

static int open_socket(const char *path, const struct sockaddr_un *a)
{
        int r;

        cleanup_with(closep) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0)
                return -errno;
        /* A path left by a process that was killed refuses connections; one that accepts is in use. */
        if (connect(fd, (const struct sockaddr *)a, sizeof(*a)) == 0 || errno == EAGAIN)
                return -EADDRINUSE;
        if (errno != ENOENT && errno != ECONNREFUSED)
                return -errno;
        r = remove_stale(path);
        if (r < 0)
                return r;
        closep(&fd); /* a socket that once tried to connect is not bound */
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || bind(fd, (const struct sockaddr *)a, sizeof(*a)) < 0 || chmod(path, 0600) < 0 ||
            listen(fd, PEERS_MAX) < 0)
                return -errno;
        return TAKE_FD(fd);
}

int control_server_new(struct loop *loop, const char *path, control_request_fn fn, void *userdata,
                       struct control_server **ret)
{
        cleanup_with(control_server_freep) struct control_server *s = calloc(1, sizeof(*s));
        struct sockaddr_un a = {.sun_family = AF_UNIX};
        int r;

        if (!s)
                return -ENOMEM;
        s->fd = -1;
        s->loop = loop;
        s->fn = fn;
        s->userdata = userdata;
        list_init(&s->peers);
        if (strlen(path) >= sizeof(a.sun_path))
                return -ENAMETOOLONG;
        memcpy(a.sun_path, path, strlen(path) + 1);
        s->fd = open_socket(path, &a);
        if (s->fd < 0)
                return s->fd;
        memcpy(s->path, a.sun_path, sizeof(s->path));
        r = loop_add_fd(loop, s->fd, EPOLLIN, on_accept, s, &s->source);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

struct control_server *control_server_free(struct control_server *s)
{
        if (!s)
                return NULL;
        list_for_each_safe (it, tmp, &s->peers)
                (void)peer_free(list_entry(it, struct control_peer, node));
        (void)loop_fd_remove(s->source);
        if (s->fd >= 0) {
                (void)unlink(s->path); /* a stale path is harmless: clients get ECONNREFUSED */
                (void)close(s->fd);
        }
        free(s);
        return NULL;
}

static void send_to(struct control_peer *p, const json_t *line)
{
        if (p->broken || json_conn_send(p->conn, line) == 0)
                return;
        p->broken = true;
        json_conn_finish(p->conn); /* its end comes from the loop: nothing is freed under the caller's feet */
}

void control_reply(struct control_peer *p, json_t *line)
{
        if (line)
                send_to(p, line);
        else
                json_conn_finish(p->conn);
        json_decref(line);
}

void control_subscribe(struct control_peer *p)
{
        p->subscribed = true;
}

void control_publish(struct control_server *s, const json_t *line)
{
        list_for_each (it, &s->peers) {
                struct control_peer *p = list_entry(it, struct control_peer, node);

                if (p->subscribed)
                        send_to(p, line);
        }
}
