/* Topics created on first use: which of the names that clients ask for the controller is asked to create.
 *
 * Anybody may ask for a million names in one request, and every client that waits for its topic asks again
 * ten times a second. So a name is passed on once a window, and a window has room for so many names; for the
 * rest LEADER_NOT_AVAILABLE is the answer, and who means it comes again. */
#include "api/auto_create.h"

#include <errno.h>

#define WINDOW_MS        2000
#define NAMES_PER_WINDOW 500

int auto_create_init(struct auto_create *a)
{
        *a = (struct auto_create){.recent = map_new()};
        return a->recent ? 0 : -ENOMEM;
}

void auto_create_done(struct auto_create *a)
{
        a->recent = map_free(a->recent);
}

bool auto_create_wants(struct auto_create *a, struct wire_str name, int64_t now_ms)
{
        if (now_ms - a->since_ms >= WINDOW_MS) {
                map_clear(a->recent);
                a->since_ms = now_ms;
        }
        if (name.len <= 0 || map_count(a->recent) >= NAMES_PER_WINDOW)
                return false;
        return map_put(a->recent, name.data, (size_t)name.len, a) == 0;
}
