/* Leadership that a drain took goes back, gently (D11).
 *
 * Once a drained broker has restarted, or its drain was undone, and all its replicas are in sync, the
 * partitions whose first replica it is and whose leadership its drain took are handed back in bounded
 * batches. Nothing moves while any broker drains. This is no rebalance: what a crash or an operator moved
 * stays where it is (docs/decisions/0004, 0005). Controller thread; internal to controller/. */
#pragma once

struct controller;
struct ctx_broker;
struct ctx_partition;

int leader_return_init(struct controller *c);
/* A drain has moved @p away from broker @from. */
void leader_return_took(struct controller *c, struct ctx_partition *p, int from);
/* In office: brokers whose leadership an earlier controller's drain took are found in the record of drains.
 */
void leader_return_active(struct controller *c);
/* A broker has registered, or its drain is over. */
void leader_return_on_back(struct controller *c, struct ctx_broker *b);
void leader_return_metrics_register(void);
void leader_return_metrics_unregister(void);
