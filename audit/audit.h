/* audit/audit.h - re-derives a market's ledger from its journal, without a line of the code
 * that wrote it.
 *
 * The audit walks the journal and the ledger's rows side by side: each command's signature is
 * verified, then the rows that bear its index must follow from it and from all before. Nothing
 * of ledger/, exchange/ or the rest of broker/ is linked; formats are read from docs/ledger.md.
 * The first contradiction ends it, named by table and entry. docs/ledger.md section 8 lists what
 * is checked and what is not. */
#ifndef BOURSE_AUDIT_AUDIT_H
#define BOURSE_AUDIT_AUDIT_H

#include "base/id.h"

#include <stdbool.h>
#include <stdint.h>

enum audit_verdict {
    AUDIT_OK,
    AUDIT_FINDING,    /* something is wrong: table, entry, what, expected, found */
    AUDIT_UNREADABLE, /* no verdict: `what` says why */
};

struct audit_report {
    enum audit_verdict verdict;
    char table[24];
    /* Of the journal for table "journal", of the ledger otherwise; 0: the table as a whole. */
    uint64_t entry;
    char what[200];
    char expected[100];
    char found[100];
    /* How much was looked at. */
    uint64_t journal_entries, commands, signatures;
    uint64_t records, leaves, tree_size; /* tree_size: of the signed checkpoint */
    uint64_t accounts, jobs, fills, results, accepted;
    uint64_t checked;      /* results that a referee's check decided */
    uint64_t epochs, dice; /* epochs of dice; batches whose dice were recomputed */
    uint32_t rules;        /* of the exchange, in force at the last command; 0: none were named */
    int64_t minted_micro, charged_micro, fees_micro, held_micro;
    char root[65]; /* of the checkpoint */
    char origin[64];
    char head[16];         /* "ok", or "missing": a backup has none */
    uint32_t head_damaged; /* marks in HEAD whose copy is damaged, which is no finding */
    uint64_t acts;         /* records of the audit log, all chained */
};

/* Audits the market in `folder` (ledger.db, HEAD), read only; a broker may be running.
 * sodium_init must have been called. */
void audit_run(const char *folder, struct audit_report *ret_report);

/* One record of the audit log, as docs/ledger.md section 11 has it. */
struct audit_act {
    uint64_t number, log_index, count;
    int64_t log_time_ns, wall_ms, amount_micro;
    uint16_t kind, code, type;
    uint32_t account, state;
    struct key32 target;
    char text[256];
    char name[64]; /* of the account, from table accounts; "" when it has none */
};
const char *audit_act_name(uint16_t kind); /* "mint"; "unknown" */
/* False ends the reading. */
typedef bool audit_on_act(void *context, const struct audit_act *act);

/* Checks the audit log alone: its chain, and its end against HEAD, whose signature must be that of
 * the key which its starts name. Calls `on_act` for every record from number `since` on, in their
 * order, up to the first that is wrong. */
void audit_acts_run(const char *folder, uint64_t since, audit_on_act *on_act, void *context,
                    struct audit_report *ret_report);

#endif
