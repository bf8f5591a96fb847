/* Accounts of one run. Numbers of a partition are consecutive from 0, so a set of them is a bitmap. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "loadgen.h"

struct bitmap {
        uint64_t *words;
        size_t n_words;
};

struct account {
        pthread_mutex_t lock;
        uint64_t sent, n_acked, n_failed, n_consumed;
        struct bitmap acked, consumed;
        uint64_t consumed_end; /* one above the highest number consumed */
        size_t settled_words;  /* the leading words whose numbers are all acked and consumed */
        uint64_t out_of_order, duplicated;
        int64_t last_ack_us, max_gap_us, max_gap_began_us, max_latency_us;
        bool frozen;
};

struct ledger {
        int32_t n;
        struct account accounts[];
};

static void bitmap_grow(struct bitmap *b, size_t n_words)
{
        size_t n = MAX(n_words, b->n_words * 2);
        uint64_t *words = reallocarray(b->words, n, sizeof(*words));

        if (!words) { /* a verifier that forgets would be worse than none */
                (void)fputs("loadgen: out of memory\n", stderr);
                abort();
        }
        memset(words + b->n_words, 0, (n - b->n_words) * sizeof(*words));
        b->words = words;
        b->n_words = n;
}

/* Returns whether it was set before. */
static bool bitmap_set(struct bitmap *b, uint64_t i)
{
        uint64_t bit = UINT64_C(1) << (i % 64);
        bool before;

        if (i / 64 >= b->n_words)
                bitmap_grow(b, i / 64 + 1);
        before = b->words[i / 64] & bit;
        b->words[i / 64] |= bit;
        return before;
}

static uint64_t bitmap_word(const struct bitmap *b, size_t i)
{
        return i < b->n_words ? b->words[i] : 0;
}

struct ledger *ledger_new(int32_t n_partitions)
{
        struct ledger *l = calloc(1, sizeof(*l) + (size_t)n_partitions * sizeof(l->accounts[0]));

        if (!l)
                return NULL;
        l->n = n_partitions;
        for (int32_t i = 0; i < l->n; i++)
                (void)pthread_mutex_init(&l->accounts[i].lock,
                                         NULL); /* cannot fail with default attributes */
        return l;
}

struct ledger *ledger_free(struct ledger *l)
{
        if (!l)
                return NULL;
        for (int32_t i = 0; i < l->n; i++) {
                (void)pthread_mutex_destroy(&l->accounts[i].lock);
                free(l->accounts[i].acked.words);
                free(l->accounts[i].consumed.words);
        }
        free(l);
        return NULL;
}

static struct account *lock_account(struct ledger *l, int32_t partition)
{
        struct account *a = &l->accounts[partition];

        pthread_mutex_lock(&a->lock);
        return a;
}

static void unlock_account(struct account *a)
{
        pthread_mutex_unlock(&a->lock);
}

uint64_t ledger_next(struct ledger *l, int32_t partition)
{
        struct account *a = lock_account(l, partition);
        uint64_t number = a->sent;

        unlock_account(a);
        return number;
}

void ledger_sent(struct ledger *l, int32_t partition)
{
        struct account *a = lock_account(l, partition);

        a->sent++;
        unlock_account(a);
}

static void account_note_gap(struct account *a, int64_t now_us)
{
        if (a->frozen || a->last_ack_us == 0 || now_us - a->last_ack_us <= a->max_gap_us)
                return;
        a->max_gap_us = now_us - a->last_ack_us;
        a->max_gap_began_us = a->last_ack_us;
}

void ledger_acked(struct ledger *l, int32_t partition, uint64_t number, int64_t now_us, int64_t latency_us)
{
        struct account *a = lock_account(l, partition);

        (void)bitmap_set(&a->acked, number);
        a->n_acked++;
        account_note_gap(a, now_us);
        a->last_ack_us = now_us;
        if (!a->frozen)
                a->max_latency_us = MAX(a->max_latency_us, latency_us);
        unlock_account(a);
}

void ledger_failed(struct ledger *l, int32_t partition)
{
        struct account *a = lock_account(l, partition);

        a->n_failed++;
        unlock_account(a);
}

void ledger_consumed(struct ledger *l, int32_t partition, uint64_t number)
{
        struct account *a = lock_account(l, partition);

        if (bitmap_set(&a->consumed, number)) {
                a->duplicated++;
        } else {
                a->n_consumed++;
                if (number < a->consumed_end)
                        a->out_of_order++;
                a->consumed_end = MAX(a->consumed_end, number + 1);
        }
        unlock_account(a);
}

