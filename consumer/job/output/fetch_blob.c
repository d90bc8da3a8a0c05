#include "consumer/job/output/fetch_blob.h"

#include "base/text.h"

#include <stdio.h>

bool fetch_blob_fill(void *context, int fd)
{
    struct fetch_blob *blob = context;
    if (blob->size == 0) {
        return true; /* the caller checks the hash, as for any file */
    }
    struct blob_client *blobs = client_blobs_begin(blob->client, blob->error);
    if (blobs == NULL) {
        return false;
    }
    struct problem problem = {.text = ""};
    enum reject_code reject = REJECT_NONE;
    uint64_t size = 0;
    int unwritten = 0;
    bool ok = blob_client_get(blobs, &blob->hash, NULL, blob->size, fd, &size, &reject, &unwritten,
                              &problem);
    client_blobs_end(blob->client);
    if (!ok && unwritten != 0) {
        return client_fail(blob->error, BOURSE_LOCAL, "%s", problem.text);
    }
    if (!ok) {
        return client_blob_failed(blob->client, blob->error, reject, &problem);
    }
    client_breathe(blob->client);
    return true;
}

bool fetch_blob_of(struct bourse *client, const struct bourse_output *output,
                   struct fetch_blob *ret_blob, struct bourse_error *error)
{
    *ret_blob = (struct fetch_blob){.client = client, .size = output->size, .error = error};
    return text_unhex(output->hash, ret_blob->hash.bytes, sizeof ret_blob->hash.bytes)
               ? true
               : client_fail(error, BOURSE_UNVERIFIED,
                             "the broker sent an output without its hash");
}

void fetch_blob_name(const char *name, const char *label, const char *job,
                     char ret_what[FETCH_WHAT_SIZE])
{
    (void)snprintf(ret_what, FETCH_WHAT_SIZE, "the %s of %s of job %s", name, label, job);
}
