/* consumer/job/bourse_job.h is a job ready to submit, with its file, its blobs and its numbers.
 *
 * Users of libbourse do not see the fields. job_build.h makes a job, and later steps add to it. */
#ifndef BOURSE_CONSUMER_JOB_BOURSE_JOB_H
#define BOURSE_CONSUMER_JOB_BOURSE_JOB_H

#include "base/checked.h"
#include "consumer/client/bourse.h"
#include "consumer/job/input/input_pack.h"
#include "consumer/job/input/input_tree.h"
#include "consumer/job/input_list.h"
#include "consumer/job/order.h"
#include "formats/job.h"
#include "formats/tar.h"
#include "runtime/blob/blob_client.h"

/* A made blob has no file of its own; its bytes are made while they are sent. */
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

struct measured_works;
struct measured_times;
struct model_stages;
struct train_job;

/* The market's knowledge about the work of a job comes from history.h. */
struct job_learned {
    bool is_done;
    /* All that the market measured of the job's works, and the works by their number there; owned.
     * NULL: not asked, or not told. */
    struct measured_times *times;
    struct measured_works *works;
    bool is_written;   /* the manifest holds the predictions */
    uint64_t subtasks; /* subtasks whose work was measured */
    uint64_t samples;  /* samples of the subtask with most */
    /* 90 % of the samples took at most this, in every size and device class. */
    int64_t p90_ns;
    bool has_no_p90; /* some class has too few samples for a p90 */
    /* Time that the job states for a part without tasks; 0: none. */
    int64_t said_ns[ORDER_PARTS_MAX];
};

/* A job_program says what is sent of a program of this machine (consumer/job/program/). */
struct job_program {
    bool is_own;             /* false: the program is the host's or the image's */
    bool has_host_libraries; /* the ELF program goes without its libraries */
    const char *arch;        /* machine code of an ELF program; NULL: a script */
    char interpreter[256];   /* host program that runs a script; "": an ELF program */
    uint64_t bytes;          /* size of the file itself */
    size_t libraries;        /* files in the image, the loader included */
    uint64_t library_bytes;
};

/* A job_start says how programs of a container image start (consumer/job/image/). */
struct job_start {
    const char *arch;     /* machine code of the image; NULL: not known */
    char *directory;      /* where they start; NULL: the work folder */
    bool has_user;        /* false: the jail's own user */
    uint32_t user, group; /* numbers that the programs see; the user is not 0 */
};

/* The order of a job with `objective: energy` takes only slots of these instruments, and of each
 * only those that use at most so much. */
enum { JOB_POWER_LIMITS_MAX = 16 };
struct job_power_limit {
    char instrument[BOURSE_NAME_SIZE];
    int64_t power_mw; /* of one slot at full load */
};
struct job_power_limits {
    struct job_power_limit items[JOB_POWER_LIMITS_MAX];
    size_t count; /* 0: any slot will do */
};

struct bourse_job {
    struct job_file *file;
    char *file_name; /* name of the job file, for messages; NULL: none */
    struct id128 id; /* id of its SubmitJob, the same for every try */
    /* Files of `each:`, one per subtask. With tasks: the files of the first task, then the next. */
    struct input_list own;
    /* Index in `own` of each task's first file; NULL without tasks. */
    size_t *own_of;
    struct input_list shared; /* `files:`; many small files are packed into archives */
    struct input_packed packed;
    struct input_tree tree;       /* folders, links and times of `files:` */
    struct input_tree *own_trees; /* of each task's own files; NULL without tasks */
    size_t listings;              /* inputs that are listings of these */
    struct input_list image;      /* none or one */
    struct input_list found; /* files of a resumed job that the broker lost and this machine has */
    /* Entries and bytes of the image. Zeros mean that there is no image, or that a continued job
     * asks for them already. */
    struct tar_limits image_has;
    struct job_program program;
    struct job_start start;
    struct made_blobs made;      /* blobs of a job that have no file */
    struct model_stages *stages; /* of a model that is cut, which make the blobs; or NULL */
    struct train_job *training;  /* of a model that is trained, which makes the blobs; or NULL */
    uint64_t subtasks;           /* checks included */
    uint32_t checks;             /* the last subtasks are checks (result_checks.h) */
    /* The quote found a single referee, so the referee checks and computes nothing else. */
    bool spares_referee;
    struct job_power_limits power_limits; /* chosen by the quote (quote_energy.h) */
    /* The quote found a budget of 0 or an account without credits, so only donated slots count. */
    bool holds_nothing;
    /* Terms of the checks when they differ from the file; slots 0: the file's. */
    struct order_part check;
    struct order_part *parts; /* room for ORDER_PARTS_MAX, at least one */
    size_t part_count;
    struct order_graph graph; /* graph of tasks, or of work on inputs of unlike size */
    /* Expected time of each subtask but the checks, by measurements; NULL: the file's or the
     * part's. */
    int64_t *expect_ns;
    uint32_t *order; /* the file's task of each subtask; NULL without tasks */
    bool continues;  /* continues the job `continued` */
    struct id128 continued;
    uint8_t *manifest;
    size_t manifest_length;
    struct hash32 manifest_hash;
    struct job_learned learned;
};

#endif
