/* broker/challenge/challenge_wire.h shows a fact to whoever lists the device. */
#ifndef BOURSE_BROKER_CHALLENGE_CHALLENGE_WIRE_H
#define BOURSE_BROKER_CHALLENGE_CHALLENGE_WIRE_H

#include "broker/challenge/challenge_facts.h"
#include "protocol/codec.h"

/* Returns the wire form, which lives as long as `ret_wire`, or NULL when the device was never
 * challenged. */
Bourse__V1__ChallengeFact *challenge_wire_of(const struct challenge_facts *facts, uint32_t account,
                                             const struct id128 *device, int64_t log_ns,
                                             Bourse__V1__ChallengeFact *ret_wire);

#endif
