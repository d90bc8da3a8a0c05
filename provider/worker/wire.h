/* provider/worker/wire.h defines the messages between the agent and the worker of a jail.
 *
 * The messages travel over a SOCK_SEQPACKET pair. Both ends must be of one build, which the version
 * in HELLO shows. Fields go through base/cursor.h. Every message begins with u8 kind and u32 run.
 * The run is a number that the agent counts up, so that late messages about an earlier run are
 * recognised.
 *
 *     agent                              worker
 *       |  <------------------------ HELLO |  how the worker is confined
 *       |  SETUP (2 or 3 descriptors) ---> |  files of stdout and stderr, memory counter
 *       |  RUN --------------------------> |
 *       |  <----- PLACES (descriptors) ... |  new files for the inputs, then for stdin, if any
 *       |  GO (descriptors) -------------> |  the files are filled; mapped inputs
 *       |  CANCEL -----------------------> |  at any time of the run
 *       |  NOTICE -----------------------> |  at any time of the run: SIGTERM to the program
 *       |  <-- SAVED (descriptor) ... ---- |  files of the checkpoint, opened for reading
 *       |  <-- REPLY (descriptors) ------- |  outputs, opened for reading
 *       |  NOOP, CLEAN ------------------> |
 *       |  <------------------------ REPLY |
 *       |  NOOPS ------------------------> |  subtasks that do nothing
 *       |  <------------------------- DONE |
 *
 * The agent fills the inputs itself, so that no program of a job ever holds a descriptor of the
 * agent's files. A program of the same user could use such a descriptor to open the file again for
 * writing. The exception is bourse-tensor, which belongs to the agent. bourse-tensor gets only
 * descriptors of files that it cannot open for writing (provider/jail/jail.h, jail_may_map). */
#ifndef BOURSE_PROVIDER_WORKER_WIRE_H
#define BOURSE_PROVIDER_WORKER_WIRE_H

#include "base/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

enum {
    WIRE_VERSION = 7,
    WIRE_SOCKET = 3,               /* the worker's descriptor at its start */
    WIRE_MESSAGE_BYTES = 32768,    /* a longer RUN travels in a memory file */
    WIRE_BODY_BYTES = 64 << 20,    /* size limit of such a memory file */
    WIRE_CAPTURE_BYTES = 64 << 20, /* size of the files that keep stdout and stderr */
    WIRE_NOOPS_MAX = 1024,
    WIRE_MAPPED_MAX = 3, /* mapped inputs of a run */
    WIRE_NOOPS_BYTES = 16 + 4 * WIRE_NOOPS_MAX
};

enum wire_kind {
    /* HELLO: u32 version, u32 facts, u32 Landlock ABI, u64 x WIRE_NAMESPACES inode numbers. */
    WIRE_HELLO = 1,
    /* SETUP: u8 watch memory, u8 count processes. If memory is not watched in /proc, the third
     * descriptor is memory.stat of the jail's control group. */
    WIRE_SETUP,
    /* RUN: u8 whether the body is in the first descriptor, u64 its length, else the body itself. A
     * further descriptor is stdin as it is. */
    WIRE_RUN,
    WIRE_PLACES, /* u32 count of descriptors in this message */
    WIRE_GO,     /* one descriptor for each input of kind WIRE_INPUT_MAPPED */
    WIRE_CANCEL,
    WIRE_NOOP,
    WIRE_CLEAN,
    WIRE_REPLY, /* worker/main.c lists the fields */
    WIRE_NOOPS, /* u32 count (1 to WIRE_NOOPS_MAX), u32 index of each subtask */
    WIRE_DONE,  /* the fields of NOOPS, for the answered subtasks */
    WIRE_NOTICE,
    /* SAVED: u64 size, u32 length of the name, the name; a descriptor. The files count when REPLY
     * says so. */
    WIRE_SAVED,
};

/* Each input in a RUN has one of these kinds. */
enum wire_input_kind {
    WIRE_INPUT_DATA,
    WIRE_INPUT_PROGRAM,
    WIRE_INPUT_STATE, /* a file of a checkpoint, which the program may write to */
    /* The input has no place: a tensor operation reads another owner's file. */
    WIRE_INPUT_MAPPED,
    WIRE_INPUT_KINDS
};

/* Bits of HELLO: level 1 demands all of these facts. */
enum wire_fact {
    WIRE_FACT_FIRST = 1, /* the worker is process 1 */
    WIRE_FACT_NO_NEW_PRIVS = 2,
    WIRE_FACT_SECCOMP = 4, /* a filter is on */
    WIRE_FACT_NO_CAPABILITIES = 8,
    WIRE_FACT_USER = 16, /* user and group are 1000 */
    WIRE_FACTS = 31,
};

enum wire_namespace {
    WIRE_USER,
    WIRE_PID,
    WIRE_NET,
    WIRE_IPC,
    WIRE_MNT,
    WIRE_UTS,
    WIRE_NAMESPACES
};
static const char *const wire_namespace_names[WIRE_NAMESPACES] = {"user", "pid", "net",
                                                                  "ipc",  "mnt", "uts"};

enum wire_run_flag { WIRE_RUN_KEEP = 1, WIRE_RUN_STDIN = 2 };
enum wire_reply_flag {
    WIRE_REPLY_STDOUT_CUT = 1,
    WIRE_REPLY_STDERR_CUT = 2,
    WIRE_REPLY_NOTICED = 4, /* the program was told to end */
    WIRE_REPLY_SAVED = 8,   /* the files sent in SAVED are the program's checkpoint */
};

/* Returns true for a name below /work: relative, no empty part, no "." or "..". */
static inline bool wire_name_valid(const char *name)
{
    const char *part = name;
    for (;;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || length > 255 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.')) {
            return false;
        }
        if (part[length] == '\0') {
            return strlen(name) < 1024;
        }
        part += length + 1;
    }
}

/* Returns true for a valid name that is also plain text. The program chose the name, and people
 * read it in a signed result. */
static inline bool wire_saved_name_valid(const char *name)
{
    return wire_name_valid(name) && text_is_plain(name, strlen(name));
}

#endif
