/* An effect is what must happen outside once a command is durable. exchange.h has the functions. */
#ifndef BOURSE_EXCHANGE_EFFECT_TYPES_H
#define BOURSE_EXCHANGE_EFFECT_TYPES_H

#include "exchange/command_types.h"
#include "ledger/record.h"

enum exchange_effect_type {
    EFFECT_ACCEPT = 1,  /* answer `id` to origin */
    EFFECT_REJECT,      /* answer `id` to origin; the state only remembers the refusal */
    EFFECT_LEDGER,      /* append this record */
    EFFECT_ACCOUNT,     /* an account was opened or changed: key, number, roles, frozen */
    EFFECT_LEASE_GRANT, /* sent to the provider, which may now read the job's blobs */
    EFFECT_LEASE_RENEW,
    EFFECT_LEASE_END,    /* sent to the provider */
    EFFECT_DISPATCH,     /* sent to the provider; neighbours of one lease travel in one message */
    EFFECT_WITHDRAW,     /* sent to the provider, likewise in one message */
    EFFECT_JOB,          /* the job changed: push its row to sessions that watch it */
    EFFECT_ASK,          /* tells the provider that its ask was placed, expired or was cancelled */
    EFFECT_LEASE_NOTICE, /* tells the provider that another bid takes the lease after its term */
};

struct exchange_reject {
    uint32_t code; /* protocol/reject.h */
    char field[EXCHANGE_FIELD_SIZE];
    int64_t value, limit;
};
struct exchange_account_effect {
    struct key32 key;
    uint32_t roles;
    bool frozen;
    char name[EXCHANGE_NAME_SIZE];
};
struct exchange_grant {
    uint64_t lease;
    struct id128 job, device, ask;
    struct key32 owner;
    uint32_t owner_number;
    uint32_t slots, width;
    int64_t price_micro, term_ns, limit_ns;
    struct hash32 manifest;
    bool has_checkpoints; /* the job's programs save checkpoints */
};
struct exchange_given { /* output that a subtask hands on, as its result said */
    const uint8_t *bytes;
    uint32_t length;
};
struct exchange_work {
    uint64_t lease;
    uint32_t index, attempt, lane;
    bool is_urgent; /* DISPATCH: goes before everything queued in its lane */
    /* DISPATCH has the outputs of the subtasks it waited for, in graph order, owned by the
     * effects. */
    const struct exchange_given *given;
    uint32_t given_count;
    /* DISPATCH has the checkpoint to go on from, owned by the effects; no bytes: none. */
    struct exchange_given saved;
    uint32_t saved_by;  /* the attempt that left `saved` */
    struct hash32 seed; /* DISPATCH of a check: its seed; else zeros */
    uint32_t checked;   /* DISPATCH of a check: the subtask that it judges */
};
struct exchange_lease_note {
    uint64_t lease;
    int64_t term_ns;
    uint32_t reason;
    struct id128 job;
};

struct exchange_ask_note {
    struct id128 device, order;
    bool stands; /* false: the ask has ended */
    uint32_t slots;
    int64_t price_micro;
    int64_t good_till_ns, max_term_ns; /* 0: none */
    struct exchange_terms terms;
};

struct exchange_effect {
    enum exchange_effect_type type;
    uint32_t account;                   /* addressee; for ACCOUNT the subject */
    uint64_t origin;                    /* ACCEPT, REJECT */
    enum exchange_command_type refused; /* REJECT: type of the command */
    enum rate rate;                     /* REJECT: rate of `value` when that is a limit by value */
    struct id128 id;                    /* ACCEPT, REJECT: the command's; JOB: the job's */
    bool repeated;  /* ACCEPT, REJECT: the same id and body had this answer before */
    uint64_t index; /* ACCEPT: log index of the first acceptance */
    /* REJECT because of a freeze or a halt, and ACCOUNT of a frozen account: the operator's reason,
     * alive as long as the effects; NULL: none. */
    const char *reason;
    union {
        struct exchange_reject reject;
        struct ledger_record ledger;
        struct exchange_account_effect opened;
        struct exchange_grant grant;
        struct exchange_work work;
        struct exchange_lease_note lease;
        struct exchange_ask_note ask;
    };
};

/* The caller owns and reuses this growing array; exchange_effects_clear keeps the memory. */
struct exchange_effects {
    struct exchange_effect *items;
    size_t count, capacity;
    struct exchange_block *blocks; /* memory of the effects that must outlive the next step */
};

#endif
