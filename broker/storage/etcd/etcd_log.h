/* broker/storage/etcd/etcd_log.h decides what the journal sends to etcd next, and what an answer
 * means.
 *
 * One operation runs at a time: begin it, send etcd_log_request() to any member, give the reply to
 * etcd_log_take(), and repeat while it returns true. The caller bounds the time and gives up.
 *
 * Only a transaction that puts something, on either branch, is decided by all members, so nothing
 * else is believed. The fence of every such transaction is the whole value of the leader's key. No
 * lease and no revision is part of it. An append also demands that the entry before is there and
 * that its own key is not. So a copy that arrives late, or twice, changes nothing.
 *
 * A request whose answer was lost may have been executed, or may be later. The same bytes are sent
 * again until one copy is answered. What the refusal shows tells whether an earlier copy was
 * executed. Until then nothing else may be appended. The code is pure: no socket, clock or dice. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_LOG_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_LOG_H

#include "base/id.h"
#include "broker/storage/etcd/etcd_message.h"
#include "broker/storage/etcd/grpc.h"
#include "broker/storage/journal.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ETCD_LOG_GROUP_MAX = 4,         /* entries in one append */
    ETCD_LOG_GROUP_BYTES = 5 << 18, /* 1.25 MiB: etcd takes requests of 1.5 MiB */
    ETCD_LOG_READ_MAX = 8,          /* entries in one answer to a read */
    ETCD_LOG_CUT_STEP = 100         /* entries that one transaction deletes */
};

struct etcd_log;

/* Returns NULL when memory is short. */
struct etcd_log *etcd_log_create(const struct id128 *cluster);
void etcd_log_destroy(struct etcd_log **self);

/* Begins to open the log. When etcd has none, the log is made to begin after `last`, which is the
 * caller's newest entry (index 0 without bytes: none). Afterwards etcd_log_entry() has entry
 * `last->index`, unless etcd does not have it: that is certain, as no answer to a read is. DEPOSED:
 * the log has ended, and etcd_log_successor() has the id of the one that goes on. */
void etcd_log_open(struct etcd_log *log, const struct journal_base *last,
                   const struct journal_entry *entry);
/* Begins to take the lead over, after etcd_log_open(), from the leader that was seen last.
 * `me->epoch` is the least epoch to lead under. `mark` is 64 random bits of this start. BEHIND: the
 * log has entries after `last_index`. CORRUPT: the log ends before it. DEPOSED: another broker was
 * faster. */
void etcd_log_lead(struct etcd_log *log, uint64_t last_index, const struct journal_leader *me,
                   uint64_t mark);
/* Begins to give the lead up, and leaves `as` in the place of the leader, under the own epoch. No
 * append of this broker is taken after that. Returns OK, or DEPOSED at once. */
enum journal_status etcd_log_resign(struct etcd_log *log, uint64_t epoch,
                                    const struct journal_leader *as);
/* Begins to append 1 to ETCD_LOG_GROUP_MAX entries. Returns OK, or at once DEPOSED (not leading
 * under `epoch`), TOO_LARGE, or CORRUPT (an append without an answer had other bytes). */
enum journal_status etcd_log_append(struct etcd_log *log, uint64_t epoch,
                                    const struct journal_entry *entries, size_t count);
/* Begins to cut the log, so that it begins after `base`; entry `base->index` itself stays. Returns
 * OK, or DEPOSED at once. */
enum journal_status etcd_log_truncate(struct etcd_log *log, uint64_t epoch,
                                      const struct journal_base *base);
/* Begins to read entries from `index` on. */
void etcd_log_read(struct etcd_log *log, uint64_t index);
/* Begins to read the leader. The answer may be out of date. DEPOSED: it shows a later epoch than
 * the own one, so another broker leads. */
void etcd_log_look(struct etcd_log *log);

/* Returns the request to send, with its length and method. The bytes stay until the next call. */
const uint8_t *etcd_log_request(const struct etcd_log *log, enum etcd_method *ret_method,
                                size_t *ret_length);
/* Takes the reply to the request. `answer` counts only with ANSWERED. Returns true when there is a
 * request to send: the next one, or the same again. */
bool etcd_log_take(struct etcd_log *log, enum grpc_outcome outcome,
                   const struct etcd_answer *answer);
/* Returns the result of the operation, once etcd_log_take() has returned false. */
enum journal_status etcd_log_status(const struct etcd_log *log);
/* Ends an operation that is not decided. Returns FULL (the quota is reached), UNKNOWN (a copy may
 * be executed later, or a read was not answered), or UNAVAILABLE (no copy can be). */
enum journal_status etcd_log_give_up(struct etcd_log *log);

/* Returns the own epoch, 0 while not leading. */
uint64_t etcd_log_epoch(const struct etcd_log *log);
/* Returns the leader and the base that were seen last. */
const struct journal_leader *etcd_log_leader(const struct etcd_log *log);
const struct journal_base *etcd_log_base(const struct etcd_log *log);
/* Gets the id of the log that goes on after this one. Returns false when this one was not seen to
 * have ended. */
bool etcd_log_successor(const struct etcd_log *log, struct id128 *ret_successor);
/* Returns true when the last read was answered, and brought less than a read can bring: at that
 * time it reached the end. */
bool etcd_log_is_at_end(const struct etcd_log *log);
/* Gets an entry that the last read brought. Returns false when it did not. */
bool etcd_log_entry(const struct etcd_log *log, uint64_t index, struct journal_entry *ret_entry);

#endif
