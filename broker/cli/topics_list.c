#include "cli/topics_list.h"

#include <stdio.h>

#include "cli/json_out.h"
#include "wire/error.h"

static bool is_wanted(const struct topics_list_options *o, const struct metadata_response *m,
                      const struct metadata_response_partition *p)
{
        bool under = p->isr_nodes.n < p->replica_nodes.n;
        bool unavailable = p->leader_id < 0 || !cluster_is_live(m, p->leader_id);

        if (!o->under_replicated && !o->unavailable)
                return true;
        return (o->under_replicated && under) || (o->unavailable && unavailable);
}

static void print_ids(const char *label, const int32_t *ids, int32_t n)
{
        printf("\t%s: ", label);
        for (int32_t i = 0; i < n; i++)
                printf("%s%d", i ? "," : "", ids[i]);
}

static void print_partition(const struct metadata_response_topic *t,
                            const struct metadata_response_partition *p)
{
        printf("topic: %.*s\tpartition: %d\tleader: ", (int)t->name.len, t->name.data, p->partition_index);
        if (p->leader_id < 0)
                printf("none");
        else
                printf("%d", p->leader_id);
        print_ids("replicas", p->replica_nodes.items, p->replica_nodes.n);
        print_ids("isr", p->isr_nodes.items, p->isr_nodes.n);
        putchar('\n');
}

static json_t *partition_json(const struct metadata_response_partition *p)
{
        json_t *o = json_pack("{s:i, s:i, s:i}", "partition", (int)p->partition_index, "leader",
                              (int)p->leader_id, "leader_epoch", (int)p->leader_epoch);

        (void)json_object_set_new(o, "replicas", json_out_ids(p->replica_nodes.items, p->replica_nodes.n));
        (void)json_object_set_new(o, "isr", json_out_ids(p->isr_nodes.items, p->isr_nodes.n));
        return o;
}

static json_t *topic_json(const struct topics_list_options *o, const struct metadata_response *m,
                          const struct metadata_response_topic *t)
{
        json_t *list = json_array(), *topic;
        char id[UUID_TEXT_SIZE];

        uuid_format(&t->topic_id, id);
        for (int32_t i = 0; i < t->partitions.n; i++)
                if (is_wanted(o, m, &t->partitions.items[i]))
                        (void)json_array_append_new(list, partition_json(&t->partitions.items[i]));
        topic = json_pack("{s:o, s:s}", "topic", json_out_str(t->name), "id", id);
        (void)json_object_set_new(topic, "partitions", list);
        return topic;
}

static void print_json(const struct topics_list_options *o, const struct metadata_response *m)
{
        json_t *list = json_array();

        for (int32_t i = 0; i < m->topics.n; i++)
                (void)json_array_append_new(list, topic_json(o, m, &m->topics.items[i]));
        json_out_print(json_pack("{s:o}", "topics", list));
}

static void print_topic(const struct topics_list_options *o, const struct metadata_response *m,
                        const struct metadata_response_topic *t)
{
        char id[UUID_TEXT_SIZE];

        uuid_format(&t->topic_id, id);
        if (o->heading)
                printf("topic: %.*s\tid: %s\tpartitions: %d\treplication factor: %d\n", (int)t->name.len,
                       t->name.data, id, t->partitions.n,
                       t->partitions.n > 0 ? t->partitions.items[0].replica_nodes.n : 0);
        for (int32_t i = 0; i < t->partitions.n; i++)
                if (is_wanted(o, m, &t->partitions.items[i]))
                        print_partition(t, &t->partitions.items[i]);
}

/* Its partitions are not known to whoever answered. */
static void print_failed(const struct metadata_response_topic *t)
{
        (void)fprintf(stderr, "stepdown topics: topic %.*s cannot be described: %s\n", (int)t->name.len,
                      t->name.data, kafka_error_name(t->error_code));
}

int topics_list(struct cluster *c, const struct topics_list_options *o)
{
        struct metadata_response *m;
        int status = CLI_OK, r;

        r = cluster_metadata(c, o->topic, &m);
        if (r < 0)
                return cluster_fail(c, r);
        if (o->topic && !cluster_topic(m, o->topic)) {
                (void)fprintf(stderr, "stepdown topics: topic %s doesn't exist!\n", o->topic);
                return CLI_FAILED;
        }
        if (o->json)
                print_json(o, m);
        else if (m->topics.n == 0)
                puts("no topics exist!");
        for (int32_t i = 0; i < m->topics.n; i++) {
                const struct metadata_response_topic *t = &m->topics.items[i];

                if (t->error_code != KAFKA_NONE && t->error_code != KAFKA_LEADER_NOT_AVAILABLE) {
                        print_failed(t);
                        status = CLI_FAILED;
                } else if (!o->json) {
                        print_topic(o, m, t);
                }
        }
        return status;
}
