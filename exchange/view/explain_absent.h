/* exchange/view/explain_absent.h counts the devices that fit a job, but whose providers are silent
 * or frozen. */
#ifndef BOURSE_EXCHANGE_VIEW_EXPLAIN_ABSENT_H
#define BOURSE_EXCHANGE_VIEW_EXPLAIN_ABSENT_H

#include "exchange/exchange.h"
#include "exchange/state/records.h"

/* Counts the device in `why` when its provider is absent. `job` is the job that waits. */
void explain_absent(const struct exchange *exchange, const struct job *job,
                    const struct device *device, struct exchange_explanation *why);

#endif
