/* protocol/work.h - which subtasks do the same work: what is measured of one says something of another.
 *
 * Its name is a hash of all that decides what runs, but for what it runs on: the number of slots, the executor, the image, the arguments,
 * standard input and environment as templates, and, of a program, the names and hashes of the files that every subtask is
 * given (a script, say); of a tile of a product of matrices its rows and columns. Beside it stands the size of the subtask's own
 * inputs. All sizes are in steps of a quarter of a power of two.
 * docs/protocol.md section 7 has the bytes: whoever reads a job's manifest works out the same. Pure. */
#ifndef BOURSE_PROTOCOL_WORK_H
#define BOURSE_PROTOCOL_WORK_H

#include "base/id.h"
#include "protocol/subtask.h"

enum { WORK_SIZES = 257 };

struct work {
    struct hash32 name;
    uint32_t
        size; /* 0: no inputs, or all are empty; else 1 + 4 log2 of their bytes, rounded down */
};

struct work work_of(const Bourse__V1__Manifest *manifest, uint32_t index);
/* The step that a number of bytes, or of anything, is in. */
uint32_t work_size(uint64_t bytes);
/* The fewest bytes that have this size. */
uint64_t work_bytes(uint32_t size);

#endif
