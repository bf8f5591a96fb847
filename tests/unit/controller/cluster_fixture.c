#include "cluster_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "wire/alter_partition.h"
#include "wire/create_topics.h"
#include "wire/delete_topics.h"
#include "wire/error.h"
#include "zk/registration.h"

/* --- waiting for a callback --- */

struct gate {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        bool open;
};

#define GATE_INIT                                                                                            \
        {                                                                                                    \
                .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                       \
        }

static void gate_open(struct gate *g)
{
        (void)pthread_mutex_lock(&g->lock);
        g->open = true;
        (void)pthread_cond_broadcast(&g->changed);
        (void)pthread_mutex_unlock(&g->lock);
}

static void gate_wait(struct gate *g)
{
        struct timespec until;
        int r = 0;

        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += DEADLINE_MS / 1000;
        (void)pthread_mutex_lock(&g->lock);
        while (!g->open && r == 0)
                r = pthread_cond_timedwait(&g->changed, &g->lock, &until);
        (void)pthread_mutex_unlock(&g->lock);
        if (r != 0)
                fail_msg("no answer in %d ms", DEADLINE_MS);
}

/* --- cluster and nodes --- */

int64_t fixture_stop_timeout_ms;
int64_t fixture_rebalance_ms;
int64_t fixture_take_up_ms;
int64_t fixture_slot_lease_ms;
bool fixture_gate;

struct cluster *cluster_new(void)
{
        static int number;
        struct cluster *c = calloc(1, sizeof(*c));
        char connect[192];

        assert_non_null(c);
        fixture_stop_timeout_ms = 60000;
        fixture_rebalance_ms = fixture_take_up_ms = 0;
        fixture_slot_lease_ms = 60000;
        fixture_gate = false;
        (void)snprintf(c->chroot, sizeof(c->chroot), "/cluster/%d", number++);
        (void)snprintf(connect, sizeof(connect), "%s%s", fixture_address(), c->chroot);
        c->admin = client_new_at(connect, 10000, 10000);
        client_connected(c->admin);
        return c;
}

void cluster_free(struct cluster *c)
{
        for (int32_t id = 1; id <= MAX_NODES; id++)
                node_stop(c, id);
        client_free(c->admin);
        free(c);
}

struct registered {
        struct gate gate;
        int r;
        int64_t epoch;
};

static void on_registered(const struct zk_registration_result *res, void *userdata)
{
        struct registered *reg = userdata;

        reg->r = res->r;
        reg->epoch = res->broker_epoch;
        gate_open(&reg->gate);
}

void node_register(struct node *n)
{
        struct registered reg = {.gate = GATE_INIT};
        char listener[] = "PLAINTEXT", host[] = "127.0.0.1", admin[64];
        struct znode_endpoint endpoint = {.listener = listener,
                                          .protocol = listener,
                                          .host = host,
                                          .port = fake_broker_port(n->broker)};
        struct znode_broker info = {.endpoints = &endpoint,
                                    .n_endpoints = 1,
                                    .admin_endpoint = admin,
                                    .timestamp_ms = clock_real_ms()};

        (void)snprintf(admin, sizeof(admin), "http://127.0.0.1:%d", 7000 + n->id);
        assert_int_equal(zk_register_broker(n->client->z, n->client->loop, n->id, &info, on_registered, &reg),
                         0);
        gate_wait(&reg.gate);
        assert_int_equal(reg.r, 0);
        n->epoch = reg.epoch;
        fake_broker_set_epoch(n->broker, reg.epoch);
        if (n->controller)
                controller_on_registered(n->controller, reg.epoch);
}

void node_start(struct cluster *c, int32_t id, enum node_kind kind)
{
        struct node *n = &c->nodes[id];
        char connect[192];

        assert_null(n->client);
        n->cluster = c;
        n->id = id;
        n->broker = fake_broker_new(id);
        if (kind == NODE_PROXIED)
                n->proxy = proxy_new();
        (void)snprintf(connect, sizeof(connect), "%s%s",
                       n->proxy ? proxy_address(n->proxy) : fixture_address(), c->chroot);
        n->client = client_new_at(connect, n->proxy ? 3000 : 10000, 10000);
        client_connected(n->client);
        if (kind != NODE_BROKER) {
                struct controller_options o = {.broker_id = id,
                                               .zk = n->client->z,
                                               .auto_leader_rebalance = fixture_rebalance_ms > 0,
                                               .leader_imbalance_check_ms = fixture_rebalance_ms,
                                               .leader_imbalance_percentage = 10,
                                               .drain_take_up_ms = fixture_take_up_ms,
                                               .stop_replica_timeout_ms = fixture_stop_timeout_ms,
                                               .shutdown_gate_ms = 100,
                                               .slot_lease_ms = fixture_slot_lease_ms};

                assert_int_equal(controller_new(&o, NULL, &n->controller), 0);
                assert_int_equal(controller_start(n->controller), 0);
        }
        node_register(n);
}

