/* consumer/job/quote/power_limits.h bounds the power of the devices that a job takes, instrument by
 * instrument. quote_energy.h chooses the bounds. The header is not installed, and the code is
 * pure. */
#ifndef BOURSE_CONSUMER_JOB_QUOTE_POWER_LIMITS_H
#define BOURSE_CONSUMER_JOB_QUOTE_POWER_LIMITS_H

#include "consumer/job/bourse_job.h"

/* Returns true when a slot of this instrument and power is allowed. Limits without items allow
 * every slot; others allow no slot of unknown power. */
bool power_limits_allow(const struct job_power_limits *limits, const char *instrument,
                        int64_t power_mw);
/* Allows slots of the instrument up to this power. Returns false when there is no room for another
 * instrument. */
bool power_limits_add(struct job_power_limits *limits, const char *instrument, int64_t power_mw);

/* Adds "and (instrument = A and power_mw <= P or ...)". Returns false when the requirement is
 * full. */
bool power_limits_add_needs(const struct job_power_limits *limits, struct requirement *needs);

#endif
