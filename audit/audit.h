/* audit/audit.h re-derives a market's ledger from its journal, and shares no code with the exchange
 * and the ledger that wrote it. The audit shares base/ and protocol/, which read bytes and compute
 * hashes.
 *
 * The audit walks the journal and the ledger's rows side by side. Each command's signature is
 * verified. The rows with the command's index must then follow from it and from all before. Nothing
 * of ledger/, exchange/ or the rest of broker/ is linked; the formats come from docs/ledger.md. The
 * audit ends at the first contradiction, and names its table and entry. docs/ledger.md section 8
 * lists what is checked and what is not. */
#ifndef BOURSE_AUDIT_AUDIT_H
#define BOURSE_AUDIT_AUDIT_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum audit_verdict {
    AUDIT_OK,
    AUDIT_FINDING,    /* a contradiction: the report's table, entry, what, expected and found */
    AUDIT_UNREADABLE, /* no verdict: `what` has the reason */
};

struct audit_report {
    enum audit_verdict verdict;
    char table[24];
    /* The entry is one of the journal for table "journal", else one of the ledger. 0 stands for the
     * whole table. */
    uint64_t entry;
    char what[512]; /* the broken rule or the contradiction, for people */
    char expected[100];
    char found[100];
    /* The numbers tell how much the audit covered. */
    uint64_t journal_entries, commands, signatures;
    uint64_t tail_entries; /* in the journal's tail alone: chained, and not audited yet */
    uint64_t records, leaves, tree_size; /* tree_size: from the signed checkpoint */
    uint64_t accounts, jobs, fills, results, accepted;
    uint64_t checked;      /* results decided by a referee's check */
    uint64_t epochs, dice; /* epochs of dice; batches with recomputed dice */
    uint32_t rules;        /* the exchange's rules at the last command; 0: none named */
    int64_t minted_micro, charged_micro, fees_micro, held_micro;
    char root[65]; /* the checkpoint's root */
    char origin[64];
    char head[16];         /* "ok", or "missing": a backup has no HEAD */
    uint32_t head_damaged; /* marks in HEAD with a damaged copy, which is no finding */
    /* Damaged snapshots of which only the name is newer than the journal, which is no finding, and
     * the last of them. */
    uint32_t snapshots_doubtful;
    char doubtful[40];
    uint64_t doubtful_command; /* the command in the name of that snapshot */
    bool history_damaged;      /* history.db has no readable mark, which is no finding */
    char key_missing[16];      /* file of a key that the first start needs; "": none is missing */
    uint64_t acts;             /* records of the audit log, all chained */
};

/* Audits the market in `folder` (ledger.db, HEAD, and what a start refuses besides), read only. A
 * broker may be running. sodium_init must have been called before. */
void audit_run(const char *folder, struct audit_report *ret_report);

/* The kinds of acts; the numbers are those of docs/ledger.md section 11. */
enum audit_act_kind {
    AUDIT_ACT_START = 1,
    AUDIT_ACT_STOP = 2,
    AUDIT_ACT_ADOPT = 3,
    AUDIT_ACT_RESTORE = 5,
    AUDIT_ACT_JOIN = 16,
    AUDIT_ACT_MINT = 17,
    AUDIT_ACT_INVITE = 18,
    AUDIT_ACT_FREEZE = 19,
    AUDIT_ACT_HALT = 20,
    AUDIT_ACT_LIMITS = 21,
    AUDIT_ACT_BANDS = 22,
    AUDIT_ACT_OWNER = 23,
    AUDIT_ACT_REFUSAL = 64,
};

/* An act is one record of the audit log, as in docs/ledger.md section 11. */
struct audit_act {
    uint64_t number, log_index, count;
    int64_t log_time_ns, wall_ms, amount_micro;
    uint16_t kind, code, type;
    uint32_t account, state;
    struct key32 target;
    char text[256];
    char name[64]; /* the account's name in table accounts; "": none */
};
const char *audit_act_name(uint16_t kind); /* e.g. "mint"; "unknown" */
/* An audit_on_act returns false to end the reading. */
typedef bool audit_on_act(void *context, const struct audit_act *act);

/* Checks the audit log alone: its chain, and its end against HEAD. The key that the log's starts
 * name must have signed HEAD. Calls `on_act` for every record from number `since` on, in order, up
 * to the first wrong one. */
void audit_acts_run(const char *folder, uint64_t since, audit_on_act *on_act, void *context,
                    struct audit_report *ret_report);

#endif
