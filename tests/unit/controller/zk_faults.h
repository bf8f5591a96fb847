/* Failures of ZooKeeper that a network cannot be asked for: linked with --wrap, the calls of the controller
 * pass through here. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* The next @times multis with an operation whose path contains @part are carried out, but their reply is lost
 * (-ECONNRESET). */
void zk_faults_lose_replies(const char *part, int times);
/* The next @times multis with such an operation are not carried out and fail with @r. */
void zk_faults_refuse(const char *part, int r, int times);
/* Multis with such an operation stay under way, not yet carried out, until they are released. */
void zk_faults_hold(const char *part);
int zk_faults_held(void);
void zk_faults_release(void);
int zk_faults_left(void); /* how many of them are still to come */
/* Nothing confirms the session: as if ZooKeeper had been silent for two thirds of its timeout. */
void zk_faults_lapse_lease(bool on);
/* When a LeaderAndIsr naming the partition in that leader epoch was handed to the connection of the broker
 * with that epoch: a number that grows with every request sent, or -1. The record begins with
 * zk_faults_record_sends(). */
void zk_faults_record_sends(void);
int zk_faults_sent_at(int64_t broker_epoch, int32_t partition, int32_t leader_epoch);
void zk_faults_clear(void);
