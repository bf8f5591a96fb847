#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "controller/election_core.h"

/* Notation of the table: a replica is its id and letters: '-' dead, 'd' draining, 's' stopped, 'b' bounced,
 * 'l' leaving, 'p' (of the first) to be preferred,
 * 'x' not assigned; "L<n>" leaders. Lists are separated by blanks. */
struct row {
        const char *name, *replicas, *isr;
        int32_t leader;
        enum election_kind kind;
        int32_t new_leader;
        const char *new_isr;
};

static int parse_replicas(const char *s, struct election_replica *ret)
{
        int n = 0;

        while (*s) {
                struct election_replica *r = &ret[n++];
                char *end;

                *r = (struct election_replica){
                        .id = (int32_t)strtol(s, &end, 10), .alive = true, .assigned = true};
                for (s = end; *s && *s != ' '; s++) {
                        if (*s == '-')
                                r->alive = false;
                        else if (*s == 'd')
                                r->draining = true;
                        else if (*s == 's')
                                r->stopped = true;
                        else if (*s == 'b')
                                r->bounced = true;
                        else if (*s == 'l')
                                r->leaving = true;
                        else if (*s == 'x')
                                r->assigned = false;
                        else if (*s == 'L') {
                                r->leaders = (int32_t)strtol(s + 1, &end, 10);
                                s = end - 1;
                        }
                }
                while (*s == ' ')
                        s++;
        }
        return n;
}

static int parse_ids(const char *s, int32_t *ret)
{
        int n = 0;

        while (s && *s) {
                char *end;

                ret[n++] = (int32_t)strtol(s, &end, 10);
                for (s = end; *s == ' '; s++)
                        continue;
        }
        return n;
}

static const char *ids_text(const int32_t *ids, int n)
{
        static char text[256];
        size_t used = 0;

        text[0] = '\0';
        for (int i = 0; i < n; i++)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%d", i ? " " : "", ids[i]);
        return text;
}

static void check_row(const struct row *row, bool unclean, bool renew, bool has_state)
{
        struct election_replica replicas[16];
        struct election_result res;
        int32_t isr[16];
        struct election_input in = {.has_state = has_state,
                                    .unclean = unclean,
                                    .renew = renew,
                                    .leader = row->leader,
                                    .leader_epoch = 7,
                                    .isr = isr,
                                    .replicas = replicas};

        in.n_replicas = parse_replicas(row->replicas, replicas);
        in.prefer = strchr(row->replicas, 'p') != NULL;
        in.n_isr = parse_ids(row->isr, isr);
        election_decide(&in, &res);
        if (res.kind != row->kind || res.leader != row->new_leader ||
            strcmp(ids_text(res.isr, res.n_isr), row->new_isr) != 0)
                fail_msg("%s: %s leader %d isr %s", row->name, election_kind_name(res.kind), res.leader,
                         ids_text(res.isr, res.n_isr));
        if (has_state)
                assert_int_equal(res.leader_epoch, res.kind == ELECTION_NONE ? 7 : 8);
}