void node_stop(struct cluster *c, int32_t id)
{
        struct node *n = &c->nodes[id];

        if (!n->client)
                return;
        controller_stop(n->controller);
        n->client->z = zk_free(n->client->z);
        n->controller = controller_free(n->controller);
        client_free(n->client);
        n->broker = fake_broker_free(n->broker);
        if (n->proxy)
                proxy_free(n->proxy);
        *n = (struct node){0};
}

void cluster_start(struct cluster *c, int n)
{
        node_start(c, 1, NODE_CONTROLLER);
        wait_active(c, 1);
        for (int32_t id = 2; id <= n; id++)
                node_start(c, id, NODE_CONTROLLER);
}

int32_t cluster_active_id(struct cluster *c)
{
        for (int32_t id = 1; id <= MAX_NODES; id++)
                if (c->nodes[id].controller && controller_is_active(c->nodes[id].controller))
                        return id;
        return -1;
}

static bool someone_active(void *userdata)
{
        return cluster_active_id(userdata) > 0;
}

struct controller *cluster_active(struct cluster *c)
{
        wait_until(someone_active, c);
        return c->nodes[cluster_active_id(c)].controller;
}

static bool is_active(void *userdata)
{
        return controller_is_active(userdata);
}

void wait_active(struct cluster *c, int32_t id)
{
        wait_until(is_active, c->nodes[id].controller);
}

/* --- topics --- */

struct made {
        struct gate gate;
        int16_t code;
};

static void on_made(const struct create_topics_response *res, void *userdata)
{
        struct made *m = userdata;

        assert_int_equal(res->topics.n, 1);
        m->code = res->topics.items[0].error_code;
        gate_open(&m->gate);
}

int16_t make_topic(struct cluster *c, const char *name, int32_t n_partitions, int16_t rf, const int32_t *ids)
{
        struct create_topics_request_assignment *rows = calloc((size_t)n_partitions + 1, sizeof(*rows));
        struct create_topics_request_topic topic = {.name = wire_str(name),
                                                    .num_partitions = ids ? -1 : n_partitions,
                                                    .replication_factor = ids ? -1 : rf};
        struct create_topics_request req = {.topics = {&topic, 1}, .timeout_ms = DEADLINE_MS - 2000};
        struct made m = {.gate = GATE_INIT};
        int32_t *copy = calloc((size_t)n_partitions * (size_t)rf + 1, sizeof(*copy));

        assert_non_null(rows);
        assert_non_null(copy);
        for (int32_t i = 0; ids && i < n_partitions; i++) {
                memcpy(copy + i * rf, ids + i * rf, (size_t)rf * sizeof(*ids));
                rows[i].partition_index = i;
                rows[i].broker_ids.items = copy + i * rf;
                rows[i].broker_ids.n = rf;
        }
        if (ids) {
                topic.assignments.items = rows;
                topic.assignments.n = n_partitions;
        }
        controller_create_topics(cluster_active(c), &req, on_made, &m);
        gate_wait(&m.gate);
        free(rows);
        free(copy);
        return m.code;
}

static void on_dropped(const struct delete_topics_response *res, void *userdata)
{
        struct made *m = userdata;

        assert_int_equal(res->responses.n, 1);
        m->code = res->responses.items[0].error_code;
        gate_open(&m->gate);
}

int16_t drop_topic(struct cluster *c, const char *name)
{
        struct wire_str names[] = {wire_str(name)};
        struct delete_topics_request req = {.topic_names = {names, 1}, .timeout_ms = 3000};
        struct made m = {.gate = GATE_INIT};

        controller_delete_topics(cluster_active(c), &req, on_dropped, &m);
        gate_wait(&m.gate);
        return m.code;
}

/* --- drains --- */

struct drained {
        struct gate gate;
        struct drain_seen *seen;
};

static void on_drain(int16_t error, const struct drain_status *status, void *userdata)
{
        struct drained *d = userdata;
        struct drain_seen *s = d->seen;

        memset(s, 0, sizeof(*s));
        s->error = error;
        s->has_status = status;
        s->holder.broker = -1;
        s->gate = status && status->risks ? status->risks->gate : -1;
        if (status && status->holder)
                s->holder = *status->holder;
        if (status) {
                s->status = *status;
                for (size_t i = 0; i < status->n_blocked && i < 64; i++) {
                        s->blocked[i] = status->blocked[i];
                        (void)snprintf(s->topics[i], sizeof(s->topics[i]), "%s", status->blocked[i].topic);
                        s->blocked[i].topic = s->topics[i];
                        s->blocked[i].isr = s->blocked[i].replicas = NULL;
                }
                s->status.blocked = s->blocked;
                s->status.single = NULL;
        }
        gate_open(&d->gate);
}

