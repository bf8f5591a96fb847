#include "fake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <jansson.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"

void fake_start(struct fake *f, const char *spec)
{
        char line[256];
        int in[2], out[2];
        json_t *o;
        FILE *from;

        assert_int_equal(pipe2(in, O_CLOEXEC), 0);
        assert_int_equal(pipe2(out, O_CLOEXEC), 0);
        f->pid = fork();
        assert_true(f->pid >= 0);
        if (f->pid == 0) {
                (void)dup2(in[0], STDIN_FILENO);
                (void)dup2(out[1], STDOUT_FILENO);
                (void)unsetenv("LD_PRELOAD"); /* the interpreter is not instrumented */
                (void)execl("/usr/bin/python3", "python3", FAKE_CONTROLLER, spec, (char *)NULL);
                _exit(127);
        }
        (void)close(in[0]);
        (void)close(out[1]);
        f->stdin_fd = in[1];
        from = fdopen(out[0], "r");
        assert_non_null(from);
        assert_non_null(fgets(line, sizeof(line), from));
        (void)fclose(from);
        o = json_loads(line, 0, NULL);
        assert_non_null(o);
        f->n_ports = (int)json_array_size(json_object_get(o, "ports"));
        for (int i = 0; i < f->n_ports && i < FAKE_PORTS_MAX; i++)
                f->ports[i] = (int)json_integer_value(json_array_get(json_object_get(o, "ports"), (size_t)i));
        json_decref(o);
}

void fake_stop(struct fake *f)
{
        int status;

        (void)close(f->stdin_fd);
        assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
}

void fake_endpoints(const struct fake *f, const int *order, char *out, size_t size)
{
        size_t len = 0;

        for (out[0] = '\0'; *order >= 0; order++)
                len += (size_t)snprintf(out + len, size - len, "%shttp://127.0.0.1:%d", len > 0 ? "," : "",
                                        f->ports[*order]);
        assert_true(len < size);
}

/* A request of its own, blocking; returns the body as JSON. */
static json_t *ask(int port, const char *method, const char *body)
{
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        char head[256], chunk[4096];
        struct buf b;
        const char *text;
        ssize_t n;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        json_t *o;

        buf_init(&b, 0);
        a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        n = snprintf(head, sizeof(head),
                     "%s /_state HTTP/1.1\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n", method,
                     strlen(body));
        assert_int_equal(send(fd, head, (size_t)n, 0), n);
        assert_int_equal(send(fd, body, strlen(body), 0), (ssize_t)strlen(body));
        while ((n = recv(fd, chunk, sizeof(chunk), 0)) > 0)
                assert_int_equal(buf_append(&b, chunk, (size_t)n), 0);
        (void)close(fd);
        text = buf_cstr(&b);
        assert_non_null(text);
        text = strstr(text, "\r\n\r\n");
        assert_non_null(text);
        o = json_loads(text + 4, 0, NULL);
        assert_non_null(o);
        buf_done(&b);
        return o;
}

void fake_set(const struct fake *f, int server, const char *json)
{
        json_decref(ask(f->ports[server], "PUT", json));
}

int fake_count(const struct fake *f, int server, const char *method, const char *path)
{
        json_t *o = ask(f->ports[server], "GET", ""), *r;
        int count = 0;
        size_t i;

        json_array_foreach(json_object_get(o, "requests"), i, r)
        {
                if (strcmp(json_string_value(json_object_get(r, "method")), method) == 0 &&
                    (!path || strcmp(json_string_value(json_object_get(r, "path")), path) == 0))
                        count++;
        }
        json_decref(o);
        return count;
}
