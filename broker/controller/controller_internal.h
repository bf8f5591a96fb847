/* Shared by the files of the controller; nobody outside controller/ includes it. Everything here runs on the
 * controller's thread unless it says otherwise.
 *
 *   elector  who is controller: /controller, /controller_epoch        loader   reads topics and states
 *   brokers  /brokers/ids: who lives                                  writer   decides and writes, in multis
 *   sender   one a live broker: LeaderAndIsr, UpdateMetadata, StopReplica
 *   drain    what drains still need        topics, deletion, alter    requests of the outside
 *
 * Partitions are handled level-triggered: whatever happened, a partition that may need something is marked
 * (writer_mark), and the writer looks at the state of the moment when it builds the next multi (R17). Nothing
 * that was decided earlier is carried out later. */
#pragma once

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/loop.h"
#include "base/metrics.h"
#include "controller/context.h"
#include "controller/controller.h"
#include "controller/drain_core.h"
#include "controller/slot_core.h"

/*
 *                     registered              gone              won             loaded
 *   UNREGISTERED ----------------> WATCHING --------> ELECTING -----> LOADING ---------> ACTIVE
 *         ^                           ^  |                |               |                 |
 *         |                           '--+---- lost ------'---- fenced, /controller gone ---'
 *         '---- session expired: from everywhere              any ---> STOPPED
 */
enum ctl_state {
        CTL_UNREGISTERED,
        CTL_WATCHING,
        CTL_ELECTING,
        CTL_LOADING,
        CTL_ACTIVE,
        CTL_STOPPED,
        N_CTL_STATES
};

/* One-shot ZooKeeper watches, each armed with the read that consumes its change. */
enum ctl_watch_kind {
        WATCH_CONTROLLER,
        WATCH_BROKERS,
        WATCH_TOPICS,
        WATCH_DELETIONS,
        WATCH_ELECTIONS,
        WATCH_REASSIGNMENTS,
        WATCH_LOG_DIRS,
        N_CTL_WATCHES
};
#define WRITER_MAX_PARTITIONS   250 /* a multi */
#define WRITER_PACED_PARTITIONS 100 /* a multi of writes that are paced: smaller steps, shorter gaps */
#define WRITER_MAX_BYTES        (256 * 1024) /* a multi */
#define WRITER_MAX_MULTIS       8            /* in flight */
#define WRITER_MAX_READS        500
#define LOADER_MAX_READS        1000
#define RETRY_MS                100

struct writer {
        struct index_queue urgent, normal; /* elections after failures, ISR changes; everything else */
        struct index_queue doubtful; /* to be read back: a conflict, or a write whose outcome is unknown */
        struct index_queue failed;   /* marked again by the retry timer */
        int multis, reads;
        size_t writing; /* partitions in the multis in flight */
        struct loop_timer *pace;
        bool pace_overdue;
        struct loop_task pump_task;
        bool pump_posted;
        struct loop_timer *retry;
};

/* A znode by which a tool asks for something: read when it appears, deleted when it has been done. */
struct tool_znode {
        bool reading, again, writing;
        bool pending; /* @list is what it asks for */
        int32_t version;
        struct znode_partition_list list;
};

struct dir_events { /* reports of failed log directories */
        bool reading, again;
        size_t pending; /* reads under way */
};

struct brokers {
        bool reading, again;
        struct list waiting,
                waiting_next; /* broker_waiter: to be run when a read begun after them has ended */
        struct loop_timer *retry;
};

/* Changes of the drain slot are made one after another: the next one starts from what the last has written.
 */
struct slot_op {
        struct list node;
        /* Change @next, a copy of what holds now. False: nothing is to be written. */
        bool (*apply)(struct controller *c, struct slot_op *op, struct znode_slot *next);
        /* 0: it holds now. -EIO: ZooKeeper refuses. -ECANCELED: the term is over. Called exactly once. */
        void (*done)(struct controller *c, struct slot_op *op, int r);
};