static void ask_for_drain(struct cluster *c, struct drain_request *r, struct drain_seen *ret)
{
        struct drained d = {.gate = GATE_INIT, .seen = ret};

        r->reason = "test";
        r->requested_by = "me";
        r->force = !fixture_gate;
        controller_drain_start(cluster_active(c), r, on_drain, &d);
        gate_wait(&d.gate);
}

void drain_start(struct cluster *c, int32_t id, int64_t epoch, const char *drain_id, struct drain_seen *ret)
{
        struct drain_request r = {.broker_id = id, .broker_epoch = epoch, .drain_id = drain_id};

        ask_for_drain(c, &r, ret);
}

void drain_replace(struct cluster *c, int32_t id, const char *drain_id, struct drain_seen *ret)
{
        struct drain_request r = {.broker_id = id, .broker_epoch = -1, .drain_id = drain_id, .replace = true};

        ask_for_drain(c, &r, ret);
}

void drain_cluster_stop(struct cluster *c, int32_t id, struct drain_seen *ret)
{
        struct drain_request r = {.broker_id = id, .broker_epoch = -1, .cluster_stop = true};

        ask_for_drain(c, &r, ret);
}

struct granted_want {
        struct cluster *c;
        int32_t id;
        const char *drain_id;
        struct drain_seen *seen;
};

static bool granted(void *userdata)
{
        struct granted_want *w = userdata;

        drain_start(w->c, w->id, -1, w->drain_id, w->seen);
        return w->seen->error != KAFKA_OPERATION_NOT_ATTEMPTED && w->seen->error != KAFKA_NOT_CONTROLLER;
}

void drain_start_granted(struct cluster *c, int32_t id, const char *drain_id, struct drain_seen *ret)
{
        struct granted_want w = {c, id, drain_id, ret};

        wait_until(granted, &w);
        assert_int_equal(ret->error, KAFKA_NONE);
}

void drain_get(struct cluster *c, int32_t id, struct drain_seen *ret)
{
        struct drained d = {.gate = GATE_INIT, .seen = ret};

        controller_drain_get(cluster_active(c), id, NULL, on_drain, &d);
        gate_wait(&d.gate);
}

void drain_undo(struct cluster *c, int32_t id, struct drain_seen *ret)
{
        struct drained d = {.gate = GATE_INIT, .seen = ret};

        controller_drain_undo(cluster_active(c), id, -1, on_drain, &d);
        gate_wait(&d.gate);
}

struct drain_want {
        struct cluster *c;
        int32_t id;
        enum drain_state state;
        struct drain_seen *seen;
};

static bool drain_reached(void *userdata)
{
        struct drain_want *w = userdata;

        drain_get(w->c, w->id, w->seen);
        return w->seen->has_status && w->seen->status.state == w->state;
}

void drain_wait(struct cluster *c, int32_t id, enum drain_state state, struct drain_seen *ret)
{
        struct drain_want w = {.c = c, .id = id, .state = state, .seen = ret};

        wait_until(drain_reached, &w);
}

struct shut {
        struct gate gate;
        struct shutdown_seen *seen;
};

static void on_shutdown(int16_t error, const struct controller_partition *remaining, size_t n,
                        const struct slot_holder *holder, void *userdata)
{
        struct shut *s = userdata;

        memset(s->seen, 0, sizeof(*s->seen));
        s->seen->error = error;
        s->seen->n = n;
        s->seen->holder = holder ? holder->broker : -1;
        for (size_t i = 0; i < n && i < 64; i++) {
                (void)snprintf(s->seen->topics[i], sizeof(s->seen->topics[i]), "%s", remaining[i].topic);
                s->seen->remaining[i] = (struct controller_partition){.topic = s->seen->topics[i],
                                                                      .partition = remaining[i].partition};
        }
        gate_open(&s->gate);
}

void controlled_shutdown(struct controller *c, int32_t id, int64_t epoch, struct shutdown_seen *ret)
{
        struct shut s = {.gate = GATE_INIT, .seen = ret};

        controller_controlled_shutdown(c, id, epoch, 300, on_shutdown, &s);
        gate_wait(&s.gate);
}

/* --- ISR changes --- */

static void on_altered(const struct alter_partition_response *res, void *userdata)
{
        struct made *m = userdata;

        m->code = res->error_code;
        if (m->code == KAFKA_NONE)
                m->code = res->topics.items[0].partitions.items[0].error_code;
        gate_open(&m->gate);
}

