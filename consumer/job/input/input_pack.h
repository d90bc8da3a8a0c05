/* consumer/job/input/input_pack.h packs many files of a job into few archives. The header is not
 * installed.
 *
 * A manifest lists at most FORMAT_SHARED_FILES files for all subtasks. Where a job has more, its
 * large files stay alone, and the others go into tar archives, which the agent unpacks into the
 * work folder. A hash of the names decides where an archive ends. So a changed file changes one
 * archive alone, and the broker still has the others. */
#ifndef BOURSE_CONSUMER_JOB_INPUT_PACK_H
#define BOURSE_CONSUMER_JOB_INPUT_PACK_H

#include "consumer/job/input_list.h"

/* A file of at least this size is sent by itself, under its own hash. */
#define INPUT_PACK_ALONE_BYTES (UINT64_C(1) << 20)
enum {
    INPUT_PACK_ALONE_MAX = 127, /* files that stay alone */
    INPUT_PACK_ARCHIVES = 32,   /* the number aimed at */
    INPUT_PACK_ARCHIVES_MAX = 127,
};

struct input_packed {
    uint64_t files, archives;
    /* The bytes that the files take in a work folder beyond the size of their archives. */
    uint64_t more_bytes;
};

/* Packs the files of a list that is too long, and leaves any other list as it is. The archives are
 * temporary files without names, which the list owns. A failed call may have dropped files of the
 * list. */
bool input_pack(struct input_list *list, struct input_packed *ret_packed,
                struct problem *ret_problem);

#endif
