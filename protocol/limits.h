/* protocol/limits.h lists every cap of the wire. A refusal names the cap and its value. */
#ifndef BOURSE_PROTOCOL_LIMITS_H
#define BOURSE_PROTOCOL_LIMITS_H

#include <stdint.h>

enum {
    LIMIT_MESSAGE_BYTES = 1 << 20,      /* one message on the control port */
    LIMIT_BLOB_MESSAGE_BYTES = 5 << 20, /* one message on the blob port */
    LIMIT_BLOB_CHUNK_BYTES = 4 << 20,   /* data in one BlobPut; what one BlobGet asks for */
    LIMIT_BLOB_ANSWER_BYTES = 1 << 20,  /* data that the broker sends in one BlobData */
    LIMIT_MANIFEST_BYTES = 64 << 20,
    LIMIT_NAME_BYTES = 128,       /* names of jobs, accounts, labels */
    LIMIT_TEXT_BYTES = 512,       /* notes, reasons, details */
    LIMIT_PATH_BYTES = 1024,      /* input and output names */
    LIMIT_ARGUMENT_BYTES = 32768, /* one argument, one variable */
    LIMIT_ARGUMENTS = 1024,
    LIMIT_VARIABLES = 256,
    LIMIT_IMAGE_FILES = 131072, /* files, folders and links of an image */
    /* The files of an image together, unless its provider sets another cap. */
    LIMIT_IMAGE_MIB = 4096,
    LIMIT_OUTPUTS = 64,             /* per subtask */
    LIMIT_FOLDER_FILES = 131072,    /* files of a folder that travels as an archive */
    LIMIT_FOLDER_DEPTH = 64,        /* levels of folders below it */
    LIMIT_FOLDER_NAMES = 16 << 20,  /* bytes of the names of its files and folders */
    LIMIT_PATTERN_NAMES = 262144,   /* names that are compared with the pattern of an output */
    LIMIT_CHECKPOINT_FILES = 256,   /* in one checkpoint; as many folders */
    LIMIT_CHECKPOINT_BYTES = 16384, /* one encoded Saved: names, hashes and sizes of the files */
    LIMIT_INPUTS = 256,             /* per subtask */
    LIMIT_FROM = 65536,             /* tasks that one task waits for, and files that it takes */
    /* A manifest has so many places: the levels of the quotes of all its parts, and leases to
     * take. */
    LIMIT_PLACES = 1200,
    LIMIT_CLASSES = 16,        /* of a manifest: classes of devices by speed */
    LIMIT_CLASS_TIMES = 65536, /* of one class */
    LIMIT_MANIFEST_PARTS = 17, /* of a job: the part in SubmitJob itself, and the further ones */
    LIMIT_SUBTASKS = 10000000, /* per job */
    LIMIT_DEVICES = 1024,      /* per provider */
    LIMIT_OWNER_ACCOUNTS = 64, /* in one SetOwner; the market's cap is lower */
    LIMIT_DISPUTES = 12,       /* in one DisputesReply; each has an encoded Result */
    LIMIT_ASK_ACCOUNTS = 64,   /* in one AskPlace; the market's cap is lower */
    LIMIT_ASK_HOURS = 64,      /* windows of one AskPlace; the market's cap is lower */
    LIMIT_SLOTS = 4096,        /* per device */
    LIMIT_ATTRIBUTES = 128,    /* per device */
    LIMIT_REQUIREMENT_NODES = 64,
    LIMIT_RESULTS = 256,          /* in one Results */
    LIMIT_DISPATCH = 256,         /* work items in one Dispatch or Withdraw */
    LIMIT_HELD = 65536,           /* work items in one Statement */
    LIMIT_PARTS = 16,             /* further parts of a job */
    LIMIT_GRAPH_SUBTASKS = 65536, /* of a job with a graph */
    LIMIT_GRAPH_EDGES = 131072,   /* in one Graph: pairs of a waiting subtask and an awaited one */
    LIMIT_GIVEN_BYTES = 16384,    /* one encoded Given: results of one subtask for others */
    LIMIT_GIVEN_WORK_BYTES = 768 << 10, /* all results given to one subtask, encoded */
    LIMIT_LEASES = 4096,                /* in one Statement */
    LIMIT_ROWS = 1000,                  /* in one reply */
    LIMIT_FORGET_JOBS = 64,             /* in one ForgetRequest */
    LIMIT_STORAGE_ROWS = 500,           /* jobs in one StorageReply */
    LIMIT_WORKS = 64,                   /* in one HistoryRequest */
    LIMIT_PACE = 1000000,               /* thousandths: a thousand times the time of a class */
    LIMIT_BARS = 1440,                  /* in one PricesReply: a day of minutes */
    /* Longest time that a MarketRequest or an OutputRequest may wait for its answer. */
    LIMIT_WAIT_MS = 30 * 1000,
    LIMIT_OUTPUT_PIECES = 1024,         /* in one OutputPost or OutputReply */
    LIMIT_FIGURES = 16,                 /* devices in one FiguresPost */
    LIMIT_CELSIUS = 1000,               /* of a device */
    LIMIT_OUTPUT_BYTES = 64 << 10,      /* of one piece of live output */
    LIMIT_CHALLENGE_BYTES = 256 << 10,  /* digests of one answer to a challenge */
    LIMIT_TERMINAL_BYTES = 16 << 10,    /* in one TerminalSend or TerminalBytes */
    LIMIT_TERMINAL_WINDOW = 64 << 10,   /* sent in one direction and not taken by the other end */
    LIMIT_TERMINAL_SIZE = 10000,        /* columns or rows of a terminal */
    LIMIT_TERMINAL_AWAY_S = 30,         /* an owner who has asked for nothing so long is gone */
    LIMIT_BLOB_HASHES = 4096,           /* in one BlobHave */
    LIMIT_BLOB_CHANGES = 256,           /* in one BlobChanges, and offers in one BlobFeed */
    LIMIT_BLOB_WANTS = 64,              /* hashes in one BlobChanges, and in one BlobFeed */
    LIMIT_BLOB_INLINE_BYTES = 64 << 10, /* of the data of one BlobChange */
    LIMIT_BLOB_KEY_BYTES = 52,
    LIMIT_BLOB_VALUE_BYTES = 16,
    LIMIT_FEED_WAIT_MS = 2000, /* longest time that a BlobFeed may wait for its answer */
    /* A blob that BlobHave did not name as missing stays at least so long. */
    LIMIT_FORGET_GRACE_MS = 60 * 1000,
    LIMIT_ID_AGE_MS = 24 * 3600 * 1000, /* D7: older ids are ID_EXPIRED */
    LIMIT_ID_AHEAD_MS = 10 * 60 * 1000, /* D7: ids further ahead are ID_EXPIRED too */

