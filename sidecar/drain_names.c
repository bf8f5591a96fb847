/* What the reasons and policies of drain_core.h are called, for machines and for people. */
#include "drain_core.h"

static const struct {
        const char *name, *text;
} whys[N_DRAIN_WHYS] = {
        [DRAIN_WHY_NONE] = {"", ""},
        [DRAIN_WHY_DEADLINE] = {"deadline", "the deadline came first"},
        [DRAIN_WHY_NO_CONTROLLER] = {"no_controller", "no controller answers"},
        [DRAIN_WHY_ZOOKEEPER] = {"zookeeper_unavailable", "ZooKeeper does not answer the cluster"},
        [DRAIN_WHY_REFUSED] = {"refused",
                               "the controller refuses the request: check token and configuration"},
        [DRAIN_WHY_BUSY] = {"another_drain", "another drain is in progress"},
        [DRAIN_WHY_BROKER_SILENT] = {"broker_silent",
                                     "the controller counts 0, the broker itself does not answer"},
        [DRAIN_WHY_DISAGREE] = {"views_disagree",
                                "the broker leads partitions, the controller does not know it"},
        [DRAIN_WHY_CANCELLED] = {"cancelled", "the controller was told to cancel the drain"},
        [DRAIN_WHY_UNDONE] = {"undone", ""},
        [DRAIN_WHY_UNDO_FAILED] = {"undo_failed", "no controller confirmed the undo"},
        [DRAIN_WHY_TERMINATED] = {"terminated", "told to stop waiting"},
        [DRAIN_WHY_UNSAFE] = {"unsafe",
                              "stopping the broker takes partitions offline or below min.insync.replicas"},
        [DRAIN_WHY_SLOT] = {"slot_held", "another broker holds the drain slot"},
};

static const char *const policies[N_DRAIN_POLICIES] = {"proceed", "hold", "abort"};

const char *drain_why_name(enum drain_why w)
{
        return whys[w].name;
}

const char *drain_why_text(enum drain_why w)
{
        return whys[w].text;
}

const char *drain_policy_name(enum drain_policy p)
{
        return policies[p];
}
