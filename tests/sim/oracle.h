/* tests/sim/oracle.h - what must hold, checked after every step against models of its own.
 *
 * It reads the true log as soon as an entry is in, and applies it to an exchange of its own, the
 * reference: every broker must agree with its hash. From commands and effects it keeps accounts,
 * leases, attempts, asks and jobs by itself, from nothing but what was said, and fails the run at
 * the first promise broken. */
#ifndef BOURSE_TESTS_SIM_ORACLE_H
#define BOURSE_TESTS_SIM_ORACLE_H

#include "broker/core/act_log.h"
#include "broker/core/refusals.h"
#include "broker/storage/journal.h"
#include "exchange/exchange.h"
#include "tests/sim/net.h"

/* The true log, as the world knows it. */
struct oracle_log {
    uint64_t (*last)(void);
    /* UNAVAILABLE: ask again. */
    enum journal_status (*next)(uint64_t index, struct journal_entry *ret_entry);
};

void oracle_start(const struct oracle_log *log, const struct exchange_limits *limits);
/* The key `transport` connects as `account`. */
void oracle_knows(uint32_t account, const struct key32 *transport);
/* Somebody who has no account yet and may be invited. */
void oracle_expects(const struct key32 *key, const struct key32 *transport);
bool oracle_joined(const struct key32 *key, uint32_t *ret_account);
/* The log has an invitation of that token, used or not. */
bool oracle_invited(const struct id128 *token);
/* Applies and checks what came into the log. Cheap when nothing did. */
void oracle_follow(void);

/* An honest peer sends these bytes: from now on the log may hold them as its. */
void oracle_sends(const struct peer *peer, const uint8_t *bytes, size_t length);
/* A broker lets these bytes go: what they say must be in the log by now. */
void oracle_answers(const struct host *host, const uint8_t *bytes, size_t length);
/* A broker starts to serve: it opens the audit log. */
void oracle_serves(void);
/* A broker writes these acts into the audit log in the transaction of the entry with this chain
 * hash. */
void oracle_offers_acts(const struct hash32 *chain, const struct act *acts, size_t count);
/* A broker writes these counts of refusals there. */
void oracle_refuses(const struct refusal_count *refused, size_t count, int64_t log_ns);
/* A broker's state after `command`; must be the reference's when it was there. */
void oracle_compare(uint64_t command, const struct hash32 *state, const char *what);

uint64_t oracle_commands(void);
uint64_t oracle_entries(void);
const struct exchange *oracle_exchange(void);
bool oracle_accepted(uint32_t account, const struct id128 *id, uint64_t *ret_index);
/* Replay from the first entry, and a snapshot with its tail, lead to the same state. */
void oracle_replay_all(void);
/* Jobs that are open although nothing keeps them from ending; 0 is right. Says why in the trace. */
size_t oracle_stuck_jobs(void);

/* The ask that stands for a device; false: none does. */
bool oracle_ask_of(uint32_t provider, const struct id128 *device, struct id128 *ret_order);

/* Some attempt that was ever made, for liars; false: none was. */
bool oracle_some_attempt(struct id128 *ret_job, uint64_t *ret_lease, uint32_t *ret_index,
                         uint32_t *ret_attempt);

struct oracle_counts {
    uint64_t accepted, rejected, fills, results, late, paid, settled, repeated, joined, acts,
        refusals, given, checked, refuted, unsent, epochs_shown, by_value, gifts, wholes, killed,
        unrested, placed, taken, noticed, begun, other_terms, renewed, bands, words;
    /* Three brokers alone show these. */
    uint64_t outages, takeovers, fenced, stale_reads, joins, risen, turned_away, follower_reads;
};
struct oracle_counts oracle_counts(void);

#endif