static const struct row clean[] = {
        {"R24: nothing to do is nothing written", "1 2 3", "1 2 3", 1, ELECTION_NONE, 1, "1 2 3"},
        {"a dead replica outside the ISR is nothing", "1 2 3-", "1 2", 1, ELECTION_NONE, 1, "1 2"},
        {"a dead follower leaves the ISR", "1 2 3-", "1 2 3", 1, ELECTION_SHRINK, 1, "1 2"},
        {"a dead leader is followed by the first assigned in the ISR", "1- 2 3", "1 3 2", 1, ELECTION_OFFLINE,
         2, "3 2"},
        {"not by one outside the ISR", "1- 2 3", "1 3", 1, ELECTION_OFFLINE, 3, "3"},
        {"the rest of the dead leave with it", "1- 2- 3", "1 2 3", 1, ELECTION_OFFLINE, 3, "3"},
        {"R29: no leader is -1; R22: the ISR stays", "1- 2", "1", 1, ELECTION_LEADERLESS, -1, "1"},
        {"all dead at once: any of them may come back", "1- 2- 3-", "1 2", 1, ELECTION_LEADERLESS, -1, "1 2"},
        {"leaderless stays leaderless without a write", "1- 2", "1", -1, ELECTION_NONE, -1, "1"},
        {"KAFKA-5083: the last member is elected when it returns", "1 2", "1", -1, ELECTION_OFFLINE, 1, "1"},
        {"R54: the preferred replica takes over, and nobody leaves", "1p 2 3", "2 1 3", 2, ELECTION_PREFERRED,
         1, "2 1 3"},
        {"R24: not when it leads already", "1p 2", "1 2", 1, ELECTION_NONE, 1, "1 2"},
        {"R56: not when it is not in sync", "1p 2 3", "2 3", 2, ELECTION_NONE, 2, "2 3"},
        {"D7: not when it drains", "1pd 2 3", "2 1 3", 2, ELECTION_NONE, 2, "2 1 3"},
        {"not when it is dead", "1p- 2 3", "2 1 3", 2, ELECTION_SHRINK, 2, "2 3"},
        {"not when it has just restarted", "1pb 2 3", "2 1 3", 2, ELECTION_SHRINK, 2, "2 3"},
        {"not when it leaves", "1pl 2 3", "2 1 3", 2, ELECTION_SHRINK, 2, "2 3"},
        {"without a wish it stays a follower", "1 2 3", "2 1 3", 2, ELECTION_NONE, 2, "2 1 3"},
        {"a dead leader comes before the wish", "1p 2- 3", "3 2 1", 2, ELECTION_OFFLINE, 1, "3 1"},
        {"a drain comes before the wish", "1p 2d 3", "2 3", 2, ELECTION_DRAIN, 3, "3"},
        {"R60: a leader that leaves hands over into the target", "4 5 1l 2l", "1 2 4 5", 1, ELECTION_REASSIGN,
         4, "4 5"},
        {"to the one with fewest leaders", "4L3 5L1 1l", "1 4 5", 1, ELECTION_REASSIGN, 5, "4 5"},
        {"not to one that drains", "4d 5 1l", "1 4 5", 1, ELECTION_REASSIGN, 5, "5"},
        {"KAFKA-1097: followers that leave go under the leader of the target", "4 5 1l 2l", "4 1 2 5", 4,
         ELECTION_SHRINK, 4, "4 5"},
        {"nobody of the target can lead: all stay", "4d 1l 2l", "1 2", 1, ELECTION_NONE, 1, "1 2"},
        {"what leaves goes whatever its place in the ISR", "1l 4 5", "1 5 4", 5, ELECTION_SHRINK, 5, "5 4"},
        {"the target is elected before what leaves", "1l 4 5-", "1 5 4", 5, ELECTION_OFFLINE, 4, "4"},
        {"what leaves is better than nobody", "1l 4- 5-", "1 5 4", 5, ELECTION_OFFLINE, 1, "1"},
        {"R6: a drained leader hands over inside the ISR", "1d 2 3", "1 2", 1, ELECTION_DRAIN, 2, "2"},
        {"D6: to the one with fewest leaders", "1d 2L5 3L4", "1 2 3", 1, ELECTION_DRAIN, 3, "2 3"},
        {"D6: ties in assignment order, not ISR order", "1d 2L4 3L4", "3 2 1", 1, ELECTION_DRAIN, 2, "3 2"},
        {"R15: neither to a draining broker", "1d 2d 3", "1 2 3", 1, ELECTION_DRAIN, 3, "3"},
        {"R6: alone in the ISR it stays", "1d 2 3", "1", 1, ELECTION_NONE, 1, "1"},
        {"R21: the only other member drains: it stays, with its ISR", "1d 2d", "1 2", 1, ELECTION_NONE, 1,
         "1 2"},
        {"R21: or leaves it, once it has stopped", "1d 2ds", "1 2", 1, ELECTION_SHRINK, 1, "1"},
        {"R16: RF 1 stays", "1d", "1", 1, ELECTION_NONE, 1, "1"},
        {"a draining leader still drops its dead", "1d 2-", "1 2", 1, ELECTION_SHRINK, 1, "1"},
        {"R11: a draining follower leaves only when it has stopped", "1 2d 3", "1 2 3", 1, ELECTION_NONE, 1,
         "1 2 3"},
        {"R8: and then it does", "1 2ds 3", "1 2 3", 1, ELECTION_SHRINK, 1, "1 3"},
        {"R22: never the last", "1 2ds", "2", 2, ELECTION_NONE, 2, "2"},
        {"a dead leader is not followed by a draining broker", "1- 2d", "1 2", 1, ELECTION_LEADERLESS, -1,
         "1 2"},
        {"a bounced follower leaves the ISR", "1 2b", "1 2", 1, ELECTION_SHRINK, 1, "1"},
        {"a bounced leader loses it", "1b 2", "1 2", 1, ELECTION_OFFLINE, 2, "2"},
        {"a bounced leader is taken when nobody else is left", "1b 2-", "1 2", 1, ELECTION_OFFLINE, 1, "1"},
        {"the bounced last member is elected", "1b 2", "1", -1, ELECTION_OFFLINE, 1, "1"},
        {"one outside the assignment is never elected", "1- 2x", "1 2", 1, ELECTION_LEADERLESS, -1, "1 2"},
        {"but stays in the ISR", "1 3- 2x", "1 2 3", 1, ELECTION_SHRINK, 1, "1 2"},
        {"a drain does not move to a bounced one", "1d 2b 3", "1 2 3", 1, ELECTION_DRAIN, 3, "3"},
};

static void every_row_of_the_table_comes_out(void **state)
{
        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(clean); i++)
                check_row(&clean[i], false, false, true);
}

