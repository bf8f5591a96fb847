#include "cli/zk_cluster.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "wire/error.h"

#define LISTENER         "PLAINTEXT"
#define MAX_ZNODE_BYTES  1000000
#define ids_of(arena, n) arena_alloc(arena, (size_t)(n) + 1, sizeof(int32_t))

/* What a reading of the whole cluster carries around. */
struct view {
        struct zk_admin *z;
        struct arena *a;
        char *error;
        struct metadata_response *m;
};

static int malformed(const struct view *v, const char *path)
{
        (void)snprintf(v->error, ZK_ADMIN_TEXT_SIZE, "%.300s in ZooKeeper is malformed", path);
        return -EBADMSG;
}

/* --- paths, many at once --- */

static const char *keep(struct arena *a, const char *path)
{
        return arena_strndup(a, path, strlen(path));
}

static int read_all(const struct view *v, const char **paths, size_t n, struct zk_value **ret)
{
        *ret = arena_alloc(v->a, n + 1, sizeof(**ret));
        if (!*ret)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                if (!paths[i])
                        return -ENOMEM;
        return zk_admin_get_all(v->z, paths, n, v->a, *ret);
}

/* --- brokers --- */

static int take_broker(const struct view *v, const char *path, int32_t id, const struct zk_value *value)
{
        struct metadata_response_broker *b = &v->m->brokers.items[v->m->brokers.n];
        const struct znode_endpoint *e;
        struct znode_broker broker = {0};
        const char *host;

        if (value->r == -ENOENT) /* it went away between the two reads */
                return 0;
        if (znode_broker_decode(value->data, value->len, &broker) < 0)
                return malformed(v, path);
        e = znode_broker_endpoint(&broker, LISTENER);
        host = e ? keep(v->a, e->host) : NULL;
        *b = (struct metadata_response_broker){
                .node_id = id, .host = wire_str(host), .port = e ? e->port : 0, .rack = WIRE_NULL_STR};
        v->m->brokers.n++;
        znode_broker_done(&broker);
        return 0;
}

static int read_brokers(const struct view *v)
{
        struct zk_value *values = NULL;
        const char **paths;
        char **ids;
        size_t n;
        int r;

        r = zk_admin_children(v->z, ZNODE_BROKER_IDS, v->a, &ids, &n);
        if (r == -ENOENT)
                (void)snprintf(v->error, ZK_ADMIN_TEXT_SIZE,
                               "no Kafka cluster lives there: ZooKeeper has no " ZNODE_BROKER_IDS
                               " (is the chroot right?)");
        if (r < 0)
                return r;
        paths = arena_alloc(v->a, n + 1, sizeof(*paths));
        v->m->brokers.items = arena_alloc(v->a, n + 1, sizeof(*v->m->brokers.items));
        if (!paths || !v->m->brokers.items)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char path[ZNODE_PATH_SIZE];
                int32_t id;

                if (parse_int32(ids[i], 0, INT32_MAX, &id) < 0)
                        return malformed(v, ZNODE_BROKER_IDS);
                znode_path_broker(id, path);
                paths[i] = keep(v->a, path);
        }
        r = read_all(v, paths, n, &values);
        for (size_t i = 0; r == 0 && i < n; i++) {
                int32_t id;

                r = parse_int32(ids[i], 0, INT32_MAX, &id);
                if (r == 0)
                        r = take_broker(v, paths[i], id, &values[i]);
        }
        return r;
}

static int read_controller(const struct view *v)
{
        struct znode_controller c;
        struct zk_value value;
        int r;

        r = zk_admin_get(v->z, ZNODE_CONTROLLER, v->a, &value);
        v->m->controller_id = -1;
        if (r == -ENOENT)
                return 0;
        if (r == 0 && znode_controller_decode(value.data, value.len, &c) < 0)
                return malformed(v, ZNODE_CONTROLLER);
        if (r == 0)
                v->m->controller_id = c.broker_id;
        return r;
}

/* --- topics --- */

static int copy_ids(struct arena *a, const int32_t *from, size_t n, int32_t **ret, int32_t *ret_n)
{
        *ret = ids_of(a, n);
        if (!*ret)
                return -ENOMEM;
        if (n > 0)
                memcpy(*ret, from, n * sizeof(**ret));
        *ret_n = (int32_t)n;
        return 0;
}

static int take_assignment(const struct view *v, const struct znode_topic *from,
                           struct metadata_response_topic *t)
{
        int r = 0;

