#include "consumer/command/job/live.h"

#include "base/array.h"
#include "base/text.h"
#include "consumer/command/cell.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/show.h"
#include "runtime/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct live_stream {
    uint32_t index, attempt;
    bool is_error;
    uint64_t next;    /* offset of the byte that comes next */
    uint64_t printed; /* bytes of this attempt */
    uint64_t line_at; /* offset of the first byte of `line` */
    char *line;       /* with prefixes: the line that has no end yet; NULL: none */
    size_t line_size;
    bool waits;        /* the rest comes out of the result */
    uint64_t left_out; /* bytes of gaps that nobody was told of yet */
    int64_t told_ns;   /* time when the last gap was told; 0: none was */
    struct text_visible visible;
};

struct live {
    struct live_options options;
    struct live_stream *streams;
    size_t count, capacity;
    uint32_t *finished; /* by subtask: the last attempt whose result was printed; 0: none */
    int write_error;    /* errno of the first write that failed; 0: none did */
    /* Whole lines of one piece, for one descriptor; they are written together. */
    char lines[LIVE_BATCH_BYTES];
    size_t lines_size;
    bool lines_are_errors;
};

/* ---------------------------------------------------------------- printing */

static void make_room(const struct live *live)
{
    if (live->options.progress != NULL) {
        progress_end(live->options.progress);
    }
}

/* Ends the wait for the job: nobody reads on. */
static void note_write_error(struct live *live)
{
    live->write_error = live->write_error != 0 ? live->write_error : errno != 0 ? errno : EIO;
    if (!live->options.is_past) {
        bourse_interrupt(live->options.invocation->bourse);
    }
}

/* Prints bytes of a stream. */
static void put(struct live *live, struct text_visible *visible, const void *bytes, size_t size,
                bool to_stderr)
{
    make_room(live);
    if (!stream_piece(live->options.invocation, visible, bytes, size, to_stderr)) {
        note_write_error(live);
    }
}

static void write_lines(struct live *live)
{
    struct text_visible visible = {.held_count = 0};
    if (live->lines_size > 0) {
        put(live, &visible, live->lines, live->lines_size, live->lines_are_errors);
        live->lines_size = 0;
    }
    if (live->options.invocation->json && fflush(stdout) != 0) {
        note_write_error(live);
    }
}

static bool goes_to_stderr(const struct live *live, const struct live_stream *stream)
{
    return stream->is_error && live->options.splits;
}

static json_t *text_of(const char *bytes, size_t size)
{
    json_t *text = json_stringn(bytes, size);
    if (text != NULL) {
        return text;
    }
    char *plain = malloc(size + 1); /* not UTF-8 */
    for (size_t i = 0; plain != NULL && i < size; i++) {
        plain[i] = (char)((unsigned char)bytes[i] < 0x80 ? bytes[i] : '?');
    }
    text = plain == NULL ? NULL : json_stringn(plain, size);
    free(plain);
    return text;
}

static void print_json(const struct live *live, const struct live_stream *stream, const char *bytes,
                       size_t size, uint64_t left_out)
{
    json_t *value = json_pack("{s:s, s:I, s:I, s:s}", "job", live->options.id, "index",
                              (json_int_t)stream->index, "attempt", (json_int_t)stream->attempt,
                              "stream", stream->is_error ? "stderr" : "stdout");
    if (left_out > 0) {
        (void)json_object_set_new(value, "left_out_bytes", json_integer((json_int_t)left_out));
    } else {
        (void)json_object_set_new(value, "offset", json_integer((json_int_t)stream->line_at));
        (void)json_object_set_new(value, "line", text_of(bytes, size));
    }
    (void)json_object_set_new(value, "subtask",
                              json_string(cell_word(live->options.tasks, stream->index)));
    (void)json_print(value, BOURSE_OK);
}

/* Prints one line, whose end is not among the bytes, at the latest with write_lines. */
static void print_line(struct live *live, struct live_stream *stream, const char *bytes,
                       size_t size)
{
    const char *subtask = cell_subtask(live->options.tasks, stream->index);
    if (live->options.take_line != NULL) {
        live->options.take_line(live->options.context, subtask, bytes, size);
        return;
    }
    if (live->options.invocation->json) {
        print_json(live, stream, bytes, size, 0);
        return;
    }
    const bool is_error = goes_to_stderr(live, stream);
    if (live->lines_are_errors != is_error ||
        sizeof live->lines - live->lines_size < size + LIVE_PREFIX_BYTES) {
        write_lines(live);
    }
    live->lines_are_errors = is_error;
    char *to = live->lines + live->lines_size;
    const int length = snprintf(to, LIVE_PREFIX_BYTES, "%.150s | ", subtask);
    memcpy(to + length, bytes, size);
    to[(size_t)length + size] = '\n';
    live->lines_size += (size_t)length + size + 1;
}

