/* consumer/command/notes.h says on standard error what a good result lacks.
 *
 * A result keeps only a part of a long output, and no links of folders that are outputs. --quiet
 * concerns progress, so the notes come with it, too. */
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
/* Says what the fetched results left out of their folders, if anything. */
void notes_say_left_out(const struct bourse_tasks *tasks, const struct bourse_fetched *fetched);
/* Says in one line what results of an ended job left out of their folders, if anything. Looks at
 * the first results only, because a job may have a million. */
void notes_say_left_out_of(struct invocation *invocation, const char *id);

#endif
