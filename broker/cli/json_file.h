/* The JSON files that people give to the tools (R55, R61), read tolerantly and refused precisely.
 *
 * Taken beyond the letter of JSON: a comma after the last element, as the published example has it; partition
 * numbers and broker ids in quotes. Every refusal is one sentence that names the file and the place. */
#pragma once

#include <jansson.h>

#include "base/util.h"
#include "zk/znode.h"

#define JSON_FILE_TEXT_SIZE 512

/* -errno of reading (-EFBIG past 64 MiB); -EBADMSG with line and column in @error: no JSON, or no object. */
int json_file_load(const char *path, json_t **ret, char error[JSON_FILE_TEXT_SIZE]) must_check;

/* {"partitions":[{"topic":T,"partition":P,"replicas":[…]}]}; @replicas: they must be there (else they are not
 * looked at). -EBADMSG and a sentence: a member is missing or of the wrong kind, a partition stands there
 * twice. An empty list is no error here. */
int json_file_partitions(const char *path, bool replicas, struct znode_partition_list *ret,
                         char error[JSON_FILE_TEXT_SIZE]) must_check;

struct topic_names {
        char **items;
        size_t n;
};
/* {"topics":[{"topic":T}]}; the same name twice counts once. */
int json_file_topics(const char *path, struct topic_names *ret, char error[JSON_FILE_TEXT_SIZE]) must_check;
void topic_names_done(struct topic_names *t);
