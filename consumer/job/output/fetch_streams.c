/* This file fetches standard output and error of subtasks, and copies an output to a
 * descriptor. */
#include "consumer/client/client.h"
#include "consumer/client/rows.h"
#include "consumer/job/output/fetch_blob.h"
#include "consumer/job/tasks.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COPY_BYTES = 1 << 16 };

struct wanted {
    uint32_t index;
    bool standard_error;
    bool found; /* the subtask has a result */
    bool has;   /* the result has the wanted stream */
    bool accepted;
    struct bourse_output output;
};

static bool find_stream(void *context, const struct bourse_outcome *outcome)
{
    struct wanted *wanted = context;
    if (outcome->index != wanted->index) {
        return outcome->index < wanted->index;
    }
    if (wanted->accepted) {
        return true; /* an accepted attempt decides, whatever came later */
    }
    wanted->found = true;
    wanted->accepted = outcome->status == ATTEMPT_ACCEPTED;
    wanted->has =
        wanted->standard_error ? outcome->has_standard_error : outcome->has_standard_output;
    wanted->output = wanted->standard_error ? outcome->standard_error : outcome->standard_output;
    return true;
}

static bool copy_to(int from, uint64_t size, int to, struct bourse_error *error)
{
    uint8_t buffer[COPY_BYTES];
    uint64_t done = 0;
    while (done < size) {
        ssize_t got = pread(from, buffer, sizeof buffer, (off_t)done);
        if (got <= 0) {
            return client_fail(error, BOURSE_LOCAL, "the fetched output cannot be read back: %s",
                               strerror(errno));
        }
        for (ssize_t sent = 0; sent < got;) {
            ssize_t wrote = write(to, buffer + sent, (size_t)(got - sent));
            if (wrote < 0 && errno != EINTR) {
                return client_fail(error, BOURSE_LOCAL, "the output cannot be written: %s",
                                   strerror(errno));
            }
            sent += wrote > 0 ? wrote : 0;
        }
        done += (uint64_t)got;
    }
    return true;
}

enum copied { COPIED, COPY_FAILED, COPY_UNNAMED }; /* unnamed: the error lacks the output's name */

static enum copied copy_blob(struct bourse *bourse, const struct bourse_output *output, int fd,
                             struct fetch_blob *ret_blob, struct bourse_error *ret_error)
{
    if (output->size == 0) {
        return COPIED;
    }
    if (!fetch_blob_of(bourse, output, ret_blob, ret_error)) {
        return COPY_FAILED;
    }
    int memory = memfd_create("bourse-log", MFD_CLOEXEC);
    if (memory < 0) {
        (void)client_fail(ret_error, BOURSE_LOCAL, "%s", strerror(errno));
        return COPY_FAILED;
    }
    /* The blob client verifies the hash before it reports success, so nothing unverified reaches
     * `fd`. */
    enum copied copied = COPY_UNNAMED;
    if (fetch_blob_fill(ret_blob, memory)) {
        copied = copy_to(memory, output->size, fd, ret_error) ? COPIED : COPY_FAILED;
    }
    (void)close(memory); /* a memory file has nothing to lose */
    return copied;
}

bool bourse_copy_output(struct bourse *bourse, const struct bourse_output *output, const char *what,
                        int fd, struct bourse_error *ret_error)
{
    struct fetch_blob blob;
    const enum copied copied = copy_blob(bourse, output, fd, &blob, ret_error);
    return copied == COPY_UNNAMED ? client_blob_named(ret_error, &blob.hash, what)
                                  : copied == COPIED;
}

bool bourse_log(struct bourse *bourse, const char *id, uint32_t index, bool standard_error, int fd,
                struct bourse_error *ret_error)
{
    struct wanted wanted = {.index = index, .standard_error = standard_error};
    /* Two rows suffice: a row of the next subtask shows that no other attempt of this one
     * follows. */
    if (!client_outcomes(bourse, id, index, 2, find_stream, &wanted, ret_error)) {
        return false;
    }
    if (!wanted.found) {
        return client_no_result(bourse, id, index, ret_error);
    }
    if (!wanted.has) {
        return true;
    }
    struct fetch_blob blob;
    const enum copied copied = copy_blob(bourse, &wanted.output, fd, &blob, ret_error);
    if (copied == COPY_UNNAMED) {
        char what[FETCH_WHAT_SIZE];
        char label[TASKS_LABEL_SIZE];
        tasks_label_of(bourse, id, index, label);
        fetch_blob_name(standard_error ? "standard error" : "standard output", label, id, what);
        return client_blob_named(ret_error, &blob.hash, what) ||
               bourse_say_forgotten(bourse, id, ret_error);
    }
    return copied == COPIED;
}
