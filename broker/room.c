#include "broker/room.h"

#include "broker/replies.h"
#include "broker/translate.h"
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

/* All of it or nothing: a part would be missed when it counts. */
static bool take(struct room *room)
{
    int fd = open(room->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        return false;
    }
    int error = posix_fallocate(fd, 0, room->bytes);
    if (error == 0 && ftruncate(fd, room->bytes) != 0) { /* an older, larger one */
        error = errno;
    }
    (void)close(fd); /* its bytes are nothing */
    if (error != 0) {
        (void)unlink(room->path);
    }
    room->is_held = error == 0;
    return room->is_held;
}

bool room_give_up(const char *folder)
{
    char path[sizeof((struct room *)NULL)->path];
    return snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE) < (int)sizeof path &&
           unlink(path) == 0;
}

/* ---------------------------------------------------------------- the state */

enum room_state room_state(const struct room *room)
{
    return atomic_load_explicit(&room->state, memory_order_relaxed);
}

static bool is_first_aid(enum message_type type)
{
    return type == MESSAGE_ORDER_CANCEL || type == MESSAGE_JOB_CANCEL || type == MESSAGE_FREEZE ||
           type == MESSAGE_HALT;
}

bool room_admits(enum room_state state, enum message_type type)
{
    bool is_command = translate_is_command(type);
    switch (state) {
    case ROOM_FREE:
        return true;
    case ROOM_RESERVE:
        return !is_command || is_first_aid(type);
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
    case ROOM_NONE:
        log_error("the disk is full and the reserve used up: only reads are served; free space and "
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
    bool was_held = room->is_held;
    if (was_held && unlink(room->path) != 0) {
        log_error("%s cannot be removed: %s", room->path, strerror(errno));
        was_held = false;
    }
    room->is_held = false;
    move_to(room, was_held ? ROOM_RESERVE : ROOM_STUCK);
    return was_held;
}

static enum room_state unheld_state(const struct room *room, int64_t left)
{
    return left < room->bytes / 4 ? ROOM_NONE : ROOM_RESERVE;
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
        move_to(room, unheld_state(room, left));
    }
}

/* ---------------------------------------------------------------- start */

void room_open(struct room *room, const char *folder, int64_t bytes)
{
    *room = (struct room){.bytes = bytes};
    atomic_init(&room->state, ROOM_FREE);
    if (snprintf(room->path, sizeof room->path, "%s/%s", folder, MARKET_RESERVE) >=
        (int)sizeof room->path) {
        room->bytes = 0;
    }
    if (room->bytes == 0) {
        (void)unlink(room->path); /* of an earlier config */
        return;
    }
    if (!take(room)) {
        log_warning("no room for the reserve of %" PRId64
                    " bytes: free space, or set `reserve:` lower",
                    room->bytes);
        move_to(room, unheld_state(room, free_bytes(room)));
    } else if (free_bytes(room) < ROOM_START_BYTES) {
        (void)room_met_full(room);
    }
}
