/* One replicated partition under lost sessions, late requests, crashes and drains. What must hold:
 *
 *   I1  a record acknowledged with acks=all is in the log of every member of the ISR that ZooKeeper names, hence in that
 *       of whoever can be elected;
 *   I2  one leader epoch is served by one broker;
 *   I3  acks=1 is answered only while the leader's session lives at the server (not with -DKILL).
 *
 * Every action of a broker, the controller, ZooKeeper or the network is one atomic step that may be taken whenever its
 * guard holds: a request that is late or lost is a step that is not taken. Each -DNO_… takes one guard away, and the
 * checker must then find a violation; test_model.py says in which bound. The names of the guards are those of
 * docs/correctness.md. Bounds: RECORDS ever produced, EPOCHS of leadership, FAULTS of any kind.
 *
 *   NO_VERSION       a leader's ISR write checks no version
 *   NO_FENCE         a controller that was replaced writes from what it last knew
 *   NO_ISR_FIRST     a leader drops a follower from its own ISR before ZooKeeper has
 *   NO_FETCH_EPOCH   a leader takes fetches of another leader epoch as acknowledgements
 *   NO_STEP_DOWN     a broker with a new session goes on leading, with the version it finds
 *   NO_BROKER_EPOCH  a broker obeys what was sent to an earlier registration of it
 *   NO_EPOCH_START   a follower joins the ISR at the high watermark, not at the start of the leader's epoch
 *   NO_EPOCH_CUT     a follower cuts its log at its high watermark, not where its leader's epochs say
 *   NO_ISR_ELECTION  a drain hands over to a live replica outside the ISR when there is none inside
 *   NO_LEASE         a broker serves as if its session could not have ended
 *   KILL             not a guard: somebody may close a session that its broker is sure of
 */
#ifndef RECORDS
#define RECORDS 2
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef FAULTS
#define FAULTS 2
#endif

#define N      3
#define NOBODY N
#define SLOT(b, i)   ((b) * RECORDS + (i))
#define KNOWN(l, f)  peer[(l) * N + (f)]
#define IN(set, b)   (((set) >> (b)) & 1)
#define ONLY(b)      (1 << (b))
#define WITHOUT(set, b) ((set) & (7 - ONLY(b)))

mtype = { IDLE, FOLLOWS, LEADS };

/* ZooKeeper: the partition's state, whose version changes with each write; the sessions. */
byte z_leader = 0, z_epoch = 1, z_isr = 7;
bit session[N] = 1;
/* What the controller said with each epoch; a copy may reach a broker at any later time. */
byte said_leader[EPOCHS + 1], said_isr[EPOCHS + 1];

/* Brokers. */
bit up[N] = 1, draining[N], lease[N] = 1;
mtype role[N];
byte epoch[N];       /* newest leader epoch heard of */
byte since[N];       /* oldest that was sent to its present registration */
byte isr[N];         /* as leader: what its high watermark waits for */
bit version_known[N];/* as leader: nobody has written the state since it knows it */
byte start[N];       /* as leader: the end of its log when it began */
bit uncut[N];        /* as follower: its log may hold what its leader's has not */
byte log[N * RECORDS], leo[N], hw[N];
byte peer[N * N];    /* as leader: the ends of its followers' logs, as far as they have told */

byte produced = 0, acked = 0, faults = 0; /* acked: a set of records */
byte i, j, n; bit ok;                     /* scratch; zero between steps, so that states stay few */

#ifdef NO_FENCE
byte old_leader = NOBODY, old_epoch, old_isr, old_alive; /* what the controller that was replaced knows */
#endif

#if defined(NO_LEASE)
#define MAY_SERVE(b)  true
#define MAY_EXPIRE(b) true
#elif defined(KILL)
#define MAY_SERVE(b)  (lease[b])
#define MAY_EXPIRE(b) true
#else
#define MAY_SERVE(b)  (lease[b])
#define MAY_EXPIRE(b) (role[b] != LEADS || !lease[b])
#endif
#ifdef KILL
#define CHECK_SESSION(b) skip
#else
#define CHECK_SESSION(b) assert(session[b]) /* I3 */
#endif
#ifdef NO_VERSION
#define MAY_WRITE(b) (session[b])
#else
#define MAY_WRITE(b) (session[b] && version_known[b])
#endif
#ifdef NO_FETCH_EPOCH
#define MAY_FETCH(l, f) true
#else
#define MAY_FETCH(l, f) (epoch[f] == epoch[l])
#endif
#ifdef NO_EPOCH_START
#define MAY_JOIN(l, f) (KNOWN(l, f) >= hw[l])
#else
#define MAY_JOIN(l, f) (KNOWN(l, f) >= hw[l] && KNOWN(l, f) >= start[l])
#endif
#ifdef NO_BROKER_EPOCH
#define MAY_OBEY(b, e) (e >= epoch[b])
#else
#define MAY_OBEY(b, e) (e >= since[b] && e >= epoch[b])
#endif

