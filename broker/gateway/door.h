/* broker/gateway/door.h - connections when no descriptor is left.
 *
 * libzmq 4.3 takes EMFILE from its tcp listener, but ends the process on it from its ipc listener
 * (ipc_listener.cpp, accept), so that a crowd on a tcp port and one local caller would end a
 * broker. Here accept and accept4 are the program's own, before the C library's: a caller for whom
 * there is no descriptor is taken on one that is kept for that, and hung up on, which both
 * listeners take for a caller who has gone. He is not left waiting, and the loop does not spin on
 * him. For the whole program; thread-safe. One that blocks, as the ipc listener does, is never
 * waited at. */
#ifndef BOURSE_BROKER_GATEWAY_DOOR_H
#define BOURSE_BROKER_GATEWAY_DOOR_H

#include <stdbool.h>

/* Sets the descriptor apart. Without one, callers wait at the door as long as it is crowded. False:
 * there is none. */
bool door_keep_one(void);

#endif