        t->topic_id = from->id;
        t->partitions.items = arena_alloc(v->a, from->n_partitions + 1, sizeof(*t->partitions.items));
        if (!t->partitions.items)
                return -ENOMEM;
        for (size_t i = 0; r == 0 && i < from->n_partitions; i++) {
                struct metadata_response_partition *p = &t->partitions.items[t->partitions.n++];

                p->partition_index = from->partitions[i].partition;
                p->leader_id = p->leader_epoch = -1;
                r = copy_ids(v->a, from->partitions[i].replicas, from->partitions[i].n_replicas,
                             &p->replica_nodes.items, &p->replica_nodes.n);
        }
        return r;
}

static int take_topic(const struct view *v, const char *path, const char *name, const struct zk_value *value)
{
        struct metadata_response_topic *t = &v->m->topics.items[v->m->topics.n++];
        struct znode_topic decoded = {0};
        int r;

        t->name = wire_str(name);
        if (value->r == -ENOENT) {
                t->error_code = KAFKA_UNKNOWN_TOPIC_OR_PARTITION;
                return 0;
        }
        if (znode_topic_decode(value->data, value->len, &decoded) < 0)
                return malformed(v, path);
        r = take_assignment(v, &decoded, t);
        znode_topic_done(&decoded);
        return r;
}

/* None in a cluster so young that nobody made a topic. */
static int topic_names(const struct view *v, char ***ret, size_t *ret_n)
{
        int r = zk_admin_children(v->z, ZNODE_TOPICS, v->a, ret, ret_n);

        if (r == -ENOENT)
                *ret_n = 0;
        return r == -ENOENT ? 0 : r;
}

static int topic_paths(struct arena *a, char **names, size_t n, const char ***ret)
{
        const char **paths = arena_alloc(a, n + 1, sizeof(*paths));

        if (!paths)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                char path[ZNODE_PATH_SIZE];

                znode_path_topic(names[i], path);
                paths[i] = keep(a, path);
        }
        *ret = paths;
        return 0;
}

static int read_topics(const struct view *v, char **names, size_t n)
{
        struct zk_value *values = NULL;
        const char **paths;
        int r;

        v->m->topics.items = arena_alloc(v->a, n + 1, sizeof(*v->m->topics.items));
        if (!v->m->topics.items)
                return -ENOMEM;
        r = topic_paths(v->a, names, n, &paths);
        if (r == 0)
                r = read_all(v, paths, n, &values);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = take_topic(v, paths[i], names[i], &values[i]);
        return r;
}

static int take_state(const struct view *v, const char *path, const struct zk_value *value,
                      struct metadata_response_partition *p)
{
        struct znode_state st;

        if (value->r == -ENOENT)
                return 0;
        if (znode_state_decode(value->data, value->len, &st) < 0)
                return malformed(v, path);
        p->leader_id = st.leader;
        p->leader_epoch = st.leader_epoch;
        return copy_ids(v->a, st.isr, st.n_isr, &p->isr_nodes.items, &p->isr_nodes.n);
}

/* The states of all partitions of all topics that were read. */
static int read_states(const struct view *v)
{
        const struct metadata_response *m = v->m;
        struct metadata_response_partition **targets;
        struct zk_value *values;
        const char **paths;
        size_t n = 0, at = 0;
        int r;

        for (int32_t i = 0; i < m->topics.n; i++)
                n += (size_t)m->topics.items[i].partitions.n;
        paths = arena_alloc(v->a, n + 1, sizeof(*paths));
        targets = arena_alloc(v->a, n + 1, sizeof(*targets));
        if (!paths || !targets)
                return -ENOMEM;
        for (int32_t i = 0; i < m->topics.n; i++)
                for (int32_t k = 0; k < m->topics.items[i].partitions.n; k++) {
                        char path[ZNODE_PATH_SIZE];

                        targets[at] = &m->topics.items[i].partitions.items[k];
                        znode_path_state(m->topics.items[i].name.data, targets[at]->partition_index, path);
                        paths[at++] = keep(v->a, path);
                }
        r = read_all(v, paths, n, &values);
        for (size_t i = 0; r == 0 && i < n; i++)
                r = take_state(v, paths[i], &values[i], targets[i]);
        return r;
}

int zk_cluster_metadata(struct zk_admin *z, const char *topic, struct arena *a,
                        struct metadata_response **ret, char error[ZK_ADMIN_TEXT_SIZE])
{
        struct view v = {.z = z, .a = a, .error = error};
        char *one[] = {topic ? arena_strndup(a, topic, strlen(topic)) : NULL}, **names = one;
        size_t n = 1;
        int r;

