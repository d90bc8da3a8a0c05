/* provider/work/free_space.h tells how many bytes are free on the disk of a folder. */
#ifndef BOURSE_PROVIDER_WORK_FREE_SPACE_H
#define BOURSE_PROVIDER_WORK_FREE_SPACE_H

#include <stdint.h>

/* A disk with less is crowded: nothing is offered, and work that finds no room is given back. An
 * output that does not fit on a disk with more is too large for this disk, and has failed. */
#define FREE_SPACE_LEAST (UINT64_C(1) << 20)

/* Returns the free bytes. Returns UINT64_MAX for a disk that cannot be asked; a write then tells
 * whether it is full. */
uint64_t free_space_of(const char *folder);

#endif
