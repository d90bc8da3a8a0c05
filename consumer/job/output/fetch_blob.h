/* consumer/job/output/fetch_blob.h fetches one output's bytes. The header is not installed. */
#ifndef BOURSE_CONSUMER_JOB_OUTPUT_FETCH_BLOB_H
#define BOURSE_CONSUMER_JOB_OUTPUT_FETCH_BLOB_H

#include "base/id.h"
#include "consumer/client/client.h"
#include "consumer/job/tasks.h"
#include "protocol/limits.h"

struct fetch_blob {
    struct bourse *client;
    struct hash32 hash;
    uint64_t size;
    struct bourse_error *error;
};

/* Prepares the fetch of an output. Returns false with the error when the output has no hash. */
bool fetch_blob_of(struct bourse *client, const struct bourse_output *output,
                   struct fetch_blob *ret_blob, struct bourse_error *error);
/* Writes the bytes to `fd` from offset 0; `context` is a struct fetch_blob. Its error says why the
 * call failed. A blob of some bytes has its hash after success. */
bool fetch_blob_fill(void *context, int fd);

/* Writes the name of an output for messages. `name` is that of the output in its subtask. */
enum { FETCH_WHAT_SIZE = 160 + TASKS_LABEL_SIZE + LIMIT_PATH_BYTES };
void fetch_blob_name(const char *name, const char *label, const char *job,
                     char ret_what[FETCH_WHAT_SIZE]);

#endif
