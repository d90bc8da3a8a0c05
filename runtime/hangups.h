/* runtime/hangups.h keeps libzmq from ending the process when a peer hangs up.
 *
 * libzmq (4.3.4 and 4.3.5; its issues 4364 and 4841) stops reading a connection whose queue is
 * full. When the peer then hangs up, epoll reports it although nobody asked, and libzmq marks the
 * connection as broken. The next ping in the data already read fails an assertion: any stranger
 * could end a broker this way. Hang-ups are therefore hidden until input is wanted again. libzmq
 * then reads the rest, meets the end, and closes in its usual way.
 *
 * This file defines epoll_ctl and epoll_wait for the whole program, above the C library's:
 *   - a descriptor without a wish for input or output leaves the epoll set, and comes back with
 *     the next wish;
 *   - one with a wish for output only reports a hang-up as room to write: the write then fails,
 *     which libzmq expects;
 *   - one with input reports no hang-up beside it: libzmq would read twice, the second time
 *     against its own stop.
 * The wishes of each descriptor are kept here too, so that reading from one can be paused. Other
 * users of epoll notice a hang-up by the read or write that fails, as they must expect anyway. */
#ifndef BOURSE_RUNTIME_HANGUPS_H
#define BOURSE_RUNTIME_HANGUPS_H

#include <stdbool.h>

/* Returns true when libraries of this process call our functions. Returns false when something
 * loaded before them took the names. Call it before the first socket is opened; the call is also
 * what links the functions in. */
bool hangups_are_held(void);

/* Pauses reading from a connection until it is resumed or its descriptor is closed. libzmq itself
 * can only stop reading from all. The peer's data waits in the kernel, and then at the peer. A
 * descriptor that is in no epoll set, or has a number that is too high, stays as it is. Any thread
 * may call it. */
void hangups_pause(int descriptor, bool is_paused);

#endif
