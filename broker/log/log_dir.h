/* What lies in a partition's directory. Any thread. */
#pragma once

#include <stdint.h>

#include "base/util.h"

#define LOG_SUFFIX_SNAPSHOT ".snapshot"

struct log_dir_file { /* one segment */
        int64_t base_offset;
        bool has_index, has_timeindex;
};

struct log_dir_listing { /* all ascending */
        struct log_dir_file *segments;
        int64_t *snapshots;
        size_t n_segments, n_snapshots;
        size_t n_leftovers; /* *.deleted, *.cleaned, *.tmp, indexes without a log: what an interrupted
                               operation left */
};

int log_dir_list(const char *dir, struct log_dir_listing *ret) must_check;
void log_dir_listing_done(struct log_dir_listing *l);
static inline void log_dir_listing_donep(struct log_dir_listing *l)
{
        log_dir_listing_done(l);
}
/* Unlink the leftovers. */
int log_dir_clean(const char *dir) must_check;
/* Remove the directory and the files in it (there are no directories in it). */
int log_dir_remove(const char *dir) must_check;
