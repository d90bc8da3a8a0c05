/* The policy is the numbers that the exchange decides by, with copies of the protocol's numbers.
 * planner/schedule/online.h has the decisions that depend on measured times. Only files of
 * exchange/ include this header. */
#ifndef BOURSE_EXCHANGE_POLICY_H
#define BOURSE_EXCHANGE_POLICY_H

#include "base/checked.h"
#include "exchange/exchange.h"

/* The numbers of the protocol are repeated here because cores do not include one another. A unit
 * test compares each with protocol/message.h and protocol/reject.h. */
enum {
    XROLE_CONSUMER = 1,
    XROLE_PROVIDER = 2,
    XROLE_RISK = 16,
    XROLE_OPERATOR = 32,
    XROLE_REFEREE = 64,
    XOUTCOME_OK = 0,
    XOUTCOME_OUTPUT_LIMIT = 8,
    XOUTCOME_OUTPUT_MISSING = 9,
    XOUTCOME_INPUT_MISSING = 10,
    XOUTCOME_PROGRAM_MISSING = 11,
    XOUTCOME_IMAGE_MISSING = 12,
    XOUTCOME_REFUSED = 13,
    XOUTCOME_CANCELLED = 14,
    XOUTCOME_JAIL_FAILED = 15,
    XOUTCOME_TERM_OVER = 16,
    XOUTCOME_PREEMPTED = 17,
    XVERDICT_ACCEPT = 1,
    XVERDICT_REJECT = 2,
    XVERDICT_UNSURE = 3,
    XATTEMPT_ACCEPTED = 0,
    XATTEMPT_FAILED_PAID = 1,
    XATTEMPT_FAILED_UNPAID = 2,
    XATTEMPT_LATE = 3,
    XATTEMPT_REFUTED = 4,
    XREASON_NONE = 0,
    XREASON_NO_DEVICE = 1,
    XREASON_NO_ASK = 2,
    XREASON_PRICE = 3,
    XREASON_BUSY = 4,
    XREASON_BUDGET = 5,
    XREASON_HALTED = 6,
    XREASON_SUBTASKS_FAILED = 7,
    XREASON_ERROR_LIMIT = 8,
    XREASON_CANCELLED = 9,
    XREASON_RUNNING = 10,
    XREASON_PROVIDERS_FAILED = 11,
    XREASON_AVOIDED = 12,
    XREASON_REFEREE = 13,
    XREASON_NO_VERDICT = 14,
    XREASON_EXPIRED = 15,
    XREASON_NOT_FILLED = 16,
    XREASON_LEASES_OVER = 17,
    XREASON_NOT_WHOLE = 18,
    XREASON_PROMISED = 19,
    XREASON_WHOLE_BUDGET = 20,
    XREASON_FIRM = 21,
    XREASON_NO_MAKER = 22,
    XEND_RETURNED = 0,
    XEND_TERM = 1,
    XEND_CANCELLED = 2,
    XEND_UNKNOWN = 3,
    XEND_FAILED = 4,
    XEND_REVOKED = 5,
    XEND_PREEMPTED = 19,
    XREJECT_ROLE = 7,
    XREJECT_ID_EXPIRED = 8,
    XREJECT_ID_REUSED = 9,
    XREJECT_ID_TABLE_FULL = 10,
    XREJECT_NOT_FOUND = 20,
    XREJECT_EXISTS = 21,
    XREJECT_FROZEN = 22,
    XREJECT_HALTED = 23,
    XREJECT_FUNDS = 24,
    XREJECT_BUDGET = 25,
    XREJECT_PRICE = 26,
    XREJECT_QUANTITY = 27,
    XREJECT_LIMIT = 28,
    XREJECT_REQUIREMENT = 29,
    XREJECT_VERIFY = 30,
    XREJECT_INVITATION = 31,
    XREJECT_DEVICE = 32,
    XREJECT_STATE = 33,
    XREJECT_SELF_MATCH = 34,
    XREJECT_WOULD_TRADE = 35,
    XREJECT_NOTIONAL = 36,
    XREJECT_HOURS = 38,
    XREJECT_ACCOUNT = 39,
    XREJECT_OUTPUT_NOT_STORED = 44,
};

