/* protocol/reject.h lists every reason to refuse a message, with a stable number, a stable name and
 * a text. docs/errors.md is written by hand from this table's texts, and a test checks it. Numbers
 * are never reused. */
#ifndef BOURSE_PROTOCOL_REJECT_H
#define BOURSE_PROTOCOL_REJECT_H

enum reject_code {
    REJECT_NONE = 0,
    REJECT_MALFORMED = 1, /* does not parse, or a field out of its range */
    REJECT_VERSION = 2,
    REJECT_TYPE = 3, /* unknown message type, or one that only the broker sends */
    REJECT_TOO_LARGE = 4,
    REJECT_NOT_SIGNED = 5,
    REJECT_BAD_SIGNATURE = 6,
    REJECT_ROLE = 7, /* the account's roles do not allow it */
    REJECT_ID_EXPIRED = 8,
    REJECT_ID_REUSED = 9, /* the same id with another body */
    REJECT_ID_TABLE_FULL = 10,
    REJECT_SESSION = 11, /* no Hello yet, or the session is over */
    REJECT_RATE = 12,
    REJECT_BUSY = 13,        /* a queue of the broker is full; try again */
    REJECT_UNAVAILABLE = 14, /* shutting down, or storage refused */
    REJECT_GAP_TOO_OLD = 15, /* the missed messages are no longer kept */
    /* The broker follows; `leader_address` says who leads. Send it there under the same id. */
    REJECT_NOT_LEADER = 16,
    /* The journal takes no entry at present. `value` is the time since the last one, in ms. The
     * command may be done later: the client keeps it, and sends it again under the same id. */
    REJECT_NO_QUORUM = 17,
    REJECT_NOT_FOUND = 20, /* no such object, or not yours: the same text for both */
    REJECT_EXISTS = 21,
    REJECT_FROZEN = 22,
    REJECT_HALTED = 23,
    REJECT_FUNDS = 24,
    REJECT_BUDGET = 25, /* outside the allowed range */
    REJECT_PRICE = 26,  /* outside the price band, or in another unit */
    REJECT_QUANTITY = 27,
    REJECT_LIMIT = 28, /* a cap on orders, jobs, devices ...: `field` names it */
    REJECT_REQUIREMENT = 29,
    /* The level of verification is not available, or its checks are missing. */
    REJECT_VERIFY = 30,
    REJECT_INVITATION = 31,  /* unknown, used or expired */
    REJECT_DEVICE = 32,      /* not advertised by this provider */
    REJECT_STATE = 33,       /* not possible in the present state */
    REJECT_SELF_MATCH = 34,  /* the best counter order is your own */
    REJECT_WOULD_TRADE = 35, /* a post-only order that would trade at once, at the price `limit` */
    REJECT_NOTIONAL = 36,    /* the order's total is above the cap of one order */
    REJECT_HOURS = 38,       /* no windows of hours, or no valid offset from UTC */
    /* A name in `to` fits no account, or several; `value` is its index from 0. */
    REJECT_ACCOUNT = 39,
    REJECT_BLOB_HASH = 40, /* the bytes do not have the hash */
    REJECT_BLOB_QUOTA = 41,
    REJECT_BLOB_OFFSET = 42, /* resume from `value` */
    REJECT_STORAGE_FULL = 43,
    REJECT_OUTPUT_NOT_STORED =
        44, /* `limit` results lack it; `value` is the subtask of the first */
    /* The same, but nothing is decided: the results may be sent again. */
    REJECT_OUTPUT_LOST = 45,
    /* The device may not be offered as it is. `value` and `limit` are Mflop/s of `gemm_fp32`; with
     * the field `closed_ms`, `value` is a time. */
    REJECT_CHALLENGE = 46,
    REJECT_CODE_COUNT
};

/* An agent's log line about a refusal begins so. `bourse up` shows the line to a user who waits for
 * the offer. */
#define REJECT_SAID "the broker refused the "

/* Returns the name, e.g. "INSUFFICIENT_FUNDS", or "UNKNOWN" for a number outside the table. */
const char *reject_name(enum reject_code code);
/* Returns one line of advice on what to do next; never NULL. */
const char *reject_advice(enum reject_code code);
/* Returns the exit status of the command line for the code (docs/errors.md: 2, 3, 4, 5 or 6). */
int reject_exit_status(enum reject_code code);

#endif
