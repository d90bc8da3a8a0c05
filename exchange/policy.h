/* exchange/policy.h - the numbers that the exchange decides by: those of the protocol, and its own
 * policy in one place; what depends on measured times is in planner/schedule/online.h. Not for use
 * outside exchange/. */
#ifndef BOURSE_EXCHANGE_POLICY_H
#define BOURSE_EXCHANGE_POLICY_H

#include "base/checked.h"
#include "exchange/exchange.h"

/* Numbers of the protocol that the exchange decides by. Cores do not include one another; a unit
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

/* Policy of the exchange, in one place. */
#define ID_AGE_NS (24 * NS_PER_HOUR)
#define ID_AHEAD_NS (600 * NS_PER_S)
#define LEASE_GRACE_NS (5 * NS_PER_S) /* after the term: results on their way still count */
#define SAVING_NS (60 * NS_PER_S)     /* the same, where programs are still saving their state */
#define LEASE_IDLE_NS (10 * NS_PER_S) /* a lease whose queue stayed empty that long is returned */
#define LEASE_AGE_MOST_NS                                                                          \
    EXCHANGE_RUN_MOST_NS /* then a new one: slot-time of a lease stays within int64 */
#define GOOD_TILL_MOST_NS (367 * 24 * NS_PER_HOUR) /* from when a job is submitted */
#define CLOSING_NS (20 * NS_PER_S) /* a closing job waits that long for its withdrawn attempts */
#define AVOID_NS (10 * NS_PER_S)   /* a provider that failed a job gets no new lease of it */
#define REFUTED_NS (60 * NS_PER_S) /* one whose result was refuted, likewise */
/* A judged subtask that waits so long, and all who could make it have judged it, has failed. */
#define NOBODY_LEFT_NS (60 * NS_PER_S)
/* How long the asks of an account are closed when a result more than REFUTED_BORNE was refuted; it
 * doubles with each further one, up to the most. */
#define WITHDRAWN_LEAST_NS (60 * NS_PER_S)
#define WITHDRAWN_MOST_NS (24 * NS_PER_HOUR)
/* So much slot-time, accepted by checks, takes one refutation off the count. */
#define REFUTED_FADES_NS NS_PER_HOUR
#define SERVES_NS (60 * NS_PER_S) /* blobs stay readable after a lease ended */
enum {
    VANISHED_MOST = 16,     /* attempts of one subtask after which one that vanished is the last */
    ATTEMPTS_MOST = 1000,   /* of one subtask, whatever ended them: with one more it has failed */
    PLACED_LANES_MOST = 64, /* of a part: with more it is not looked for where each is done first */
    LAST_LANES_MOST = 1024, /* likewise, of the last that wait: it takes time with their number */
    LEASE_FAILURES_MOST = 2,       /* in a row, by the provider's fault */
    AVOIDED_PROVIDERS = 8,         /* per job */
    REFUSALS_KEPT = 256,           /* of one account: its oldest make room for its next */
    ENDED_JOBS_KEPT = 10000,       /* of one account: its oldest make room for its next */
    ENDED_LEASES_FORGOTTEN = 1024, /* at a time, when leases or attempts reach their limit */
    MOVES_MOST = 4,   /* attempts of a subtask that is still taken back from a slow lane */
    COMING_MOST = 16, /* taken back from lanes of a part and not back yet: then no other is */
    PAGE_SUBTASKS = 256,
    PARTS_MOST = 17,                   /* of a job, the first among them */
    GRAPH_SUBTASKS_MOST = 65536,       /* of a job with a graph */
    GRAPH_EDGES_MOST = 131072,         /* of a graph */
    GIVEN_BYTES_MOST = 16384,          /* that one subtask leaves to those that wait for it */
    GIVEN_HEAD_BYTES = 4,              /* before each that a subtask is given, as it is sent */
    GIVEN_WORK_BYTES_MOST = 768 << 10, /* that one subtask is given, with these */
    TERMS_ATTRIBUTES = 3,
    CELL_ATTRIBUTES_MAX =
        ATTRIBUTE_COUNT_MAX + 2 + TERMS_ATTRIBUTES, /* the instrument, `referee`, its terms */
    EXCHANGE_REACHES_KNOWN = 32, /* kinds of bids that one read of jobs remembers */
    EXCHANGE_REASON_DEVICES =
        500000, /* that one read of jobs looks at, and those of the part that it is at */
    SAVED_BYTES_MOST = 16384,    /* names, hashes and sizes of the files of one checkpoint */
    SAVED_SUBTASKS_MOST = 65536, /* of a job that has checkpoints */
    SAVED_MISSING = 2,           /* attempts that did not find them: then they are not there */
    CHECKS_UNSURE = 2, /* checks of a result that came to no verdict: then nobody is accused */
    JUDGES_MOST = 32,  /* accounts that judged one subtask: with so many it has failed */
    REFUTED_BORNE = 1, /* refuted results of an account that close none of its asks */
};
#define NO_SUBTASK UINT32_MAX
#define NO_CLASS UINT32_MAX /* of a job without a bid */

#endif
