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
 *       |  <--------- PLACES (descriptors) |  new files for the next inputs, then for stdin, if any
 *       |  MORE -------------------------> |  the files are filled; others are wanted
 *       |  GO (descriptors) -------------> |  all files are filled; mapped inputs
 *       |  <------ TERMINAL (descriptor)  |  the agent's end of the program's terminal, if any
 *       |  CANCEL -----------------------> |  at any time of the run
 *       |  HANG UP ----------------------> |  at any time of the run: SIGHUP, SIGKILL a while later
 *       |  NOTICE -----------------------> |  at any time of the run: SIGTERM to the program
 *       |  FREEZE, THAW -----------------> |  at any time of the run: the program stands still, and
 *       |                                  |  goes on; NOTICE ends a freeze
 *       |  <-- SAVED (descriptor) ... ---- |  files of the checkpoint, opened for reading
 *       |  <------- ENTRIES (descriptors)  |  files of folders that are outputs, opened to be read,
 *       |                                  |  and empty folders and links there
 *       |  MORE -------------------------> |  the files are copied; send others, or the reply
 *       |  <-- REPLY (descriptors) ------- |  outputs, opened for reading
 *       |  NOOP, CLEAN ------------------> |
 *       |  <------------------------ REPLY |
 *       |  NOOPS ------------------------> |  subtasks that do nothing
 *       |  <------------------------- DONE |
 *
 * The agent fills the inputs itself, so that no program of a job ever holds a descriptor of the
 * agent's files. A program of the same user could use such a descriptor to open the file again for
 * writing. The exceptions are bourse-tensor and bourse-onnx, which belong to the agent. They get
 * only descriptors of files that they cannot open for writing (provider/jail/jail.h,
 * jail_may_map).
 *
 * A RUN for bourse-kernel may bring one end of a SOCK_STREAM pair, which the worker hands on with
 * the ASK. While the run computes, the agent sends inputs of the next one over it
 * (provider/tensor/ahead.h). The worker reads none of them. */
#ifndef BOURSE_PROVIDER_WORKER_WIRE_H
#define BOURSE_PROVIDER_WORKER_WIRE_H

#include "base/text.h"
#include "protocol/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    WIRE_VERSION = 17,
    WIRE_SOCKET = 3,            /* the worker's descriptor at its start */
    WIRE_MESSAGE_BYTES = 32768, /* a longer RUN travels in a memory file */
    WIRE_BODY_BYTES = 64 << 20, /* size limit of such a memory file */
    /* The files of stdout and stderr have three parts. The first part keeps the beginning of the
     * stream, up to the run's cap. The second part is a ring with the newest bytes after that, for
     * live output. The last page has the mark. */
    WIRE_CAPTURE_BYTES = 64 << 20,
    WIRE_RING_BYTES = 256 << 10,
    WIRE_MARK_AT = WIRE_CAPTURE_BYTES + WIRE_RING_BYTES,
    WIRE_CAPTURE_FILE_BYTES = WIRE_MARK_AT + 4096,
    WIRE_DRAIN_BYTES = 64 << 10, /* most bytes that are written between two marks */
    WIRE_NOOPS_MAX = 1024,
    WIRE_MAPPED_MAX = 3,    /* mapped inputs of a run */
    WIRE_CONTENTS_MAX = 64, /* inputs of a run whose hash the resident is told */
    WIRE_MADE_MAX = 8,      /* outputs of the last run, likewise */
    /* Files in one ENTRIES. Descriptors on their way count against the user's limit of open files,
     * and all lanes of an agent share that limit. */
    WIRE_ENTRIES_MAX = 32,
    WIRE_NOOPS_BYTES = 16 + 4 * WIRE_NOOPS_MAX
};

/* Inputs of a run: the subtask's, with the files of folders among them, folders and links of their
 * own, and a checkpoint's. */
enum { WIRE_INPUTS_MAX = LIMIT_INPUTS + 3 * LIMIT_FOLDER_FILES + LIMIT_CHECKPOINT_FILES };

enum wire_kind {
    /* HELLO: u32 version, u32 facts, u32 Landlock ABI, u64 x WIRE_NAMESPACES inode numbers. */
    WIRE_HELLO = 1,
    /* SETUP: u8 watch memory, u8 count processes. If memory is not watched in /proc, the third
     * descriptor is memory.stat of the jail's control group. */
    WIRE_SETUP,
    /* RUN: u8 whether the body is in the first descriptor, u64 its length, else the body itself. A
     * further descriptor is stdin as it is, or the connection of a run with WIRE_RUN_AHEAD. Each
     * input has u8 kind, its name, a link's target, u8 whether u16 permissions and i64 nanoseconds
     * since 1970 follow, and u8 whether 32 bytes of hash follow. Each output of the last run has
     * its name and 32 bytes of hash. */
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
    WIRE_MORE,
    /* ENTRIES: u32 output, u32 count, for each entry u8 kind, u64 size, u32 length of the name, the
     * name, and for a link u32 length of the target, the target; a descriptor for each file. The
     * outputs come in their order. Of one come the files, the empty folders and the links, each in
     * ascending order of their names' bytes. */
    WIRE_ENTRIES,
    WIRE_TERMINAL, /* a descriptor: the master of the pseudo-terminal that the program gets */
    WIRE_HANG_UP,
    WIRE_FREEZE,
    WIRE_THAW,
};

