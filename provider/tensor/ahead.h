/* provider/tensor/ahead.h defines what the agent and bourse-kernel tell each other about the inputs
 * of the next subtask, while the subtask before computes. They talk over a SOCK_STREAM pair. The
 * agent keeps one end, and bourse-kernel gets the other one with an ASK (ask.h). Fields go through
 * base/cursor.h.
 *
 *     agent                       bourse-kernel
 *       | LIST ---------------------> |  u32 count (1 to AHEAD_INPUTS), for each input 32 bytes of
 *       |                             |  hash, u64 size, u8 kind
 *       | <--------------- u8 answer  |  for each input in its order: AHEAD_SKIP or AHEAD_SEND
 *       | bytes, u8 AHEAD_GOOD -----> |  after AHEAD_SEND alone: the whole file
 *
 * Without AHEAD_GOOD behind its bytes, a file does not have its hash. Either end may close its end
 * at any time, and the other one forgets the input under way. No descriptor of the agent's files
 * goes into the jail. */
#ifndef BOURSE_PROVIDER_TENSOR_AHEAD_H
#define BOURSE_PROVIDER_TENSOR_AHEAD_H

#include "base/id.h"

#include <stdint.h>

enum {
    AHEAD_INPUTS = 64, /* in a LIST; further inputs are copied when their subtask runs */
    AHEAD_LIST_BYTES = 4 + AHEAD_INPUTS * (32 + 8 + 1),
};

/* Each input in a LIST has one of these kinds. */
enum ahead_kind {
    AHEAD_FILE,   /* the device gets the whole file */
    AHEAD_MATRIX, /* the device gets the values of the matrix in the .npy file */
    AHEAD_KINDS
};

enum ahead_word { AHEAD_SKIP = 1, AHEAD_SEND, AHEAD_GOOD };

struct ahead_input {
    struct hash32 hash;
    uint64_t size; /* at least 1 */
    enum ahead_kind kind;
};

#endif
