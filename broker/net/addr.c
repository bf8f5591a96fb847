/* Socket addresses: binding a listener and naming a peer. */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "net/net_internal.h"

static uint16_t addr_port(const struct sockaddr_storage *sa)
{
        return ntohs(sa->ss_family == AF_INET6 ? ((const struct sockaddr_in6 *)sa)->sin6_port
                                               : ((const struct sockaddr_in *)sa)->sin_port);
}

void addr_format(const struct sockaddr_storage *sa, char out[NET_PEER_BYTES])
{
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)sa;
        char text[INET6_ADDRSTRLEN] = "?";
        bool brackets = false;

        if (sa->ss_family == AF_INET) {
                (void)inet_ntop(AF_INET, &((const struct sockaddr_in *)sa)->sin_addr, text, sizeof(text));
        } else if (sa->ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr)) {
                /* a dual-stack listener: show operators the address they know */
                (void)inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], text, sizeof(text));
        } else if (sa->ss_family == AF_INET6) {
                (void)inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
                brackets = true;
        }
        (void)snprintf(out, NET_PEER_BYTES, brackets ? "[%s]:%u" : "%s:%u", text, addr_port(sa));
}

static int listen_on(const struct addrinfo *ai, int *ret_fd, uint16_t *ret_port)
{
        cleanup_with(closep) int fd = -1;
        struct sockaddr_storage sa = {.ss_family = AF_UNSPEC};
        socklen_t len = sizeof(sa);

        fd = socket(ai->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) < 0)
                return -errno;
        /* "::" serves IPv4 as well, whatever net.ipv6.bindv6only says */
        if (ai->ai_family == AF_INET6 &&
            setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int)) < 0)
                return -errno;
        if (bind(fd, ai->ai_addr, ai->ai_addrlen) < 0)
                return -errno;
        if (listen(fd, SOMAXCONN) < 0)
                return -errno;
        if (getsockname(fd, (struct sockaddr *)&sa, &len) < 0)
                return -errno;
        *ret_fd = TAKE_FD(fd);
        *ret_port = addr_port(&sa);
        return 0;
}

int addr_listen(const char *host, uint16_t port, int *ret_fd, uint16_t *ret_port)
{
        const struct addrinfo hints = {
                .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
        struct addrinfo *found = NULL;
        char service[8];
        int r = -EADDRNOTAVAIL;

        (void)snprintf(service, sizeof(service), "%u", port);
        if (getaddrinfo(host && *host ? host : NULL, service, &hints, &found) != 0)
                return -EADDRNOTAVAIL;
        for (struct addrinfo *ai = found; ai && r < 0; ai = ai->ai_next)
                r = listen_on(ai, ret_fd, ret_port);
        freeaddrinfo(found);
        return r;
}
