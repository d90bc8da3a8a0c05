/* runtime/notify.h tells the supervisor of a service, as systemd is one, how the service is.
 *
 * A message is one datagram to the socket that $NOTIFY_SOCKET names, as sd_notify(3) describes it.
 * Without the variable nothing is sent. A supervisor that does not listen is no failure of the
 * service, so these functions report none. */
#ifndef BOURSE_RUNTIME_NOTIFY_H
#define BOURSE_RUNTIME_NOTIFY_H

#include <stdint.h>

/* The service has started, and does its work. */
void notify_ready(void);
/* The service stops. The watchdog waits from now on until the supervisor's own limit for a stop. */
void notify_stopping(void);
/* The service is alive. */
void notify_alive(void);

/* Returns the time after which notify_alive is due again: half of $WATCHDOG_USEC. Returns 0 when
 * nobody waits for signs of life, or another process ($WATCHDOG_PID) has to give them. */
int64_t notify_alive_every_ns(void);

#endif
