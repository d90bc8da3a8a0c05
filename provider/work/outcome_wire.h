/* provider/work/outcome_wire.h writes an outcome as the Result that goes to the broker. */
#ifndef BOURSE_PROVIDER_WORK_OUTCOME_WIRE_H
#define BOURSE_PROVIDER_WORK_OUTCOME_WIRE_H

#include "protocol/codec.h"
#include "provider/work/outcome.h"

struct wire_outcome { /* memory behind a Result */
    Bourse__V1__Output standard_output, standard_error;
    Bourse__V1__Output outputs[LIMIT_OUTPUTS];
    Bourse__V1__Output *pointers[LIMIT_OUTPUTS];
    Bourse__V1__Output saved[LIMIT_CHECKPOINT_FILES];
    Bourse__V1__Output *saved_pointers[LIMIT_CHECKPOINT_FILES];
    Bourse__V1__Saved checkpoint;
};

/* Fills the Result, which points into the outcome and into `wire`. */
void outcome_to_wire(const struct outcome *outcome, struct wire_outcome *wire,
                     Bourse__V1__Result *ret_result);

#endif
