/* A quorum note says why the journal takes no entry at present, for the refusals NO_QUORUM.
 *
 * The thread of the journal writes the note, and any thread may read it. */
#ifndef BOURSE_BROKER_CORE_OUTAGE_QUORUM_NOTE_H
#define BOURSE_BROKER_CORE_OUTAGE_QUORUM_NOTE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { QUORUM_NOTE_SIZE = 144 };

struct quorum_note {
    pthread_mutex_t mutex;
    char why[QUORUM_NOTE_SIZE]; /* "" while nothing is known; guarded by `mutex` */
    atomic_bool is_away;        /* the journal takes no entry: no quorum, or no answer */
    /* Monotonic time when the newest append that the journal took began. 0: none yet. */
    atomic_llong taken_ns;
};

void quorum_note_init(struct quorum_note *note);
void quorum_note_fini(struct quorum_note *note);
/* Notes why the journal takes no entry, as in "https://10.0.0.2:2379 does not answer". */
void quorum_note_say(struct quorum_note *note, const char *why);
/* Writes the sentence of a refusal at `now_ns`. Returns how long the journal took no entry, in
 * ms. */
int64_t quorum_note_text(struct quorum_note *note, int64_t now_ns, char *ret_text, size_t capacity);
/* Returns how long the journal took no entry, in ms. */
int64_t quorum_note_age_ms(const struct quorum_note *note, int64_t now_ns);

#endif