inline holds_all_acked(b)
{
        n = 0; i = 0;
        do
        :: i < leo[b] -> n = n | ONLY(log[SLOT(b, i)]); i++
        :: else -> break
        od;
        ok = (acked & n) == acked;
        i = 0; n = 0
}

inline check_isr() /* I1 */
{
        j = 0;
        do
        :: j < N -> if :: IN(z_isr, j) -> holds_all_acked(j); assert(ok) :: else -> skip fi; j++
        :: else -> break
        od;
        j = 0; ok = 0
}

inline lead_nothing(b)
{
        role[b] = IDLE; isr[b] = 0; version_known[b] = 0; start[b] = 0; uncut[b] = 0;
        j = 0;
        do
        :: j < N -> KNOWN(b, j) = 0; j++
        :: else -> break
        od;
        j = 0
}

/* Everybody else's version of the state is old from here on. */
inline write_state(who, leader, e, set)
{
        z_leader = leader; z_epoch = e; z_isr = set;
        version_known[0] = version_known[0] && who == 0;
        version_known[1] = version_known[1] && who == 1;
        version_known[2] = version_known[2] && who == 2
}

inline cut(b, at)
{
        i = at;
        do
        :: i < leo[b] -> log[SLOT(b, i)] = 0; i++
        :: else -> break
        od;
        leo[b] = at; i = 0;
        if :: hw[b] > at -> hw[b] = at :: else -> skip fi
}

inline elect(leader, set)
{
        write_state(NOBODY, leader, z_epoch + 1, set);
        said_leader[z_epoch] = leader; said_isr[z_epoch] = set;
        printf("controller: epoch %d, leader B%d, ISR %d\n", z_epoch, leader, set);
        check_isr()
}

inline register(b)
{
        session[b] = 1; lease[b] = 1; printf("B%d registers\n", b);
        /* The controller takes a new registration for a bounce: a leader hears of no epoch but a new one. */
        if :: z_leader == b -> since[b] = z_epoch + 1 :: else -> since[b] = z_epoch fi
}

/* --- a broker alone --- */

#define PRODUCE(b) d_step { up[b] && role[b] == LEADS && MAY_SERVE(b) && produced < RECORDS && leo[b] < RECORDS -> \
        produced++; printf("B%d appends r%d, epoch %d\n", b, produced, epoch[b]); log[SLOT(b, leo[b])] = produced; leo[b]++; CHECK_SESSION(b) }

/* The high watermark moves: what waited is acknowledged. */
#define COMMIT(b, x, y) d_step { up[b] && role[b] == LEADS && MAY_SERVE(b) && leo[b] > hw[b] && \
        (!IN(isr[b], x) || KNOWN(b, x) > hw[b]) && (!IN(isr[b], y) || KNOWN(b, y) > hw[b]) -> \
        n = leo[b]; \
        if :: IN(isr[b], x) && KNOWN(b, x) < n -> n = KNOWN(b, x) :: else -> skip fi; \
        if :: IN(isr[b], y) && KNOWN(b, y) < n -> n = KNOWN(b, y) :: else -> skip fi; \
        i = hw[b]; hw[b] = n; printf("B%d commits to %d, epoch %d, ISR %d\n", b, n, epoch[b], isr[b]); \
        do :: i < hw[b] -> acked = acked | ONLY(log[SLOT(b, i)]); i++ :: else -> break od; \
        i = 0; n = 0; \
        assert(!(role[x] == LEADS && epoch[x] == epoch[b]) && !(role[y] == LEADS && epoch[y] == epoch[b])); /* I2 */ \
        check_isr() }

