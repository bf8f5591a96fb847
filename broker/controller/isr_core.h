/* Is an ISR proposed by a leader (AlterPartition) acceptable? Pure. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct isr_member { /* what the controller knows of one broker that matters to the partition */
        int32_t id;
        int64_t epoch;
        bool assigned, alive, draining;
};

struct isr_current {
        int32_t leader, leader_epoch, partition_epoch;
        const int32_t *isr;
        int n_isr;
        const struct isr_member *members; /* assignment and ISR, each once */
        int n_members;
};

struct isr_proposal {
        int32_t broker_id; /* who asks */
        int32_t leader_epoch, partition_epoch;
        const int32_t *isr;
        const int64_t *epochs; /* of each member, -1 unknown; NULL: before version 3 */
        int n_isr;
        int8_t leader_recovery_state;
        int16_t version; /* of the request */
};

/* A Kafka error; NONE with *ret_unchanged: the partition is so already, nothing to write (KAFKA-14144). */
int16_t isr_proposal_check(const struct isr_current *cur, const struct isr_proposal *p, bool *ret_unchanged);