        v.m = arena_alloc(a, 1, sizeof(*v.m));
        if (!v.m || (topic && !one[0]))
                return -ENOMEM;
        wire_init(&metadata_response_wire, v.m);
        r = read_brokers(&v);
        if (r == 0)
                r = read_controller(&v);
        if (r == 0 && !topic)
                r = topic_names(&v, &names, &n);
        if (r == 0)
                r = read_topics(&v, names, n);
        if (r == 0)
                r = read_states(&v);
        if (r == 0)
                *ret = v.m;
        return r;
}

/* --- writing --- */

int zk_cluster_create_topic(struct zk_admin *z, const char *topic, const struct znode_topic *assignment,
                            const struct znode_config *config)
{
        cleanup_with(buf_donep) struct buf assigned = {0}, configured = {0};
        char path[ZNODE_PATH_SIZE], config_path[ZNODE_PATH_SIZE];
        struct zk_op ops[2] = {{.type = ZK_OP_CREATE, .path = config_path},
                               {.type = ZK_OP_CREATE, .path = path}};
        struct zk_value old;
        struct arena a;
        int r;

        znode_path_topic(topic, path);
        znode_path_topic_config(topic, config_path);
        r = znode_topic_encode(assignment, &assigned);
        if (r == 0)
                r = znode_config_encode(config, &configured);
        ops[0].data = buf_cstr(&configured);
        ops[1].data = buf_cstr(&assigned);
        if (r < 0 || !ops[0].data || !ops[1].data)
                return r < 0 ? r : -ENOMEM;
        arena_init(&a, 0);
        r = zk_admin_get(z, config_path, &a, &old);
        if (r == 0) /* a configuration may stand there before its topic does */
                ops[0] = (struct zk_op){
                        .type = ZK_OP_SET, .path = config_path, .data = ops[0].data, .version = old.version};
        arena_done(&a);
        if (r == 0 || r == -ENOENT)
                r = zk_admin_multi(z, ops, 2);
        return r;
}

static int append_partitions(const struct znode_topic *now, const struct znode_topic *added, struct buf *out)
{
        struct znode_topic all = {.id = now->id, .n_partitions = now->n_partitions + added->n_partitions};
        int r;

        all.partitions = calloc(all.n_partitions, sizeof(*all.partitions));
        if (!all.partitions)
                return -ENOMEM;
        memcpy(all.partitions, now->partitions, now->n_partitions * sizeof(*all.partitions));
        memcpy(all.partitions + now->n_partitions, added->partitions,
               added->n_partitions * sizeof(*all.partitions));
        r = znode_topic_encode(&all, out);
        free(all.partitions); /* its lists belong to @now and @added */
        return r;
}

int zk_cluster_add_partitions(struct zk_admin *z, const char *topic, const struct znode_topic *added,
                              char error[ZK_ADMIN_TEXT_SIZE])
{
        cleanup_with(arena_donep) struct arena a = {0};
        cleanup_with(buf_donep) struct buf text = {0};
        struct znode_topic now = {0};
        char path[ZNODE_PATH_SIZE];
        struct zk_value value;
        int r;

        arena_init(&a, 0);
        znode_path_topic(topic, path);
        r = zk_admin_get(z, path, &a, &value);
        if (r < 0)
                return r;
        r = znode_topic_decode(value.data, value.len, &now);
        if (r < 0) {
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE, "%.300s in ZooKeeper is malformed", path);
                return r;
        }
        if ((size_t)added->partitions[0].partition != now.n_partitions) {
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE,
                               "the partitions of topic %.250s changed at the same time", topic);
                r = -ESTALE;
        }
        if (r == 0)
                r = append_partitions(&now, added, &text);
        znode_topic_done(&now);
        if (r < 0)
                return r;
        return buf_cstr(&text) ? zk_admin_set(z, path, (const char *)text.data, value.version) : -ENOMEM;
}

int zk_cluster_delete_topic(struct zk_admin *z, const char *topic)
{
        char path[ZNODE_PATH_SIZE];

        znode_path_delete_topic(topic, path);
        return zk_admin_create(z, path, NULL);
}

/* --- requests to the controller --- */

