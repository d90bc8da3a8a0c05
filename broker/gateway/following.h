/* broker/gateway/following.h tells what a broker that follows knows. It knows who leads, and which
 * state of the market its exchange has.
 *
 * The thread that follows the journal writes the note, and any thread may read it. */
#ifndef BOURSE_BROKER_GATEWAY_FOLLOWING_H
#define BOURSE_BROKER_GATEWAY_FOLLOWING_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    FOLLOWING_ADDRESS_SIZE = 128,
    /* A leader appends an entry much more often. A state is stale when the journal told nothing new
     * for longer than this. */
    FOLLOWING_FRESH_MS = 1500
};

struct following_note {
    pthread_mutex_t mutex; /* guards the rest */
    char leader[FOLLOWING_ADDRESS_SIZE];
    uint64_t index;
    int64_t log_ns;
    int64_t fresh_ns; /* monotonic: the state was the journal's newest then; 0: it never was */
};

/* The struct holds the content of the note at one moment. */
struct following {
    char leader[FOLLOWING_ADDRESS_SIZE]; /* control endpoint; "": not known now */
    uint64_t index;                      /* the newest command of the state ... */
    int64_t log_ns;                      /* ... and its log time */
    int64_t age_ms;   /* so long ago the state was the newest; -1: it never was */
    int64_t stale_ms; /* the same when the state is stale, else 0 */
};

void following_note_init(struct following_note *note);
void following_note_fini(struct following_note *note);
void following_note_leader(struct following_note *note, const char *leader);
/* Notes the state after command `index`. */
void following_note_state(struct following_note *note, uint64_t index, int64_t log_ns);
/* Notes that the state was the newest at `fresh_ns`, a monotonic time. An earlier time than the
 * noted one changes nothing. */
void following_note_fresh(struct following_note *note, int64_t fresh_ns);
struct following following_now(struct following_note *note, int64_t now_ns);

#endif
