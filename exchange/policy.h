/* exchange/policy.h holds the numbers by which the exchange decides, and copies of the protocol's
 * numbers. planner/schedule/online.h has the decisions that depend on measured times. Only files of
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
    XREASON_DEADLINE = 23,
    XREASON_LATE = 24,
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

/* A command is refused as expired when its id was made longer ago than ID_AGE_NS, or further ahead
 * of the log time than ID_AHEAD_NS. */
#define ID_AGE_NS (24 * NS_PER_HOUR)
#define ID_AHEAD_NS (600 * NS_PER_S)

/* A result still counts for so long after the term of its lease. SAVING_NS is for a job with
 * checkpoints whose lease was taken: its programs save their state. */
#define LEASE_GRACE_NS (5 * NS_PER_S)
#define SAVING_NS (60 * NS_PER_S)
#define RENEWED_TERM_LEAST_NS (4 * NS_PER_S) /* the least term of work that may outlast it */
#define OUTLASTING_TERM_NS (60 * NS_PER_S) /* no shorter term is proposed to work without a limit */
#define LEASE_IDLE_NS (10 * NS_PER_S)      /* a lease without work for this long is returned */
/* A lease of this age is not renewed: a new lease follows, so that the slot-time of one lease stays
 * within int64. */
#define LEASE_AGE_MOST_NS EXCHANGE_RUN_MOST_NS
/* A good_till and a deadline lie at most this long after the submission. */
#define GOOD_TILL_MOST_NS (367 * 24 * NS_PER_HOUR)
#define CLOSING_NS (20 * NS_PER_S) /* a closing job waits this long for withdrawn attempts */

/* A provider that failed a job gets no new lease of the job for AVOID_NS, and for REFUTED_NS after
 * a refuted result. */
#define AVOID_NS (10 * NS_PER_S)
#define REFUTED_NS (60 * NS_PER_S)
/* A subtask that was judged fails when it has waited this long and no provider is left that may
 * make the subtask. */
#define NOBODY_LEFT_NS (60 * NS_PER_S)
/* The time for which an account's asks are closed after refuted result REFUTED_TOLERATED + 1. Each
 * further refuted result doubles the time, up to the most. */
#define WITHDRAWN_LEAST_NS (60 * NS_PER_S)
#define WITHDRAWN_MOST_NS (24 * NS_PER_HOUR)
/* Slot-time accepted by checks that takes one refutation off the count. */
#define REFUTED_FADES_NS NS_PER_HOUR
#define BLOB_ACCESS_NS (60 * NS_PER_S) /* blobs stay readable for so long after a lease ended */

enum {
    /* A subtask that has had so many attempts fails when one more attempt vanishes. */
    VANISHED_MOST = 16,
    ATTEMPTS_MOST = 1000, /* attempts of one subtask; the subtask fails instead of one more */
    /* The exchange looks for the lane that ends a subtask first while a part has at most so many
     * lanes. The cost of the search grows with the lanes. The second bound is for the last waiting
     * subtasks. */
    PLACED_LANES_MOST = 64,
    LAST_LANES_MOST = 1024,
    LEASE_FAILURES_MOST = 2, /* failures in a row, by the provider's fault, that end a lease */
    AVOIDED_PROVIDERS = 8,   /* providers that one job remembers as avoided */
    /* The exchange keeps so many refusals and ended jobs of an account; the oldest makes room. */
    REFUSALS_KEPT = 256,
    ENDED_JOBS_KEPT = 10000,
    /* The number of ended leases forgotten at a time, when leases or attempts reach their limit. */
    ENDED_LEASES_FORGOTTEN = 1024,
    MOVES_MOST = 4, /* attempts of a subtask that may still be moved away from a slow lane */
    /* The attempts of one part that were taken back from their lanes and have not returned. With so
     * many, no further attempt is taken back. */
    COMING_MOST = 16,
    PAGE_SUBTASKS = 256,
    PARTS_MOST = 17,             /* parts of one job, including the first */
    GRAPH_SUBTASKS_MOST = 65536, /* subtasks of a job with a graph */
    GRAPH_EDGES_MOST = 131072,   /* edges of one graph */
    GIVEN_BYTES_MOST = 16384,    /* the outputs that one subtask hands on */
    GIVEN_HEAD_BYTES = 4,        /* head before each subtask's outputs on the wire */
    /* The inputs that other subtasks hand to one subtask, with the heads. */
    GIVEN_WORK_BYTES_MOST = 768 << 10,
    TERMS_ATTRIBUTES = 3,
    /* The attributes of a device, with its instrument, the attribute `referee` and the terms. */
    CELL_ATTRIBUTES_MAX = ATTRIBUTE_COUNT_MAX + 2 + TERMS_ATTRIBUTES,
    EXCHANGE_REACHES_KNOWN = 32, /* kinds of bids that one read of jobs remembers */
    /* A read of jobs begins no further part after it has looked at so many devices. */
    EXCHANGE_REASON_DEVICES = 500000,
    SAVED_BYTES_MOST = 16384,    /* names, hashes and sizes of one checkpoint's files */
    SAVED_SUBTASKS_MOST = 65536, /* subtasks of a job with checkpoints */
    SAVED_MISSING = 2,     /* a checkpoint whose files so many attempts did not find is given up */
    CHECKS_UNSURE = 2,     /* after so many checks without a verdict nobody is accused */
    JUDGES_MOST = 32,      /* accounts that judged one subtask; a subtask with so many fails */
    REFUTED_TOLERATED = 1, /* refuted results of an account that do not yet close its asks */
    /* Since these rules, dispatch looks at what a lane's device holds (state/residency.h). */
    RULES_OF_RESIDENCE = 22,
    /* Since these rules, no subtask starts that is known to end late (work/choice/lateness.h). A
     * market that has not named its rules follows them, too: no deadline is older than rules. */
    RULES_OF_LATENESS = 22,
    /* Since these rules, the number of the rules rises by one at a time and never falls. */
    RULES_OF_STEPS = 23,
    /* The subtasks whose outputs a lane is taken to hold. The agent's own table has twice as many
     * places, and needs some for inputs that the exchange does not know. */
    RESIDENTS_MOST = 32,
    RESIDENT_READY_MOST = 16,  /* ready subtasks that are compared for one lane */
    RESIDENT_INPUTS_MOST = 16, /* inputs of a subtask that are looked at */
    /* A device holds this share of the memory that it offers, as agents do by default. */
    RESIDENT_MEMORY_SHARE = 4,
    RESIDENT_LEAST_BYTES = 64 << 10, /* smaller outputs are moved in less than a millisecond */
    /* The time to move a byte to another device, which is what 100 MB/s take. */
    RESIDENT_NS_PER_BYTE = 10,
};
#define NO_SUBTASK UINT32_MAX
#define NO_CLASS UINT32_MAX /* class of a job without a bid */

#endif