int16_t propose_isr(struct cluster *c, const struct proposal *p)
{
        struct alter_partition_request_new_isr_with_epoch isr[8];
        struct alter_partition_request_partition part = {.partition_index = p->partition,
                                                         .leader_epoch = p->leader_epoch,
                                                         .partition_epoch = p->partition_epoch,
                                                         .new_isr_with_epochs = {isr, p->n_isr}};
        struct alter_partition_request_topic topic = {.partitions = {&part, 1}};
        struct alter_partition_request req = {
                .broker_id = p->leader, .broker_epoch = c->nodes[p->leader].epoch, .topics = {&topic, 1}};
        struct made m = {.gate = GATE_INIT};
        struct znode_topic z = {0};
        struct seen *seen = seen_new();
        char path[ZNODE_PATH_SIZE];

        znode_path_topic(p->topic, path);
        assert_int_equal(do_get(c->admin, path, seen), 0);
        assert_int_equal(znode_topic_decode(seen->data, strlen(seen->data), &z), 0);
        topic.topic_id = z.id;
        znode_topic_done(&z);
        free(seen);
        for (int i = 0; i < p->n_isr; i++)
                isr[i] = (struct alter_partition_request_new_isr_with_epoch){.broker_id = p->isr[i],
                                                                             .broker_epoch = -1};
        controller_alter_partition(cluster_active(c), &req, 3, on_altered, &m);
        gate_wait(&m.gate);
        return m.code;
}

/* --- state znodes --- */

bool read_state(struct cluster *c, const char *topic, int32_t partition, struct znode_state *ret,
                int32_t *ret_version)
{
        struct seen *seen = calloc(1, sizeof(*seen));
        char path[ZNODE_PATH_SIZE];
        int r;

        assert_non_null(seen);
        znode_path_state(topic, partition, path);
        r = do_get(c->admin, path, seen);
        if (r == 0) {
                assert_int_equal(znode_state_decode(seen->data, strlen(seen->data), ret), 0);
                if (ret_version)
                        *ret_version = seen->stat.version;
        } else {
                assert_int_equal(r, -ENOENT);
        }
        free(seen);
        return r == 0;
}

struct state_want {
        struct cluster *c;
        const char *topic;
        int32_t partition, leader;
        struct znode_state st;
};

static bool has_state(void *userdata)
{
        struct state_want *w = userdata;

        return read_state(w->c, w->topic, w->partition, &w->st, NULL);
}

struct znode_state state_of(struct cluster *c, const char *topic, int32_t partition)
{
        struct state_want w = {.c = c, .topic = topic, .partition = partition};

        wait_until(has_state, &w);
        return w.st;
}

static bool has_leader(void *userdata)
{
        struct state_want *w = userdata;

        return has_state(w) && w->st.leader == w->leader;
}

void wait_leader(struct cluster *c, const char *topic, int32_t partition, int32_t leader)
{
        struct state_want w = {.c = c, .topic = topic, .partition = partition, .leader = leader};

        wait_until(has_leader, &w);
}

void write_state(struct cluster *c, const char *topic, int32_t partition, const struct znode_state *st)
{
        char path[ZNODE_PATH_SIZE], data[ZNODE_STATE_SIZE];

        znode_path_state(topic, partition, path);
        (void)znode_state_encode(st, data);
        assert_int_equal(do_set(c->admin, path, data, -1), 0);
}

bool isr_has(const struct znode_state *st, int32_t id)
{
        for (size_t i = 0; i < st->n_isr; i++)
                if (st->isr[i] == id)
                        return true;
        return false;
}

/* --- what brokers have been told --- */

struct told_want {
        struct cluster *c;
        int32_t broker;
        enum told_kind kind;
        const char *topic;
        int32_t partition, leader;
};

static bool is_told(void *userdata)
{
        struct told_want *w = userdata;
        struct told t;

        return fake_broker_last(w->c->nodes[w->broker].broker, w->kind, w->topic, w->partition, &t) &&
               t.leader == w->leader;
}

void wait_told(struct cluster *c, int32_t broker, enum told_kind kind, const char *topic, int32_t partition,
               int32_t leader)
{
        struct told_want w = {c, broker, kind, topic, partition, leader};

        wait_until(is_told, &w);
}

struct live_want {
        struct fake_broker *broker;
        int32_t n;
};

static bool has_live(void *userdata)
{
        const struct live_want *w = userdata;

        return fake_broker_live_brokers(w->broker) == w->n;
}

void wait_live(struct cluster *c, int32_t broker, int32_t n)
{
        struct live_want w = {c->nodes[broker].broker, n};

        wait_until(has_live, &w);
}