static void unclean_election_needs_the_switch_and_an_empty_house(void **state)
{
        const struct row rows[] = {
                {"outside the ISR", "1- 2", "1", 1, ELECTION_UNCLEAN, 2, "2"},
                {"inside is preferred", "1- 2 3", "1 3", 1, ELECTION_OFFLINE, 3, "3"},
                {"not to a draining one", "1- 2d", "1", 1, ELECTION_LEADERLESS, -1, "1"},
                {"a drain never does", "1d 2", "1", 1, ELECTION_NONE, 1, "1"},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i], true, false, true);
}

static void a_renewal_writes_the_same_state_in_a_new_epoch(void **state)
{
        const struct row rows[] = {
                {"renewed", "1 2", "1 2", 1, ELECTION_RENEW, 1, "1 2"},
                {"a shrink is a renewal as well", "1 2-", "1 2", 1, ELECTION_SHRINK, 1, "1"},
                {"without a leader there is nothing to renew", "1-", "1", -1, ELECTION_NONE, -1, "1"},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i], false, true, true);
}

static void a_new_partition_starts_with_its_live_replicas_in_sync(void **state)
{
        const struct row rows[] = {
                {"all", "2 1 3", "", -1, ELECTION_NEW, 2, "2 1 3"},
                {"the live ones", "2- 1 3", "", -1, ELECTION_NEW, 1, "1 3"},
                {"draining ones only when there is nobody else", "2d 1", "", -1, ELECTION_NEW, 1, "1"},
                {"then they do", "2d 1-", "", -1, ELECTION_NEW, 2, "2"},
                {"nobody: it waits", "2- 1-", "", -1, ELECTION_NONE, -1, ""},
        };

        (void)state;
        for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
                check_row(&rows[i], false, false, false);
}

/* --- what holds for every input --- */

static struct election_replica replica_of(int32_t id, unsigned bits)
{
        return (struct election_replica){.id = id,
                                         .assigned = true,
                                         .alive = bits & 1,
                                         .draining = bits & 2,
                                         .stopped = bits & 4,
                                         .bounced = bits & 8,
                                         .leaders = id};
}

static const struct election_replica *by_id(const struct election_input *in, int32_t id)
{
        for (int i = 0; i < in->n_replicas; i++)
                if (in->replicas[i].id == id)
                        return &in->replicas[i];
        return NULL;
}

static bool has(const int32_t *ids, int n, int32_t id)
{
        for (int i = 0; i < n; i++)
                if (ids[i] == id)
                        return true;
        return false;
}

static void check_invariants(const struct election_input *in, const struct election_result *res)
{
        const struct election_replica *leader = by_id(in, res->leader);

        assert_true(res->n_isr > 0); /* R22, I4 */
        for (int i = 0; i < res->n_isr; i++)
                assert_true(has(in->isr, in->n_isr, res->isr[i]));
        if (res->kind == ELECTION_NONE)
                return;
        if (res->leader == -1) {
                assert_int_equal(res->kind, ELECTION_LEADERLESS);
                assert_int_equal(res->n_isr, in->n_isr);
                return;
        }
        assert_true(has(res->isr, res->n_isr, res->leader)); /* I4 */
        assert_true(leader->alive);
        if (res->leader != in->leader)
                assert_false(leader->draining); /* R15 */
        for (int i = 0; i < res->n_isr; i++)
                assert_true(res->isr[i] == res->leader || by_id(in, res->isr[i])->alive);
}

static void no_combination_breaks_an_invariant(void **state)
{
        struct election_replica replicas[3];
        struct election_result res, again;
        int32_t isr[3];

        (void)state;
        for (unsigned bits = 0; bits < 1u << 12; bits++)
                for (unsigned members = 1; members < 8; members++)
                        for (int32_t leader = -1; leader <= 3; leader += leader < 0 ? 2 : 1) {
                                struct election_input in = {.has_state = true,
                                                            .leader = leader,
                                                            .isr = isr,
                                                            .replicas = replicas,
                                                            .n_replicas = 3};

                                for (int32_t i = 0; i < 3; i++) {
                                        replicas[i] = replica_of(i + 1, bits >> (4 * i) & 15);
                                        if (members & 1u << i)
                                                isr[in.n_isr++] = i + 1;
                                }
                                if (leader > 0 && !has(isr, in.n_isr, leader))
                                        continue;
                                election_decide(&in, &res);
                                check_invariants(&in, &res);
                                /* A second look at the result finds nothing more to do, bounces being
                                 * forgotten. */
                                for (int i = 0; i < 3; i++)
                                        replicas[i].bounced =
                                                replicas[i].bounced && res.kind == ELECTION_NONE;
                                in.leader = res.leader;
                                in.isr = res.isr;
                                in.n_isr = res.n_isr;
                                election_decide(&in, &again);
                                if (res.kind != ELECTION_LEADERLESS)
                                        assert_int_equal(again.kind, ELECTION_NONE);
                        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(every_row_of_the_table_comes_out),
                cmocka_unit_test(unclean_election_needs_the_switch_and_an_empty_house),
                cmocka_unit_test(a_renewal_writes_the_same_state_in_a_new_epoch),
                cmocka_unit_test(a_new_partition_starts_with_its_live_replicas_in_sync),
                cmocka_unit_test(no_combination_breaks_an_invariant),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