struct slot {
        struct znode_slot *cur, *next; /* as in ZooKeeper; what is being written */
        struct list ops;               /* slot_op; the first one is being written while `writing` */
        bool writing, settling;
        bool exists;
        int32_t version;
        struct list parked; /* drain_call: ControlledShutdown requests that wait for the slot */
        struct slot_op settle;
};

struct controller {
        struct controller_options o;
        struct controller_ops ops;
        char *listener;
        struct zk *zk;
        struct loop *loop;
        bool started;
        pthread_mutex_t post_lock; /* what is posted before `stopping` is served or refused by the loop */
        bool stopping;             /* under post_lock */

        /* read by other threads */
        _Atomic int32_t active_id;
        _Atomic int32_t public_epoch;
        _Atomic bool active;
        _Atomic int64_t offline_partitions, queue_length, drain_remaining, n_drains;
        _Atomic int64_t slot_holders, slot_waiting;
        pthread_mutex_t location_lock;
        bool located;
        struct controller_location location; /* under location_lock */

        /* controller thread */
        enum ctl_state state;
        uint64_t term; /* bumped whenever what was begun before must not go on */
        int32_t epoch, epoch_version;
        int64_t elected_zk_ms; /* by ZooKeeper's clock */
        int64_t broker_epoch;
        bool watch_armed[N_CTL_WATCHES];
        struct list watched; /* armed watches of any term */
        struct loop_task resign_task;
        bool resign_posted;
        const char *resign_why;
        struct loop_timer *elect_retry;
        bool checking, check_again;
        bool probing;
        bool topics_reading, topics_again, deletions_reading, deletions_again;
        int loads;               /* loader jobs that run */
        struct loop_timer *tick; /* drains, waiting requests, lost leases */
        bool lease_lost;

        struct ctx ctx;
        struct writer writer;
        struct brokers brokers;
        struct slot slot;
        struct list alters;    /* alter_request */
        struct list creations; /* create_request */
        struct list deletions; /* delete_request */
        int n_waiting;         /* requests of all kinds, and how many partitions those that create want */
        int64_t partitions_waiting;
        struct map *claimed;        /* topic_name_fold() of a name that is being written -> its create_item */
        struct list elections;      /* elect_request */
        struct list growths;        /* grow_request */
        struct list moves;          /* reassign_request */
        struct list configs;        /* config_request */
        int64_t config_purge_at_ms; /* old notifications of configuration changes are not looked for before */
        struct list moving;         /* ctx_partition whose reassignment has something to be done */
        uint64_t moves_pass;
        struct tool_znode elections_znode, moves_znode;
        struct dir_events dir_events;
        struct loop_timer *rebalance;
        struct map *topic_watches; /* topic name -> watched; of any term */
        size_t topic_watch_bytes;
        size_t topic_poll; /* the partition index at which the search for unwatched topics goes on */
        struct loop_task progress_task;
        bool progress_posted;
        int64_t drain_step_us; /* what the last step took, and when it ended */
        int64_t drain_step_at_us;
        struct loop_timer *drain_timer;
        struct drain_history *history; /* drain_history.c */
        struct loop_timer *return_timer;
        struct { /* controller_stop() waits for the deletion of /controller */
                pthread_mutex_t lock;
                pthread_cond_t done_cond;
                bool done; /* under lock */
        } farewell;
};

/* --- controller.c --- */
void ctl_set_state(struct controller *c, enum ctl_state to);
static inline bool ctl_is_active(const struct controller *c)
{
        return c->state == CTL_ACTIVE;
}
/* Stop being controller (or trying to): everything that waits is answered with NOT_CONTROLLER, all memory of
 * the cluster is dropped. The second form may be used inside callbacks of senders and the like. */
void ctl_resign(struct controller *c, const char *why);
void ctl_resign_to(struct controller *c, enum ctl_state to, const char *why);
void ctl_resign_soon(struct controller *c, const char *why);
/* May we write and send now? A lapsed lease says that somebody else may have been elected (F2). */
bool ctl_lease(struct controller *c);
/* Something moved: waiting requests and drains are looked at soon, once for any number of calls. */
void ctl_progress(struct controller *c);
void ctl_log_change(struct controller *c, const char *fmt, ...) printf_like(2, 3);