static void end_line(struct live *live, struct live_stream *stream)
{
    if (stream->line_size > 0) {
        print_line(live, stream, stream->line, stream->line_size);
        stream->line_size = 0;
    }
    write_lines(live);
}

static void add_to_lines(struct live *live, struct live_stream *stream, const char *bytes,
                         size_t size)
{
    if (stream->line == NULL && (stream->line = malloc(LIVE_LINE_BYTES)) == NULL) {
        return; /* the result has the rest */
    }
    for (size_t i = 0; i < size; i++) {
        stream->line_at = stream->line_size == 0 ? stream->next : stream->line_at;
        stream->next++;
        if (bytes[i] == '\n') {
            print_line(live, stream, stream->line, stream->line_size);
            stream->line_size = 0;
            continue;
        }
        stream->line[stream->line_size++] = bytes[i];
        if (stream->line_size == LIVE_LINE_BYTES) {
            end_line(live, stream);
        }
    }
    write_lines(live);
}

static void print_bytes(struct live *live, struct live_stream *stream, const char *bytes,
                        size_t size)
{
    stream->printed += size;
    if (live->options.has_prefix || live->options.invocation->json ||
        live->options.take_line != NULL) {
        add_to_lines(live, stream, bytes, size);
        return;
    }
    put(live, &stream->visible, bytes, size, goes_to_stderr(live, stream));
    stream->next += size;
}

static void tell_left_out(struct live *live, struct live_stream *stream)
{
    if (stream->left_out > 0) {
        make_room(live);
        stream_end_line();
        (void)fprintf(stderr, "bourse: %s: %" PRIu64 " bytes left out\n",
                      cell_subtask(live->options.tasks, stream->index), stream->left_out);
        stream->left_out = 0;
        stream->told_ns = clock_monotonic_ns();
    }
}

/* The first gap is told at once, and a stream of gaps now and then. */
static void say_gap(struct live *live, struct live_stream *stream, uint64_t bytes)
{
    if (live->options.invocation->json) {
        print_json(live, stream, NULL, 0, bytes);
    } else if (live->options.take_line == NULL) {
        stream->left_out += bytes;
        if (stream->told_ns == 0 || clock_monotonic_ns() - stream->told_ns >= LIVE_GAP_NS) {
            tell_left_out(live, stream);
        }
    }
}

/* ---------------------------------------------------------------- streams */

static struct live_stream *find(const struct live *live, uint32_t index, bool is_error)
{
    for (size_t i = 0; i < live->count; i++) {
        if (live->streams[i].index == index && live->streams[i].is_error == is_error) {
            return &live->streams[i];
        }
    }
    return NULL;
}

static void drop(struct live *live, struct live_stream *stream)
{
    free(stream->line);
    *stream = live->streams[--live->count];
}

/* Returns a new stream, or NULL when there are too many or memory is short. */
static struct live_stream *add_stream(struct live *live, uint32_t index, uint32_t attempt,
                                      bool is_error)
{
    struct live_stream *streams =
        live->count == LIVE_STREAMS_MAX
            ? NULL
            : array_with_room(live->streams, live->count, &live->capacity, sizeof *streams);
    if (streams == NULL) {
        return NULL;
    }
    live->streams = streams;
    struct live_stream *stream = &live->streams[live->count++];
    *stream = (struct live_stream){.index = index, .attempt = attempt, .is_error = is_error};
    return stream;
}

