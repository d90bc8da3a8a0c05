/* broker/storage/room.h - room on the disk: a reserve kept back for the day when it is full (P11).
 *
 * A file of RESERVE bytes lies in the market's folder for nothing but its size. When a commit meets
 * a full disk the reserve is given up but for its last part (`reserve.last`). The group that was
 * stuck is committed in its place, and from then on only what frees money or stops the market is
 * admitted: cancels, freeze and halt. Nothing else may take the room: no blob is stored, no
 * snapshot written. When an eighth of the reserve is free still, only the operator's freeze and
 * halt, and their ends, are admitted: the last part is kept for those, so that whoever halted the
 * market can resume it though other programs took all else. No tick is made then and nobody's
 * coming or going is noted: log time moves only for what was on its way before. A commit that meets
 * a full disk takes the last part, too; what is free after it becomes the last part again, however
 * small. Reads are answered all along. When there is room for the reserve and a quarter of it more,
 * it is taken back, and commands are accepted again.
 *
 *     FREE --commit meets a full disk--> RESERVE --an eighth free--> LAST --no last part--> NONE
 *       ^-------- room again ---------------/-------------------------/----------------------/
 *     start: FREE where the reserve is held or fits, else what is left says which of the others
 *     any --a commit meets a full disk, and nothing is held--> STUCK --it succeeds--> as above
 *
 * In STUCK the newest state is not durable, so what would be read from it is refused too; committed
 * data is not. The committer alone moves the state; every thread may ask for it. */
#ifndef BOURSE_BROKER_STORAGE_ROOM_H
#define BOURSE_BROKER_STORAGE_ROOM_H

#include "protocol/message.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum room_state { ROOM_FREE, ROOM_RESERVE, ROOM_LAST, ROOM_NONE, ROOM_STUCK };

/* ROOM_RESERVE_BYTES: two groups, one stuck and one gathered behind it, with all that they write,
 * and as much again for SQLite's copy of it from WAL to database; then some for cancels. */
#define ROOM_RESERVE_BYTES (INT64_C(32) << 20)

struct room {
    char path[4096], last_path[4096];
    int64_t bytes;     /* of the reserve; 0: the operator wants none */
    bool is_held;      /* the reserve */
    bool is_last_held; /* its last part, once the reserve is given up */
    _Atomic(enum room_state) state;
};

/* ROOM_START_BYTES: what a start itself writes beside the ledger once the reserve is held, above
 * all market.yaml. */
#define ROOM_START_BYTES (INT64_C(64) << 10)

/* For a start that met a full disk before room_open: removes the reserve that lies in `folder`, or
 * its last part; the caller has the folder's lock. False: there is neither, and so no room to try
 * again in. */
bool room_give_up(const char *folder);
/* Takes the reserve of `bytes` in `folder`, or keeps the one that lies there. Where it does not fit
 * the disk is full, whoever filled it: with a warning, the state is not FREE until a review finds
 * the room. */
void room_open(struct room *room, const char *folder, int64_t bytes);
enum room_state room_state(const struct room *room);
/* Is a message of `type` answered in that state? */
bool room_admits(enum room_state state, enum message_type type);

/* A commit met a full disk. True: the reserve, or its last part, was given up for it, try again at
 * once; false: wait. */
bool room_met_full(struct room *room);
/* Looks at the disk again: after a commit, and once a second while the state is not FREE. */
void room_review(struct room *room);

#endif