int zk_cluster_submit(struct zk_admin *z, const char *path, const struct znode_partition_list *l,
                      char error[ZK_ADMIN_TEXT_SIZE])
{
        cleanup_with(buf_donep) struct buf text = {0};
        int r;

        r = znode_partitions_encode(l, &text);
        if (r < 0)
                return r;
        if (!buf_cstr(&text))
                return -ENOMEM;
        if (text.len > MAX_ZNODE_BYTES) {
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE,
                               "a list of %zu partitions is more than a znode holds: give fewer, or use "
                               "--bootstrap",
                               l->n);
                return -E2BIG;
        }
        return zk_admin_create(z, path, (const char *)text.data);
}

int zk_cluster_submitted(struct zk_admin *z, const char *path, struct znode_partition_list *ret)
{
        cleanup_with(arena_donep) struct arena a = {0};
        struct zk_value value;
        int r;

        *ret = (struct znode_partition_list){0};
        arena_init(&a, 0);
        r = zk_admin_get(z, path, &a, &value);
        if (r == -ENOENT || (r == 0 && value.len == 0))
                return 0;
        return r < 0 ? r : znode_partitions_decode(value.data, value.len, ret);
}

static int add_changing(struct znode_partition_list *l, const char *topic, const struct znode_topic *t)
{
        struct znode_partition *items = realloc(l->items, (l->n + t->n_partitions + 1) * sizeof(*items));

        if (!items)
                return -ENOMEM;
        l->items = items;
        for (size_t i = 0; i < t->n_partitions; i++) {
                if (t->partitions[i].n_adding == 0 && t->partitions[i].n_removing == 0)
                        continue;
                items[l->n] = (struct znode_partition){.topic = strdup(topic),
                                                       .partition = t->partitions[i].partition};
                if (!items[l->n].topic)
                        return -ENOMEM;
                l->n++;
        }
        return 0;
}

static int read_changing(const struct view *v, struct znode_partition_list *l)
{
        struct zk_value *values = NULL;
        const char **paths;
        char **names;
        size_t n;
        int r;

        r = topic_names(v, &names, &n);
        if (r == 0)
                r = topic_paths(v->a, names, n, &paths);
        if (r == 0)
                r = read_all(v, paths, n, &values);
        for (size_t i = 0; r == 0 && i < n; i++) {
                struct znode_topic t = {0};

                if (values[i].r == -ENOENT)
                        continue;
                if (znode_topic_decode(values[i].data, values[i].len, &t) < 0)
                        return malformed(v, paths[i]);
                r = add_changing(l, names[i], &t);
                znode_topic_done(&t);
        }
        return r;
}

int zk_cluster_reassigning(struct zk_admin *z, struct znode_partition_list *ret,
                           char error[ZK_ADMIN_TEXT_SIZE])
{
        cleanup_with(arena_donep) struct arena a = {0};
        const struct view v = {.z = z, .a = &a, .error = error};
        struct znode_partition_list l = {0};
        int r;

        arena_init(&a, 0);
        r = zk_cluster_submitted(z, ZNODE_REASSIGN, &l);
        if (r == 0)
                r = read_changing(&v, &l);
        if (r < 0)
                znode_partitions_done(&l);
        else
                *ret = l;
        return r;
}

int zk_cluster_controller(struct zk_admin *z, int32_t *ret_id, char host[256], uint16_t *ret_port,
                          char error[ZK_ADMIN_TEXT_SIZE])
{
        cleanup_with(arena_donep) struct arena a = {0};
        const struct metadata_response_broker *b;
        struct metadata_response m = {0};
        struct view v = {.z = z, .a = &a, .error = error, .m = &m};
        char path[ZNODE_PATH_SIZE];
        struct zk_value value;
        int r;

        arena_init(&a, 0);
        r = read_controller(&v);
        if (r == 0 && m.controller_id < 0) {
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE, "the cluster has no active controller now");
                return -ENOENT;
        }
        if (r < 0)
                return r;
        znode_path_broker(m.controller_id, path);
        m.brokers.items = arena_alloc(&a, 1, sizeof(*m.brokers.items));
        r = m.brokers.items ? zk_admin_get(z, path, &a, &value) : -ENOMEM;
        if (r == 0)
                r = take_broker(&v, path, m.controller_id, &value);
        if (r == -ENOENT)
                (void)snprintf(error, ZK_ADMIN_TEXT_SIZE, "the controller, broker %d, is not registered now",
                               m.controller_id);
        if (r < 0)
                return r;
        b = m.brokers.items;
        *ret_id = b->node_id;
        *ret_port = (uint16_t)b->port;
        (void)snprintf(host, 256, "%s", b->host.data ? b->host.data : "");
        return 0;
}
