/* provider/kernel/held_inputs.h keeps a table of the inputs that a device holds in its memory.
 *
 * A device holds parts of files, each under the hash of the whole file. A result of a launch is
 * held, too, and is unnamed until its hash is told. All parts together have at most the cap's
 * bytes. The part that was used longest ago goes first, and a part that a launch uses now is pinned
 * and never goes. The table belongs to one process, which serves one lease. The code is pure: the
 * caller makes and drops the buffers. */
#ifndef BOURSE_PROVIDER_KERNEL_HELD_INPUTS_H
#define BOURSE_PROVIDER_KERNEL_HELD_INPUTS_H

#include "base/id.h"
#include "provider/kernel/interface.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HELD_INPUTS_MAX = 64 }; /* parts in a table */

/* The bytes [at, at + bytes) of a file with this hash and size. */
struct held_part {
    struct hash32 hash;
    uint64_t file_bytes, at, bytes;
};

struct held_input {
    struct held_part part; /* bytes 0: the place is free */
    struct kernel_buffer buffer;
    uint32_t pins;
    uint64_t used;   /* the table's count of uses at the last one */
    bool is_unnamed; /* the hash is not told, so nothing finds the part */
};

struct held_inputs {
    struct held_input items[HELD_INPUTS_MAX];
    uint64_t cap_bytes, held_bytes;
    uint64_t uses;
};

enum held_answer {
    HELD_FOUND,
    HELD_ABSENT,
    /* A part of a file with this hash is there, and that file has another size. One of the two is
     * told wrongly, so the part that is asked for is neither found nor to be added. */
    HELD_REFUSED,
};

/* Looks for a part, which has at least a byte. FOUND pins the part and sets its place. */
enum held_answer held_inputs_find(struct held_inputs *held, const struct held_part *part,
                                  size_t *ret_place);
/* Counts a use of each part of the file. Returns false when there is none. */
bool held_inputs_touch(struct held_inputs *held, const struct hash32 *hash, uint64_t file_bytes);
/* Ends one use of a pinned part. */
void held_inputs_unpin(struct held_inputs *held, size_t place);

/* Returns true when a part of so many bytes fits below the cap, once every part that is not pinned
 * has gone. */
bool held_inputs_may_fit(const struct held_inputs *held, uint64_t bytes);
/* Returns true when such a part can be added now. */
bool held_inputs_has_room(const struct held_inputs *held, uint64_t bytes);
/* Adds a part, pinned, with its buffer, and returns its place. There is room for it, and it was
 * absent. */
size_t held_inputs_add(struct held_inputs *held, const struct held_part *part,
                       struct kernel_buffer buffer);

/* Adds a result like held_inputs_add. Its part has no hash yet, and it is not pinned. */
size_t held_inputs_add_result(struct held_inputs *held, const struct held_part *part,
                              struct kernel_buffer buffer);
/* Adds a part like held_inputs_add, whose bytes are still on their way. Nothing finds the part
 * before held_inputs_name. */
size_t held_inputs_add_arriving(struct held_inputs *held, const struct held_part *part,
                                struct kernel_buffer buffer);
/* Gives a part without a hash its hash. Returns false when the table has that part already: the
 * part then stays unnamed. */
bool held_inputs_name(struct held_inputs *held, size_t place, const struct hash32 *hash);
/* Takes a part out that is not pinned. Its buffer is then the caller's, to drop. */
struct kernel_buffer held_inputs_take(struct held_inputs *held, size_t place);

/* Returns the bytes of all parts that are not pinned. */
uint64_t held_inputs_idle_bytes(const struct held_inputs *held);
/* Returns the count of uses at the last use of the part that held_inputs_take_oldest takes, or
 * UINT64_MAX when there is none. */
uint64_t held_inputs_oldest_use(const struct held_inputs *held);
/* Returns the bytes of all parts that were used after that count of uses. */
uint64_t held_inputs_bytes_since(const struct held_inputs *held, uint64_t uses);
/* Takes the part out that was used longest ago and is not pinned. Its buffer is then the caller's,
 * to drop. Returns false when there is none. */
bool held_inputs_take_oldest(struct held_inputs *held, struct kernel_buffer *ret_buffer);

#endif
