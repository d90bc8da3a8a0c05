/* A replica note says how far this broker is in the journal on etcd, for its record there.
 *
 * The threads of the journal and of the store write the note, and the thread of the record reads
 * it. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_REPLICA_NOTE_H
#define BOURSE_BROKER_STORAGE_ETCD_REPLICA_NOTE_H

#include "base/id.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

struct replica_note {
    atomic_ullong epoch;    /* under which this broker leads; 0: it follows */
    atomic_llong at_end_ns; /* monotonic time when a read found no further entry; 0: not yet */
    atomic_uint rules;      /* in force after the newest entry on this disk; 0: none are named */
    /* The newest rules that every broker with a record knows; 0: not known, or this one follows. */
    atomic_uint rules_of_all;
    pthread_mutex_t mutex;  /* guards the state */
    uint64_t state_command; /* newest command that has a state hash in the log; 0: none yet */
    struct hash32 state;    /* that this broker had before that command */
};

void replica_note_init(struct replica_note *note);
void replica_note_fini(struct replica_note *note);
void replica_note_state(struct replica_note *note, uint64_t command, const void *state);
/* Returns the command of the newest state, and writes the state. */
uint64_t replica_note_newest(struct replica_note *note, struct hash32 *ret_state);

#endif
