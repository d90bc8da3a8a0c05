/* The disk reserve keeps space for the day on which the disk is full (P11).
 *
 * The reserve is a file in the market's folder whose only purpose is its size (`reserve`). When a
 * commit meets a full disk, the reserve is freed except for its last part (`reserve.last`). The
 * stuck group is then committed in its place. From then on only commands that free money or stop
 * the market are admitted: cancels, freeze and halt. Blobs and snapshots get none of the space.
 *
 * When only an eighth of the reserve is still free, only the operator's freeze and halt, and their
 * ends, are admitted. The last part is kept for them, so that the operator can resume a halted
 * market although other programs took all other space. There is then no tick, and presence is not
 * recorded: log time moves only for commands that were already on their way. A commit that meets a
 * full disk takes the last part, too. The space free after it becomes the last part again, however
 * small.
 *
 * Reads are answered all the time. When there is space for the reserve and a quarter of it more,
 * the reserve is taken back, and commands are accepted again.
 *
 *     UNUSED --commit meets a full disk--> IN_USE --an eighth free--> LAST --no last part--> NONE
 *       ^-------- space again ---------------/-------------------------/----------------------/
 *     start: UNUSED where the reserve is held or fits, else what is left says which of the others
 *     any --a commit meets a full disk, and nothing is held--> STUCK --it succeeds--> as above
 *
 * In STUCK the newest state is not durable, or the tables lack it, so reads of it are refused too;
 * reads of committed data are not. Committer and follower change the state; every thread may ask
 * for it. */
#ifndef BOURSE_BROKER_STORAGE_DISK_RESERVE_H
#define BOURSE_BROKER_STORAGE_DISK_RESERVE_H

#include "protocol/message.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum disk_reserve_state {
    DISK_RESERVE_UNUSED,
    DISK_RESERVE_IN_USE,
    DISK_RESERVE_LAST,
    DISK_RESERVE_NONE,
    DISK_RESERVE_STUCK
};

/* DISK_RESERVE_BYTES holds two groups with all that they write, one stuck and one gathered behind
 * it. It holds as much again for SQLite's copy from WAL to database, and some for cancels. Groups
 * that wait for the tables are written one after the other then; most are far smaller than the
 * longest. */
#define DISK_RESERVE_BYTES (INT64_C(32) << 20)

struct disk_reserve {
    char path[4096], last_path[4096];
    int64_t bytes; /* of the reserve; 0: the operator wants none */
    bool is_held;  /* the reserve is held */
    /* The last part is held, once the reserve is freed. */
    bool is_last_held;
    pthread_mutex_t mutex; /* held while the state changes */
    _Atomic(enum disk_reserve_state) state;
    enum disk_reserve_state told; /* the state that the log was told last */
};

/* DISK_RESERVE_START_BYTES is what a start itself writes beside the ledger once the reserve is
 * held, above all market.yaml. */
#define DISK_RESERVE_START_BYTES (INT64_C(64) << 10)

/* Removes the reserve in `folder`, or its last part, for a start that met a full disk before
 * disk_reserve_open. The caller has the folder's lock. Returns false when there is neither, so a
 * new try has no space. */
bool disk_reserve_give_up(const char *folder);
/* Takes a reserve of `bytes` in `folder`, or keeps the one that is there. The disk counts as full
 * when the reserve does not fit. Then a warning is logged, and the state is not UNUSED until a
 * review finds space. */
void disk_reserve_open(struct disk_reserve *reserve, const char *folder, int64_t bytes);
enum disk_reserve_state disk_reserve_state(const struct disk_reserve *reserve);
/* Returns true when a message of `type` is answered in `state`. */
bool disk_reserve_admits(enum disk_reserve_state state, enum message_type type);

/* Handles a commit that met a full disk. Returns true when the reserve, or its last part, was
 * freed: the caller tries again at once. Returns false when the caller must wait. */
bool disk_reserve_met_full(struct disk_reserve *reserve);
/* Looks at the disk again: after a commit, and once a second while the state is not UNUSED. */
void disk_reserve_review(struct disk_reserve *reserve);

#endif
