/* consumer/command/notes.h says on standard error when a good result lacks a part of the output.
 * --quiet concerns progress, so the notes come with it, too. */
#ifndef BOURSE_CONSUMER_COMMAND_NOTES_H
#define BOURSE_CONSUMER_COMMAND_NOTES_H

#include "consumer/command/command.h"

enum { NOTES_LINES = 8 }; /* subtasks with a line of their own; the others are counted */

/* Begins with zeros, apart from the tasks. */
struct notes {
    const struct bourse_tasks *tasks; /* NULL: subtasks have only numbers */
    uint32_t count;                   /* subtasks that wrote more than is kept */
};

/* One stream of a result. */
struct notes_stream {
    bool is_error, is_cut;
    uint64_t written; /* 0: unknown */
    uint64_t kept;
    uint64_t printed; /* bytes that were printed live and out of the result */
};

struct notes_stream notes_stream_of(const struct bourse_outcome *outcome, bool is_error);
/* Says in one line which of the subtask's streams are cut, if any is. */
void notes_say_cut(struct notes *notes, uint32_t index, const struct notes_stream *streams,
                   size_t count);
/* Says how many subtasks had no line of their own. */
void notes_end(const struct notes *notes);

#endif
