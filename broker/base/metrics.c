/* A list under a lock for the rare registration and printing; the values themselves are relaxed atomics. */
#include "base/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>

#define FIRST_BUCKET_US 100

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct metric *registry; /* lock: rows with one name are neighbours */

void metrics_register(struct metric *m)
{
        struct metric **at;

        pthread_mutex_lock(&lock);
        for (at = &registry; *at && *at != m; at = &(*at)->next)
                if (strcmp((*at)->name, m->name) == 0 && (!(*at)->next || strcmp((*at)->next->name, m->name)))
                        break;
        if (*at != m) {
                if (*at) /* behind the last of its name */
                        at = &(*at)->next;
                m->next = *at;
                *at = m;
        }
        pthread_mutex_unlock(&lock);
}

void metrics_unregister(struct metric *m)
{
        pthread_mutex_lock(&lock);
        for (struct metric **at = &registry; *at; at = &(*at)->next)
                if (*at == m) {
                        *at = m->next;
                        m->next = NULL;
                        break;
                }
        pthread_mutex_unlock(&lock);
}

void metric_observe_us(struct metric *m, int64_t us)
{
        int64_t bound = FIRST_BUCKET_US;
        int i = 0;

        for (; i < METRIC_BUCKETS && us > bound; i++)
                bound *= 2;
        atomic_fetch_add_explicit(&m->bucket[i], 1, memory_order_relaxed);
        metric_add(m, us);
}

/* Seconds without floating point, so that no locale or rounding gets in: 52428800 -> "52.4288". */
static int print_seconds(struct buf *out, int64_t us)
{
        int64_t fraction = us % 1000000;
        int digits = 6;

        if (fraction == 0)
                return buf_printf(out, "%" PRId64, us / 1000000);
        for (; fraction % 10 == 0; fraction /= 10)
                digits--;
        return buf_printf(out, "%" PRId64 ".%0*" PRId64, us / 1000000, digits, fraction);
}

static int print_header(struct buf *out, const struct metric *m)
{
        static const char *const type_names[] = {
                [METRIC_T_COUNTER] = "counter",
                [METRIC_T_GAUGE] = "gauge",
                [METRIC_T_HISTOGRAM] = "histogram",
                [METRIC_T_CALLBACK] = "gauge",
        };
        int r;

        r = buf_printf(out, "# HELP %s ", m->name);
        for (const char *c = m->help; *c && r == 0; c++)
                r = *c == '\\'   ? buf_append_str(out, "\\\\")
                    : *c == '\n' ? buf_append_str(out, "\\n")
                                 : buf_append(out, c, 1);
        if (r < 0)
                return r;
        return buf_printf(out, "\n# TYPE %s %s\n", m->name, type_names[m->type]);
}

static int print_value(struct buf *out, const struct metric *m)
{
        int64_t v = m->type == METRIC_T_CALLBACK ? m->read(m->userdata)
                                                 : atomic_load_explicit(&m->value, memory_order_relaxed);

        if (m->labels)
                return buf_printf(out, "%s{%s} %" PRId64 "\n", m->name, m->labels, v);
        return buf_printf(out, "%s %" PRId64 "\n", m->name, v);
}

static int print_bucket(struct buf *out, const struct metric *m, int i, int64_t count)
{
        int r;

        r = buf_printf(out, "%s_bucket{%s%sle=\"", m->name, m->labels ? m->labels : "", m->labels ? "," : "");
        if (r < 0)
                return r;
        r = i < METRIC_BUCKETS ? print_seconds(out, (int64_t)FIRST_BUCKET_US << i)
                               : buf_append_str(out, "+Inf");
        if (r < 0)
                return r;
        return buf_printf(out, "\"} %" PRId64 "\n", count);
}

/* _count is the sum of the buckets just read and not a counter of its own: the two can't contradict each
 * other. */
static int print_histogram(struct buf *out, const struct metric *m)
{
        const char *open = m->labels ? "{" : "", *close = m->labels ? "}" : "",
                   *labels = m->labels ? m->labels : "";
        int64_t count = 0;
        int r;

        for (int i = 0; i <= METRIC_BUCKETS; i++) {
                count += atomic_load_explicit(&m->bucket[i], memory_order_relaxed);
                r = print_bucket(out, m, i, count);
                if (r < 0)
                        return r;
        }
        r = buf_printf(out, "%s_sum%s%s%s ", m->name, open, labels, close);
        if (r < 0)
                return r;
        r = print_seconds(out, atomic_load_explicit(&m->value, memory_order_relaxed));
        if (r < 0)
                return r;
        return buf_printf(out, "\n%s_count%s%s%s %" PRId64 "\n", m->name, open, labels, close, count);
}

int metrics_print(struct buf *out)
{
        const char *previous = "";
        int r = 0;

        pthread_mutex_lock(&lock);
        for (struct metric *m = registry; m && r == 0; m = m->next) {
                if (strcmp(previous, m->name) != 0)
                        r = print_header(out, m);
                previous = m->name;
                if (r == 0)
                        r = m->type == METRIC_T_HISTOGRAM ? print_histogram(out, m) : print_value(out, m);
        }
        pthread_mutex_unlock(&lock);
        return r;
}
