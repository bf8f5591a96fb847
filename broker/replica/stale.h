/* Counts what this broker refuses because it comes from a life, a term or an epoch that is over (F3). [any
 * thread]. */
#pragma once

enum stale_epoch {
        STALE_OF_BROKER,     /* a request of the controller for an earlier registration of this broker */
        STALE_OF_CONTROLLER, /* of a controller that has been replaced */
        STALE_OF_LEADER,     /* an order or a fetch that knows an earlier leader epoch of its partition */
        N_STALE_OF,
};

void stale_refused(enum stale_epoch e);
void stale_register_metrics(void);