void ledger_gaps_reset(struct ledger *l, int64_t now_us)
{
        for (int32_t i = 0; i < l->n; i++) {
                struct account *a = lock_account(l, i);

                a->max_gap_us = a->max_latency_us = 0;
                a->frozen = false;
                if (a->last_ack_us > 0)
                        a->last_ack_us = now_us; /* what came before the reset belongs to nobody's gap */
                unlock_account(a);
        }
}

static bool account_waits(const struct account *a)
{
        return a->last_ack_us > 0 && a->sent > a->n_acked + a->n_failed;
}

void ledger_gaps_freeze(struct ledger *l, int64_t now_us)
{
        for (int32_t i = 0; i < l->n; i++) {
                struct account *a = lock_account(l, i);

                if (account_waits(a))
                        account_note_gap(a, now_us);
                a->frozen = true;
                unlock_account(a);
        }
}

void ledger_gaps_print(struct ledger *l, int64_t real_minus_mono_us, FILE *out)
{
        for (int32_t i = 0; i < l->n; i++) {
                struct account *a = lock_account(l, i);

                if (a->n_acked > 0)
                        (void)fprintf(out, "%d %lld %lld\n", i, (long long)a->max_gap_us,
                                      (long long)(a->max_gap_began_us + real_minus_mono_us));
                unlock_account(a);
        }
}

/* Numbers acknowledged and not consumed: all of them, and those the consumer has passed. */
static void account_missing(struct account *a, int64_t *ret_unread, int64_t *ret_passed)
{
        size_t n = a->acked.n_words, end_word = a->consumed_end / 64;
        uint64_t below_end = (UINT64_C(1) << (a->consumed_end % 64)) - 1;

        *ret_unread = *ret_passed = 0;
        for (size_t i = a->settled_words; i < n; i++) {
                uint64_t missing = a->acked.words[i] & ~bitmap_word(&a->consumed, i);

                if (i == a->settled_words && ~(a->acked.words[i] & bitmap_word(&a->consumed, i)) == 0)
                        a->settled_words++;
                *ret_unread += __builtin_popcountll(missing);
                if (i < end_word)
                        *ret_passed += __builtin_popcountll(missing);
                else if (i == end_word)
                        *ret_passed += __builtin_popcountll(missing & below_end);
        }
}

static void account_sum(struct account *a, int64_t now_us, bool final, struct ledger_totals *t)
{
        int64_t unread, passed;

        account_missing(a, &unread, &passed);
        t->sent += (int64_t)a->sent;
        t->acked += (int64_t)a->n_acked;
        t->failed += (int64_t)a->n_failed;
        t->consumed += (int64_t)a->n_consumed;
        t->out_of_order += (int64_t)a->out_of_order;
        t->duplicated += (int64_t)a->duplicated;
        t->unread += unread;
        t->lost += final ? unread : passed;
        t->max_gap_us = MAX(t->max_gap_us, a->max_gap_us);
        t->max_latency_us = MAX(t->max_latency_us, a->max_latency_us);
        if (account_waits(a))
                t->current_gap_us = MAX(t->current_gap_us, now_us - a->last_ack_us);
}

static int compare_int64(const void *a, const void *b)
{
        int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

        return x < y ? -1 : x > y;
}

static int64_t percentile(const int64_t *sorted, size_t n, size_t percent)
{
        return n == 0 ? 0 : sorted[MIN(n * percent / 100, n - 1)];
}

void ledger_sum(struct ledger *l, int64_t now_us, bool final, struct ledger_totals *ret)
{
        cleanup_with(freep) int64_t *gaps = calloc((size_t)l->n, sizeof(*gaps));
        size_t n_gaps = 0;

        *ret = (struct ledger_totals){0};
        for (int32_t i = 0; i < l->n; i++) {
                struct account *a = lock_account(l, i);

                account_sum(a, now_us, final, ret);
                if (gaps && a->n_acked > 0)
                        gaps[n_gaps++] = a->max_gap_us;
                unlock_account(a);
        }
        if (!gaps)
                return;
        qsort(gaps, n_gaps, sizeof(*gaps), compare_int64);
        ret->gap_p50_us = percentile(gaps, n_gaps, 50);
        ret->gap_p99_us = percentile(gaps, n_gaps, 99);
}
