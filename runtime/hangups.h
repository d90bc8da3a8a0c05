/* runtime/hangups.h - keeps libzmq from ending the process over a peer that hangs up.
 *
 * libzmq (4.3.4 and 4.3.5; its issues 4364 and 4841) stops reading a connection whose queue is
 * full. When the peer hangs up meanwhile, epoll says so although nobody asked, libzmq marks the
 * connection as broken, and the next ping in what it had read already fails an assertion: any
 * stranger could end a broker that way. So nothing is said of a hang-up until input is wanted
 * again: libzmq then reads what there is, meets the end, and closes in its usual way.
 *
 * This file defines epoll_ctl and epoll_wait for the whole program, above the C library's:
 *   - a descriptor of which neither input nor output is wanted leaves the epoll set, and comes back with the next wish;
 *   - one of which only output is wanted reports a hang-up as room to write: the write then fails, which libzmq expects;
 *   - one that has input reports no hang-up beside it: libzmq would read twice, the second time against its own stop.
 * What is asked of each descriptor is kept here too, so that reading from one can be paused.
 * Other users of epoll see a hang-up by the read or write that fails, as they must expect anyway. */
#ifndef BOURSE_RUNTIME_HANGUPS_H
#define BOURSE_RUNTIME_HANGUPS_H

#include <stdbool.h>

/* Whether libraries of this process reach our functions: false when something loaded before them
 * took the names. To be asked before the first socket is opened; asking is also what links them
 * in. */
bool hangups_are_held(void);

/* Reads nothing from a connection until it is told otherwise, or until its descriptor is closed:
 * libzmq itself can only stop reading from all. What its peer sends waits in the kernel, and then
 * at the peer. A descriptor that is in no epoll set, or has a number that is too high, stays as it
 * is. Any thread. */
void hangups_pause(int descriptor, bool is_paused);

#endif
