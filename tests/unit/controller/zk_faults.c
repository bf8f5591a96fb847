#include "zk_faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "client/kclient.h"
#include "wire/leader_and_isr.h"
#include "zk/zk.h"

int __real_zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn,
                    void *userdata);
int __wrap_zk_multi(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn,
                    void *userdata);
bool __real_zk_lease_valid(const struct zk *z);
bool __wrap_zk_lease_valid(const struct zk *z);

int __real_kclient_request(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                           int64_t timeout_ms, kclient_fn fn, void *userdata);
int __wrap_kclient_request(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                           int64_t timeout_ms, kclient_fn fn, void *userdata);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool recording;
static char lose_part[128], refuse_part[128], hold_part[128];
static int lose_times, refuse_times, refuse_with;
static _Atomic bool lapsed;

struct held { /* a multi with its operations, copied */
        struct held *next;
        struct zk *z;
        struct loop *loop;
        struct zk_op *ops;
        size_t n;
        zk_fn fn;
        void *userdata;
};

static struct held *held;
static int n_held;

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

void zk_faults_hold(const char *part)
{
        (void)pthread_mutex_lock(&lock);
        set(hold_part, part);
        (void)pthread_mutex_unlock(&lock);
}

int zk_faults_held(void)
{
        int n;

        (void)pthread_mutex_lock(&lock);
        n = n_held;
        (void)pthread_mutex_unlock(&lock);
        return n;
}

void zk_faults_release(void)
{
        struct held *h;

        (void)pthread_mutex_lock(&lock);
        hold_part[0] = '\0';
        h = held;
        held = NULL;
        n_held = 0;
        (void)pthread_mutex_unlock(&lock);
        while (h) {
                struct held *next = h->next;

                if (__real_zk_multi(h->z, h->loop, h->ops, h->n, h->fn, h->userdata) < 0)
                        abort();
                for (size_t i = 0; i < h->n; i++) {
                        free((char *)h->ops[i].path);
                        free((char *)h->ops[i].data);
                }
                free(h->ops);
                free(h);
                h = next;
        }
}

static int keep(struct zk *z, struct loop *loop, const struct zk_op *ops, size_t n, zk_fn fn, void *userdata)
{
        struct held *h = malloc(sizeof(*h)), **at = &held;
        struct zk_op *copy = calloc(n, sizeof(*copy));

        if (!h || !copy)
                abort();
        *h = (struct held){.z = z, .loop = loop, .ops = copy, .n = n, .fn = fn, .userdata = userdata};
        for (size_t i = 0; i < n; i++) {
                copy[i] = ops[i];
                copy[i].path = strdup(ops[i].path);
                copy[i].data = ops[i].data ? strdup(ops[i].data) : NULL;
        }
        while (*at)
                at = &(*at)->next;
        *at = h;
        n_held++;
        return 0;
}

void zk_faults_clear(void)
{
        zk_faults_release();
        zk_faults_lose_replies("", 0);
        zk_faults_refuse("", 0, 0);
        zk_faults_lapse_lease(false);
        atomic_store(&recording, false);
}

bool __wrap_zk_lease_valid(const struct zk *z)
{
        return !atomic_load(&lapsed) && __real_zk_lease_valid(z);
}

struct altered {
        zk_fn fn;
        void *userdata;
        int r;
        size_t n;
        int results[]; /* a lost connection is the result of every operation, as in zk.h's own answers */
};

static void on_result(const struct zk_result *res, void *userdata)
{
        struct altered *a = userdata;
        struct zk_result altered = {.r = a->r};

        (void)res;
        if (a->r == -ECONNRESET) {
                for (size_t i = 0; i < a->n; i++)
                        a->results[i] = a->r;
                altered.op_results = a->results;
                altered.n_ops = a->n;
        }
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
        size_t n_asked = n;
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
        } else if (hold_part[0] && touches(ops, n, hold_part)) {
                r = keep(z, loop, ops, n, fn, userdata);
                (void)pthread_mutex_unlock(&lock);
                return r;
        }
        (void)pthread_mutex_unlock(&lock);
        if (r == 0)
                return __real_zk_multi(z, loop, ops, n, fn, userdata);
        a = malloc(sizeof(*a) + n_asked * sizeof(a->results[0]));
        if (!a)
                return -ENOMEM;
        *a = (struct altered){.fn = fn, .userdata = userdata, .r = r, .n = n_asked};
        return __real_zk_multi(z, loop, ops, n, on_result, a);
}

struct sent {
        int64_t broker_epoch;
        int32_t partition, leader_epoch;
        int at;
};

static struct sent sends[20000];
static size_t n_sends;
static int request_number;

void zk_faults_record_sends(void)
{
        (void)pthread_mutex_lock(&lock);
        n_sends = 0;
        atomic_store(&recording, true);
        (void)pthread_mutex_unlock(&lock);
}

int zk_faults_sent_at(int64_t broker_epoch, int32_t partition, int32_t leader_epoch)
{
        int at = -1;

        (void)pthread_mutex_lock(&lock);
        for (size_t i = 0; i < n_sends && at < 0; i++)
                if (sends[i].broker_epoch == broker_epoch && sends[i].partition == partition &&
                    sends[i].leader_epoch == leader_epoch)
                        at = sends[i].at;
        (void)pthread_mutex_unlock(&lock);
        return at;
}

static void record(const struct leader_and_isr_request *req)
{
        (void)pthread_mutex_lock(&lock);
        request_number++;
        for (int32_t i = 0; recording && i < req->topic_states.n; i++)
                for (int32_t k = 0; k < req->topic_states.items[i].partition_states.n; k++) {
                        const struct leader_and_isr_request_partition_state *p =
                                &req->topic_states.items[i].partition_states.items[k];

                        if (n_sends < ARRAY_SIZE(sends))
                                sends[n_sends++] = (struct sent){.broker_epoch = req->broker_epoch,
                                                                 .partition = p->partition_index,
                                                                 .leader_epoch = p->leader_epoch,
                                                                 .at = request_number};
                }
        (void)pthread_mutex_unlock(&lock);
}

int __wrap_kclient_request(struct kclient *c, const struct wire_api *api, int16_t version, const void *body,
                           int64_t timeout_ms, kclient_fn fn, void *userdata)
{
        if (api->key == 4)
                record(body);
        return __real_kclient_request(c, api, version, body, timeout_ms, fn, userdata);
}
