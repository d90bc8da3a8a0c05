/* broker/core/logtime.h - the broker's one log clock, for all its threads.
 *
 * The core stamps commands with it, the gateway tells it to clients and judges the window of ids by
 * it: were they two clocks, each would lean towards the wall clock at its own pace, and after a
 * jump of it honest commands could look as if made ahead of log time. The arithmetic is
 * logclock.h's. */
#ifndef BOURSE_BROKER_CORE_LOGTIME_H
#define BOURSE_BROKER_CORE_LOGTIME_H

#include <stdint.h>

struct logtime;

/* Goes on from `last_log_ns`. NULL when out of memory. */
struct logtime *logtime_create(int64_t last_log_ns);
void logtime_destroy(struct logtime **self); /* no thread uses it any more */

/* Log time now; never goes back. Any thread. */
int64_t logtime_now(struct logtime *logtime);
/* The same for a command: later than every stamp before. */
int64_t logtime_stamp(struct logtime *logtime);

#endif
