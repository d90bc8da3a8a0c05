#include "consumer/command/job/stream.h"

#include "base/text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SHOW_BYTES = 4096 };

static bool is_shown(const struct invocation *invocation, int fd)
{
    return isatty(fd) == 1 && !option_given(invocation, "raw");
}

static bool fail(struct bourse_error *ret_error, const char *what)
{
    *ret_error = (struct bourse_error){.status = BOURSE_LOCAL};
    (void)snprintf(ret_error->name, sizeof ret_error->name, "%s", bourse_status_name(BOURSE_LOCAL));
    (void)snprintf(ret_error->text, sizeof ret_error->text, "%s: %s", what, strerror(errno));
    return false;
}

static bool is_line_open; /* the last output on stderr or a terminal lacks its end of line */

/* Looks at the last byte of the file `from`; an empty file leaves the line as it was. */
static void note_line(int from)
{
    char last = '\n';
    const off_t size = lseek(from, 0, SEEK_END);
    if (size > 0 && pread(from, &last, 1, size - 1) == 1) {
        is_line_open = last != '\n';
    }
}

void stream_end_line(void)
{
    if (is_line_open) {
        (void)fputc('\n', stderr);
    }
    is_line_open = false;
}

/* Copies the file `from` to the descriptor `to` unchanged. The streams stdout and stderr are not
 * used, because they show control characters on a terminal (runtime/terminal.h). */
static bool copy(int from, int to, struct bourse_error *ret_error)
{
    uint8_t bytes[SHOW_BYTES];
    off_t done = 0;
    ssize_t got;
    while ((got = pread(from, bytes, sizeof bytes, done)) > 0) {
        for (ssize_t written = 0; written < got;) {
            const ssize_t wrote = write(to, bytes + written, (size_t)(got - written));
            if (wrote < 0 && errno != EINTR) {
                return fail(ret_error, "the output cannot be written");
            }
            written += wrote < 0 ? 0 : wrote;
        }
        done += got;
    }
    return got == 0 || fail(ret_error, "the fetched output cannot be read back");
}

/* Prints the file `from` to a terminal. */
static bool show(int from, FILE *to, struct bourse_error *ret_error)
{
    struct text_visible state = {.held_count = 0};
    uint8_t bytes[SHOW_BYTES];
    char text[SHOW_BYTES * TEXT_VISIBLE_PER_BYTE + TEXT_VISIBLE_END_SIZE];
    off_t done = 0;
    ssize_t got;
    while ((got = pread(from, bytes, sizeof bytes, done)) > 0) {
        const size_t length = text_visible(&state, bytes, (size_t)got, text);
        if (fwrite(text, 1, length, to) != length) {
            return fail(ret_error, "the output cannot be written");
        }
        done += got;
    }
    if (got < 0) {
        return fail(ret_error, "the fetched output cannot be read back");
    }
    const size_t length = text_visible_end(&state, text);
    return (fwrite(text, 1, length, to) == length && fflush(to) == 0) ||
           fail(ret_error, "the output cannot be written");
}

bool stream_piece(const struct invocation *invocation, struct text_visible *state,
                  const void *bytes, size_t size, bool to_standard_error)
{
    const int fd = to_standard_error ? STDERR_FILENO : STDOUT_FILENO;
    FILE *const to = to_standard_error ? stderr : stdout;
    char text[SHOW_BYTES * TEXT_VISIBLE_PER_BYTE + TEXT_VISIBLE_END_SIZE];
    const char *from = bytes;
    bool ok = fflush(to) == 0;
    if (size > 0 && (to_standard_error || isatty(fd) == 1)) {
        is_line_open = from[size - 1] != '\n';
    }
    for (size_t done = 0; ok && done < size;) {
        size_t part = size - done;
        if (is_shown(invocation, fd)) {
            part = part < SHOW_BYTES ? part : SHOW_BYTES;
            const size_t length = text_visible(state, from + done, part, text);
            ok = fwrite(text, 1, length, to) == length;
        } else {
            const ssize_t wrote = write(fd, from + done, part);
            ok = wrote >= 0 || errno == EINTR;
            part = wrote < 0 ? 0 : (size_t)wrote;
        }
        done += part;
    }
    return fflush(to) == 0 && ok;
}

static bool print(struct invocation *invocation, const struct bourse_output *output,
                  const char *what, bool to_standard_error, struct bourse_error *ret_error)
{
    const int fd = to_standard_error ? STDERR_FILENO : STDOUT_FILENO;
    FILE *const to = to_standard_error ? stderr : stdout;
    (void)fflush(to);
    const bool shows = is_shown(invocation, fd);
    if (!shows && !to_standard_error && isatty(fd) != 1) {
        return bourse_copy_output(invocation->bourse, output, what, fd, ret_error);
    }
    int memory = memfd_create("bourse-show", MFD_CLOEXEC);
    if (memory < 0) {
        return fail(ret_error, "memory for what was printed");
    }
    bool ok = bourse_copy_output(invocation->bourse, output, what, memory, ret_error) &&
              (shows ? show(memory, to, ret_error) : copy(memory, fd, ret_error));
    note_line(memory);
    (void)close(memory); /* a memory file has nothing to lose */
    return ok;
}

bool stream_output(struct invocation *invocation, const struct bourse_output *output,
                   bool to_standard_error, struct bourse_error *ret_error)
{
    const char *what =
        to_standard_error ? "the standard error of the job" : "the standard output of the job";
    return print(invocation, output, what, to_standard_error, ret_error);
}

bool stream_item(struct invocation *invocation, const struct stream_item *item,
                 struct bourse_error *ret_error)
{
    struct bourse_output output = {.size = item->size};
    char what[256];
    (void)snprintf(output.hash, sizeof output.hash, "%s", item->hash);
    (void)snprintf(what, sizeof what, "the standard %s of %s of job %s",
                   item->is_standard_error ? "error" : "output", item->subtask, item->job);
    return print(invocation, &output, what, false, ret_error) ||
           bourse_say_forgotten(invocation->bourse, item->job, ret_error);
}

bool stream_log(struct invocation *invocation, const char *id, uint32_t index, bool standard_error,
                struct bourse_error *ret_error)
{
    (void)fflush(stdout);
    if (!is_shown(invocation, STDOUT_FILENO)) {
        return bourse_log(invocation->bourse, id, index, standard_error, STDOUT_FILENO, ret_error);
    }
    int memory = memfd_create("bourse-show", MFD_CLOEXEC);
    if (memory < 0) {
        return fail(ret_error, "memory for what was printed");
    }
    bool ok = bourse_log(invocation->bourse, id, index, standard_error, memory, ret_error) &&
              show(memory, stdout, ret_error);
    (void)close(memory); /* a memory file has nothing to lose */
    return ok;
}
