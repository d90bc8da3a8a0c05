#include "broker/storage/disk_reserve.h"

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

static int64_t free_bytes(const struct disk_reserve *reserve)
{
    char folder[sizeof reserve->path];
    struct statvfs status;
    (void)snprintf(folder, sizeof folder, "%s", reserve->path);
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

static bool take(struct disk_reserve *reserve)
{
    reserve->is_held = take_file(reserve->path, reserve->bytes);
    if (reserve->is_held) {
        (void)unlink(reserve->last_path); /* the reserve has this space again */
        reserve->is_last_held = false;
    }
    return reserve->is_held;
}

static int64_t last_bytes(const struct disk_reserve *reserve)
{
    return reserve->bytes / LAST_SHARE < LAST_MOST ? reserve->bytes / LAST_SHARE : LAST_MOST;
}

/* Takes as much of the last part as fits, or nothing when that is too little for one act. */
static void take_last(struct disk_reserve *reserve)
{
    const int64_t most = last_bytes(reserve);
    struct stat status;
    reserve->is_last_held = stat(reserve->last_path, &status) == 0 && status.st_size >= LAST_LEAST;
    if (!reserve->is_last_held) {
        const int64_t left = free_bytes(reserve) / LAST_STEP * LAST_STEP;
        const int64_t bytes = left < most ? left : most;
        reserve->is_last_held = bytes >= LAST_LEAST && take_file(reserve->last_path, bytes);
    }
}

/* The file stays, smaller and under another name, so no other program gets its last part. */
static bool give_all_but_last(struct disk_reserve *reserve)
{
    reserve->is_held = false;
    if (rename(reserve->path, reserve->last_path) != 0) {
        log_error("%s cannot be renamed: %s", reserve->path, strerror(errno));
        return unlink(reserve->path) == 0;
    }
    reserve->is_last_held = truncate(reserve->last_path, last_bytes(reserve)) == 0;
    return reserve->is_last_held || unlink(reserve->last_path) == 0;
}

bool disk_reserve_give_up(const char *folder)
{
    char path[sizeof((struct disk_reserve *)NULL)->path];
    return (snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE) < (int)sizeof path &&
            unlink(path) == 0) ||
           (snprintf(path, sizeof path, "%s/%s", folder, MARKET_RESERVE_LAST) < (int)sizeof path &&
            unlink(path) == 0);
}

/* ---------------------------------------------------------------- the state */

enum disk_reserve_state disk_reserve_state(const struct disk_reserve *reserve)
{
    return atomic_load_explicit(&reserve->state, memory_order_relaxed);
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

bool disk_reserve_admits(enum disk_reserve_state state, enum message_type type)
{
    bool is_command = translate_is_command(type);
    switch (state) {
    case DISK_RESERVE_UNUSED:
        return true;
    case DISK_RESERVE_IN_USE:
        return !is_command || is_first_aid(type);
    case DISK_RESERVE_LAST:
        return !is_command || is_operators(type);
    case DISK_RESERVE_NONE:
        return !is_command;
    case DISK_RESERVE_STUCK:
        return replies_are_the_readers(type);
    }
    return false;
}

static void move_to_untold(struct disk_reserve *reserve, enum disk_reserve_state state)
{
    atomic_store(&reserve->state, state);
}

static void move_to(struct disk_reserve *reserve, enum disk_reserve_state state)
{
    move_to_untold(reserve, state);
    if (reserve->told == state) {
        return;
    }
    reserve->told = state;
    switch (state) {
    case DISK_RESERVE_UNUSED:
        log_info("there is room on the disk again: commands are accepted");
        return;
    case DISK_RESERVE_IN_USE:
        log_error("the disk is full: commands are refused, cancels and reads are served from the "
                  "reserve; free space, and the broker goes on by itself");
        return;
    case DISK_RESERVE_LAST:
        log_error("the disk is full and the reserve used up: only reads, and an operator's freeze "
                  "and halt, are served; free space, and the broker goes on by itself");
        return;
    case DISK_RESERVE_NONE:
        log_error("the disk is full and the reserve used up to its end: only reads are served; "
                  "free space, and the broker goes on by itself");
        return;
    case DISK_RESERVE_STUCK:
        log_error("the disk is full: nothing can be committed, only committed data is served; free "
                  "space, and the broker goes on by itself");
        return;
    }
}

static bool meet_full(struct disk_reserve *reserve)
{
    if (reserve->is_held && give_all_but_last(reserve)) {
        move_to(reserve, DISK_RESERVE_IN_USE);
        return true;
    }
    if (reserve->is_last_held) {
        reserve->is_last_held = false;
        if (unlink(reserve->last_path) == 0) {
            /* The state holds until the commit succeeds. Then the free space counts, and mostly it
             * is a last part again: the review tells what is so. */
            move_to_untold(reserve, DISK_RESERVE_NONE);
            return true;
        }
        log_error("%s cannot be removed: %s", reserve->last_path, strerror(errno));
    }
    reserve->is_held = false;
    move_to(reserve, DISK_RESERVE_STUCK);
    return false;
}

bool disk_reserve_met_full(struct disk_reserve *reserve)
{
    pthread_mutex_lock(&reserve->mutex);
    const bool may_try_again = meet_full(reserve);
    pthread_mutex_unlock(&reserve->mutex);
    return may_try_again;
}

/* Returns the state while the reserve is not held. */
static enum disk_reserve_state unheld_state(struct disk_reserve *reserve)
{
    if (!reserve->is_last_held) {
        take_last(reserve);
    }
    return free_bytes(reserve) >= reserve->bytes / FREE_SHARE ? DISK_RESERVE_IN_USE
           : reserve->is_last_held                            ? DISK_RESERVE_LAST
                                                              : DISK_RESERVE_NONE;
}

void disk_reserve_review(struct disk_reserve *reserve)
{
    if (disk_reserve_state(reserve) == DISK_RESERVE_UNUSED) {
        return;
    }
    pthread_mutex_lock(&reserve->mutex);
    int64_t left = free_bytes(reserve);
    if (reserve->bytes == 0 || (left >= reserve->bytes + reserve->bytes / 4 && take(reserve))) {
        move_to(reserve, DISK_RESERVE_UNUSED);
    } else {
        move_to(reserve, unheld_state(reserve));
    }
    pthread_mutex_unlock(&reserve->mutex);
}

/* ---------------------------------------------------------------- start */

void disk_reserve_open(struct disk_reserve *reserve, const char *folder, int64_t bytes)
{
    *reserve = (struct disk_reserve){.bytes = bytes};
    pthread_mutex_init(&reserve->mutex, NULL);
    atomic_init(&reserve->state, DISK_RESERVE_UNUSED);
    reserve->told = DISK_RESERVE_UNUSED;
    if (snprintf(reserve->path, sizeof reserve->path, "%s/%s", folder, MARKET_RESERVE) >=
            (int)sizeof reserve->path ||
        snprintf(reserve->last_path, sizeof reserve->last_path, "%s/%s", folder,
                 MARKET_RESERVE_LAST) >= (int)sizeof reserve->last_path) {
        reserve->bytes = 0;
    }
    if (reserve->bytes == 0) {
        (void)unlink(reserve->path); /* files of an earlier config */
        (void)unlink(reserve->last_path);
        return;
    }
    if (!take(reserve)) {
        log_warning("no room for the reserve of %" PRId64
                    " bytes: free space, or set `reserve:` lower",
                    reserve->bytes);
        move_to(reserve, unheld_state(reserve));
    } else if (free_bytes(reserve) < DISK_RESERVE_START_BYTES) {
        (void)disk_reserve_met_full(reserve);
    }
}
