/* tests/sim/hostile.h - a peer that speaks by hand: nonsense, damaged and stolen messages, other
 * people's under its own session, its own without a signature. A stranger, or a member of the
 * market. */
#ifndef BOURSE_TESTS_SIM_HOSTILE_H
#define BOURSE_TESTS_SIM_HOSTILE_H

#include "protocol/identity.h"
#include "tests/sim/net.h"

struct hostile {
    struct process process;
    struct peer peer;
    struct identity *identity;
    uint64_t session; /* as the broker said; 0: none yet */
    uint64_t refused; /* answers that say no */
};

void hostile_start(struct hostile *hostile);
void hostile_acts(struct hostile *hostile);

#endif
