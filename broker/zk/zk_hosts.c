#include "zk/zk_hosts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/buf.h"
#include "base/parse.h"

#define DEFAULT_PORT  2181
#define MAX_HOSTS     32
#define MAX_ADDRESSES 128

struct host {
        char *name;
        uint16_t port;
};

struct zk_hosts {
        size_t n;
        struct host hosts[MAX_HOSTS];
};

struct zk_hosts *zk_hosts_free(struct zk_hosts *h)
{
        if (!h)
                return NULL;
        for (size_t i = 0; i < h->n; i++)
                free(h->hosts[i].name);
        free(h);
        return NULL;
}

/* One "host", "host:port", "[v6]" or "[v6]:port". */
static int parse_one(const char *s, size_t len, struct host *ret)
{
        char text[300], host[256];
        uint16_t port;
        int r;

        while (len > 0 && *s == ' ')
                s++, len--;
        while (len > 0 && s[len - 1] == ' ')
                len--;
        if (len == 0 || len > 255)
                return -EINVAL;
        memcpy(text, s, len);
        text[len] = '\0';
        if (!memchr(s, ':', len) || s[len - 1] == ']')
                (void)snprintf(text + len, sizeof(text) - len, ":%d", DEFAULT_PORT); /* fits: len <= 255 */
        r = parse_host_port(text, host, &port);
        if (r < 0 || port == 0)
                return -EINVAL;
        ret->name = strdup(host);
        if (!ret->name)
                return -ENOMEM;
        ret->port = port;
        return 0;
}

static int parse_chroot(const char *s, char **ret)
{
        size_t len = strlen(s);

        while (len > 0 && s[len - 1] == '/')
                len--;
        for (size_t i = 1; i < len; i++)
                if (s[i] == '/' && s[i - 1] == '/')
                        return -EINVAL;
        *ret = strndup(s, len);
        return *ret ? 0 : -ENOMEM;
}

int zk_hosts_parse(const char *connect, struct zk_hosts **ret, char **ret_chroot)
{
        cleanup_with(zk_hosts_freep) struct zk_hosts *h = NULL;
        cleanup_with(freep) char *chroot = NULL;
        size_t end;
        int r;

        if (!connect)
                return -EINVAL;
        h = calloc(1, sizeof(*h));
        if (!h)
                return -ENOMEM;
        end = strcspn(connect, "/");
        r = parse_chroot(connect + end, &chroot);
        if (r < 0)
                return r;
        for (size_t at = 0; at <= end;) {
                size_t n = strcspn(connect + at, ",/");

                if (h->n == MAX_HOSTS)
                        return -EINVAL;
                r = parse_one(connect + at, n, &h->hosts[h->n]);
                if (r < 0)
                        return r;
                h->n++;
                at += n + 1;
        }
        *ret = TAKE_PTR(h);
        *ret_chroot = TAKE_PTR(chroot);
        return 0;
}

bool zk_hosts_numeric(const struct zk_hosts *h)
{
        struct in6_addr any;

        for (size_t i = 0; i < h->n; i++)
                if (inet_pton(AF_INET, h->hosts[i].name, &any) != 1 &&
                    inet_pton(AF_INET6, h->hosts[i].name, &any) != 1)
                        return false;
        return true;
}

/* Text of one address, "ip:port" or "[v6]:port". */
static int format_address(const struct addrinfo *ai, uint16_t port, char out[80])
{
        char ip[64];
        int r;

        r = getnameinfo(ai->ai_addr, ai->ai_addrlen, ip, sizeof(ip), NULL, 0, NI_NUMERICHOST);
        if (r != 0)
                return -EINVAL;
        (void)snprintf(out, 80, ai->ai_family == AF_INET6 ? "[%s]:%u" : "%s:%u", ip, port); /* 80 > 64+8 */
        return 0;
}

static int compare_text(const void *a, const void *b)
{
        return strcmp(a, b);
}

