/* The API keys that Stepdown speaks. What ApiVersions advertises is not what is served: old librdkafka
 * switches codecs and idempotence off when the advertised range does not reach down to version 0, so Produce
 * claims versions 0-2 that nobody who sees the maximum ever uses. A controller's requests to brokers and
 * ControlledShutdown go in the version that inter.broker.protocol.version names, unasked; what an Apache
 * Kafka broker asks of its controller, it asks only where ApiVersions shows it: AlterPartition and
 * AllocateProducerIds are there for it (K3). */
#include "wire/codec.h"

#include "wire/allocate_producer_ids.h"
#include "wire/alter_configs.h"
#include "wire/alter_partition.h"
#include "wire/alter_partition_reassignments.h"
#include "wire/api_versions.h"
#include "wire/controlled_shutdown.h"
#include "wire/create_partitions.h"
#include "wire/create_topics.h"
#include "wire/delete_topics.h"
#include "wire/describe_cluster.h"
#include "wire/describe_configs.h"
#include "wire/elect_leaders.h"
#include "wire/fetch.h"
#include "wire/find_coordinator.h"
#include "wire/incremental_alter_configs.h"
#include "wire/init_producer_id.h"
#include "wire/leader_and_isr.h"
#include "wire/list_offsets.h"
#include "wire/list_partition_reassignments.h"
#include "wire/metadata.h"
#include "wire/offset_for_leader_epoch.h"
#include "wire/produce.h"
#include "wire/stop_replica.h"
#include "wire/update_metadata.h"

#define API(key_, name_, advertise_min_, advertise_max_, serve_min_, serve_max_, message)                    \
        {                                                                                                    \
                .key = (key_), .name = (name_), .advertise_min = (advertise_min_),                           \
                .advertise_max = (advertise_max_), .serve_min = (serve_min_), .serve_max = (serve_max_),     \
                .request = &message##_request_wire, .response = &message##_response_wire                     \
        }

/*          key  name                    advertise  serve  messages */
static const struct wire_api apis[] = {
        API(0, "Produce", 0, 11, 3, 11, produce),
        API(1, "Fetch", 4, 17, 4, 17, fetch),
        API(2, "ListOffsets", 1, 9, 1, 9, list_offsets),
        API(3, "Metadata", 0, 12, 0, 12, metadata),
        API(4, "LeaderAndIsr", -1, -1, 0, 7, leader_and_isr),
        API(5, "StopReplica", -1, -1, 0, 4, stop_replica),
        API(6, "UpdateMetadata", -1, -1, 0, 8, update_metadata),
        API(7, "ControlledShutdown", -1, -1, 0, 3, controlled_shutdown),
        API(10, "FindCoordinator", 0, 6, 0, 6, find_coordinator),
        API(18, "ApiVersions", 0, 4, 0, 4, api_versions),
        API(19, "CreateTopics", 2, 7, 2, 7, create_topics),
        API(20, "DeleteTopics", 1, 6, 1, 6, delete_topics),
        API(22, "InitProducerId", 0, 5, 0, 5, init_producer_id),
        API(23, "OffsetForLeaderEpoch", 2, 4, 2, 4, offset_for_leader_epoch),
        API(32, "DescribeConfigs", 1, 4, 1, 4, describe_configs),
        API(33, "AlterConfigs", 0, 2, 0, 2, alter_configs),
        API(37, "CreatePartitions", 0, 3, 0, 3, create_partitions),
        API(43, "ElectLeaders", 0, 2, 0, 2, elect_leaders),
        API(44, "IncrementalAlterConfigs", 0, 1, 0, 1, incremental_alter_configs),
        API(45, "AlterPartitionReassignments", 0, 1, 0, 1, alter_partition_reassignments),
        API(46, "ListPartitionReassignments", 0, 0, 0, 0, list_partition_reassignments),
        API(56, "AlterPartition", 0, 3, 0, 3, alter_partition),
        API(60, "DescribeCluster", -1, -1, 0, 1, describe_cluster),
        API(67, "AllocateProducerIds", 0, 0, 0, 0, allocate_producer_ids),
};

const struct wire_api *wire_api_find(int16_t key)
{
        for (size_t i = 0; i < ARRAY_SIZE(apis); i++)
                if (apis[i].key == key)
                        return &apis[i];
        return NULL;
}

const struct wire_api *wire_api_all(size_t *ret_n)
{
        *ret_n = ARRAY_SIZE(apis);
        return apis;
}
