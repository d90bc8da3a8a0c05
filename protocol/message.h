/* protocol/message.h defines the numbers that travel, such as message types, roles, outcomes and
 * states.
 *
 * The numbers are part of the wire format: they never change and are never reused. docs/protocol.md
 * section 5 lists them and their senders. */
#ifndef BOURSE_PROTOCOL_MESSAGE_H
#define BOURSE_PROTOCOL_MESSAGE_H

#include "base/verdict.h"

#include <stdbool.h>
#include <stdint.h>

enum message_type {
    /* session */
    MESSAGE_HELLO = 1,
    MESSAGE_WELCOME = 2,
    MESSAGE_HEARTBEAT = 3,
    MESSAGE_GOODBYE = 4,
    MESSAGE_ACCEPTED = 5,
    MESSAGE_REJECT = 6,
    /* Accounts and operator; S means signed. */
    MESSAGE_JOIN = 16,          /* S */
    MESSAGE_MINT = 17,          /* S */
    MESSAGE_INVITE_CREATE = 18, /* S */
    MESSAGE_FREEZE = 19,        /* S */
    MESSAGE_HALT = 20,          /* S */
    MESSAGE_ACCOUNTS_REQUEST = 21,
    MESSAGE_ACCOUNTS_REPLY = 22,
    /* provider */
    MESSAGE_ADVERTISE = 32,      /* S */
    MESSAGE_ASK_PLACE = 33,      /* S */
    MESSAGE_ORDER_CANCEL = 34,   /* S */
    MESSAGE_STATEMENT_HELD = 35, /* S: body Statement */
    MESSAGE_RESULTS = 36,        /* the results inside are signed */
    MESSAGE_WHY_REQUEST = 37,
    MESSAGE_WHY_REPLY = 38,
    MESSAGE_LEASE_GRANT = 40,
    MESSAGE_LEASE_RENEW = 41,
    MESSAGE_DISPATCH = 42,
    MESSAGE_WITHDRAW = 43,
    MESSAGE_LEASE_END = 44,
    MESSAGE_OUTPUT_POST = 45, /* what running subtasks print, for followers */
    MESSAGE_OUTPUT_WANTED = 46,
    /* Terminals: the agent and the job's owner send these. */
    MESSAGE_TERMINAL_SEND = 47,
    MESSAGE_TERMINAL_TAKEN = 48,
    MESSAGE_TERMINAL_RECEIVE = 49,
    MESSAGE_TERMINAL_BYTES = 50,
    /* The sender's devices, as they are at this moment. */
    MESSAGE_FIGURES_POST = 51,
    MESSAGE_FIGURES_TAKEN = 52,
    /* The broker challenges the speed of a device; the agent asks for the next challenge. */
    MESSAGE_CHALLENGE_READY = 53,
    MESSAGE_CHALLENGE = 54,
    /* consumer */
    MESSAGE_SUBMIT_JOB = 64, /* S */
    MESSAGE_JOB_CANCEL = 65, /* S */
    MESSAGE_QUOTE_REQUEST = 66,
    MESSAGE_QUOTE_REPLY = 67,
    MESSAGE_EXPLAIN_REQUEST = 68,
    MESSAGE_EXPLAIN_REPLY = 69,
    MESSAGE_JOBS_REQUEST = 70,
    MESSAGE_JOBS_REPLY = 71,
    MESSAGE_JOB_EVENT = 72,
    MESSAGE_OUTCOMES_REQUEST = 73,
    MESSAGE_OUTCOMES_REPLY = 74,
    MESSAGE_BALANCE_REQUEST = 75,
    MESSAGE_BALANCE_REPLY = 76,
    MESSAGE_STATEMENT_REQUEST = 77,
    MESSAGE_STATEMENT_REPLY = 78,
    MESSAGE_RECEIPT_REQUEST = 79,
    MESSAGE_RECEIPT_REPLY = 80,
    MESSAGE_CHECKPOINT_REQUEST = 81,
    MESSAGE_CHECKPOINT_REPLY = 82,
    /* the market, for every member */
    MESSAGE_BOOK_REQUEST = 83,
    MESSAGE_BOOK_REPLY = 84,
    MESSAGE_TRADES_REQUEST = 85,
    MESSAGE_TRADES_REPLY = 86,
    MESSAGE_DEVICES_REQUEST = 87,
    MESSAGE_DEVICES_REPLY = 88,
    MESSAGE_PROVIDERS_REQUEST = 89,
    MESSAGE_PROVIDERS_REPLY = 90,
    MESSAGE_ORDERS_REQUEST = 91, /* the sender's own */
    MESSAGE_ORDERS_REPLY = 92,
    MESSAGE_ASK_EVENT = 93, /* to the provider of the device */
    MESSAGE_MARKET_REQUEST = 94,
    MESSAGE_MARKET_REPLY = 95,
    /* blobs, on their own port */
    MESSAGE_BLOB_HAVE = 96,
    MESSAGE_BLOB_MISSING = 97,
    MESSAGE_BLOB_PUT = 98,
    MESSAGE_BLOB_STORED = 99,
    MESSAGE_BLOB_GET = 100,
    MESSAGE_BLOB_DATA = 101,
    /* the market again */
    MESSAGE_PRICES_REQUEST = 102,
    MESSAGE_PRICES_REPLY = 103,
    MESSAGE_DONATIONS_REQUEST = 105, /* the sender's own */
    MESSAGE_DONATIONS_REPLY = 106,
    MESSAGE_ORDER_REPLACE = 108, /* S: the sender's own */
    MESSAGE_LEASE_NOTICE = 109,  /* to the provider whose lease another bid has taken */
    MESSAGE_HISTORY_REQUEST = 110,
    MESSAGE_HISTORY_REPLY = 111,
    /* the operator again */
    MESSAGE_SET_BANDS = 112, /* S */
    MESSAGE_SET_OWNER = 113, /* S */
    /* The consumer again: held results. */
    MESSAGE_JUDGE_RESULT = 114, /* S */
    MESSAGE_DISPUTES_REQUEST = 115,
    MESSAGE_DISPUTES_REPLY = 116,
    /* The consumer again: what the running subtasks of a job print. */
    MESSAGE_OUTPUT_REQUEST = 117,
    MESSAGE_OUTPUT_REPLY = 118,
    /* The consumer again: its blobs. */
    MESSAGE_STORAGE_REQUEST = 120,
    MESSAGE_STORAGE_REPLY = 121,
    MESSAGE_FORGET_REQUEST = 122,
    MESSAGE_FORGET_REPLY = 123,
    /* The consumer again: the receipts of a whole job. */
    MESSAGE_RECEIPTS_REQUEST = 124,
    MESSAGE_RECEIPTS_REPLY = 125,
    /* The brokers of a market among themselves, on the blob port. */
    MESSAGE_BLOB_FEED = 126,
    MESSAGE_BLOB_CHANGES = 127,
};