/* A ZooKeeper operation of this term. @fn gets its result on the controller's thread; when the term has ended
 * meanwhile, @drop (NULL: free) gets @arg instead. Exactly one of the two is called, unless a call fails at
 * once with -errno, which leaves @arg with the caller. */
typedef void (*ctl_zk_fn)(struct controller *c, const struct zk_result *res, void *arg);
typedef void (*ctl_drop_fn)(void *arg);
int ctl_zk_get(struct controller *c, const char *path, ctl_zk_fn fn, void *arg, ctl_drop_fn drop) must_check;
int ctl_zk_exists(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn, void *arg)
        must_check;
int ctl_zk_exists_arg(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn,
                      void *arg, ctl_drop_fn drop) must_check;
int ctl_zk_children(struct controller *c, const char *path, enum ctl_watch_kind watch, ctl_zk_fn fn,
                    void *arg) must_check; /* watch N_CTL_WATCHES: none */
/* As ctl_zk_get() of a topic's znode; topic_changed() is called once when it changes, unless so many topics
 * are watched that their paths would not fit into the request with which a client arms its watches anew. */
int ctl_zk_get_topic(struct controller *c, const char *topic, ctl_zk_fn fn, void *arg, ctl_drop_fn drop)
        must_check;
bool ctl_zk_topic_watched(const struct controller *c, const char *topic);
int ctl_zk_sync(struct controller *c, ctl_zk_fn fn, void *arg) must_check;
int ctl_zk_create(struct controller *c, const char *path, const char *data, ctl_zk_fn fn, void *arg)
        must_check;
int ctl_zk_delete(struct controller *c, const char *path, int32_t version, ctl_zk_fn fn, void *arg)
        must_check;
int ctl_zk_multi(struct controller *c, const struct zk_op *ops, size_t n, ctl_zk_fn fn, void *arg,
                 ctl_drop_fn drop) must_check;
void ctl_zk_ignore(struct controller *c, const struct zk_result *res, void *arg);
/* The first operation of every multi. */
static inline struct zk_op ctl_epoch_check(const struct controller *c)
{
        return (struct zk_op){
                .type = ZK_OP_CHECK, .path = ZNODE_CONTROLLER_EPOCH, .version = c->epoch_version};
}
static inline bool ctl_outcome_unknown(int r)
{
        return r == -ECONNRESET || r == -ETIMEDOUT;
}
void ctl_zk_forget_watches(struct controller *c); /* after zk_free() */
/* The index of the operation that failed, or -1; 0 is the check: somebody else is controller. */
int ctl_multi_failed_at(const struct zk_result *res);

/* A request of another thread, embedded in its own struct. @run is called exactly once: on the controller's
 * thread, or at once with @active false when the controller stops. */
struct ctl_call {
        struct loop_task task;
        struct controller *c;
        void (*run)(struct controller *c, struct ctl_call *call, bool active);
};
void ctl_post(struct controller *c, struct ctl_call *call,
              void (*run)(struct controller *c, struct ctl_call *call, bool active));

/* --- elector.c --- */
void elector_check(struct controller *c); /* look at /controller; elect if there is none */
void elector_probe(struct controller *c); /* are we still controller? resigns if not */

/* The listeners a registration names, for other brokers and for admin requests. */
void elector_locate(const struct controller *c, const struct znode_broker *b,
                    struct controller_location *ret);
void elector_forget(struct controller *c); /* nobody is known to be controller */

/* --- brokers.c --- */
void brokers_refresh(struct controller *c); /* read /brokers/ids and act on the difference */
/* As above, and @fn when a read that began after this call has ended, or on resignation; unless @patient also
 * when ZooKeeper is found silent. -ENOMEM. */
int brokers_refresh_then(struct controller *c, ctl_drop_fn fn, void *arg, bool patient) must_check;
void brokers_release(struct controller *c); /* ZooKeeper is silent: run what is not patient */
void brokers_forget(struct controller *c);  /* resignation; runs what waits */
void brokers_start_sender(struct controller *c, struct ctx_broker *b);

