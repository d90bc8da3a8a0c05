/* consumer/client/bourse_storage.h lists what the account stores on the broker, and frees it.
 * Include consumer/client/bourse.h, which states the rules that all of its parts share. */
#ifndef BOURSE_CONSUMER_CLIENT_BOURSE_STORAGE_H
#define BOURSE_CONSUMER_CLIENT_BOURSE_STORAGE_H

#include "consumer/client/bourse_connection.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct bourse_storage {
    uint64_t used_bytes, quota_bytes;
    int64_t grace_ms; /* how long forgotten blobs stay on the broker's disk */
};

struct bourse_stored_job {
    char id[BOURSE_ID_SIZE];
    char name[BOURSE_NAME_SIZE];
    uint64_t blobs, bytes; /* what the job uses; other jobs may use the same blobs */
    int64_t ended_ms;      /* 0: it is open */
    int64_t expires_ms;    /* 0: it is open, or its blobs are forgotten */
    int64_t forgotten_ms;  /* 0: its blobs are there */
    bool expired;          /* its blobs were forgotten because they had expired */
};
/* Visits the account's jobs whose blobs are not forgotten, the oldest first. The visitor returns
 * false to stop. Without a visitor (NULL) the call looks at no job, and costs little. */
typedef bool bourse_stored_visitor(void *context, const struct bourse_stored_job *job);
bool bourse_storage(struct bourse *bourse, bourse_stored_visitor *visitor, void *context,
                    struct bourse_storage *ret_storage, struct bourse_error *ret_error);
/* Finds one job, whether its blobs are forgotten or not. */
bool bourse_stored(struct bourse *bourse, const char *id, struct bourse_stored_job *ret_job,
                   struct bourse_error *ret_error);

/* Replaces the text of an error NOT_FOUND about a file of a job if the job's files were forgotten.
 * Any other error stays as it is. Always returns false. */
bool bourse_say_forgotten(struct bourse *bourse, const char *id, struct bourse_error *error);

enum bourse_forget_outcome {
    BOURSE_FORGOTTEN_NOW = 1,
    BOURSE_FORGOTTEN_BEFORE = 2,
    BOURSE_FORGET_OPEN = 3,    /* the job is open: its blobs stay */
    BOURSE_FORGET_UNKNOWN = 4, /* the account has no such job */
};
struct bourse_forgotten {
    char id[BOURSE_ID_SIZE];
    int outcome;           /* enum bourse_forget_outcome */
    uint64_t blobs, bytes; /* freed, because no other job of the account uses them */
};
enum { BOURSE_FORGET_MAX = 64 };
/* Forgets the blobs of at most BOURSE_FORGET_MAX jobs. Receipts and results stay. With `dry_run`
 * nothing is forgotten, and the outcomes say what would be. ret_forgotten has an element for each
 * id. */
bool bourse_forget(struct bourse *bourse, const char *const *ids, size_t count, bool dry_run,
                   struct bourse_forgotten *ret_forgotten, struct bourse_storage *ret_storage,
                   struct bourse_error *ret_error);

#ifdef __cplusplus
}
#endif

#endif
