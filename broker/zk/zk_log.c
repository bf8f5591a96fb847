/* The library's log lines. Its IO thread calls the callback: what blocks there stops pings, so it only copies
 * into a ring (under a lock held for a memcpy); the wrapper's own thread prints them, a few a second, because
 * a refused connection yields ten lines a second. The callback has no context, hence one ring for the
 * process. */
#include <pthread.h>
#include <string.h>

#include "base/clock.h"
#include "base/slog.h"
#include "zk/zk_internal.h"

#define RING_LINES 32
#define LINE_BYTES 400
#define PER_SECOND 5

static pthread_mutex_t ring_lock = PTHREAD_MUTEX_INITIALIZER;
static char ring[RING_LINES][LINE_BYTES];
static size_t ring_head, ring_count;
static int64_t ring_dropped;
static int64_t window_start_ms;
static int window_lines;

void zk_log_line(const char *line)
{
        size_t len = strlen(line);

        (void)pthread_mutex_lock(&ring_lock);
        if (ring_count == RING_LINES) {
                ring_dropped++;
        } else {
                char *slot = ring[(ring_head + ring_count++) % RING_LINES];

                len = MIN(len, (size_t)LINE_BYTES - 1);
                memcpy(slot, line, len);
                slot[len] = '\0';
        }
        (void)pthread_mutex_unlock(&ring_lock);
}

/* Take one line out, if the rate allows. */
static bool take_line(char line[LINE_BYTES], int64_t *ret_dropped)
{
        int64_t now_ms = clock_mono_ms();
        bool got = false;

        (void)pthread_mutex_lock(&ring_lock);
        if (now_ms - window_start_ms >= 1000) {
                window_start_ms = now_ms;
                window_lines = 0;
        }
        if (ring_count > 0 && window_lines < PER_SECOND) {
                memcpy(line, ring[ring_head], LINE_BYTES);
                ring_head = (ring_head + 1) % RING_LINES;
                ring_count--;
                window_lines++;
                *ret_dropped = ring_dropped;
                ring_dropped = 0;
                got = true;
        }
        (void)pthread_mutex_unlock(&ring_lock);
        return got;
}

/* "2024-01-01 10:00:00,123:99(0x7f):ZOO_WARN@fn@12: text": the level and the text. */
static enum slog_level line_level(const char *line)
{
        if (strstr(line, "ZOO_ERROR"))
                return SLOG_WARNING; /* ZooKeeper's errors are our incidents: we retry */
        return SLOG_INFO;
}

static const char *line_text(const char *line)
{
        const char *at = strstr(line, ":ZOO_");

        return at ? at + 1 : line;
}

void zk_log_drain(void)
{
        char line[LINE_BYTES];
        int64_t dropped;

        while (take_line(line, &dropped)) {
                if (line_level(line) > slog_level_now())
                        continue;
                slog_emit(line_level(line), "zookeeper-client", "ZooKeeper's client library reports",
                          (const struct slog_field[]){SL_STR("text", line_text(line)),
                                                      SL_INT("suppressed", dropped),
                                                      {.key = NULL}});
        }
}