/* --- loader.c --- */
/* Read topics @names (taken over, freed) with configuration and partition states into the context; then
 * @done. */
typedef void (*loader_done_fn)(struct controller *c);
int loader_start(struct controller *c, char **names, size_t n, loader_done_fn done) must_check;
/* watchers.c */
void loader_load_all(struct controller *c); /* after an election; ends with CTL_ACTIVE */
void loader_on_topics_changed(struct controller *c);
void loader_on_deletions_changed(struct controller *c);

/* --- state.c: the one setter of each --- */
void partition_set_state(struct controller *c, struct ctx_partition *p, enum partition_state to);
void replica_set_state(struct controller *c, struct ctx_partition *p, struct ctx_slot *s,
                       enum replica_state to);
const char *partition_state_name(enum partition_state s);
const char *replica_state_name(enum replica_state s);
bool partition_state_may(enum partition_state from, enum partition_state to);
bool replica_state_may(enum replica_state from, enum replica_state to);

/* --- writer.c --- */
struct writer_plan { /* what a partition is to become; in flight until it has been written or given up */
        uint32_t index;
        struct election_result to;
        struct alter_item *alter; /* an ISR that its leader proposed; to.kind is NONE */
        int32_t *isr;             /* becomes the partition's on success */
        int32_t old_leader;
        uint32_t bounces;     /* of the partition when this was decided */
        bool prefer, unclean; /* of the partition when this was decided: settled by it */
        bool makes_dir;
        int op; /* index of its last operation in the multi */
};

int writer_reserve(struct writer *w, size_t n) must_check;
int writer_init(struct controller *c) must_check;
void writer_done(struct writer *w); /* empties it; the timer stays */
enum writer_urgency { WRITER_URGENT, WRITER_NORMAL };
void writer_mark(struct controller *c, struct ctx_partition *p, enum writer_urgency u);
void writer_pump(struct controller *c);
void writer_forget_doubts(struct controller *c); /* resignation */
/* between writer.c and writer_doubt.c */
void writer_push(struct index_queue *q, struct ctx_partition *p);
void writer_retry_later(struct controller *c);

/* --- writer_pace.c: how far writes may run ahead of what brokers have been told --- */
int writer_pace_init(struct controller *c) must_check;
bool writer_pace_open(struct controller *c); /* may another multi of WRITER_NORMAL go? Asks again by itself */
void writer_pace_wrote(struct controller *c, size_t n);
void writer_plan_drop(struct controller *c, struct writer_plan *pl);
void writer_try_later(struct controller *c, struct ctx_partition *p);
void writer_apply(struct controller *c, struct writer_plan *pl, int32_t version);
void writer_release(struct controller *c, struct ctx_partition *p); /* it may be gone afterwards */
void writer_pump_reads(struct controller *c);
bool writer_busy_with(const struct controller *c, const struct ctx_partition *p);

/* --- alter.c --- */
struct alter_item { /* a proposed ISR that waits in its partition */
        struct alter_item *next;
        struct alter_request *req;
        struct alter_partition_response_partition *out;
        int32_t leader_epoch, partition_epoch;
        int32_t *isr;
        int64_t *epochs; /* NULL before version 3 */
        int32_t n_isr;
        int8_t recovery;
};
/* What to do with the oldest proposal of @p: NONE to be written (*ret), or it has been answered (false). */
bool alter_next(struct controller *c, struct ctx_partition *p, struct alter_item **ret);
/* Put it back in front: what it was to be written with failed, and it is judged anew. */
void alter_requeue(struct ctx_partition *p, struct alter_item *item);
void alter_finish(struct controller *c, struct ctx_partition *p, struct alter_item *item, int16_t error);
/* Answer all that waits in @p. */
void alter_abandon(struct controller *c, struct ctx_partition *p, int16_t error);
void alter_forget(struct controller *c);

