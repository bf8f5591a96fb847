/* A small set of base URLs, kept in the order in which they became known. */
#include "endpoints.h"

#include <assert.h>
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "controller_client.h"

int endpoints_add(struct endpoints *e, const char *text)
{
        char base[320];

        if (endpoint_normalise(text, base, sizeof(base)) < 0)
                return -1;
        for (int i = 0; i < e->n; i++)
                if (strcasecmp(e->base[i], base) == 0)
                        return i;
        if (e->n == ENDPOINTS_MAX)
                return -1;
        memcpy(e->base[e->n], base, sizeof(base));
        e->broker[e->n] = -1;
        return e->n++;
}

int endpoints_parse(struct endpoints *e, const char *list)
{
        cleanup_with(freep) char *copy = strdup(list);
        char *save = NULL;

        if (!copy)
                return -ENOMEM;
        for (char *t = strtok_r(copy, ", ", &save); t; t = strtok_r(NULL, ", ", &save))
                if (endpoints_add(e, t) < 0)
                        return -EINVAL;
        return e->n > 0 ? 0 : -EINVAL;
}

void endpoints_set_broker(struct endpoints *e, int at, int32_t broker)
{
        if (at >= 0)
                e->broker[at] = broker;
}

int endpoints_of_broker(const struct endpoints *e, int32_t broker)
{
        for (int i = 0; i < e->n; i++)
                if (broker >= 0 && e->broker[i] == broker)
                        return i;
        return -1;
}

const char *endpoints_get(const struct endpoints *e, int at)
{
        assert(at >= 0 && at < e->n);
        return e->base[at];
}
