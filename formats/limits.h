/* formats/limits.h lists every cap on the files and texts that people write.
 *
 * No cap here is larger than the wire's (protocol/limits.h), so that everything read can be
 * sent; a test compares the two. A refusal names the cap and its value. */
#ifndef BOURSE_FORMATS_LIMITS_H
#define BOURSE_FORMATS_LIMITS_H

#include <stdint.h>

enum {
    FORMAT_FILE_BYTES = 4 << 20,     /* a YAML file */
    FORMAT_DEPTH = 16,               /* nesting of lists and maps */
    FORMAT_NODES = 1 << 20,          /* values and keys of a YAML file */
    FORMAT_KEYS = 1024,              /* of one map */
    FORMAT_UNIT_BYTES = 64,          /* one duration, size or amount */
    FORMAT_VALUE_BYTES = 128,        /* the value of a unit of work */
    FORMAT_REQUIREMENT_BYTES = 8192, /* a requirement as text */
    FORMAT_REQUIREMENT_DEPTH = 16,   /* parentheses and `not` */
    FORMAT_NAME_BYTES = 128,         /* of a job or a variable */
    FORMAT_PATH_BYTES = 1024,        /* file names and patterns */
    FORMAT_IMAGE_DEPTH = 128,        /* levels of a path in an image */
    FORMAT_ARGUMENT_BYTES = 32768,   /* one argument, one variable, the standard input */
    FORMAT_ARGUMENTS = 1024,
    FORMAT_VARIABLES = 256,
    FORMAT_OUTPUTS = 64,       /* per subtask */
    FORMAT_SHARED_FILES = 255, /* `files:`; with the subtask's own, 256 inputs */
    /* Files of all subtasks, when they travel as archives. */
    FORMAT_FOLDER_FILES = 131072,
    FORMAT_AFTER = 256,     /* jobs that a job follows: `after:` */
    FORMAT_CHOICES = 8,     /* requirements of a list below `needs:` */
    FORMAT_PATTERNS = 1024, /* `each:` */
    FORMAT_SUBTASKS = 10000000,
    FORMAT_TASKS = 65536, /* `tasks:` */
    /* The waits of all tasks together: tasks that they wait for, files that they take. */
    FORMAT_WAITS = 131072,
    FORMAT_STAGES = 16,  /* of a model: each bids for itself, and a job bids 17 times at most */
    FORMAT_SLOTS = 4096, /* of one device, and therefore of one subtask */
    FORMAT_PROCESSES = 65536,       /* of one subtask */
    FORMAT_RETRIES = 100,           /* of a subtask, after its own failures or after crashes */
    FORMAT_INTERRUPTIONS = 1000000, /* of a job: interrupted leases */
    FORMAT_WASM_MEMORY_BYTES = 128 << 20,  /* the least of a WASM module with its engine */
    FORMAT_TIME_MS = 7 * 24 * 3600 * 1000, /* of one subtask or lease */
};

#define FORMAT_RETAIN_MS INT64_C(31622400000) /* 366 days after the job ended */
/* 366 days from the job's submission, for `good_till` and for `deadline`. */
#define FORMAT_GOOD_TILL_MS INT64_C(31622400000)

#endif
