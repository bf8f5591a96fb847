/* Tells the controller, through /log_dir_event_notification, that replicas here went offline (KIP-112). Until
 * it knows, it takes them for alive: a leader whose disk has failed would stay leader. */
#pragma once

#include "base/loop.h"
#include "zk/zk.h"

struct dir_report;

/* Everything on @loop, but for dir_report_wanted(). */
int dir_report_new(struct zk *zk, struct loop *loop, int32_t broker_id, struct dir_report **ret) must_check;
struct dir_report *dir_report_free(struct dir_report *d); /* after the zk was freed: completions come first */
DEFINE_FREEP(struct dir_report, dir_report_free)

/* One report for any number of replicas that go offline while it is under way. It is repeated until ZooKeeper
 * has it. [any thread, also with locks held] */
void dir_report_wanted(struct dir_report *d);
/* In a new session: what could not be told in the old one. */
void dir_report_on_session(struct dir_report *d);