    /* bodies, by type (docs/protocol.md section 10) */
    LIMIT_SMALL_BODY_BYTES = 4 << 10,
    LIMIT_MEDIUM_BODY_BYTES = 64 << 10,
    /* The largest body fills a message of the control port. */
    LIMIT_LARGE_BODY_BYTES = LIMIT_MESSAGE_BYTES - 120,
    LIMIT_RESULT_BYTES = 64 << 10, /* one encoded Result: a receipt can hold it */
    LIMIT_RECEIPT_BYTES = 256 << 10,
    LIMIT_LEAF_BYTES = 320, /* of one ReceiptRow, as the caps of its two paths below */
    LIMIT_BATCH_PATH = 8,
    LIMIT_TREE_PATH = 63,
    LIMIT_NOTE_BYTES = 16 << 10, /* a signed checkpoint */
    LIMIT_INSTRUMENT_BYTES = 64,
    LIMIT_WORD_BYTES = 32,    /* attribute names, states, levels of verification */
    LIMIT_PROGRAM_BYTES = 64, /* "bourse 0.1.0" */
    LIMIT_ENDPOINT_BYTES = 255,
    LIMIT_STANDARD_INPUT_BYTES = 1 << 20, /* in a manifest; longer input is a file */
    LIMIT_PREDICATES = 64,                /* in one Explanation */
    LIMIT_CHANGES = 4,                    /* in one Explanation */
    LIMIT_RETRIES = 100,
    LIMIT_INTERRUPTIONS = 1000000, /* interrupted leases of one job */
    LIMIT_SPREAD_MS = 60000,       /* longest time over which clients return */
    LIMIT_HEARTBEAT_MS = 60 * 1000,
    LIMIT_PROCESSES = 1 << 22,

    /* Memory of one decoded body: a floor, and a factor for each byte on the wire. */
    LIMIT_DECODED_FLOOR_BYTES = 64 << 10,
    LIMIT_DECODED_FACTOR = 24,
    /* The factor of a Dispatch: an empty entry of a given result takes at least four bytes. */
    LIMIT_DECODED_DISPATCH_FACTOR = 48,
    LIMIT_DECODED_MANIFEST_FACTOR = 96, /* of a manifest: one subtask takes at least two bytes */
};

/* The numbers below are wider than an int, so they are not in the enum. */
#define LIMIT_DURATION_MS INT64_C(31622400000) /* 366 days: a term, a limit, an estimate */
#define LIMIT_DAILY_MS                                                                             \
    INT64_C(353894400000) /* slot-time of a day: all slots of a device, all day */
#define LIMIT_TIME_MS INT64_C(9223372036854) /* the last moment that int64 nanoseconds hold */
#define LIMIT_ENERGY_UJ INT64_C(1000000000000000000) /* 10^12 joules: one attempt, with a source */
#define LIMIT_DECODED_BYTES INT64_C(1073741824)      /* memory of any one decoded body */

#endif
