#include "controller/assignment_core.h"

static const struct ctx_assigned *find(const struct ctx_assigned *a, size_t n, int32_t id)
{
        for (size_t i = 0; i < n; i++)
                if (a[i].id == id)
                        return &a[i];
        return NULL;
}

size_t assignment_retarget(const struct ctx_assigned *now, size_t n, const int32_t *target, size_t target_n,
                           struct ctx_assigned ret[ASSIGNMENT_MAX])
{
        size_t out = 0;

        for (size_t i = 0; i < target_n && out < ASSIGNMENT_MAX; i++) {
                const struct ctx_assigned *old = find(now, n, target[i]);

                ret[out++] = (struct ctx_assigned){.id = target[i], .adding = !old || old->adding};
        }
        for (size_t i = 0; target_n == 0 && i < n && out < ASSIGNMENT_MAX; i++)
                if (!now[i].adding)
                        ret[out++] = (struct ctx_assigned){.id = now[i].id};
        for (size_t i = 0; i < n; i++) {
                if (find(ret, out, now[i].id))
                        continue;
                if (out == ASSIGNMENT_MAX)
                        return 0;
                ret[out++] =
                        (struct ctx_assigned){.id = now[i].id, .adding = now[i].adding, .removing = true};
        }
        return target_n > ASSIGNMENT_MAX ? 0 : out;
}

size_t assignment_finish(const struct ctx_assigned *now, size_t n, struct ctx_assigned ret[ASSIGNMENT_MAX])
{
        size_t out = 0;

        for (size_t i = 0; i < n && out < ASSIGNMENT_MAX; i++)
                if (!now[i].removing)
                        ret[out++] = (struct ctx_assigned){.id = now[i].id};
        return out;
}

bool assignment_targets(const struct ctx_assigned *now, size_t n, const int32_t *target, size_t target_n)
{
        size_t k = 0;

        for (size_t i = 0; i < n; i++) {
                if (now[i].removing)
                        continue;
                if (k >= target_n || target[k] != now[i].id)
                        return false;
                k++;
        }
        return k == target_n;
}

bool assignment_is_cancellation(const struct ctx_assigned *now, size_t n)
{
        for (size_t i = 0; i < n; i++)
                if (now[i].adding != now[i].removing)
                        return false;
        return true;
}
