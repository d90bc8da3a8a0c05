#include "broker/storage/room.h"

#include "broker/answer/replies.h"
#include "broker/core/translate.h"
#include "runtime/log.h"
#include "runtime/market.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum {
    LAST_SHARE = 4,        /* of the reserve: the last part */
    LAST_MOST = 8 << 20,   /* bytes: some hundred acts */
    LAST_LEAST = 64 << 10, /* bytes: one act, with SQLite's copies of it */
    LAST_STEP = 4 << 10,
    FREE_SHARE = 8, /* of the reserve: with less free space only the last part is left */
};

/* ---------------------------------------------------------------- the file */

static int64_t free_bytes(const struct room *room)
{
    char folder[sizeof room->path];
    struct statvfs status;
    (void)snprintf(folder, sizeof folder, "%s", room->path);
    char *slash = strrchr(folder, '/');
    if (slash != NULL) {
        *slash = '\0';
    }
    if (statvfs(folder, &status) != 0) {
        return 0;
    }
    return (int64_t)status.f_bavail * (int64_t)status.f_frsize;
}

/* Takes all bytes or none: a missing part would be missed when it counts. */
static bool take_file(const char *path, int64_t bytes)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    int error = posix_fallocate(fd, 0, bytes);
    if (error == 0 && ftruncate(fd, bytes) != 0) { /* an older file was larger */
        error = errno;
    }
    (void)close(fd); /* its content does not matter */
    if (error != 0) {
        (void)unlink(path);
    }
    return error == 0;
}

static bool take(struct room *room)
{
    room->is_held = take_file(room->path, room->bytes);
    if (room->is_held) {
        (void)unlink(room->last_path); /* the reserve has this space again */
        room->is_last_held = false;
    }
    return room->is_held;
}

static int64_t last_bytes(const struct room *room)
{
    return room->bytes / LAST_SHARE < LAST_MOST ? room->bytes / LAST_SHARE : LAST_MOST;
}

/* Takes as much of the last part as fits, or nothing when that is too little for one act. */
static void take_last(struct room *room)
{
    const int64_t most = last_bytes(room);
    struct stat status;
    room->is_last_held = stat(room->last_path, &status) == 0 && status.st_size >= LAST_LEAST;
    if (!room->is_last_held) {
        const int64_t left = free_bytes(room) / LAST_STEP * LAST_STEP;
        const int64_t bytes = left < most ? left : most;
        room->is_last_held = bytes >= LAST_LEAST && take_file(room->last_path, bytes);
    }
}

/* The file stays, smaller and under another name, so no other program gets its last part. */
static bool give_all_but_last(struct room *room)
{
    room->is_held = false;
    if (rename(room->path, room->last_path) != 0) {
        log_error("%s cannot be renamed: %s", room->path, strerror(errno));
        return unlink(room->path) == 0;
    }
    room->is_last_held = truncate(room->last_path, last_bytes(room)) == 0;
    return room->is_last_held || unlink(room->last_path) == 0;
}

bool room_give_up(const char *folder)
{
    char path[sizeof((struct room *)NULL)->path];
    return (snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE) < (int)sizeof path &&
            unlink(path) == 0) ||
           (snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE_LAST) < (int)sizeof path &&
            unlink(path) == 0);
}

/* ---------------------------------------------------------------- the state */

enum room_state room_state(const struct room *room)
{
    return atomic_load_explicit(&room->state, memory_order_relaxed);
}

/* FREEZE and HALT also end the state that they begin: the operator must be able to resume the
 * market. */
static bool is_operators(enum message_type type)
{
    return type == MESSAGE_FREEZE || type == MESSAGE_HALT;
}

static bool is_first_aid(enum message_type type)
{
    return type == MESSAGE_ORDER_CANCEL || type == MESSAGE_JOB_CANCEL || is_operators(type);
}

bool room_admits(enum room_state state, enum message_type type)
{
    bool is_command = translate_is_command(type);
    switch (state) {
    case ROOM_FREE:
        return true;
    case ROOM_RESERVE:
        return !is_command || is_first_aid(type);
    case ROOM_LAST:
        return !is_command || is_operators(type);
    case ROOM_NONE:
        return !is_command;
    case ROOM_STUCK:
        return replies_are_the_readers(type);
    }
    return false;
}

static void move_to(struct room *room, enum room_state state)
{
    if (atomic_exchange(&room->state, state) == state) {
        return;
    }
    switch (state) {
    case ROOM_FREE:
        log_info("there is room on the disk again: commands are accepted");
        return;
    case ROOM_RESERVE:
        log_error("the disk is full: commands are refused, cancels and reads are served from the "
                  "reserve; free space and it goes on by itself");
        return;
    case ROOM_LAST:
        log_error("the disk is full and the reserve used up: only reads, and an operator's freeze "
                  "and halt, are served; free space and it goes on by itself");
        return;
    case ROOM_NONE:
        log_error("the disk is full and the reserve used up to its end: only reads are served; "
                  "free space and "
                  "it goes on by itself");
        return;
    case ROOM_STUCK:
        log_error("the disk is full: nothing can be committed, only committed data is served; free "
                  "space and it goes on by itself");
        return;
    }
}

bool room_met_full(struct room *room)
{
    if (room->is_held && give_all_but_last(room)) {
        move_to(room, ROOM_RESERVE);
        return true;
    }
    if (room->is_last_held) {
        room->is_last_held = false;
        if (unlink(room->last_path) == 0) {
            move_to(room, ROOM_NONE); /* until the commit succeeds: then the free space counts */
            return true;
        }
        log_error("%s cannot be removed: %s", room->last_path, strerror(errno));
    }
    room->is_held = false;
    move_to(room, ROOM_STUCK);
    return false;
}

/* Returns the state while the reserve is not held. */
static enum room_state unheld_state(struct room *room)
{
    if (!room->is_last_held) {
        take_last(room);
    }
    return free_bytes(room) >= room->bytes / FREE_SHARE ? ROOM_RESERVE
           : room->is_last_held                         ? ROOM_LAST
                                                        : ROOM_NONE;
}

void room_review(struct room *room)
{
    if (room_state(room) == ROOM_FREE) {
        return;
    }
    int64_t left = free_bytes(room);
    if (room->bytes == 0 || (left >= room->bytes + room->bytes / 4 && take(room))) {
        move_to(room, ROOM_FREE);
    } else {
        move_to(room, unheld_state(room));
    }
}

/* ---------------------------------------------------------------- start */

void room_open(struct room *room, const char *folder, int64_t bytes)
{
    *room = (struct room){.bytes = bytes};
    atomic_init(&room->state, ROOM_FREE);
    if (snprintf(room->path, sizeof room->path, "%s/%s", folder, MARKET_RESERVE) >=
            (int)sizeof room->path ||
        snprintf(room->last_path, sizeof room->last_path, "%s/%s", folder, MARKET_RESERVE_LAST) >=
            (int)sizeof room->last_path) {
        room->bytes = 0;
    }
    if (room->bytes == 0) {
        (void)unlink(room->path); /* files of an earlier config */
        (void)unlink(room->last_path);
        return;
    }
    if (!take(room)) {
        log_warning("no room for the reserve of %" PRId64
                    " bytes: free space, or set `reserve:` lower",
                    room->bytes);
        move_to(room, unheld_state(room));
    } else if (free_bytes(room) < ROOM_START_BYTES) {
        (void)room_met_full(room);
    }
}
