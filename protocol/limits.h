/* protocol/limits.h - every cap of the wire, in one place. A refusal names the cap and its value.
 */
#ifndef BOURSE_PROTOCOL_LIMITS_H
#define BOURSE_PROTOCOL_LIMITS_H

#include <stdint.h>

enum {
    LIMIT_MESSAGE_BYTES = 1 << 20,      /* one message on the control port */
    LIMIT_BLOB_MESSAGE_BYTES = 5 << 20, /* one message on the blob port */
    LIMIT_BLOB_CHUNK_BYTES = 4 << 20,   /* data in one BlobPut or BlobData */
    LIMIT_MANIFEST_BYTES = 64 << 20,
    LIMIT_NAME_BYTES = 128,       /* names of jobs, accounts, labels */
    LIMIT_TEXT_BYTES = 512,       /* notes, reasons, details */
    LIMIT_PATH_BYTES = 1024,      /* input and output names */
    LIMIT_ARGUMENT_BYTES = 32768, /* one argument, one variable */
    LIMIT_ARGUMENTS = 1024,
    LIMIT_VARIABLES = 256,
    LIMIT_IMAGE_FILES = 131072,     /* files, folders and links of an image */
    LIMIT_IMAGE_MIB = 4096,         /* of its files together, where its provider says no other */
    LIMIT_OUTPUTS = 64,             /* per subtask */
    LIMIT_CHECKPOINT_FILES = 256,   /* in one checkpoint; folders as many */
    LIMIT_CHECKPOINT_BYTES = 16384, /* one encoded Saved: their names, hashes and sizes */
    LIMIT_INPUTS = 256,             /* per subtask */
    LIMIT_FROM = 65536, /* tasks that one task waits for, and files that it takes from them */
    LIMIT_PLACES =
        1200, /* of a manifest: the levels of the quotes of all its parts, and leases that may be taken */
    LIMIT_CLASSES = 16,        /* of a manifest: of devices of unlike speeds */
    LIMIT_CLASS_TIMES = 65536, /* of one of them */
    LIMIT_MANIFEST_PARTS = 17, /* of a job: what SubmitJob says itself, and its further ones */
    LIMIT_SUBTASKS = 10000000, /* per job */
    LIMIT_DEVICES = 1024,      /* per provider */
    LIMIT_OWNER_ACCOUNTS = 64, /* that one SetOwner names; the market takes fewer */
    LIMIT_DISPUTES = 12,       /* in one DisputesReply: each has an encoded Result */
    LIMIT_ASK_ACCOUNTS = 64,   /* that one AskPlace names; the market takes fewer */
    LIMIT_ASK_HOURS = 64,      /* windows of one AskPlace; likewise */
    LIMIT_SLOTS = 4096,        /* per device */
    LIMIT_ATTRIBUTES = 128,    /* per device */
    LIMIT_REQUIREMENT_NODES = 64,
    LIMIT_RESULTS = 256,          /* in one Results */
    LIMIT_DISPATCH = 256,         /* work items in one Dispatch or Withdraw */
    LIMIT_HELD = 65536,           /* work items in one Statement */
    LIMIT_PARTS = 16,             /* further parts of a job */
    LIMIT_GRAPH_SUBTASKS = 65536, /* of a job with a graph */
    LIMIT_GRAPH_EDGES = 131072,   /* in one Graph: pairs of one that waits and one waited for */
    LIMIT_GIVEN_BYTES = 16384,    /* one encoded Given: what a subtask leaves to others */
    LIMIT_GIVEN_WORK_BYTES = 768 << 10, /* all that one subtask is given, encoded */
    LIMIT_LEASES = 4096,                /* in one Statement */
    LIMIT_ROWS = 1000,                  /* in one reply */
    LIMIT_WORKS = 64,                   /* asked about in one HistoryRequest */
    LIMIT_PACE = 1000000,               /* thousandths: a thousand times what a class takes */
    LIMIT_BARS = 1440,                  /* in one PricesReply: a day of minutes */
    LIMIT_WAIT_MS = 30 * 1000,          /* how long a MarketRequest may wait for its answer */
    LIMIT_BLOB_HASHES = 4096,           /* in one BlobHave */
    LIMIT_ID_AGE_MS = 24 * 3600 * 1000, /* D7: older ids are ID_EXPIRED */
    LIMIT_ID_AHEAD_MS = 10 * 60 * 1000, /* D7: so are ids further ahead */

    /* bodies, by type (docs/protocol.md section 10) */
    LIMIT_SMALL_BODY_BYTES = 4 << 10,
    LIMIT_MEDIUM_BODY_BYTES = 64 << 10,
    LIMIT_LARGE_BODY_BYTES =
        LIMIT_MESSAGE_BYTES - 120, /* what fits a message of the control port */
    LIMIT_RESULT_BYTES = 64 << 10, /* one encoded Result: what a receipt can hold */
    LIMIT_RECEIPT_BYTES = 256 << 10,
    LIMIT_NOTE_BYTES = 16 << 10, /* a signed checkpoint */
    LIMIT_INSTRUMENT_BYTES = 64,
    LIMIT_WORD_BYTES = 32,    /* attribute names, states, levels of verification */
    LIMIT_PROGRAM_BYTES = 64, /* "bourse 0.1.0" */
    LIMIT_ENDPOINT_BYTES = 255,
    LIMIT_STANDARD_INPUT_BYTES = 1 << 20, /* in a manifest; longer input is a file */
    LIMIT_PREDICATES = 64,                /* in one Explanation */
    LIMIT_CHANGES = 4,                    /* likewise */
    LIMIT_RETRIES = 100,
    LIMIT_INTERRUPTIONS = 1000000, /* leases that may be taken from a job */
    LIMIT_SPREAD_MS = 60000,       /* longest time over which clients come back */
    LIMIT_HEARTBEAT_MS = 60 * 1000,
    LIMIT_PROCESSES = 1 << 22,

    /* memory of one decoded body: a floor, and so many bytes for each byte on the wire */
    LIMIT_DECODED_FLOOR_BYTES = 64 << 10,
    LIMIT_DECODED_FACTOR = 24,
    LIMIT_DECODED_DISPATCH_FACTOR =
        48, /* of a Dispatch: what is given by one that left nothing is four bytes at least */
    LIMIT_DECODED_MANIFEST_FACTOR = 96, /* of a manifest: one subtask is two bytes at least */
};

/* Wider than an int, so not in the enum. */
#define LIMIT_DURATION_MS INT64_C(31622400000) /* 366 days: a term, a limit, an estimate */
#define LIMIT_DAILY_MS                                                                             \
    INT64_C(353894400000) /* slot-time of a day: all slots of a device, all day */
#define LIMIT_TIME_MS                                                                              \
    INT64_C(9223372036854) /* a moment: the last one that int64 nanoseconds hold */
#define LIMIT_DECODED_BYTES INT64_C(1073741824) /* memory of any one decoded body */

#endif
