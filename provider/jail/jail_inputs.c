/* This file places the inputs of a run in the jail, and checks the mapped ones. */
#include "base/sha256.h"
#include "provider/jail/jail.h"
#include "provider/jail/jail_internal.h"
#include "provider/worker/packet.h"
#include "runtime/files.h"
#include "runtime/relay.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Checks a file that came from the jail. The file must be a regular file in memory, so that writing
 * neither blocks nor reaches anything else. */
static bool is_place(int place)
{
    struct stat status;
    struct statfs system;
    bool is_one = fstat(place, &status) == 0 && S_ISREG(status.st_mode) &&
                  fstatfs(place, &system) == 0 && system.f_type == TMPFS_MAGIC;
    errno = is_one ? 0 : EBADF;
    return is_one;
}

/* Copies `size` bytes, in the source from `from` on, into a new file of the jail. */
static bool fill(int place, int source, uint64_t from, const void *bytes, uint64_t size)
{
    off_t offset = (off_t)from;
    while ((uint64_t)offset < from + size) {
        uint64_t left = from + size - (uint64_t)offset;
        size_t step = left < (1U << 30) ? (size_t)left : 1U << 30;
        ssize_t moved;
        if (source >= 0) {
            moved = sendfile(place, source, &offset, step);
        } else {
            assert(bytes != NULL && from == 0); /* one of the two sources is there */
            moved = pwrite(place, (const char *)bytes + offset, step, offset);
            offset += moved > 0 ? moved : 0;
        }
        if (moved < 0 && errno == EINTR) {
            continue;
        }
        if (moved <= 0) {
            errno = moved == 0 ? ENODATA : errno;
            return false;
        }
    }
    return true;
}

/* A file of another owner on its way into the jail. The placed bytes are the hashed ones, even if
 * the file changes. */
struct placing {
    int place, source;
    atomic_int failed; /* errno */
};

static bool fail_placing(struct placing *placing, int error)
{
    atomic_store(&placing->failed, error);
    return false;
}

static bool read_source(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    struct placing *placing = context;
    return file_read_at(placing->source, ret_bytes, length, offset) || fail_placing(placing, errno);
}

static bool write_place(void *context, uint64_t offset, const uint8_t *bytes, size_t length)
{
    struct placing *placing = context;
    return file_write_at(placing->place, bytes, length, offset) || fail_placing(placing, errno);
}

static bool fill_hashed(int place, const struct jail_input *input)
{
    struct placing placing = {.place = place, .source = input->fd};
    struct sha256 sum;
    const struct relay relay = {.to = input->size,
                                .sum = &sum,
                                .context = &placing,
                                .read = read_source,
                                .write = write_place};
    sha256_start(&sum);
    bool good = relay_run(&relay);
    struct hash32 hash = sha256_end(&sum);
    if (input->is_last) { /* reused memory is available sooner than new memory */
        (void)posix_fadvise(input->fd, 0, 0, POSIX_FADV_DONTNEED);
    }
    errno = !good ? (atomic_load(&placing.failed) != 0 ? atomic_load(&placing.failed) : ENOMEM)
                  : EBADMSG;
    return good && hash32_equal(&hash, input->hash);
}

/* Returns true when a file that stays in place has its hash. Returns false with errno otherwise. */
static bool has_hash(const struct jail_input *input)
{
    enum { PIECE_BYTES = 128 << 10 };
    uint8_t *piece = malloc(PIECE_BYTES);
    struct placing placing = {.place = -1, .source = input->fd};
    struct sha256 sum;
    bool good = piece != NULL;
    sha256_start(&sum);
    for (uint64_t done = 0; good && done < input->size;) {
        uint64_t left = input->size - done;
        size_t length = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        good = read_source(&placing, done, piece, length);
        if (good) {
            sha256_add(&sum, piece, length);
            done += length;
        }
    }
    free(piece);
    struct hash32 hash = sha256_end(&sum);
    errno = good ? EBADMSG : ENOMEM;
    if (!good && atomic_load(&placing.failed) != 0) {
        errno = atomic_load(&placing.failed);
    }
    return good && hash32_equal(&hash, input->hash);
}

static const char *why_unfilled(int error)
{
    switch (error) {
    case ENODATA:
        return "is shorter than it was said to be";
    case EBADMSG:
        return "the broker's file does not have its hash";
    default:
        return strerror(error);
    }
}

static void fill_failed(struct jail_reply *reply, const char *name)
{
    char text[128];
    (void)jail_conclude(
        reply, errno == ENOSPC || errno == EDQUOT ? OUTCOME_DISK_LIMIT : OUTCOME_INPUT_MISSING,
        "input %s: %s", jail_shown(name, text), why_unfilled(errno));
}

bool jail_inputs_has_place(const struct jail_input *input)
{
    return !input->is_mapped && !input->is_held && !input->is_folder && input->link == NULL;
}

