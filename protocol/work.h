/* protocol/work.h recognizes subtasks that do the same work, so that measurements of one apply to
 * another.
 *
 * The name of the work is a hash of everything that decides what runs, except the subtask's own
 * inputs. The hash covers the number of slots, the executor, the image, and the arguments, standard
 * input and environment as templates. For a program it covers names and hashes of the files given
 * to every subtask, such as a script. For a tile of a matrix product it covers the tile's rows and
 * columns. The size of the subtask's own inputs stands beside the name. All sizes are in steps of a
 * quarter of a power of two. docs/protocol.md section 7 lists the bytes, so that every reader of a
 * manifest computes the same. */
#ifndef BOURSE_PROTOCOL_WORK_H
#define BOURSE_PROTOCOL_WORK_H

#include "base/id.h"
#include "protocol/subtask.h"

enum { WORK_SIZES = 257 };

struct work {
    struct hash32 name;
    /* The size is 0 when there are no inputs, or all are empty. Else it is 1 + 4 log2 of their
     * bytes, rounded down. */
    uint32_t size;
};

struct work work_of(const Bourse__V1__Manifest *manifest, uint32_t index);
/* Returns the step of a number of bytes, or of any other number. */
uint32_t work_size(uint64_t bytes);
/* Returns the fewest bytes that have this size. */
uint64_t work_bytes(uint32_t size);

#endif
