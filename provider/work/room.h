/* provider/work/room.h - what the disk of a folder has left. */
#ifndef BOURSE_PROVIDER_WORK_ROOM_H
#define BOURSE_PROVIDER_WORK_ROOM_H

#include <stdint.h>

/* With less the disk is crowded: nothing is offered, and work that finds no room is given back.
 * With more, what does not fit is too large for this disk, and has failed. */
#define ROOM_LEAST_BYTES (UINT64_C(1) << 20)

/* Bytes that are free. A disk that cannot be asked is not called full: UINT64_MAX; a write
 * tells. */
uint64_t room_of(const char *folder);

#endif
