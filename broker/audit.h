/* broker/audit.h - re-derives a market's ledger from its journal, without a line of the code
 * that wrote it.
 *
 * The audit walks the journal and the ledger's rows side by side: each command's signature is
 * verified, then the rows that bear its index must follow from it and from all before. Nothing
 * of ledger/, exchange/ or the rest of broker/ is linked; formats are read from docs/ledger.md.
 * The first contradiction ends it, named by table and entry. docs/ledger.md section 8 lists what
 * is checked and what is not. */
#ifndef BOURSE_BROKER_AUDIT_H
#define BOURSE_BROKER_AUDIT_H

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
    int64_t minted_micro, charged_micro, fees_micro, held_micro;
    char root[65]; /* of the checkpoint */
    char origin[64];
    char head[16]; /* "ok", or "missing": a backup has none */
};

/* Audits the market in `folder` (ledger.db, HEAD), read only; a broker may be running.
 * sodium_init must have been called. */
void audit_run(const char *folder, struct audit_report *ret_report);

#endif