#define LEASE_ENDS(b)   d_step { up[b] && role[b] == LEADS && lease[b] -> lease[b] = 0; printf("B%d fences itself\n", b) }
#define LEASE_RENEWS(b) d_step { up[b] && !lease[b] && session[b] -> lease[b] = 1; printf("B%d has its lease again\n", b) }
#define EXPIRES(b)      d_step { up[b] && session[b] && faults < FAULTS && MAY_EXPIRE(b) -> faults++; session[b] = 0; printf("session of B%d ends\n", b) }
#ifdef NO_STEP_DOWN
#define RECONNECTS(b)   d_step { up[b] && !session[b] -> register(b); \
        if :: role[b] == LEADS -> version_known[b] = 1 :: else -> lead_nothing(b) fi }
#else
#define RECONNECTS(b)   d_step { up[b] && !session[b] -> lead_nothing(b); register(b) }
#endif
/* The log survives; the checkpoint of the high watermark is taken for lost. */
#define CRASHES(b)      d_step { up[b] && !draining[b] && faults < FAULTS -> faults++; \
        up[b] = 0; lead_nothing(b); lease[b] = 1; epoch[b] = 0; hw[b] = 0; printf("B%d crashes\n", b) }
#define DIES(b)         d_step { !up[b] && session[b] -> session[b] = 0 }
#define STARTS(b)       d_step { !up[b] && !session[b] -> up[b] = 1; draining[b] = 0; register(b) }
#define IS_DRAINED(b)   d_step { up[b] && !draining[b] && session[b] && faults < FAULTS -> faults++; draining[b] = 1; printf("B%d is to drain\n", b) }
#define LEAVES(b)       d_step { up[b] && draining[b] && z_leader != b && !IN(z_isr, b) -> \
        up[b] = 0; session[b] = 0; lead_nothing(b); lease[b] = 1; epoch[b] = 0; hw[b] = 0; printf("B%d leaves\n", b) }

/* LeaderAndIsr of epoch e, sent when it was elected, arrives. Its own epoch again is news only to who leads and
 * follows nothing. */
#define HEARS(b, e) d_step { up[b] && session[b] && e <= z_epoch && MAY_OBEY(b, e) && \
        (e > epoch[b] || role[b] == IDLE) -> \
        lead_nothing(b); epoch[b] = e; printf("B%d hears of epoch %d, leader B%d\n", b, e, said_leader[e]); \
        if :: said_leader[e] == b -> role[b] = LEADS; isr[b] = said_isr[e]; start[b] = leo[b]; \
              version_known[b] = (e == z_epoch && said_isr[e] == z_isr) \
           :: else -> role[b] = FOLLOWS; BEGIN_FOLLOWING(b) fi }
#ifdef NO_EPOCH_CUT
#define BEGIN_FOLLOWING(b) cut(b, hw[b])
#else
#define BEGIN_FOLLOWING(b) uncut[b] = 1
#endif

/* --- a leader and one other --- */

/* The first fetch of an epoch compares histories; each later one says how far the follower's log goes. */
#define FETCHES(l, f) d_step { up[l] && up[f] && role[l] == LEADS && role[f] == FOLLOWS && said_leader[epoch[f]] == l && \
        MAY_FETCH(l, f) -> printf("B%d (epoch %d) fetches from B%d\n", f, epoch[f], l); \
        if :: uncut[f] -> \
                n = 0; \
                do :: n < leo[f] && n < leo[l] && log[SLOT(f, n)] == log[SLOT(l, n)] -> n++ :: else -> break od; \
                cut(f, n); uncut[f] = 0; n = 0 \
           :: else -> \
                KNOWN(l, f) = leo[f]; \
                if :: leo[f] < leo[l] -> log[SLOT(f, leo[f])] = log[SLOT(l, leo[f])]; leo[f]++ :: else -> skip fi; \
                if :: hw[l] < leo[f] -> hw[f] = hw[l] :: else -> hw[f] = leo[f] fi \
        fi }
#define SHRINKS(l, f) d_step { up[l] && role[l] == LEADS && IN(isr[l], f) && MAY_WRITE(l) -> \
        printf("B%d drops B%d from the ISR\n", l, f); isr[l] = WITHOUT(isr[l], f); write_state(l, l, epoch[l], isr[l]) }