/* Returns true for types of the blob port; all others belong to the control port. */
static inline bool message_is_of_blobs(enum message_type type)
{
    return (type >= MESSAGE_BLOB_HAVE && type <= MESSAGE_BLOB_DATA) || type == MESSAGE_BLOB_FEED ||
           type == MESSAGE_BLOB_CHANGES;
}

/* The streams of a program, as live output names them. */
enum output_stream { OUTPUT_STREAM_OUT = 1, OUTPUT_STREAM_ERROR = 2 };

enum session_role { SESSION_CONSUMER = 1, SESSION_PROVIDER = 2 };

/* The values are what a ForgetReply says of a job. */
enum forget_outcome {
    FORGET_OUTCOME_NOW = 1,
    FORGET_OUTCOME_BEFORE = 2,
    FORGET_OUTCOME_OPEN = 3,
    FORGET_OUTCOME_UNKNOWN = 4,
};

/* The roles of an account are bits, so that an account may have several. */
enum account_role {
    ROLE_CONSUMER = 1,
    ROLE_PROVIDER = 2,
    ROLE_AUDITOR = 4,
    ROLE_REPLICA = 8,
    ROLE_RISK = 16,
    ROLE_OPERATOR = 32,
    ROLE_REFEREE = 64, /* a provider whose verdicts count */
};

enum result_outcome {
    OUTCOME_OK = 0,
    OUTCOME_PROGRAM_FAILED = 1, /* exit code not 0 */
    OUTCOME_SIGNALLED = 2,      /* ended by a signal that none of our limits sent */
    OUTCOME_TIME_LIMIT = 3,
    OUTCOME_CPU_LIMIT = 4,
    OUTCOME_MEMORY_LIMIT = 5,
    OUTCOME_DISK_LIMIT = 6,
    OUTCOME_PROCESS_LIMIT = 7,
    OUTCOME_OUTPUT_LIMIT = 8,
    OUTCOME_OUTPUT_MISSING = 9,
    OUTCOME_INPUT_MISSING = 10,
    OUTCOME_PROGRAM_MISSING = 11,
    OUTCOME_IMAGE_MISSING = 12,
    OUTCOME_REFUSED = 13,     /* by the provider's policy, or because the job cannot be isolated */
    OUTCOME_CANCELLED = 14,   /* withdrawn by the broker while it ran */
    OUTCOME_JAIL_FAILED = 15, /* the provider's fault */
    OUTCOME_TERM_OVER = 16,   /* the lease's term ended during the run */
    /* Another bid took the lease, and the run had not ended within the notice. */
    OUTCOME_PREEMPTED = 17,
    OUTCOME_COUNT
};

/* The progress of a subtask, as listings show it. */
enum subtask_now {
    SUBTASK_NOW_WAITING = 0,
    SUBTASK_NOW_RUNNING = 1,
    SUBTASK_NOW_CHECKING = 2, /* a result of the subtask is held for a check */
    SUBTASK_NOW_ACCEPTED = 3,
    SUBTASK_NOW_FAILED = 4,
    SUBTASK_NOW_CANCELLED = 5,
    /* The subtask runs as soon as another one in its lane has ended. */
    SUBTASK_NOW_QUEUED = 6,
};