/* --- sender.c --- */
int sender_new(struct controller *c, struct ctx_broker *b, struct sender **ret) must_check;
/* @forget: the context is about to be dropped; references to partitions are not returned one by one. */
void sender_free(struct controller *c, struct sender *s, bool forget);
int sender_reserve(struct sender *s, size_t n) must_check;
void sender_push_lai(struct sender *s, struct ctx_partition *p);
void sender_push_um(struct sender *s, struct ctx_partition *p);
void sender_push_stop(struct sender *s, struct ctx_partition *p);
void sender_cancel_stop(struct controller *c, struct sender *s, struct ctx_partition *p);
void sender_brokers_changed(struct sender *s);
void sender_kick(struct sender *s);         /* send if something waits and nothing is under way */
void sender_kick_all(struct controller *c); /* new leaders' brokers first, draining ones last (D6) */
bool sender_told(const struct sender *s);   /* no LeaderAndIsr waits or is under way */
bool sender_idle(const struct sender *s);
size_t sender_untold(const struct sender *s); /* partitions of which it still has to hear */
/* LeaderAndIsr to the replicas of @p, UpdateMetadata to all. @old_leader: who led it before, or -1. */
void sender_announce(struct controller *c, struct ctx_partition *p, int32_t old_leader);
void sender_announce_metadata(struct controller *c, struct ctx_partition *p);

/* --- requests.c: what is sent, from the state of the moment; in @a, valid as long as it --- */
struct leader_and_isr_request;
struct update_metadata_request;
struct stop_replica_request;
int request_lai(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
                size_t n, bool full, struct arena *a, struct leader_and_isr_request *ret) must_check;
int request_um(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
               size_t n, struct arena *a, struct update_metadata_request *ret) must_check;
int request_stop(struct controller *c, const struct ctx_broker *to, struct ctx_partition *const *items,
                 size_t n, struct arena *a, struct stop_replica_request *ret) must_check;

/* --- drain.c --- */
void drain_schedule(struct controller *c); /* look at all drains soon */
enum drain_state drain_state_shown(const struct controller *c, const struct ctx_broker *b);
void drain_run(struct controller *c);                                          /* look at all drains now */
void drain_clear(struct controller *c, struct ctx_broker *b, const char *why); /* broker gone or restarted */
void drain_forget(struct controller *c);
void drain_on_stopped(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error);
void drain_on_moved(struct controller *c, int32_t old_leader);
void drain_on_written(struct controller *c, struct ctx_partition *p);
void drain_feed(struct controller *c); /* cheap: go on with followers as far as there is room */
int drain_init(struct controller *c) must_check;

/* Restore the drains of the slot's holders, before anybody is elected (R28). */
void drain_resume_all(struct controller *c);
/* Drains follow the slot: one that does not hold it any more ends. */
void drain_follow_slot(struct controller *c);
void drain_serve_parked(struct controller *c); /* the slot has changed */
void drain_refuse_parked(struct controller *c);

/* --- slot.c --- */
int slot_init(struct controller *c) must_check;
void slot_load(struct controller *c, ctl_drop_fn loaded, void *arg); /* read it; then @loaded(@arg) */
void slot_submit(struct controller *c, struct slot_op *op); /* it will be made, and @op->done called */
void slot_tick(struct controller *c);                       /* leases, and what brokers did */
void slot_settle_soon(struct controller *c);
void slot_forget(struct controller *c);
void slot_free(struct controller *c);
struct slot_now slot_clock(const struct controller *c);
/* All live brokers; caller frees. NULL: no memory. */
struct slot_peer *slot_peers(struct controller *c, bool count_missing, size_t *ret_n) must_check;

/* --- topics.c, deletion.c --- */
void topics_progress(struct controller *c);
void topics_forget(struct controller *c);
void deletion_begin(struct controller *c, struct ctx_topic *t);
void deletion_resume(struct controller *c, struct ctx_broker *b); /* its broker is back */
void deletion_progress(struct controller *c);
void deletion_forget(struct controller *c);
void deletion_forget_topic(struct controller *c,
                           struct ctx_topic *t); /* out of memory, answered where waited for */
void deletion_on_stopped(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error);