#define EXPANDS(l, f) d_step { up[l] && role[l] == LEADS && !IN(isr[l], f) && MAY_WRITE(l) && session[f] && \
        !draining[f] && up[f] && role[f] == FOLLOWS && epoch[f] == epoch[l] && MAY_JOIN(l, f) -> \
        printf("B%d takes B%d into the ISR\n", l, f); isr[l] = isr[l] | ONLY(f); write_state(l, l, epoch[l], isr[l]) }

/* --- the controller --- */

#define GONE(b)  (!session[b] || draining[b] || since[b] > z_epoch)
#define ALIVE(b) (session[b] && !draining[b])
inline live_isr()
{
        n = z_isr;
        if :: !ALIVE(0) -> n = WITHOUT(n, 0) :: else -> skip fi;
        if :: !ALIVE(1) -> n = WITHOUT(n, 1) :: else -> skip fi;
        if :: !ALIVE(2) -> n = WITHOUT(n, 2) :: else -> skip fi
}
#define ELECTS(f) d_step { z_epoch < EPOCHS && GONE(z_leader) && ALIVE(f) && IN(z_isr, f) -> \
        live_isr(); elect(f, n); n = 0 }
#define DROPS(f) d_step { z_epoch < EPOCHS && !GONE(z_leader) && z_leader != f && IN(z_isr, f) && !ALIVE(f) -> \
        elect(z_leader, WITHOUT(z_isr, f)) }
#ifdef NO_ISR_FIRST
#define DROPS_ALONE(l, f) :: d_step { up[l] && role[l] == LEADS && IN(isr[l], f) -> isr[l] = WITHOUT(isr[l], f) }
#else
#define DROPS_ALONE(l, f)
#endif
#ifdef NO_ISR_ELECTION
#define ELECTS_ANYBODY(f) :: d_step { z_epoch < EPOCHS && draining[z_leader] && z_isr == ONLY(z_leader) && ALIVE(f) -> \
        elect(f, ONLY(f)) }
#else
#define ELECTS_ANYBODY(f)
#endif
#ifdef NO_FENCE
/* Another controller is elected while this one holds that the leader is gone. */
#define REPLACED :: d_step { faults < FAULTS && old_leader == NOBODY && GONE(z_leader) -> faults++; \
        old_leader = z_leader; old_epoch = z_epoch; live_isr(); old_isr = n; n = 0 }
#define ELECTS_LATE(f) :: d_step { old_leader != NOBODY && old_epoch < EPOCHS && f != old_leader && IN(old_isr, f) -> \
        write_state(NOBODY, f, old_epoch + 1, old_isr); said_leader[z_epoch] = f; said_isr[z_epoch] = old_isr; \
        old_leader = NOBODY; check_isr() }
#else
#define REPLACED
#define ELECTS_LATE(f)
#endif

#define BROKER(b, x, y) \
        :: PRODUCE(b) :: COMMIT(b, x, y) :: LEASE_ENDS(b) :: LEASE_RENEWS(b) :: EXPIRES(b) :: RECONNECTS(b) \
        :: CRASHES(b) :: DIES(b) :: STARTS(b) :: IS_DRAINED(b) :: LEAVES(b) \
        :: HEARS(b, 1) :: HEARS(b, 2) HEARS_3(b) HEARS_4(b) \
        :: ELECTS(b) :: DROPS(b) ELECTS_ANYBODY(b) ELECTS_LATE(b) \
        PAIR(b, x) PAIR(b, y)
#define PAIR(l, f) :: FETCHES(l, f) :: SHRINKS(l, f) :: EXPANDS(l, f) DROPS_ALONE(l, f)
#if EPOCHS >= 3
#define HEARS_3(b) :: HEARS(b, 3)
#else
#define HEARS_3(b)
#endif
#if EPOCHS >= 4
#define HEARS_4(b) :: HEARS(b, 4)
#else
#define HEARS_4(b)
#endif

init
{
        d_step {
                role[0] = LEADS; role[1] = FOLLOWS; role[2] = FOLLOWS;
                epoch[0] = 1; epoch[1] = 1; epoch[2] = 1;
                since[0] = 1; since[1] = 1; since[2] = 1;
                isr[0] = 7; version_known[0] = 1;
                said_leader[1] = 0; said_isr[1] = 7
        }
end:    do
        BROKER(0, 1, 2)
        BROKER(1, 0, 2)
        BROKER(2, 0, 1)
        REPLACED
        od
}
