#include "zk_fixture.h"

#include <errno.h>
#include <netinet/in.h>
#include <arpa/inet.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/parse.h"

#define MAX_PAIRS 16

struct proxy {
        int listener;
        char address[64];
        pthread_t thread;
        _Atomic bool stop, swallow, cut, refuse, feign;
        size_t n_pairs;
        int client[MAX_PAIRS], server[MAX_PAIRS];
};

static int dial_server(void)
{
        struct sockaddr_in to = {.sin_family = AF_INET};
        char host[256];
        uint16_t port;
        int fd;

        if (parse_host_port(fixture_address(), host, &port) < 0)
                return -1;
        to.sin_port = htons(port);
        (void)inet_pton(AF_INET, host, &to.sin_addr);
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
                (void)close(fd);
                return -1;
        }
        return fd;
}

static void drop_pair(struct proxy *p, size_t i)
{
        (void)close(p->client[i]);
        (void)close(p->server[i]);
        p->n_pairs--;
        p->client[i] = p->client[p->n_pairs];
        p->server[i] = p->server[p->n_pairs];
}

/* ConnectResponse with session id 0 and time-out 0: "your session has expired". */
static void feign_expiry(int fd)
{
        uint8_t request[256], response[41] = {[3] = 37, [19 + 4] = 16};

        (void)!read(fd, request, sizeof(request));
        (void)!write(fd, response, sizeof(response));
        (void)!read(fd, request, sizeof(request)); /* until the client is gone */
        (void)close(fd);
}

static void accept_one(struct proxy *p)
{
        int fd = accept(p->listener, NULL, NULL), up;

        if (fd < 0)
                return;
        if (atomic_exchange(&p->feign, false)) {
                feign_expiry(fd);
                return;
        }
        up = atomic_load(&p->refuse) ? -1 : dial_server();
        if (up < 0 || p->n_pairs == MAX_PAIRS) {
                (void)close(fd);
                if (up >= 0)
                        (void)close(up);
                return;
        }
        p->client[p->n_pairs] = fd;
        p->server[p->n_pairs++] = up;
}

static bool pump(int from, int to, bool swallow)
{
        char bytes[65536];
        ssize_t n = read(from, bytes, sizeof(bytes));

        if (n <= 0)
                return false;
        return swallow || write(to, bytes, (size_t)n) == n;
}

static void step(struct proxy *p)
{
        struct pollfd fds[2 * MAX_PAIRS + 1];
        size_t n = p->n_pairs;

        for (size_t i = 0; i < n; i++) {
                fds[2 * i] = (struct pollfd){.fd = p->client[i], .events = POLLIN};
                fds[2 * i + 1] = (struct pollfd){.fd = p->server[i], .events = POLLIN};
        }
        fds[2 * n] = (struct pollfd){.fd = p->listener, .events = POLLIN};
        if (poll(fds, 2 * n + 1, 5) <= 0)
                return;
        for (size_t i = n; i-- > 0;) { /* downwards: dropping moves the last one here */
                bool ok = true;

                if (fds[2 * i].revents)
                        ok = pump(p->client[i], p->server[i], false);
                if (ok && fds[2 * i + 1].revents)
                        ok = pump(p->server[i], p->client[i], atomic_load(&p->swallow));
                if (!ok)
                        drop_pair(p, i);
        }
        if (fds[2 * n].revents)
                accept_one(p);
}

static void *run(void *arg)
{
        struct proxy *p = arg;

        while (!atomic_load(&p->stop)) {
                if (atomic_exchange(&p->cut, false)) {
                        while (p->n_pairs > 0)
                                drop_pair(p, 0);
                        /* Not before: a reply, or the rest of one, would still slip through. */
                        atomic_store(&p->swallow, false);
                }
                step(p);
        }
        while (p->n_pairs > 0)
                drop_pair(p, 0);
        return NULL;
}

struct proxy *proxy_new(void)
{
        struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t len = sizeof(at);
        struct proxy *p = calloc(1, sizeof(*p));

        assert_non_null(p);
        p->listener = socket(AF_INET, SOCK_STREAM, 0);
        assert_true(p->listener >= 0);
        assert_int_equal(bind(p->listener, (struct sockaddr *)&at, sizeof(at)), 0);
        assert_int_equal(listen(p->listener, 16), 0);
        assert_int_equal(getsockname(p->listener, (struct sockaddr *)&at, &len), 0);
        (void)snprintf(p->address, sizeof(p->address), "127.0.0.1:%u", ntohs(at.sin_port));
        assert_int_equal(pthread_create(&p->thread, NULL, run, p), 0);
        return p;
}

void proxy_free(struct proxy *p)
{
        atomic_store(&p->stop, true);
        (void)pthread_join(p->thread, NULL);
        (void)close(p->listener);
        free(p);
}

const char *proxy_address(const struct proxy *p)
{
        return p->address;
}

void proxy_swallow_replies(struct proxy *p)
{
        atomic_store(&p->swallow, true);
}

void proxy_cut_and_feign_expiry(struct proxy *p)
{
        atomic_store(&p->feign, true);
        atomic_store(&p->refuse, false);
        atomic_store(&p->cut, true);
}

void proxy_refuse(struct proxy *p)
{
        atomic_store(&p->refuse, true);
        atomic_store(&p->cut, true);
}

void proxy_accept(struct proxy *p)
{
        atomic_store(&p->refuse, false);
}
