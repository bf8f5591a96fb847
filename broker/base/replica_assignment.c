/* Replica placement; see the header. Pure. */
#include "base/replica_assignment.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define fail(error, ret_fault, fault, ...)                                                                   \
        ({                                                                                                   \
                (void)snprintf(error, ASSIGNMENT_TEXT_SIZE, __VA_ARGS__); /* a cut sentence is still one */  \
                *(ret_fault) = (fault);                                                                      \
                -EINVAL;                                                                                     \
        })

static int32_t replica_index(uint32_t first, uint32_t shift, uint32_t j, uint32_t n)
{
        return (int32_t)((first + 1 + (shift + j) % (n - 1)) % n);
}

int assignment_make(const struct assignment_request *r, int32_t *ret, char error[ASSIGNMENT_TEXT_SIZE],
                    enum assignment_fault *ret_fault)
{
        uint32_t n = (uint32_t)r->n_brokers, start, shift;

        if (r->n_partitions <= 0)
                return fail(error, ret_fault, ASSIGNMENT_BAD_PARTITIONS,
                            "number of partitions must be larger than 0");
        if (r->replication_factor <= 0)
                return fail(error, ret_fault, ASSIGNMENT_BAD_FACTOR,
                            "replication factor must be larger than 0");
        if (r->replication_factor > r->n_brokers)
                return fail(error, ret_fault, ASSIGNMENT_BAD_FACTOR,
                            "replication factor: %d larger than available brokers: %d",
                            (int)r->replication_factor, (int)r->n_brokers);

        start = r->start_index % n;
        shift = n > 1 ? r->start_shift % (n - 1) : 0;
        for (int32_t i = 0; i < r->n_partitions; i++) {
                uint32_t partition = (uint32_t)r->start_partition + (uint32_t)i;
                uint32_t first = (partition + start) % n;
                int32_t *out = ret + (size_t)i * (size_t)r->replication_factor;

                if (partition > 0 && partition % n == 0)
                        shift++;
                out[0] = r->brokers[first];
                for (int32_t j = 0; j < r->replication_factor - 1; j++)
                        out[j + 1] = r->brokers[replica_index(first, shift, (uint32_t)j, n)];
        }
        return 0;
}

static void list_ids(const int32_t *ids, int32_t n, char *out, size_t size)
{
        size_t used = 0;

        out[0] = '\0';
        for (int32_t i = 0; i < n && used + 16 < size; i++)
                used += (size_t)snprintf(out + used, size - used, "%s%d", i ? "," : "", (int)ids[i]);
}

int assignment_check(int32_t partition, const int32_t *replicas, int32_t n, int32_t first_factor,
                     const int32_t *brokers, int32_t n_brokers, char error[ASSIGNMENT_TEXT_SIZE],
                     enum assignment_fault *ret_fault)
{
        char given[128], available[128];
        /* Of one more than there are brokers one is wrong: a list of millions need not be compared with
         * itself. */
        int32_t looked_at = MIN(n, n_brokers + 1);

        list_ids(replicas, n, given, sizeof(given));
        if (n <= 0)
                return fail(error, ret_fault, ASSIGNMENT_BAD_REPLICAS,
                            "replication factor must be larger than 0");
        for (int32_t i = 1; i < looked_at; i++)
                if (ids_contain(replicas, i, replicas[i]))
                        return fail(error, ret_fault, ASSIGNMENT_BAD_REPLICAS,
                                    "duplicate brokers in replica assignment: %s", given);
        for (int32_t i = 0; i < looked_at; i++)
                if (!ids_contain(brokers, n_brokers, replicas[i])) {
                        list_ids(brokers, n_brokers, available, sizeof(available));
                        return fail(error, ret_fault, ASSIGNMENT_BAD_REPLICAS,
                                    "some specified brokers not available. specified brokers: %s"
                                    " available broker: %s",
                                    given, available);
                }
        if (n != first_factor)
                return fail(error, ret_fault, ASSIGNMENT_BAD_REPLICAS,
                            "partition %d has different replication factor: %s", (int)partition, given);
        return 0;
}

static bool legal(char ch)
{
        return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || (ch >= '0' && ch <= '9') ||
               ch == '.' || ch == '_' || ch == '-';
}

int topic_name_check(const char *name, size_t len, char error[ASSIGNMENT_TEXT_SIZE])
{
        enum assignment_fault fault;

        if (len == 0)
                return fail(error, &fault, ASSIGNMENT_BAD_NAME, "topic name is illegal, can't be empty");
        if ((len == 1 && name[0] == '.') || (len == 2 && name[0] == '.' && name[1] == '.'))
                return fail(error, &fault, ASSIGNMENT_BAD_NAME, "topic name cannot be \".\" or \"..\"");
        if (len > 249)
                return fail(error, &fault, ASSIGNMENT_BAD_NAME,
                            "topic name is illegal, can't be longer than 249 characters");
        for (size_t i = 0; i < len; i++)
                if (!legal(name[i]))
                        return fail(error, &fault, ASSIGNMENT_BAD_NAME,
                                    "topic name %.*s is illegal, contains a character other than ASCII"
                                    " alphanumerics, '.', '_' and '-'",
                                    (int)len, name);
        return 0;
}

bool topic_names_collide(const char *a, const char *b)
{
        for (; *a && *b; a++, b++)
                if ((*a == '.' ? '_' : *a) != (*b == '.' ? '_' : *b))
                        return false;
        return *a == *b;
}

void topic_name_fold(const char *name, char ret[TOPIC_NAME_FOLDED_SIZE])
{
        size_t n = 0;

        for (; name[n] && n < TOPIC_NAME_FOLDED_SIZE - 1; n++)
                ret[n] = (char)(name[n] == '.' ? '_' : name[n]);
        ret[n] = '\0';
}
