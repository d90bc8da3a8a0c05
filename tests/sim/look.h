/* tests/sim/look.h is what the simulator's broker finds of results in place of a blob store. */
#ifndef BOURSE_TESTS_SIM_LOOK_H
#define BOURSE_TESTS_SIM_LOOK_H

#include "broker/blob/outputs.h"

enum outputs_verdict sim_look(void *context, uint32_t sender, const Bourse__V1__Result *result,
                              uint64_t *looks);

#endif
