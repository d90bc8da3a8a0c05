#include "consumer/command/notes.h"

#include "consumer/command/job/stream.h"
#include "consumer/command/show.h"
#include "formats/output/result_note.h"

#include <inttypes.h>
#include <stdio.h>

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
