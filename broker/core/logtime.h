/* The broker has one log clock, which all its threads share; logclock.h has the arithmetic.
 *
 * The core stamps commands with the clock. The gateway tells clients the clock's time, and checks
 * the window of ids against this time. Two clocks would each lean towards the wall clock at their
 * own pace. After a jump of the wall clock, honest commands could then seem to be ahead of log
 * time. */
#ifndef BOURSE_BROKER_CORE_LOGTIME_H
#define BOURSE_BROKER_CORE_LOGTIME_H

#include <stdint.h>

struct logtime;

/* Creates a clock that goes on from `last_log_ns`. Returns NULL when memory is short. */
struct logtime *logtime_create(int64_t last_log_ns);
/* Frees the clock; no thread may use it any more. */
void logtime_destroy(struct logtime **self);

/* Returns log time now; it never goes back. Any thread may call it. */
int64_t logtime_now(struct logtime *logtime);
/* Returns a log time for a command, later than every stamp before. Any thread may call it. */
int64_t logtime_stamp(struct logtime *logtime);

#endif
