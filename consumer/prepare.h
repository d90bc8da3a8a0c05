/* consumer/prepare.h - a job file and the files it names become a manifest, a list of blobs and the
 * numbers of SubmitJob. Not installed. Only reads; nothing is sent. */
#ifndef BOURSE_CONSUMER_PREPARE_H
#define BOURSE_CONSUMER_PREPARE_H

#include "consumer/bourse.h"
#include "consumer/expand.h"
#include "formats/job.h"
#include "protocol/codec.h"

/* What the quote assumes of a subtask when the job does not say: a small part of its limit. */
enum { PREPARE_EXPECT_MS_DEFAULT = 5000 };

/* Blobs that are no files of their own: each is made in memory when it is sent. */
struct made_blob {
    struct hash32 hash;
    uint64_t size;
};
typedef bool made_blob_fill(void *context, size_t index, uint8_t *ret_bytes,
                            struct problem *ret_problem);
struct made_blobs {
    struct made_blob *items; /* owned */
    size_t count;
    made_blob_fill *fill;
    void *context; /* outlives the job */
};

struct bourse_job {
    struct job_file *file;
    struct id128 id;          /* of its SubmitJob: the same for every try */
    struct input_list own;    /* `each:`, one per subtask */
    struct input_list shared; /* `files:` */
    struct input_list image;  /* none or one */
    struct made_blobs made;   /* of a job that is no file's */
    struct requirement needs; /* the job's, and its program on offer */
    uint64_t subtasks;
    int64_t expect_ms;
    uint8_t *manifest;
    size_t manifest_length;
    struct hash32 manifest_hash;
};

/* Takes `file` over, also when it fails. Names are relative to `folder`. `file_name` is the job file's,
 * for messages; NULL when there is none. */
bool prepare_job(struct job_file *file, const char *folder, const char *file_name,
                 struct bourse_job **ret_job, struct bourse_error *error);

/* What is common to every job once its manifest stands: encodes it, with the checks that the agents will make. */
bool prepare_manifest(struct bourse_job *job, const Bourse__V1__Manifest *manifest,
                      struct bourse_error *error);
/* Adds `name = text` to what the job needs. */
bool prepare_need(struct bourse_job *job, const char *name, const char *text,
                  struct bourse_error *error);

#endif
