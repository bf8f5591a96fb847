#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"
#include "zk/znode.h"

/* Truncation is impossible for valid names and harmless for others: such a node does not exist. */
void znode_path_broker(int32_t broker_id, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_BROKER_IDS "/%d", broker_id);
}

void znode_path_topic(const char *topic, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_TOPICS "/%s", topic);
}

void znode_path_partitions(const char *topic, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_TOPICS "/%s/partitions", topic);
}

void znode_path_partition(const char *topic, int32_t partition, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_TOPICS "/%s/partitions/%d", topic, partition);
}

void znode_path_state(const char *topic, int32_t partition, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_TOPICS "/%s/partitions/%d/state", topic, partition);
}

void znode_path_delete_topic(const char *topic, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_DELETE_TOPICS "/%s", topic);
}

void znode_path_topic_config(const char *topic, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_CONFIG_TOPICS "/%s", topic);
}

void znode_path_broker_config(const char *name, char out[ZNODE_PATH_SIZE])
{
        (void)snprintf(out, ZNODE_PATH_SIZE, ZNODE_CONFIG_BROKERS "/%s", name);
}

int znode_path_parse_state(const char *path, char topic[250], int32_t *ret_partition)
{
        const char prefix[] = ZNODE_TOPICS "/", middle[] = "/partitions/", suffix[] = "/state";
        const char *name, *number;
        char text[16];
        size_t name_len, number_len;
        int r;

        if (strncmp(path, prefix, sizeof(prefix) - 1) != 0)
                return -EINVAL;
        name = path + sizeof(prefix) - 1;
        name_len = strcspn(name, "/");
        if (name_len == 0 || name_len > 249 || strncmp(name + name_len, middle, sizeof(middle) - 1) != 0)
                return -EINVAL;
        number = name + name_len + sizeof(middle) - 1;
        number_len = strcspn(number, "/");
        if (number_len >= sizeof(text) || strcmp(number + number_len, suffix) != 0)
                return -EINVAL;
        memcpy(text, number, number_len);
        text[number_len] = '\0';
        r = parse_int32(text, 0, INT32_MAX, ret_partition);
        if (r < 0)
                return -EINVAL;
        memcpy(topic, name, name_len);
        topic[name_len] = '\0';
        return 0;
}
