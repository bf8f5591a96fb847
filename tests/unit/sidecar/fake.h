/* Starts the program fake_controller beside a test, and talks to it. */
#pragma once

#include <stdint.h>
#include <sys/types.h>

#define FAKE_PORTS_MAX 8

struct fake {
        pid_t pid;
        int stdin_fd;
        int n_ports;
        int ports[FAKE_PORTS_MAX];
};

/* Both end the test when they fail. @spec: JSON, see fake_controller. */
void fake_start(struct fake *f, const char *spec);
void fake_stop(struct fake *f);
/* "http://127.0.0.1:PORT" of each server named in @order (a list of indexes ended by -1), joined by ','. */
void fake_endpoints(const struct fake *f, const int *order, char *out, size_t size);
/* Change the shared state; @json is an object. */
void fake_set(const struct fake *f, int server, const char *json);
/* How many requests it has seen whose method and path are these; @path NULL: any. */
int fake_count(const struct fake *f, int server, const char *method, const char *path);
