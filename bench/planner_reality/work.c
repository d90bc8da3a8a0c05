#include "base/random.h"
#include "base/sha256.h"
#include "bench/give_up.h"
#include "bench/planner_reality/parts.h"
#include "provider/tensor/gemm.h"

#include <sched.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROOM = 4 << 20, PHRASES = 1 << 14, PHRASE_MOST = 32, HASHED = 64 << 10 };

struct scratch {
    uint8_t *room;
    uint8_t phrases[PHRASES + PHRASE_MOST];
    int in, out; /* of xz */
};

static const struct {
    const char *name;
    uint32_t least, most;
} kinds[KINDS] = {
    [KIND_COMPRESS] = {"compress", 32, 320},
    [KIND_GEMM] = {"gemm", 160, 400},
    [KIND_SORT] = {"sort", 20000, 160000},
    [KIND_HASH] = {"hash", 4096, 32768},
};

const char *kind_name(enum kind kind)
{
    return kinds[kind].name;
}

uint32_t kind_least(enum kind kind)
{
    return kinds[kind].least;
}

uint32_t kind_most(enum kind kind)
{
    return kinds[kind].most;
}

double piece_units(struct piece piece)
{
    double size = piece.size;
    switch (piece.kind) {
    case KIND_GEMM:
        return size * size * size;
    case KIND_SORT:
        return size * log2(size);
    case KIND_COMPRESS:
    case KIND_HASH:
    case KINDS:
        break;
    }
    return size;
}

void pin(int core)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET((size_t)core, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) {
        die("a thread cannot be held to a core");
    }
}

struct scratch *scratch_create(void)
{
    struct scratch *scratch = memory(1, sizeof *scratch);
    struct random dice = random_seeded(7);
    for (size_t i = 0; i < sizeof scratch->phrases; i++) {
        uint64_t letter = random_below(&dice, 32);
        scratch->phrases[i] = letter < 26 ? (uint8_t)('a' + letter) : (uint8_t)' ';
    }
    scratch->room = memory(1, ROOM);
    memset(scratch->room, 1, ROOM);
    scratch->in = memfd_create("in", MFD_CLOEXEC);
    scratch->out = memfd_create("out", MFD_CLOEXEC);
    if (scratch->in < 0 || scratch->out < 0 || write(scratch->out, scratch->room, ROOM) != ROOM) {
        die("no files in memory");
    }
    return scratch;
}

void scratch_destroy(struct scratch **self)
{
    (void)close((*self)->in);
    (void)close((*self)->out);
    free((*self)->room);
    free(*self);
    *self = NULL;
}

/* Writes text with phrases that come again, as texts have them. */
static void write_text(struct scratch *scratch, struct random *dice, size_t length)
{
    for (size_t at = 0; at < length;) {
        uint64_t draw = random_u64(dice);
        size_t size = 4 + (size_t)(draw >> 32) % (PHRASE_MOST - 4);
        size = size < length - at ? size : length - at;
        memcpy(scratch->room + at, scratch->phrases + draw % PHRASES, size);
        at += size;
    }
}

/* Compresses the first `length` bytes of the scratch space in place with xz, and returns their new
 * length. */
static size_t squeeze(struct scratch *scratch, size_t length)
{
    char *const arguments[] = {(char *)"xz", (char *)"-0", (char *)"-T1", (char *)"-c", NULL};
    char *const none[] = {NULL}; /* no XZ_OPT */
    posix_spawn_file_actions_t actions;
    pid_t child;
    int status;
    if (pwrite(scratch->in, scratch->room, length, 0) != (ssize_t)length ||
        ftruncate(scratch->in, (off_t)length) != 0 || lseek(scratch->in, 0, SEEK_SET) != 0 ||
        lseek(scratch->out, 0, SEEK_SET) != 0) {
        die("a file in memory cannot be written");
    }
    if (posix_spawn_file_actions_init(&actions) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, scratch->in, STDIN_FILENO) != 0 ||
        posix_spawn_file_actions_adddup2(&actions, scratch->out, STDOUT_FILENO) != 0 ||
        posix_spawnp(&child, arguments[0], &actions, NULL, arguments, none) != 0) {
        die("xz does not start");
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        die("xz failed");
    }
    off_t end = lseek(scratch->out, 0, SEEK_CUR);
    if (end <= 0 || end > ROOM ||
        pread(scratch->out, scratch->room, (size_t)end, 0) != (ssize_t)end) {
        die("what xz wrote cannot be read");
    }
    return (size_t)end;
}

static size_t multiply(struct scratch *scratch, struct random *dice, size_t side)
{
    float *a = (float *)(void *)scratch->room;
    size_t count = side * side;
    for (size_t i = 0; i < 2 * count; i++) {
        a[i] = (float)((double)random_below(dice, 2001) / 1000 - 1);
    }
    gemm_plain(&(struct gemm){.rows = side,
                              .inner = side,
                              .columns = side,
                              .alpha = 1,
                              .a = a,
                              .b = a + count,
                              .c = a + 2 * count},
               1);
    memmove(a, a + 2 * count, count * sizeof *a);
    return count * sizeof *a;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static size_t sort(struct scratch *scratch, struct random *dice, size_t count)
{
    uint64_t *numbers = (uint64_t *)(void *)scratch->room;
    for (size_t i = 0; i < count; i++) {
        numbers[i] = random_u64(dice);
    }
    qsort(numbers, count, sizeof *numbers, compare);
    return count * sizeof *numbers;
}

static struct hash32 hash_often(struct scratch *scratch, struct random *dice, size_t length)
{
    struct sha256 hash;
    uint64_t *words = (uint64_t *)(void *)scratch->room;
    for (size_t i = 0; i < HASHED / sizeof *words; i++) {
        words[i] = random_u64(dice);
    }
    sha256_start(&hash);
    for (size_t done = 0; done < length;) {
        size_t size = length - done < HASHED ? length - done : HASHED;
        sha256_add(&hash, scratch->room, size);
        done += size;
    }
    return sha256_end(&hash);
}

struct hash32 piece_run(struct scratch *scratch, struct piece piece, const struct hash32 *seed)
{
    uint64_t first;
    memcpy(&first, seed->bytes, sizeof first);
    struct random dice = random_seeded(first);
    size_t length = 0;
    switch (piece.kind) {
    case KIND_COMPRESS:
        write_text(scratch, &dice, (size_t)piece.size << 10);
        length = squeeze(scratch, (size_t)piece.size << 10);
        break;
    case KIND_GEMM:
        length = multiply(scratch, &dice, piece.size);
        break;
    case KIND_SORT:
        length = sort(scratch, &dice, piece.size);
        break;
    case KIND_HASH:
        return hash_often(scratch, &dice, (size_t)piece.size << 10);
    case KINDS:
        break;
    }
    return sha256_of(scratch->room, length);
}

void payload_make(uint8_t *ret_bytes, size_t length, const struct hash32 *seed)
{
    uint64_t word;
    memcpy(&word, seed->bytes, sizeof word);
    struct random dice = random_seeded(word);
    for (size_t at = 0; at < length; at += sizeof word) {
        word = random_u64(&dice);
        memcpy(ret_bytes + at, &word, sizeof word);
    }
}
