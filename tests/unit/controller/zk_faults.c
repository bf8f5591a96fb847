#include "zk_faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "zk/zk.h"

int __real_zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn,
                    void *userdata);
int __wrap_zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn,
                    void *userdata);
bool __real_zk_lease_valid(const struct zk *z);
bool __wrap_zk_lease_valid(const struct zk *z);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char lose_part[128], refuse_part[128];
static int lose_times, refuse_times, refuse_with;
static _Atomic bool lapsed;

static void set(char *at, const char *part)
{
        strncpy(at, part, 127);
}

void zk_faults_lose_replies(const char *part, int times)
{
        (void)pthread_mutex_lock(&lock);
        set(lose_part, part);
        lose_times = times;
        (void)pthread_mutex_unlock(&lock);
}

void zk_faults_refuse(const char *part, int r, int times)
{
        (void)pthread_mutex_lock(&lock);
        set(refuse_part, part);
        refuse_with = r;
        refuse_times = times;
        (void)pthread_mutex_unlock(&lock);
}

int zk_faults_left(void)
{
        int n;

        (void)pthread_mutex_lock(&lock);
        n = lose_times + refuse_times;
        (void)pthread_mutex_unlock(&lock);
        return n;
}

void zk_faults_lapse_lease(bool on)
{
        atomic_store(&lapsed, on);
}

void zk_faults_clear(void)
{
        zk_faults_lose_replies("", 0);
        zk_faults_refuse("", 0, 0);
        zk_faults_lapse_lease(false);
}

bool __wrap_zk_lease_valid(const struct zk *z)
{
        return !atomic_load(&lapsed) && __real_zk_lease_valid(z);
}

struct altered {
        zk_fn fn;
        void *userdata;
        int r;
};

static void on_result(const struct zk_result *res, void *userdata)
{
        struct altered *a = userdata;
        struct zk_result altered = {.r = a->r};

        (void)res;
        a->fn(&altered, a->userdata);
        free(a);
}

static bool touches(const struct zk_op *ops, size_t n, const char *part)
{
        for (size_t i = 0; i < n; i++)
                if (strstr(ops[i].path, part))
                        return true;
        return false;
}

int __wrap_zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn,
                    void *userdata)
{
        struct altered *a;
        int r = 0;

        (void)pthread_mutex_lock(&lock);
        if (lose_times > 0 && touches(ops, n, lose_part)) {
                lose_times--;
                r = -ECONNRESET;
        } else if (refuse_times > 0 && touches(ops, n, refuse_part)) {
                refuse_times--;
                r = refuse_with;
                n = 1; /* the check alone */
        }
        (void)pthread_mutex_unlock(&lock);
        if (r == 0)
                return __real_zk_multi(z, loop, ops, n, fn, userdata);
        a = malloc(sizeof(*a));
        if (!a)
                return -ENOMEM;
        *a = (struct altered){.fn = fn, .userdata = userdata, .r = r};
        return __real_zk_multi(z, loop, ops, n, on_result, a);
}