/* Returns the stream of the piece, or NULL when it is not printed. */
static struct live_stream *stream_of(struct live *live, const struct bourse_piece *piece)
{
    struct live_stream *stream = find(live, piece->index, piece->is_standard_error);
    if (stream != NULL && piece->attempt > stream->attempt) {
        end_line(live, stream);
        tell_left_out(live, stream);
        stream->attempt = piece->attempt;
        stream->next = 0;
        stream->printed = 0;
        stream->waits = false;
        stream->visible = (struct text_visible){.held_count = 0};
        if (live->options.take_line == NULL && !live->options.invocation->json &&
            !live->options.invocation->quiet) {
            make_room(live);
            stream_end_line();
            (void)fprintf(stderr, "bourse: %s: attempt %u begins\n",
                          cell_subtask(live->options.tasks, piece->index), piece->attempt);
        }
    }
    if (stream != NULL) {
        return piece->attempt == stream->attempt ? stream : NULL;
    }
    return add_stream(live, piece->index, piece->attempt, piece->is_standard_error);
}

static void listen(void *context, const struct bourse_piece *piece)
{
    struct live *live = context;
    const struct live_options *options = &live->options;
    if (piece->index >= options->subtasks || piece->attempt <= live->finished[piece->index] ||
        (options->is_one && piece->index != options->index) ||
        !(piece->is_standard_error ? options->shows_error : options->shows_output)) {
        return;
    }
    struct live_stream *stream = stream_of(live, piece);
    if (stream == NULL || piece->offset > UINT64_MAX - piece->size ||
        piece->offset + piece->size <= stream->next) {
        return;
    }
    if (options->is_whole && piece->offset > stream->next && stream->next < LIVE_KEPT_BYTES) {
        stream->waits = true;
    }
    if (stream->waits) {
        return;
    }
    if (piece->offset > stream->next) {
        end_line(live, stream);
        say_gap(live, stream, piece->offset - stream->next);
        stream->next = piece->offset;
    }
    const size_t known = (size_t)(stream->next - piece->offset);
    print_bytes(live, stream, (const char *)piece->bytes + known, piece->size - known);
}

struct live *live_begin(const struct live_options *options, struct bourse_error *ret_error)
{
    struct live *live = calloc(1, sizeof *live);
    uint32_t *finished = calloc((size_t)options->subtasks + 1, sizeof *finished);
    if (live == NULL || finished == NULL) {
        free(live);
        free(finished);
        *ret_error = (struct bourse_error){.status = BOURSE_LOCAL};
        (void)snprintf(ret_error->text, sizeof ret_error->text, "out of memory");
        return NULL;
    }
    live->options = *options;
    live->finished = finished;
    if (!options->is_past &&
        !bourse_listen(options->invocation->bourse, options->id, listen, live, ret_error)) {
        free(finished);
        free(live);
        return NULL;
    }
    return live;
}

void live_set_progress(struct live *live, struct progress *progress)
{
    if (live != NULL) {
        live->options.progress = progress;
    }
}

void live_end(struct live **self)
{
    struct live *live = *self;
    if (live == NULL) {
        return;
    }
    if (!live->options.is_past) {
        bourse_unlisten(live->options.invocation->bourse);
    }
    while (live->count > 0) {
        end_line(live, live->streams);
        tell_left_out(live, live->streams);
        drop(live, live->streams);
    }
    free(live->streams);
    free(live->finished);
    free(live);
    *self = NULL;
}

/* ---------------------------------------------------------------- the rest of a stream */

static bool print_rest(struct live *live, struct live_stream *stream,
                       const struct bourse_output *output, struct bourse_error *error)
{
    char what[128];
    char bytes[LIVE_LINE_BYTES];
    ssize_t got;
    (void)snprintf(what, sizeof what, "the standard %s of %.80s",
                   stream->is_error ? "error" : "output",
                   cell_subtask(live->options.tasks, stream->index));
    const int memory = memfd_create("bourse-rest", MFD_CLOEXEC);
    if (memory < 0) {
        *error = (struct bourse_error){.status = BOURSE_LOCAL};
        (void)snprintf(error->text, sizeof error->text, "no memory for %s", what);
        return false;
    }
    const bool ok =
        bourse_copy_output(live->options.invocation->bourse, output, what, memory, error);
    while (ok && (got = pread(memory, bytes, sizeof bytes, (off_t)stream->next)) > 0) {
        print_bytes(live, stream, bytes, (size_t)got);
    }
    (void)close(memory); /* a memory file has nothing to lose */
    return ok;
}

/* A stream of which nothing came live is printed out of its result alone, with --json. The caller
 * then prints nothing of it. Returns the stream, or NULL when there is none to print. */