int zk_hosts_resolve(const struct zk_hosts *h, char **ret)
{
        cleanup_with(buf_donep) struct buf out = {0};
        char found[MAX_ADDRESSES][80];
        size_t n = 0;
        int r;

        buf_init(&out, 0);
        for (size_t i = 0; i < h->n; i++) {
                struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;

                if (getaddrinfo(h->hosts[i].name, NULL, &hints, &list) != 0)
                        continue; /* one name that resolves is enough to reach the ensemble */
                for (struct addrinfo *ai = list; ai && n < MAX_ADDRESSES; ai = ai->ai_next)
                        if (format_address(ai, h->hosts[i].port, found[n]) == 0)
                                n++;
                freeaddrinfo(list);
        }
        if (n == 0)
                return -EHOSTUNREACH;
        /* Sorted, so that two resolutions can be compared; the library shuffles them anyway. */
        qsort(found, n, sizeof(found[0]), compare_text);
        for (size_t i = 0; i < n; i++) {
                if (i > 0 && strcmp(found[i], found[i - 1]) == 0)
                        continue;
                r = buf_printf(&out, "%s%s", out.len > 0 ? "," : "", found[i]);
                if (r < 0)
                        return r;
        }
        *ret = strndup((const char *)out.data, out.len);
        return *ret ? 0 : -ENOMEM;
}

/* Shared by the resolving thread and its owner; whoever comes last frees it. */
struct zk_resolution {
        pthread_mutex_t lock;
        bool abandoned;
        struct zk_hosts *hosts;
        struct loop *loop;
        struct loop_task task;
        zk_resolved_fn fn;
        void *userdata;
        int r;
        char *addresses;
};

static void resolution_destroy(struct zk_resolution *r)
{
        pthread_mutex_destroy(&r->lock);
        zk_hosts_free(r->hosts);
        free(r->addresses);
        free(r);
}

static struct zk_hosts *hosts_copy(const struct zk_hosts *h)
{
        cleanup_with(zk_hosts_freep) struct zk_hosts *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return NULL;
        for (size_t i = 0; i < h->n; i++) {
                copy->hosts[i] = (struct host){.name = strdup(h->hosts[i].name), .port = h->hosts[i].port};
                if (!copy->hosts[i].name)
                        return NULL;
                copy->n++;
        }
        return TAKE_PTR(copy);
}

static void on_resolved(void *userdata)
{
        struct zk_resolution *r = userdata;
        bool abandoned;

        (void)pthread_mutex_lock(&r->lock); /* also: the thread has let go of it */
        abandoned = r->abandoned;
        (void)pthread_mutex_unlock(&r->lock);
        if (!abandoned)
                r->fn(r->r, TAKE_PTR(r->addresses), r->userdata);
        resolution_destroy(r);
}

static void *resolve_thread(void *arg)
{
        struct zk_resolution *r = arg;
        bool abandoned;

        r->r = zk_hosts_resolve(r->hosts, &r->addresses);
        (void)pthread_mutex_lock(&r->lock);
        abandoned = r->abandoned;
        if (!abandoned)
                loop_post_task(r->loop, &r->task); /* the loop lives: its owner abandons before freeing it */
        (void)pthread_mutex_unlock(&r->lock);
        if (abandoned)
                resolution_destroy(r);
        return NULL;
}

int zk_resolution_start(const struct zk_hosts *h, struct loop *loop, zk_resolved_fn fn, void *userdata,
                        struct zk_resolution **ret)
{
        struct zk_resolution *r;
        pthread_t thread;
        int err;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        (void)pthread_mutex_init(&r->lock, NULL);
        r->loop = loop;
        r->fn = fn;
        r->userdata = userdata;
        r->task = (struct loop_task){.fn = on_resolved, .userdata = r};
        r->hosts = hosts_copy(h);
        if (!r->hosts) {
                resolution_destroy(r);
                return -ENOMEM;
        }
        *ret = r; /* before the thread runs: its answer may overtake us */
        err = pthread_create(&thread, NULL, resolve_thread, r);
        if (err != 0) {
                *ret = NULL;
                resolution_destroy(r);
                return -err;
        }
        (void)pthread_detach(thread);
        return 0;
}

struct zk_resolution *zk_resolution_abandon(struct zk_resolution *r)
{
        if (!r)
                return NULL;
        (void)pthread_mutex_lock(&r->lock);
        r->abandoned = true;
        (void)pthread_mutex_unlock(&r->lock);
        return NULL; /* freed by the thread, or by the posted task */
}
