#include "dir_report.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/slog.h"
#include "zk/znode.h"

#define RETRY_MS 500

struct dir_report {
        struct zk *zk;
        struct loop *loop;
        int32_t broker_id;
        _Atomic bool wanted, posted;
        struct loop_task task;
        bool writing;
};

static void write_report(struct dir_report *d);

static void on_retry(const struct zk_result *res, void *userdata)
{
        struct dir_report *d = userdata;

        d->writing = false;
        if (res->r == 0)
                write_report(d);
        else
                atomic_store(&d->wanted, true); /* the next session */
}

static void on_written(const struct zk_result *res, void *userdata)
{
        struct dir_report *d = userdata;

        d->writing = false;
        if (res->r == 0) {
                slog_warning("log-dir-reported", "the controller is told that replicas here are offline");
                write_report(d); /* of those that went offline meanwhile */
                return;
        }
        atomic_store(&d->wanted, true);
        if (res->r == -EOWNERDEAD || res->r == -ECANCELED)
                return;
        /* Perhaps it was written: a second one does no harm. */
        if (zk_delay(d->zk, d->loop, RETRY_MS, on_retry, d) == 0)
                d->writing = true;
}

static void write_report(struct dir_report *d)
{
        char data[ZNODE_SMALL_SIZE];

        if (d->writing || !atomic_exchange(&d->wanted, false))
                return;
        (void)znode_log_dir_event_encode(d->broker_id, data);
        if (zk_create(d->zk, d->loop, ZNODE_LOG_DIR_PREFIX, data, false, true, on_written, d) == 0)
                d->writing = true;
        else
                atomic_store(&d->wanted, true);
}

static void on_task(void *userdata)
{
        struct dir_report *d = userdata;

        atomic_store(&d->posted, false);
        write_report(d);
}

void dir_report_wanted(struct dir_report *d)
{
        atomic_store(&d->wanted, true);
        if (!atomic_exchange(&d->posted, true))
                loop_post_task(d->loop, &d->task);
}

void dir_report_on_session(struct dir_report *d)
{
        write_report(d);
}

int dir_report_new(struct zk *zk, struct loop *loop, int32_t broker_id, struct dir_report **ret)
{
        struct dir_report *d = calloc(1, sizeof(*d));

        if (!d)
                return -ENOMEM;
        d->zk = zk;
        d->loop = loop;
        d->broker_id = broker_id;
        d->task = (struct loop_task){.fn = on_task, .userdata = d};
        *ret = d;
        return 0;
}

struct dir_report *dir_report_free(struct dir_report *d)
{
        free(d);
        return NULL;
}