static struct live_stream *past_stream(struct live *live, uint32_t index, uint32_t attempt,
                                       bool is_error, const struct bourse_output *output)
{
    struct live_stream *stream = find(live, index, is_error);
    const bool is_there = stream != NULL && stream->attempt >= attempt;
    if (!live->options.invocation->json || is_there || output == NULL || output->size == 0 ||
        live->finished[index] >= attempt) {
        return stream;
    }
    if (stream != NULL) {
        end_line(live, stream);
        drop(live, stream);
    }
    return add_stream(live, index, attempt, is_error);
}

bool live_finish(struct live *live, uint32_t index, uint32_t attempt, bool is_error,
                 const struct bourse_output *output, struct live_printed *ret_printed,
                 struct bourse_error *ret_error)
{
    *ret_printed = (struct live_printed){.is_any = false};
    if (live == NULL || index >= live->options.subtasks ||
        (live->options.is_one && index != live->options.index)) {
        return true;
    }
    bool ok = true;
    struct live_stream *stream = past_stream(live, index, attempt, is_error, output);
    if (stream != NULL && stream->attempt == attempt) {
        if (output != NULL && stream->next > output->size && output->size < LIVE_KEPT_BYTES) {
            stream->next = stream->printed =
                0; /* what came live was more than the signed result has */
        }
        if (output != NULL && output->size > stream->next) {
            ok = print_rest(live, stream, output, ret_error);
        }
        end_line(live, stream);
        tell_left_out(live, stream);
        *ret_printed = (struct live_printed){true, stream->printed};
    }
    if (stream != NULL && stream->attempt <= attempt) {
        drop(live, stream);
    }
    return live_could_write(live, ret_error) && ok;
}

bool live_could_write(const struct live *live, struct bourse_error *ret_error)
{
    if (live == NULL || live->write_error == 0) {
        return true;
    }
    *ret_error = (struct bourse_error){.status = BOURSE_LOCAL};
    (void)snprintf(ret_error->name, sizeof ret_error->name, "%s", bourse_status_name(BOURSE_LOCAL));
    (void)snprintf(ret_error->text, sizeof ret_error->text, "the output cannot be written: %s",
                   strerror(live->write_error));
    return false;
}

void live_is_over(struct live *live, uint32_t index, uint32_t attempt)
{
    if (live != NULL && index < live->options.subtasks && live->finished[index] < attempt) {
        live->finished[index] = attempt;
    }
}

bool live_is_later(const struct live *live, uint32_t index, uint32_t attempt)
{
    return live != NULL && index < live->options.subtasks && live->finished[index] > 0 &&
           attempt > live->finished[index];
}

/* ---------------------------------------------------------------- all streams */

struct ended_stream {
    uint32_t index, attempt;
    bool is_error, has_output;
    struct bourse_output output;
};

struct ended {
    const struct live *live;
    struct ended_stream *items; /* room for each stream */
    size_t count;
};

static bool note_ended(void *context, const struct bourse_outcome *outcome)
{
    struct ended *ended = context;
    for (unsigned i = 0; i < 2 && ended->count < ended->live->count; i++) {
        if (find(ended->live, outcome->index, i == 1) != NULL) {
            ended->items[ended->count++] = (struct ended_stream){
                .index = outcome->index,
                .attempt = outcome->attempt,
                .is_error = i == 1,
                .has_output = i == 1 ? outcome->has_standard_error : outcome->has_standard_output,
                .output = i == 1 ? outcome->standard_error : outcome->standard_output};
        }
    }
    return true;
}

bool live_catch_up(struct live *live, struct bourse_error *ret_error)
{
    struct ended ended = {.live = live};
    if (live == NULL || live->count == 0) {
        return true;
    }
    ended.items = calloc(live->count, sizeof *ended.items);
    if (ended.items == NULL) {
        return true; /* the streams end without their rest */
    }
    bool ok = bourse_outcomes(live->options.invocation->bourse, live->options.id, 0, note_ended,
                              &ended, ret_error);
    for (size_t i = 0; ok && i < ended.count; i++) {
        const struct ended_stream *item = &ended.items[i];
        struct live_printed printed;
        ok = live_finish(live, item->index, item->attempt, item->is_error,
                         item->has_output ? &item->output : NULL, &printed, ret_error);
    }
    for (size_t i = 0; ok && i < ended.count; i++) {
        live_is_over(live, ended.items[i].index, ended.items[i].attempt);
    }
    free(ended.items);
    return ok;
}