/* The broker's decision on a result. */
enum attempt_status {
    ATTEMPT_ACCEPTED = 0,
    ATTEMPT_FAILED_PAID = 1,   /* the program's fault: the time is paid */
    ATTEMPT_FAILED_UNPAID = 2, /* the provider's fault */
    ATTEMPT_LATE = 3,          /* logged, not paid */
    ATTEMPT_REFUTED = 4,       /* a referee found it wrong: not paid */
};

enum job_state { JOB_OPEN = 0, JOB_DONE = 1, JOB_FAILED = 2, JOB_CANCELLED = 3 };

enum job_reason {
    JOB_REASON_NONE = 0,
    JOB_REASON_NO_DEVICE = 1, /* no advertised device fits the requirement */
    JOB_REASON_NO_ASK = 2,    /* a device fits, but has no ask */
    JOB_REASON_PRICE = 3,     /* asks are above the limit */
    JOB_REASON_BUSY = 4,      /* all fitting slots are taken */
    JOB_REASON_BUDGET = 5,    /* the rest of the budget buys no lease */
    /* The market is halted. Of a job that has ended or runs something: its account was frozen. */
    JOB_REASON_HALTED = 6,
    JOB_REASON_SUBTASKS_FAILED = 7,
    JOB_REASON_ERROR_LIMIT = 8,
    JOB_REASON_CANCELLED = 9,
    JOB_REASON_RUNNING = 10,
    /* Every try on every provider failed by the provider's fault. */
    JOB_REASON_PROVIDERS_FAILED = 11,
    JOB_REASON_AVOIDED = 12, /* the free slots belong to a provider that just failed the job */
    JOB_REASON_REFEREE = 13, /* the results wait for a referee other than their maker */
    /* No check of the failed result came to a verdict: the result was paid, nobody is accused. */
    JOB_REASON_NO_VERDICT = 14,
    JOB_REASON_EXPIRED = 15,    /* good_till passed before all of the job had started */
    JOB_REASON_NOT_FILLED = 16, /* IOC or FOK: nothing, or not all, was available at once */
    /* IOC or FOK: the leases filled at once ended before the job was done. */
    JOB_REASON_LEASES_OVER = 17,
    /* The job waits until everything it asks for is available at once. */
    JOB_REASON_NOT_WHOLE = 18,
    /* The job has taken a lease that begins when its former holder's notice ends. */
    JOB_REASON_PROMISED = 19,
    /* The budget does not cover everything the job asks for at once, at the asked prices. */
    JOB_REASON_WHOLE_BUDGET = 20,
    /* All leases in reach are interruptible, and the job allows no further interruption. */
    JOB_REASON_FIRM = 21,
    JOB_REASON_NO_MAKER = 22, /* every provider able to make a subtask has judged its results */
    JOB_REASON_DEADLINE = 23, /* the deadline passed before all results were accepted */
    JOB_REASON_LATE = 24,     /* what waits cannot end before the deadline on any such device */
};

/* The type of an order says what happens to the order on arrival. */
enum order_type {
    ORDER_LIMIT = 0,
    ORDER_IOC = 1, /* immediate or cancel */
    ORDER_FOK = 2, /* fill or kill: bids only */
    ORDER_POST_ONLY = 3,
    ORDER_ALL_OR_NONE = 4, /* bids only */
    ORDER_MARKET = 5,      /* bids only */
};

enum lease_end_reason {
    LEASE_END_RETURNED = 0, /* no work left */
    LEASE_END_TERM = 1,
    LEASE_END_CANCELLED = 2,  /* job cancelled or ended */
    LEASE_END_UNKNOWN = 3,    /* the agent holds it, the broker does not */
    LEASE_END_FAILED = 4,     /* too many failures that were the provider's fault */
    LEASE_END_REVOKED = 5,    /* account frozen or market halted by the operator */
    LEASE_END_PREEMPTED = 19, /* another bid has taken it */
};

/* message_must_be_signed() returns true when a message of the type must be signed. message_roles()
 * returns the roles (bits of account_role) that may send it. 0 means that only the broker sends it;
 * ROLE_ANYONE includes anonymous senders. */
enum { ROLE_ANYONE = 1 << 16 };
bool message_must_be_signed(enum message_type type);
unsigned message_roles(enum message_type type);
const char *message_name(enum message_type type); /* "submit-job", for logs; "unknown" */
/* Returns the type that answers a request under its id, apart from Reject. Commands get Accepted,
 * reads the reply's type, Hello gets Welcome. Returns 0 for a type without an answer. */
enum message_type message_answer(enum message_type type);
/* Returns the largest body of the type, or 0 for an unknown type. */
uint32_t message_body_cap(enum message_type type);

#endif
