/* Which brokers host the replicas of a new topic: Kafka's own algorithm and its error texts (requirements
 * §1.7). Used by the controller and by the command line, which reckons an assignment before it asks for it
 * (R61). Pure: the random start is the caller's. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/util.h"

#define ASSIGNMENT_TEXT_SIZE 512

/* What kind of error it is; whoever speaks a protocol maps it to a code. */
enum assignment_fault {
        ASSIGNMENT_BAD_PARTITIONS, /* their number */
        ASSIGNMENT_BAD_FACTOR,     /* the replication factor */
        ASSIGNMENT_BAD_REPLICAS,   /* a list given by hand */
        ASSIGNMENT_BAD_NAME,
        N_ASSIGNMENT_FAULTS,
};

struct assignment_request {
        const int32_t *brokers; /* ascending ids of brokers that may be used */
        int32_t n_brokers;
        int32_t n_partitions;
        int32_t replication_factor;
        int32_t start_partition;           /* number of the first new partition; 0 for a new topic */
        uint32_t start_index, start_shift; /* random, or both the fixed start */
};

/* Fill @ret with n_partitions * replication_factor ids, partition by partition.
 * -EINVAL: @error has the sentence and *ret_fault its kind. */
int assignment_make(const struct assignment_request *r, int32_t *ret, char error[ASSIGNMENT_TEXT_SIZE],
                    enum assignment_fault *ret_fault) must_check;

/* One partition of an assignment given by hand. @first_factor: replication factor of the list's first
 * partition. -EINVAL as above. */
int assignment_check(int32_t partition, const int32_t *replicas, int32_t n, int32_t first_factor,
                     const int32_t *brokers, int32_t n_brokers, char error[ASSIGNMENT_TEXT_SIZE],
                     enum assignment_fault *ret_fault) must_check;

/* Kafka's rule for topic names, with its sentence. -EINVAL as above. */
int topic_name_check(const char *name, size_t len, char error[ASSIGNMENT_TEXT_SIZE]) must_check;
/* Names that differ only in '.' and '_' collide in metric names. */
bool topic_names_collide(const char *a, const char *b);
/* What is the same of names that collide, for looking one up; cut after 249 bytes, which no legal name has
 * more of. */
#define TOPIC_NAME_FOLDED_SIZE 250
void topic_name_fold(const char *name, char ret[TOPIC_NAME_FOLDED_SIZE]);
