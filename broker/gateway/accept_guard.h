/* broker/gateway/accept_guard.h handles connections when the program has no descriptor left.
 *
 * libzmq 4.3 survives EMFILE in its tcp listener, but ends the process on it in its ipc listener
 * (ipc_listener.cpp, accept). A crowd on a tcp port and one local caller would then end a broker.
 * So accept and accept4 of the program replace those of the C library. They take a caller without a
 * descriptor on a spare one and hang up; both listeners then treat the caller as gone. The caller
 * does not wait, and the loop does not spin. The functions serve the whole program and are
 * thread-safe. They never block on a listener that blocks, like the ipc listener. */
#ifndef BOURSE_BROKER_GATEWAY_ACCEPT_GUARD_H
#define BOURSE_BROKER_GATEWAY_ACCEPT_GUARD_H

#include <stdbool.h>

/* Sets the spare descriptor apart. Returns false when there is none; then callers wait as long as
 * the program has no descriptor. */
bool accept_guard_prepare(void);

#endif
