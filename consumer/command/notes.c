#include "consumer/command/notes.h"

#include "base/cleanup.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/show.h"
#include "formats/output/result_note.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { RESULTS_LOOKED_AT = 10000 };

struct notes_stream notes_stream_of(const struct bourse_outcome *outcome, bool is_error)
{
    const bool has = is_error ? outcome->has_standard_error : outcome->has_standard_output;
    const struct bourse_output *output =
        is_error ? &outcome->standard_error : &outcome->standard_output;
    struct notes_stream stream = {.is_error = is_error, .kept = has ? output->size : 0};
    stream.is_cut = result_note_cut(outcome->detail, is_error, &stream.written);
    return stream;
}

static void say_stream(const struct notes_stream *stream)
{
    const char *name = stream->is_error ? "standard error" : "standard output";
    if (stream->written > stream->kept) {
        (void)fprintf(stderr, "the first %" PRIu64 " of %" PRIu64 " bytes of %s are kept",
                      stream->kept, stream->written, name);
        if (stream->printed == stream->written) {
            (void)fputs("; all of them were printed", stderr);
        }
    } else {
        (void)fprintf(stderr, "the first %" PRIu64 " bytes of %s are kept, and more were written",
                      stream->kept, name);
    }
}

void notes_say_cut(struct notes *notes, uint32_t index, const struct notes_stream *streams,
                   size_t count)
{
    bool is_said = false;
    for (size_t i = 0; i < count; i++) {
        if (!streams[i].is_cut) {
            continue;
        }
        if (!is_said && ++notes->count > NOTES_LINES) {
            return;
        }
        if (is_said) {
            (void)fputs("; ", stderr);
        } else {
            (void)fflush(stdout); /* the output comes before what is said of it */
            stream_end_line();
            (void)fprintf(stderr, "bourse: %s: ", cell_subtask(notes->tasks, index));
        }
        say_stream(&streams[i]);
        is_said = true;
    }
    if (is_said) {
        (void)fputc('\n', stderr);
    }
}

void notes_end(const struct notes *notes)
{
    if (notes->count > NOTES_LINES) {
        const uint32_t more = notes->count - NOTES_LINES;
        (void)fprintf(stderr, "bourse: %" PRIu32 " more subtask%s written more than is kept\n",
                      more, more == 1 ? " has" : "s have");
    }
}

/* ---------------------------------------------------------------- what was left out of folders */

void notes_say_left_out(const struct bourse_tasks *tasks, const struct bourse_fetched *fetched)
{
    char text[BOURSE_TEXT_SIZE];
    if (fetched->left_out == 0) {
        return;
    }
    bourse_printable(fetched->left_out_text, text, sizeof text);
    stream_end_line();
    (void)fprintf(stderr, "bourse: %s: %s", cell_subtask(tasks, fetched->left_out_index), text);
    if (fetched->left_out > 1) {
        const uint64_t more = fetched->left_out - 1;
        (void)fprintf(stderr, "; %" PRIu64 " more subtask%s left something out, too", more,
                      more == 1 ? " has" : "s have");
    }
    (void)fputc('\n', stderr);
}

struct look {
    struct bourse_fetched found;
    uint32_t results;
};

static bool look_at(void *context, const struct bourse_outcome *outcome)
{
    struct look *look = context;
    char text[BOURSE_TEXT_SIZE];
    if (outcome->status == 0 && result_note_left_out(outcome->detail, text, sizeof text)) {
        if (look->found.left_out++ == 0) {
            look->found.left_out_index = outcome->index;
            memcpy(look->found.left_out_text, text, sizeof text);
        }
    }
    return ++look->results < RESULTS_LOOKED_AT;
}

void notes_say_left_out_of(struct invocation *invocation, const char *id)
{
    struct bourse_error error; /* the end of the job matters more than this text */
    struct look look = {.results = 0};
    if (bourse_outcomes(invocation->bourse, id, 0, look_at, &look, &error) &&
        look.found.left_out > 0) {
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
        notes_say_left_out(tasks, &look.found);
    }
}
