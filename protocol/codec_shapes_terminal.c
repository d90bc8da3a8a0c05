/* This file holds the rules of the messages of terminals, for the table in codec_shapes.c. */
#include "protocol/codec_check.h"
#include "protocol/codec_rules.h"
#include "protocol/limits.h"

/* The owner names a job, and the attempt that it knows. An agent names a lease and an attempt. */
static bool check_end(const struct sighting *sighting, struct codec_error *ret_error)
{
    uint32_t named = sighting->counts[0] + sighting->counts[1];
    if (named != 1) {
        return codec_check_refuse(ret_error, "job", named, 1);
    }
    return sighting->counts[1] <= sighting->counts[2] ||
           codec_check_refuse(ret_error, "attempt", 0, 1);
}

static bool check_send(const struct sighting *sighting, struct codec_error *ret_error)
{
    return check_end(sighting, ret_error) &&
           (sighting->counts[5] == sighting->counts[6] ||
            codec_check_refuse(ret_error, "rows", sighting->counts[6], sighting->counts[5]));
}

static bool check_bytes(const struct sighting *sighting, struct codec_error *ret_error)
{
    return sighting->counts[2] == sighting->counts[3] ||
           codec_check_refuse(ret_error, "rows", sighting->counts[3], sighting->counts[2]);
}

#define WINDOW NUMBER(1, LIMIT_TERMINAL_SIZE)
#define PIECE SIZED(1, LIMIT_TERMINAL_BYTES)
#define ATTEMPT NUMBER(1, UINT32_MAX)
SHARED_SHAPE(manifest_terminal, manifest_terminal, NULL, WINDOW, WINDOW, FLAG);
SHARED_SHAPE(terminal_send, terminal_send, check_send, ID, COUNT, ATTEMPT, COUNT, PIECE, WINDOW,
             WINDOW, FLAG);
SHARED_SHAPE(terminal_taken, terminal_taken, NULL, COUNT, COUNT, ATTEMPT);
SHARED_SHAPE(terminal_receive, terminal_receive, check_end, ID, COUNT, ATTEMPT, COUNT,
             NUMBER(0, LIMIT_WAIT_MS));
SHARED_SHAPE(terminal_bytes, terminal_bytes, check_bytes, COUNT, PIECE, WINDOW, WINDOW, FLAG, FLAG,
             ATTEMPT);