/* --- topic_znode.c: what /brokers/topics/T says after its creation --- */
struct topic_change { /* one partition's assignment as it is to be */
        int32_t partition;
        size_t n;
        struct ctx_assigned to[ZNODE_MAX_REPLICAS / 2];
};
struct topic_rewrite {
        char *topic;
        size_t n;
        struct topic_change *changes; /* ascending by partition */
        /* 0: written, and the context follows it. -EAGAIN: somebody else wrote, or the outcome is not known;
         * the context follows what was found when `rewriting` is over. -ENOENT; -E2BIG: too large for a
         * znode; -EIO.
         * @t is NULL when the topic is gone. */
        void (*done)(struct controller *c, struct ctx_topic *t, const struct topic_rewrite *rw, int r);
};
/* Takes over @rw and its memory (all malloced); @done is called exactly once, unless the term ends. The topic
 * is not being rewritten. */
void topic_rewrite(struct controller *c, struct ctx_topic *t, struct topic_rewrite *rw);
struct topic_rewrite *topic_rewrite_new(const struct ctx_topic *t, size_t max)
        must_check; /* NULL: no memory */
void topic_reread(struct controller *c, struct ctx_topic *t);
void topic_changed(struct controller *c, const char *topic); /* its watch has fired */
void topic_poll(struct controller *c);                       /* look at some that are not watched */

/* --- tool_znode.c --- */
void tool_znode_forget(struct tool_znode *z);
/* Look at the znode at @path; @take gets what it asks for, in z->list. Garbage is said and deleted
 * (KAFKA-990). */
void tool_znode_read(struct controller *c, enum ctl_watch_kind kind);
/* z->list is what is left to be done: write it, or delete the node when there is nothing. */
void tool_znode_write(struct controller *c, enum ctl_watch_kind kind);

/* --- log_dirs.c --- */
void log_dirs_on_changed(struct controller *c);
void log_dirs_forget(struct controller *c); /* resignation */

/* --- elections.c, rebalance.c --- */
void elections_on_znode(struct controller *c);
void elections_take_znode(struct controller *c);
void elections_progress(struct controller *c);
void elections_forget(struct controller *c);
int rebalance_init(struct controller *c) must_check;
void rebalance_start(struct controller *c);

/* --- partitions.c --- */
void growths_progress(struct controller *c);
void growths_forget(struct controller *c);

/* --- reassign.c, reassign_api.c --- */
void reassign_on_znode(struct controller *c);
void reassign_take_znode(struct controller *c);
void reassign_load(struct controller *c); /* the topics have been read */
void reassign_progress(struct controller *c);
void reassign_answer(struct controller *c); /* requests that wait */
void reassign_forget(struct controller *c);
void reassign_on_deleted(struct controller *c, struct ctx_partition *p, struct ctx_slot *s, int16_t error);
bool reassign_is_leaving(const struct ctx_partition *p, const struct ctx_slot *s);
/* Make @ids the target of @p (empty: what it was before). A Kafka error and its sentence. */
int16_t reassign_want(struct controller *c, struct ctx_partition *p, const int32_t *ids, int32_t n,
                      char error[256]);

/* --- configs.c --- */
void configs_forget(struct controller *c);
/* The setting @name of @scope as it is where nothing is set; false: there is none. */
bool config_setting_find(const struct controller *c, enum config_scope scope, const char *name,
                         struct config_setting *ret);

void controller_metrics_register(struct controller *c);
void controller_metrics_unregister(struct controller *c);
/* What of a broker's request is over. */
enum ctl_stale_epoch { STALE_BROKER_EPOCH, STALE_LEADER_EPOCH, STALE_PARTITION_EPOCH, N_STALE_EPOCHS };
extern struct metric controller_metric_stale[N_STALE_EPOCHS];
extern struct metric controller_metric_elections[N_ELECTION_KINDS], controller_metric_writes,
        controller_metric_write_conflicts, controller_metric_fenced, controller_metric_sent,
        controller_metric_send_retries, controller_metric_drain_moves, controller_metric_slot_refusals,
        controller_metric_slot_expired;
