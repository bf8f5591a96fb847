/* The cluster as its znodes tell it (kafka-semantics §3.1), and the znodes that the tools of Kafka 0.8 write:
 * topics, their partitions, and requests to the controller under /admin. Errors are those of zk_admin.h; a
 * sentence is in @error when it is not in zk_admin_error(). */
#pragma once

#include "cli/zk_admin.h"
#include "wire/metadata.h"
#include "zk/znode.h"

/* Topics, partitions and their state, live brokers, the controller (-1: none). Everything lives in @a. A
 * partition without a state (just created) has no leader and an empty ISR. -ENOENT: no Kafka cluster lives
 * there. -EBADMSG: a znode is malformed. */
int zk_cluster_metadata(struct zk_admin *z, const char *topic, struct arena *a,
                        struct metadata_response **ret, char error[ZK_ADMIN_TEXT_SIZE]) must_check;

/* Create the topic's configuration and assignment, in one step. -EEXIST: there is such a topic. */
int zk_cluster_create_topic(struct zk_admin *z, const char *topic, const struct znode_topic *assignment,
                            const struct znode_config *config) must_check;
/* Append partitions to the topic: @assignment's, whose numbers must follow the present ones. -ENOENT: no such
 * topic; -ESTALE: it changed meanwhile, or the numbers do not follow. */
int zk_cluster_add_partitions(struct zk_admin *z, const char *topic, const struct znode_topic *added,
                              char error[ZK_ADMIN_TEXT_SIZE]) must_check;
/* Ask the controller to delete it; -EEXIST: that was asked for already. */
int zk_cluster_delete_topic(struct zk_admin *z, const char *topic) must_check;

/* Hand a list to the controller: create ZNODE_PREFERRED_ELECTION or ZNODE_REASSIGN and leave (R54, R60).
 * -EEXIST: the controller has not finished the one before. -E2BIG: too many partitions for a znode. */
int zk_cluster_submit(struct zk_admin *z, const char *path, const struct znode_partition_list *l,
                      char error[ZK_ADMIN_TEXT_SIZE]) must_check;
/* What is there now; an empty list when nothing is. Released with znode_partitions_done(). */
int zk_cluster_submitted(struct zk_admin *z, const char *path, struct znode_partition_list *ret) must_check;

/* What a controller is working on: ZNODE_REASSIGN and every partition that is gaining or losing replicas by
 * its topic's znode (KIP-455), whoever asked for it. Released with znode_partitions_done(). */
int zk_cluster_reassigning(struct zk_admin *z, struct znode_partition_list *ret,
                           char error[ZK_ADMIN_TEXT_SIZE]) must_check;

/* The controller's address by /controller and /brokers/ids/N (R43). -ENOENT: there is none now, or it is not
 * registered. */
int zk_cluster_controller(struct zk_admin *z, int32_t *ret_id, char host[256], uint16_t *ret_port,
                          char error[ZK_ADMIN_TEXT_SIZE]) must_check;
