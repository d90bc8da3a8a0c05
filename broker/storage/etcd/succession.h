/* broker/storage/etcd/succession.h decides when a broker that follows tries to take the lead.
 *
 * The log is the heartbeat: the leader appends an entry at least every SUCCESSION_BEAT_MS. A
 * follower tries when it reads the log and finds nothing new for SUCCESSION_SILENCE_MS and the
 * share of its rank. Silence counts only while etcd answers. Nobody waits for a leader that
 * resigned. A try that comes too early does no harm, because etcd refuses it when the log has a
 * newer entry or another leader. So these rules keep the peace, and etcd keeps the log safe. The
 * code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_SUCCESSION_H
#define BOURSE_BROKER_STORAGE_ETCD_SUCCESSION_H

#include <stdbool.h>
#include <stdint.h>

enum {
    SUCCESSION_BEAT_MS = 250,     /* between two entries of a leader, at most */
    SUCCESSION_ALIVE_MS = 1500,   /* a leader without a new entry for so long answers no more */
    SUCCESSION_SILENCE_MS = 2000, /* until the follower of rank 0 tries */
    SUCCESSION_START_MS = 30000,  /* the same, while the leader prepares to serve */
    SUCCESSION_RANK_MS = 300,     /* the next rank waits longer by this */
    SUCCESSION_RANK_MAX = 9,
    SUCCESSION_YIELD_MS = 1500, /* whom a leader that resigned did not name waits longer by this */
    SUCCESSION_DEAF_MS = 2000   /* without an answer of etcd for so long, silence begins anew */
};

/* A leader that resigns may name its successor. */
enum succession_wish { SUCCESSION_ANYBODY, SUCCESSION_ME, SUCCESSION_ANOTHER };

struct succession {
    unsigned rank;
    int64_t quiet_ns; /* silence began then */
    int64_t heard_ns; /* etcd answered last */
    uint64_t epoch;   /* of the leader that was seen last */
    bool is_resigned; /* that leader resigned */
    bool is_starting; /* it wrote an entry, and does not serve yet */
    enum succession_wish wish;
};

/* Begins at `now_ns`, a monotonic time, as after an entry of the leader of `epoch`. */
struct succession succession_start(unsigned rank, uint64_t epoch, int64_t now_ns);
/* Notes that a new entry was read. `is_starting`: its leader does not serve yet. A large market
 * takes long to prepare, and impatient brokers would depose one another for ever. */
void succession_entry(struct succession *succession, bool is_starting, int64_t now_ns);
/* Notes that etcd answered and had no new entry, and which leader it named. Call this before
 * succession_is_due(). */
void succession_quiet(struct succession *succession, uint64_t epoch, bool is_resigned,
                      int64_t now_ns);
/* Notes whom the leader that resigned wishes to lead next. Somebody else leads after a while all
 * the same. */
void succession_wishes(struct succession *succession, enum succession_wish wish);
/* Notes that a try was refused. */
void succession_refused(struct succession *succession, int64_t now_ns);
/* Returns the time of the next try, if all stays quiet. */
int64_t succession_due_ns(const struct succession *succession);
/* Returns true when the follower shall try now. */
bool succession_is_due(const struct succession *succession, int64_t now_ns);

#endif