void jail_inputs_place(struct staging *staging, int *files, size_t count, struct jail_reply *reply)
{
    const struct jail_request *request = staging->request;
    size_t total = request->input_count + (request->stdin_size > 0 ? 1 : 0);
    for (size_t i = 0; i < count && !staging->failed; i++) {
        while (staging->next < request->input_count &&
               !jail_inputs_has_place(&request->inputs[staging->next])) {
            staging->next++;
        }
        size_t which = staging->next++;
        staging->done++;
        if (which >= total) {
            errno = EBADF;
            fill_failed(reply, "that was not asked for");
            staging->failed = true;
        } else if (which < request->input_count) {
            const struct jail_input *input = &request->inputs[which];
            staging->failed = !is_place(files[i]) ||
                              !(input->hash != NULL
                                    ? fill_hashed(files[i], input)
                                    : fill(files[i], input->fd, input->offset, NULL, input->size));
            if (staging->failed) {
                fill_failed(reply, input->name);
            }
        } else {
            staging->failed =
                !is_place(files[i]) ||
                !fill(files[i], request->stdin_fd, 0, request->stdin_bytes, request->stdin_size);
            if (staging->failed) {
                fill_failed(reply, "stdin");
            }
        }
    }
    packet_close_files(files, count); /* before GO: a file open for writing cannot be executed */
}

/* The agent's store has verified the files of its own, which come without a hash. */
bool jail_input_verify(const struct jail_input *input, struct stamp *ret_stamp)
{
    struct stamp *hashed = input->hashed;
    if (input->hash == NULL) {
        return stamp_take(input->fd, ret_stamp);
    }
    if (hashed != NULL && hashed->is_known && (uint64_t)hashed->size == input->size &&
        !stamp_has_changed(hashed, input->fd)) {
        *ret_stamp = *hashed;
        return true;
    }
    const bool good = stamp_take(input->fd, ret_stamp) && has_hash(input);
    if (hashed != NULL) {
        *hashed = good ? *ret_stamp : (struct stamp){.is_known = false};
    }
    return good;
}

/* Checks the hashes of mapped inputs before anything is computed. Later, root or our own user could
 * still change them (jail_inputs_blame). */
bool jail_inputs_check(struct staging *staging, struct jail_reply *reply)
{
    const struct jail_request *request = staging->request;
    for (size_t i = 0; i < request->input_count && !staging->failed; i++) {
        const struct jail_input *input = &request->inputs[i];
        if (!input->is_mapped) {
            continue;
        }
        if (!jail_input_verify(input, &staging->mapped[staging->checked])) {
            fill_failed(reply, input->name);
            staging->failed = true;
        }
        staging->checked++;
    }
    return !staging->failed;
}

/* Returns false for outcomes that are no fault of the job, which it is not charged for. */
static bool is_outcome_of_job(enum result_outcome outcome)
{
    switch (outcome) {
    case OUTCOME_CANCELLED:
    case OUTCOME_TERM_OVER:
    case OUTCOME_PREEMPTED:
    case OUTCOME_JAIL_FAILED:
        return false;
    default:
        return true;
    }
}

/* Makes the next reader hash the file again. */
static void forget(const struct jail_input *input)
{
    if (input->hashed != NULL) {
        input->hashed->is_known = false;
    }
}

/* A result or failure counts for the job only if the mapped inputs are still the hashed ones. A
 * result has its disk space before a byte is written, so SIGBUS comes from a mapped input. */
void jail_inputs_blame(const struct staging *staging, struct jail_reply *reply)
{
    const struct jail_request *request = staging->request;
    const bool is_unread = reply->outcome == OUTCOME_SIGNALLED && reply->signal == SIGBUS;
    const char *name = NULL;
    const char *why = "the broker's file was changed while it was computed with";
    char text[128];
    size_t which = 0;
    if (staging->failed || !is_outcome_of_job(reply->outcome)) {
        return;
    }
    for (size_t i = 0; i < request->input_count && which < staging->checked; i++) {
        const struct jail_input *input = &request->inputs[i];
        if (input->is_mapped && stamp_has_changed(&staging->mapped[which++], input->fd)) {
            forget(input);
            why = input->hash == NULL ? "the agent's file was changed while it was computed with"
                                      : why;
            name = name == NULL ? input->name : name;
        }
    }
    for (size_t i = 0; i < request->input_count && is_unread && name == NULL; i++) {
        if (request->inputs[i].is_mapped && request->inputs[i].hash != NULL &&
            !has_hash(&request->inputs[i])) {
            forget(&request->inputs[i]);
            name = request->inputs[i].name;
            why = "the broker's file cannot be read";
        }
    }
    if (name != NULL) {
        reply->signal = 0;
        (void)jail_conclude(reply, OUTCOME_INPUT_MISSING, "input %s: %s", jail_shown(name, text),
                            why);
    } else if (is_unread && staging->checked > 0) {
        reply->signal = 0;
        (void)jail_conclude(reply, OUTCOME_INPUT_MISSING, "an input could not be read: Bus error");
    }
}

bool jail_inputs_told_wrong(const struct staging *staging)
{
    const struct jail_request *request = staging->request;
    size_t which = 0;
    bool is_wrong = false;
    for (size_t i = 0; i < request->input_count && which < staging->checked; i++) {
        const struct jail_input *input = &request->inputs[i];
        if (input->is_mapped) {
            is_wrong = is_wrong || (input->content != NULL &&
                                    stamp_has_changed(&staging->mapped[which], input->fd));
            which++;
        }
    }
    return is_wrong;
}

/* Frees memory of last-read inputs, because reused memory is available sooner than new memory. */
void jail_inputs_release(const struct jail_request *request)
{
    for (size_t i = 0; i < request->input_count; i++) {
        if (request->inputs[i].is_mapped && request->inputs[i].is_last) {
            (void)posix_fadvise(request->inputs[i].fd, 0, 0, POSIX_FADV_DONTNEED);
        }
    }
}
