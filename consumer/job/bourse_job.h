/* consumer/job/bourse_job.h is a job made ready to submit: its file, its blobs and its numbers.
 *
 * The type is opaque to users of libbourse. job_build.h makes one, and what follows adds to it. */
#ifndef BOURSE_CONSUMER_JOB_BOURSE_JOB_H
#define BOURSE_CONSUMER_JOB_BOURSE_JOB_H

#include "base/checked.h"
#include "consumer/client/bourse.h"
#include "consumer/job/expand.h"
#include "consumer/job/order.h"
#include "formats/job.h"
#include "formats/tar.h"
#include "runtime/blob/blob_client.h"

/* Blobs that are no files of their own: each is made as it is sent. */
struct made_blob {
    struct hash32 hash;
    uint64_t size;
};
struct made_blobs {
    struct made_blob *items; /* owned */
    size_t count;
    blob_read *read;
    blob_locate *locate;
    void *context; /* outlives the job */
};

/* What the market has said of its work: history.h. */
struct job_learned {
    bool is_done;
    bool is_written;   /* what is predicted stands in the manifest */
    uint64_t subtasks; /* of which something was measured */
    uint64_t samples;  /* of the one with most */
    int64_t
        p90_ns; /* of each size of these on each class of devices nine of ten took at most that */
    bool has_no_p90;                  /* of one there are too few samples to say */
    int64_t said_ns[ORDER_PARTS_MAX]; /* what the job says of a part without tasks; 0: nothing */
};

struct bourse_job {
    struct job_file *file;
    char *file_name; /* of the job file, for messages; NULL: there is none */
    struct id128 id; /* of its SubmitJob: the same for every try */
    struct input_list
        own; /* `each:`, one per subtask; of tasks, those of the first of the file, and so on */
    size_t
        *own_of; /* of each task of the file: where its files begin in `own`; NULL without tasks */
    struct input_list shared; /* `files:` */
    struct input_list image;  /* none or one */
    struct input_list found;  /* of a resumed job: what the broker lost, and is still here */
    /* Entries and bytes of the image; zeros where there is none, or where the job is continued and
     * asks for them already. */
    struct tar_limits image_has;
    struct made_blobs made; /* of a job that is no file's */
    uint64_t subtasks;      /* checks included */
    uint32_t checks;        /* the last of them (cheap.h) */
    bool spares_referee; /* as quoted: a single referee is on offer, who checks and so makes nothing
                          */
    bool holds_nothing; /* as quoted: its budget is 0, or its account has nothing, so that only what
                           is given away is for it */
    struct order_part check; /* of the checks, where it is not what the file says; slots 0: it is */
    struct order_part *parts; /* ORDER_PARTS_MAX have room; at least one */
    size_t part_count;
    struct order_graph graph; /* of tasks, and of work on inputs of unlike size */
    int64_t *expect_ns; /* of each subtask but the checks, by what was measured; NULL: as the file
                           says, or its part */
    uint32_t *order;    /* of each subtask: which task of the file it is; NULL without tasks */
    bool continues;     /* the job `continued` */
    struct id128 continued;
    uint8_t *manifest;
    size_t manifest_length;
    struct hash32 manifest_hash;
    struct job_learned learned;
};

#endif
