/* What server.c, startup.c and shutdown.c share. */
#pragma once

#include "admin/admin.h"
#include "api/api.h"
#include "blocking.h"
#include "broker_configs.h"
#include "controller/controller.h"
#include "controller_link.h"
#include "dir_report.h"
#include "handover_record.h"
#include "log/log_manager.h"
#include "net/net.h"
#include "replica/replica_manager.h"
#include "server.h"
#include "session_core.h"
#include "state_change_log.h"
#include "topic_configs.h"
#include "zk/producer_ids.h"
#include "zk/registration.h"
#include "zk/zk.h"

/*  STARTING --registered--> RUNNING --stop--> HANDING_OVER --> STOPPING --> STOPPED
 *      |                                                           ^
 *      '------------------------ stop, or a fatal error -----------'                */
enum server_state {
        SERVER_STARTING,
        SERVER_RUNNING,
        SERVER_HANDING_OVER,
        SERVER_STOPPING,
        SERVER_STOPPED,
        N_SERVER_STATES
};

struct server {
        const struct broker_config *config;
        struct loop *control_loop, *net_loop;
        bool net_running;
        enum server_state state; /* written on the control loop, read by the HTTP thread */
        int result;
        struct listener listen_at, advertised;
        char admin_endpoint[300];
        char cluster_id[128];
        const char *_Atomic
                known_cluster_id; /* "" before the first registration; then cluster_id, never changed */

        bool loading; /* a thread of its own opens the logs */
        struct blocking *work;
        char *work_error;

        struct log_manager *logs;
        struct metadata_cache *metadata;
        struct replica_manager *replicas;
        struct zk *zk;
        struct topic_configs *topic_configs;
        struct broker_configs *broker_configs;
        struct broker_dynamic dynamic; /* in force */
        struct producer_ids *producer_ids;
        struct dir_report *dir_report;
        struct controller *controller;
        struct controller_link *link;
        struct state_change_log *state_changes;
        struct api *api;
        struct net_server *net;
        struct admin *admin;
        char *admin_token;

        _Atomic int64_t broker_epoch; /* -1: not registered in the current session */
        bool registering;
        struct loop_timer *connect_timer; /* start-up gives up on ZooKeeper */
        struct loop_timer *retry_timer;   /* registration, or opening a session, is tried again */
        struct loop_timer *reopen_timer;  /* a new session is opened */
        struct loop_timer *attempt_timer; /* it has failed when it is not registered under by then */
        bool attempt_connected;
        struct session_recovery recovery;
        int64_t registered_at_ms; /* loop_now_ms(); while broker_epoch >= 0 */
        struct loop_timer *watchdog_timer;

        /* the hand-over (shutdown.c) */
        int32_t attempts_left;
        bool attempt_in_flight;
        int64_t lease_seen_ms; /* there was a lease then */
        int64_t retry_at_ms;
        int64_t slot_until_ms;   /* the drain slot is waited for until then */
        char slot_holder[512];   /* who holds it, as last heard; "": nobody is waited for */
        int32_t left_at_failure; /* leaders left when the last attempt failed */
        uint64_t attempt;        /* generation: an answer to an older attempt does not count */
        struct loop_timer *handover_timer;
        struct handover_record handover;

        /* the end (takedown.c) */
        size_t step;
        struct loop_task step_task;
        bool deregistering;
        struct loop_timer *deregister_timer;
};

void server_set_state(struct server *s, enum server_state to);
/* Log, remember the error, and take everything down without a hand-over. */
void server_fail(struct server *s, const char *what, int r);
void server_status(struct server *s, const char *status); /* STATUS= of the unit */

/* server.c: what the modules may ask of us */
void server_fill_replica_ops(struct server *s, struct replica_ops *ret);
void server_fill_controller_ops(struct server *s, struct controller_ops *ret);
void server_fill_api_env(struct server *s, struct api_env *ret);
void server_fill_admin_env(struct server *s, struct admin_env *ret);

/* startup.c */
int server_start_loading(struct server *s) must_check; /* the rest of the start follows by itself */

/* session.c */
int server_init_session(struct server *s) must_check;
void server_connect(struct server *s);
void server_on_zk_event(enum zk_event e, void *userdata);

/* shutdown.c */
int server_init_shutdown(struct server *s) must_check;
void server_on_handover_session_lost(struct server *s);

/* takedown.c */
int server_init_take_down(struct server *s) must_check;
/* The last part of every stop: leave the cluster, stop the modules, close the logs. Stops the control loop.
 * Runs as the loop's next tasks, never inside a callback of what it frees. */
void server_take_down(struct server *s);
/* The same to the end, while the loop does not run; nothing when all is down. */
void server_take_down_now(struct server *s);
