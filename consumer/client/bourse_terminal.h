/* consumer/client/bourse_terminal.h is the user's end of the terminal of a running job. Include
 * consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_TERMINAL_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_TERMINAL_H

#include "consumer/client/bourse_jobs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bourse_terminal;

enum bourse_terminal_event_type {
    BOURSE_TERMINAL_NOTHING = 0,  /* the time is over */
    BOURSE_TERMINAL_READABLE = 1, /* the descriptor at `which` can be read */
    BOURSE_TERMINAL_BEGUN = 2,    /* a program has come to the other end */
    BOURSE_TERMINAL_OUTPUT = 3,   /* `bytes` were printed */
    BOURSE_TERMINAL_ENDED = 4,    /* the program is gone, and all that it printed was handed over */
    BOURSE_TERMINAL_REPLACED = 5, /* the program was lost, and another attempt runs a new one */
    BOURSE_TERMINAL_JOB = 6,      /* `row` is the job's present row, without its leases */
    BOURSE_TERMINAL_LOST = 7,     /* the broker cannot be reached */
    BOURSE_TERMINAL_BACK = 8      /* the broker is back, and nothing was lost */
};

struct bourse_terminal_event {
    enum bourse_terminal_event_type type;
    size_t which;
    const void *bytes; /* valid until the next call */
    size_t size;
    struct bourse_job_row row;
};

/* Opens the terminal of an open job of this account. A connection has one at a time. */
bool bourse_terminal_open(struct bourse *bourse, const char *id,
                          struct bourse_terminal **ret_terminal, struct bourse_error *ret_error);
void bourse_terminal_close(struct bourse_terminal **self);

/* Returns how many bytes bourse_terminal_type takes now. */
size_t bourse_terminal_room(const struct bourse_terminal *terminal);
/* Types bytes, and returns how many were taken. They go out during the next call of
 * bourse_terminal_next. No byte is typed twice, also when the broker starts anew meanwhile. */
size_t bourse_terminal_type(struct bourse_terminal *terminal, const void *bytes, size_t size);
/* Says that nothing follows what was typed. */
void bourse_terminal_type_end(struct bourse_terminal *terminal);
/* Tells the size of the window, 1 to 10000 columns and rows. */
void bourse_terminal_resize(struct bourse_terminal *terminal, uint32_t columns, uint32_t rows);

/* Waits for the next event, at most `wait_ms`. `descriptors` may have negative ones, which are left
 * out. */
bool bourse_terminal_next(struct bourse_terminal *terminal, const int *descriptors, size_t count,
                          int64_t wait_ms, struct bourse_terminal_event *ret_event,
                          struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
