/* Both znodes are read one after the other whenever one of them may have changed; a change during a reading
 * makes another one. */
#include "broker_configs.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/slog.h"
#include "zk/znode.h"

#define RETRY_MS 200

struct broker_configs {
        struct broker_configs_options o;
        char names[2][16]; /* the later wins */
        size_t at;         /* of the reading under way */
        bool reading, again;
        struct broker_dynamic building;
};

static void read_next(struct broker_configs *b);

static void start(struct broker_configs *b)
{
        b->reading = true;
        b->again = false;
        b->at = 0;
        b->building = (struct broker_dynamic)BROKER_DYNAMIC_DEFAULTS;
        read_next(b);
}

static void end(struct broker_configs *b, int r)
{
        b->reading = false;
        if (r < 0 && r != -EOWNERDEAD && r != -ECANCELED) /* those: the next session reads them */
                slog_warning("broker-config-unread",
                             "this broker's dynamic settings could not be read; those of before hold",
                             SL_ERR(r));
        if (r == 0)
                b->o.on_config(&b->building, b->o.userdata);
        if (b->again)
                start(b);
}

static int take(struct broker_configs *b, const struct zk_result *res)
{
        struct znode_config z = {0};
        char error[256];
        int r = 0;

        if (res->r == 0 && res->data)
                r = znode_config_decode(res->data, res->data_len, &z);
        for (size_t i = 0; i < z.n; i++)
                /* A Kafka broker's settings, and such as this broker reads from its file only. */
                if (settings_find(SETTINGS_BROKER, z.entries[i].key) &&
                    broker_dynamic_set(&b->building, z.entries[i].key, z.entries[i].value, error) < 0)
                        slog_warning("broker-config-ignored",
                                     "a broker setting in ZooKeeper has no valid value; the default holds",
                                     SL_STR("entity", b->names[b->at]), SL_STR("why", error));
        znode_config_done(&z);
        return r;
}

static void on_again(const struct zk_result *res, void *userdata)
{
        struct broker_configs *b = userdata;

        if (res->r < 0)
                end(b, res->r);
        else
                read_next(b);
}

static void on_read(const struct zk_result *res, void *userdata)
{
        struct broker_configs *b = userdata;
        int r = res->r == -ENOENT ? 0 : res->r;

        if ((r == -ECONNRESET || r == -ETIMEDOUT) && zk_delay(b->o.zk, b->o.loop, RETRY_MS, on_again, b) == 0)
                return;
        if (r == 0)
                r = take(b, res);
        if (r < 0 || ++b->at == ARRAY_SIZE(b->names))
                end(b, r);
        else
                read_next(b);
}

static void read_next(struct broker_configs *b)
{
        char path[ZNODE_PATH_SIZE];
        int r;

        znode_path_broker_config(b->names[b->at], path);
        r = zk_get(b->o.zk, b->o.loop, path, NULL, on_read, b);
        if (r < 0) {
                b->again = false; /* there is no memory to try with */
                end(b, r);
        }
}

void broker_configs_changed(struct broker_configs *b, const char *name)
{
        if (name && strcmp(name, b->names[0]) != 0 && strcmp(name, b->names[1]) != 0)
                return;
        if (b->reading)
                b->again = true;
        else
                start(b);
}

int broker_configs_new(const struct broker_configs_options *o, struct broker_configs **ret)
{
        struct broker_configs *b = calloc(1, sizeof(*b));

        if (!b)
                return -ENOMEM;
        b->o = *o;
        (void)snprintf(b->names[0], sizeof(b->names[0]), "%s", ZNODE_DEFAULT_ENTITY);
        (void)snprintf(b->names[1], sizeof(b->names[1]), "%d", o->broker_id);
        *ret = b;
        return 0;
}

struct broker_configs *broker_configs_free(struct broker_configs *b)
{
        free(b);
        return NULL;
}