/* The rest is the exchange's own policy. */
#define ID_AGE_NS (24 * NS_PER_HOUR)
#define ID_AHEAD_NS (600 * NS_PER_S)
#define LEASE_GRACE_NS (5 * NS_PER_S) /* after the term; late results still count */
#define SAVING_NS (60 * NS_PER_S)     /* the same, while programs save their state */
#define LEASE_IDLE_NS (10 * NS_PER_S) /* a lease without work for this long is returned */
/* A new lease follows then, so slot-time of one lease stays within int64. */
#define LEASE_AGE_MOST_NS EXCHANGE_RUN_MOST_NS
#define GOOD_TILL_MOST_NS (367 * 24 * NS_PER_HOUR) /* counted from submission */
#define CLOSING_NS (20 * NS_PER_S) /* a closing job waits this long for withdrawn attempts */
#define AVOID_NS (10 * NS_PER_S)   /* a provider that failed a job gets no new lease of it */
#define REFUTED_NS (60 * NS_PER_S) /* the same after a refuted result */
/* A judged subtask fails when it has waited this long and nobody who could make it is left. */
#define NOBODY_LEFT_NS (60 * NS_PER_S)
/* Time for which an account's asks are closed after one refuted result more than REFUTED_BORNE. The
 * time doubles with each further one, up to the most. */
#define WITHDRAWN_LEAST_NS (60 * NS_PER_S)
#define WITHDRAWN_MOST_NS (24 * NS_PER_HOUR)
/* Slot-time accepted by checks that takes one refutation off the count. */
#define REFUTED_FADES_NS NS_PER_HOUR
#define SERVES_NS (60 * NS_PER_S) /* blobs stay readable after a lease ended */
enum {
    VANISHED_MOST = 16,      /* a vanished attempt after this many is the subtask's last */
    ATTEMPTS_MOST = 1000,    /* most attempts of one subtask; one more fails it */
    PLACED_LANES_MOST = 64,  /* per part; above, no lane is looked for that is done first */
    LAST_LANES_MOST = 1024,  /* the same for the last waiting subtasks: cost grows with lanes */
    LEASE_FAILURES_MOST = 2, /* failures in a row, by the provider's fault */
    AVOIDED_PROVIDERS = 8,   /* per job */
    REFUSALS_KEPT = 256,     /* per account; the oldest makes room */
    ENDED_JOBS_KEPT = 10000, /* per account; the oldest makes room */
    ENDED_LEASES_FORGOTTEN = 1024, /* batch size, when leases or attempts reach their limit */
    MOVES_MOST = 4,                /* attempts of a subtask that may still leave a slow lane */
    COMING_MOST = 16, /* per part, recalled from lanes and not back yet: then no more */
    PAGE_SUBTASKS = 256,
    PARTS_MOST = 17,                   /* per job, including the first */
    GRAPH_SUBTASKS_MOST = 65536,       /* per job with a graph */
    GRAPH_EDGES_MOST = 131072,         /* per graph */
    GIVEN_BYTES_MOST = 16384,          /* output that one subtask hands on */
    GIVEN_HEAD_BYTES = 4,              /* head before each output on the wire */
    GIVEN_WORK_BYTES_MOST = 768 << 10, /* inputs of one subtask, with their heads */
    TERMS_ATTRIBUTES = 3,
    CELL_ATTRIBUTES_MAX =
        ATTRIBUTE_COUNT_MAX + 2 + TERMS_ATTRIBUTES, /* instrument, `referee` and terms */
    EXCHANGE_REACHES_KNOWN = 32, /* kinds of bids that one read of jobs remembers */
    EXCHANGE_REASON_DEVICES =
        500000, /* devices that one read of jobs looks at, beyond the part it has begun */
    SAVED_BYTES_MOST = 16384,    /* names, hashes and sizes of one checkpoint's files */
    SAVED_SUBTASKS_MOST = 65536, /* per job with checkpoints */
    SAVED_MISSING = 2,           /* attempts that did not find its files: then it is given up */
    CHECKS_UNSURE = 2,           /* checks without a verdict: then nobody is accused */
    JUDGES_MOST = 32,            /* accounts that judged one subtask; with so many it fails */
    REFUTED_BORNE = 1,           /* refuted results that close none of an account's asks */
};
#define NO_SUBTASK UINT32_MAX
#define NO_CLASS UINT32_MAX /* class of a job without a bid */

#endif