/* RUN says one of these about a terminal. */
enum wire_terminal {
    WIRE_TERMINAL_NONE,
    WIRE_TERMINAL_PERSON, /* a person types: echo, and lines that end as a screen needs them */
    WIRE_TERMINAL_PLAIN,  /* bytes come from a file or a pipe: no echo, and output as it is */
};

/* The mark says how many bytes of a stream the files hold or held. The words are the run's number,
 * the bytes, and a check over both. The check fails while the worker writes the mark. */
enum { WIRE_MARK_WORDS = 3, WIRE_MARK_SIZE = WIRE_MARK_WORDS * 8 };
static inline uint64_t wire_mark_check(uint64_t number, uint64_t total)
{
    return ~(number * UINT64_C(0x9e3779b97f4a7c15) ^ total);
}

/* Each input in a RUN has one of these kinds. */
enum wire_input_kind {
    WIRE_INPUT_DATA,
    WIRE_INPUT_PROGRAM,
    WIRE_INPUT_STATE, /* a file of a checkpoint, which the program may write to */
    /* The input has no place: a tensor operation or a model reads the agent's or another owner's
     * file. */
    WIRE_INPUT_MAPPED,
    WIRE_INPUT_FOLDER, /* has no place */
    WIRE_INPUT_LINK,   /* has no place, and is made when all others are there */
    WIRE_INPUT_HELD,   /* has no place: the resident still has what it made of the input */
    WIRE_INPUT_KINDS
};

/* Each entry in an ENTRIES has one of these kinds. */
enum wire_entry_kind {
    WIRE_ENTRY_FILE,
    WIRE_ENTRY_PROGRAM, /* a file that its owner may execute */
    WIRE_ENTRY_FOLDER,  /* an empty one */
    WIRE_ENTRY_LINK,
};

/* Bits of HELLO: level 1 demands all of these facts. */
enum wire_fact {
    WIRE_FACT_FIRST = 1, /* the worker is process 1 */
    WIRE_FACT_NO_NEW_PRIVS = 2,
    WIRE_FACT_SECCOMP = 4, /* a filter is on */
    WIRE_FACT_NO_CAPABILITIES = 8,
    WIRE_FACT_USER = 16, /* the user is not root */
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

/* Each output in a RUN and in a REPLY has one of these kinds. */
enum wire_output_kind {
    WIRE_OUTPUT_FILE = 1,
    WIRE_OUTPUT_FOLDER,  /* in a REPLY: its files have been sent in ENTRIES */
    WIRE_OUTPUT_PROGRAM, /* in a REPLY: a file that its owner may execute */
    /* A RUN asks for the files of a folder that a pattern matches. The folder "." is the work
     * folder. Such an output is a folder in a REPLY. */
    WIRE_OUTPUT_PATTERN,
};

enum wire_run_flag {
    WIRE_RUN_KEEP = 1,
    WIRE_RUN_STDIN = 2,
    WIRE_RUN_TREES = 4, /* outputs that are folders keep their links and empty folders */
    WIRE_RUN_AHEAD = 8, /* a descriptor is the resident's, for inputs of the next run */
};
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

/* An output whose name ends with a slash is a folder. Each function takes such names, too. */
static inline bool wire_is_folder(const char *name)
{
    const size_t length = strlen(name);
    return length > 1 && name[length - 1] == '/';
}

/* Returns a bound on the bytes that an entry of a folder takes in the archive, where the length
 * is that of the name and of a link's target together. The output limit counts a folder so. The
 * parts are the content, a header, and the header of a long name. */
static inline uint64_t wire_entry_bytes(size_t name_length, uint64_t size)
{
    enum { BLOCK = 512, LONG_NAME = 100, RECORD = 64 };
    const uint64_t rounded = size > UINT64_MAX - 4096 ? size : (size + BLOCK - 1) / BLOCK * BLOCK;
    const uint64_t records = name_length > LONG_NAME || size >= UINT64_C(1) << 33
                                 ? BLOCK + (name_length + RECORD + BLOCK - 1) / BLOCK * BLOCK
                                 : 0;
    return rounded > UINT64_MAX - BLOCK - records ? UINT64_MAX : rounded + BLOCK + records;
}
enum { WIRE_ARCHIVE_END_BYTES = 1024 };

/* Returns true for a valid name that is also plain text. The program chose the name, and people
 * read it in a signed result. */
static inline bool wire_saved_name_valid(const char *name)
{
    return wire_name_valid(name) && text_is_plain(name, strlen(name));
}

#endif
