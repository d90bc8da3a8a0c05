#include "broker/storage/etcd/replica_note.h"

#include <string.h>

void replica_note_init(struct replica_note *note)
{
    *note = (struct replica_note){.state_command = 0};
    pthread_mutex_init(&note->mutex, NULL);
}

void replica_note_fini(struct replica_note *note)
{
    pthread_mutex_destroy(&note->mutex);
}

void replica_note_state(struct replica_note *note, uint64_t command, const void *state)
{
    pthread_mutex_lock(&note->mutex);
    note->state_command = command;
    memcpy(note->state.bytes, state, sizeof note->state.bytes);
    pthread_mutex_unlock(&note->mutex);
}

uint64_t replica_note_newest(struct replica_note *note, struct hash32 *ret_state)
{
    pthread_mutex_lock(&note->mutex);
    const uint64_t command = note->state_command;
    *ret_state = note->state;
    pthread_mutex_unlock(&note->mutex);
    return command;
}
