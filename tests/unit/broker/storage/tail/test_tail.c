#include "broker/storage/tail/tail.h"

#include <check.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/sha256.h"
#include "broker/core/watermark.h"
#include "broker/storage/entry.h"
#include "broker/storage/journal_memory.h"
#include "broker/storage/tail/journal_tail.h"
#include "tests/support/suite.h"

enum { SMALL = 100, LARGE = 1 << 20, CHAIN_MAX = 64 };

/* A tail in a folder of its own, on rows in memory. */
struct fixture {
    char folder[64];
    struct journal_log *log;
    struct journal *rows, *journal;
    struct watermark synced;
    uint64_t epoch;
    struct journal_last last;            /* of what was appended */
    struct journal_last ends[CHAIN_MAX]; /* by entry */
    uint8_t *bytes;
};

static void open_tail(struct fixture *self)
{
    static const struct journal_leader me = {.broker = "me"};
    struct problem problem;
    strcpy(self->folder, "/tmp/bourse-tail-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(self->folder));
    self->log = journal_log_create(1, 1);
    self->rows = journal_memory_open(self->log);
    ck_assert_int_eq(journal_lead(self->rows, 0, &me, &self->epoch), JOURNAL_OK);
    watermark_init(&self->synced, 0);
    ck_assert_int_eq(journal_tail_open(&(struct journal_tail_config){.folder = self->folder,
                                                                     .rows = self->rows,
                                                                     .synced = &self->synced,
                                                                     .turn_bytes = TAIL_TURN_BYTES},
                                       &self->journal, &problem),
                     JOURNAL_OK);
    self->last = (struct journal_last){.next_command = 1};
    self->ends[0] = self->last;
    self->bytes = malloc(ENTRY_MAX_BYTES);
}

static void close_tail(struct fixture *self)
{
    journal_destroy(&self->journal);
    journal_destroy(&self->rows);
    journal_log_destroy(&self->log);
    journal_tail_remove(self->folder);
    ck_assert_int_eq(rmdir(self->folder), 0); /* nothing else was made */
    watermark_fini(&self->synced);
    free(self->bytes);
}

/* Appends an entry after the last, with a payload of `size` bytes. */
static void append(struct fixture *self, uint32_t size)
{
    static const uint8_t payload[LARGE];
    const struct entry_head head = {.count = 1,
                                    .index = self->last.index + 1,
                                    .epoch = self->epoch,
                                    .previous = self->last.chain,
                                    .first_command = self->last.next_command};
    const struct entry_command command = {
        .account = UINT32_MAX, .kind = ENTRY_TICK, .payload = payload, .payload_length = size};
    const size_t length = entry_write(&head, &command, self->bytes, ENTRY_MAX_BYTES);
    const struct journal_entry entry = {
        .index = head.index, .bytes = self->bytes, .length = length};
    ck_assert_int_eq(journal_append(self->journal, self->epoch, &entry, 1), JOURNAL_OK);
    self->last.index++;
    self->last.next_command++;
    self->last.chain = sha256_of(self->bytes, length);
    if (self->last.index < CHAIN_MAX) {
        self->ends[self->last.index] = self->last;
    }
}

/* Pretends that the tables got an entry by another way than the tail. */
static void skip(struct fixture *self)
{
    self->last.index++;
    self->last.next_command++;
    self->last.chain.bytes[0] ^= 1;
    self->ends[self->last.index] = self->last;
    watermark_raise(&self->synced, self->last.index);
}

static struct tail read_tail(const struct fixture *self)
{
    struct tail tail;
    struct problem problem;
    ck_assert_msg(tail_read(self->folder, &tail, &problem), "it is read");
    return tail;
}

static enum tail_fit fit(struct tail *tail, const struct journal_last *last, const char *says)
{
    struct problem problem = {.text = ""};
    const enum tail_fit found = tail_fit(tail, last, &problem);
    ck_assert_msg(strstr(problem.text, says) != NULL, "%s", problem.text);
    return found;
}

/* Counts the entries that follow the journal up to entry `index`. */
static size_t count_after(const struct fixture *self, uint64_t index)
{
    struct tail tail = read_tail(self);
    ck_assert_int_eq(fit(&tail, &self->ends[index], ""), TAIL_FITS);
    const size_t count = tail.count;
    tail_fini(&tail);
    return count;
}

static void path_of(const struct fixture *self, unsigned file, char ret_path[PATH_MAX])
{
    struct problem problem;
    ck_assert(tail_path(self->folder, file, ret_path, PATH_MAX, &problem));
}

static off_t size_of(const struct fixture *self, unsigned file)
{
    char path[PATH_MAX];
    struct stat status;
    path_of(self, file, path);
    ck_assert_int_eq(stat(path, &status), 0);
    return status.st_size;
}

START_TEST(what_was_appended_is_read_back)
{
    struct fixture fixture;
    open_tail(&fixture);
    for (int i = 0; i < 5; i++) {
        append(&fixture, SMALL);
    }
    struct tail tail = read_tail(&fixture);
    ck_assert_int_eq(fit(&tail, &fixture.ends[0], ""), TAIL_FITS);
    ck_assert_uint_eq(tail.count, 5);
    for (size_t i = 0; i < 5; i++) {
        const struct journal_last *end = &tail.entries[i].end;
        ck_assert_uint_eq(end->index, i + 1);
        ck_assert_uint_eq(end->next_command, i + 2);
        ck_assert_uint_eq(tail.entries[i].epoch, fixture.epoch);
        ck_assert(hash32_equal(&end->chain, &fixture.ends[i + 1].chain));
    }
    ck_assert_uint_eq(tail_end(&tail, &fixture.ends[0])->index, 5);
    tail_fini(&tail);
    close_tail(&fixture);
}
END_TEST

START_TEST(a_folder_without_a_tail_has_no_entry)
{
    struct tail tail;
    struct problem problem;
    ck_assert(tail_read("/nowhere", &tail, &problem));
    ck_assert_uint_eq(tail.count, 0);
    tail_fini(&tail);
}
END_TEST

START_TEST(entries_of_the_tables_are_dropped)
{
    struct fixture fixture;
    open_tail(&fixture);
    for (int i = 0; i < 5; i++) {
        append(&fixture, SMALL);
    }
    for (uint64_t index = 0; index <= 5; index++) {
        ck_assert_uint_eq(count_after(&fixture, index), 5 - index);
    }
    close_tail(&fixture);
}
END_TEST

/* Whatever is cut off, the whole records before stay. */
START_TEST(a_torn_record_is_cut)
{
    struct fixture fixture;
    char path[PATH_MAX];
    open_tail(&fixture);
    append(&fixture, SMALL);
    const off_t one = size_of(&fixture, 0);
    append(&fixture, SMALL);
    const off_t two = size_of(&fixture, 0);
    path_of(&fixture, 0, path);
    for (off_t size = two - 1; size >= one; size--) {
        ck_assert_int_eq(truncate(path, size), 0);
        ck_assert_uint_eq(count_after(&fixture, 0), 1);
    }
    ck_assert_int_eq(truncate(path, one - 1), 0);
    ck_assert_uint_eq(count_after(&fixture, 0), 0);
    close_tail(&fixture);
}
END_TEST

START_TEST(a_damaged_record_ends_the_run)
{
    struct fixture fixture;
    char path[PATH_MAX];
    open_tail(&fixture);
    append(&fixture, SMALL);
    const off_t one = size_of(&fixture, 0);
    append(&fixture, SMALL);
    append(&fixture, SMALL);
    path_of(&fixture, 0, path);
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    for (off_t place = one; place < 2 * one; place++) {
        uint8_t byte = 0;
        ck_assert_int_eq(pread(fd, &byte, 1, place), 1);
        const uint8_t other = byte ^ 0x40;
        ck_assert_int_eq(pwrite(fd, &other, 1, place), 1);
        ck_assert_uint_eq(count_after(&fixture, 0), 1);
        ck_assert_int_eq(pwrite(fd, &byte, 1, place), 1);
    }
    ck_assert_int_eq(close(fd), 0);
    ck_assert_uint_eq(count_after(&fixture, 0), 3);
    close_tail(&fixture);
}
END_TEST

START_TEST(another_history_is_refused)
{
    struct fixture fixture;
    open_tail(&fixture);
    append(&fixture, SMALL);
    append(&fixture, SMALL);
    struct tail tail = read_tail(&fixture);
    struct journal_last other = fixture.ends[1];
    other.chain.bytes[7] ^= 1;
    ck_assert_int_eq(
        fit(&tail, &other, "entry 1 of the journal's tail is not the one of ledger.db"),
        TAIL_OTHER);
    other = fixture.ends[0];
    other.chain.bytes[7] ^= 1;
    ck_assert_int_eq(fit(&tail, &other, "another history"), TAIL_OTHER);
    ck_assert_uint_eq(tail.count, 2);
    tail_fini(&tail);
    close_tail(&fixture);
}
END_TEST

START_TEST(an_old_ledger_is_refused)
{
    struct fixture fixture;
    open_tail(&fixture);
    skip(&fixture);
    skip(&fixture);
    append(&fixture, SMALL);
    struct tail tail = read_tail(&fixture);
    ck_assert_int_eq(fit(&tail, &fixture.ends[1],
                         "ledger.db ends at entry 1, and the journal's tail begins at entry 3"),
                     TAIL_BEYOND);
    tail_fini(&tail);
    close_tail(&fixture);
}
END_TEST

START_TEST(a_newer_ledger_needs_no_tail)
{
    struct fixture fixture;
    open_tail(&fixture);
    append(&fixture, SMALL);
    skip(&fixture);
    skip(&fixture);
    ck_assert_uint_eq(count_after(&fixture, 3), 0);
    close_tail(&fixture);
}
END_TEST

START_TEST(an_entry_after_a_gap_begins_another_run)
{
    struct fixture fixture;
    open_tail(&fixture);
    append(&fixture, SMALL);
    append(&fixture, SMALL);
    skip(&fixture);
    append(&fixture, SMALL);
    append(&fixture, SMALL);
    ck_assert_uint_eq(count_after(&fixture, 3), 2);
    close_tail(&fixture);
}
END_TEST

START_TEST(the_files_are_used_in_turns_and_stay_short)
{
    struct fixture fixture;
    open_tail(&fixture);
    for (uint64_t i = 1; i < CHAIN_MAX; i++) {
        append(&fixture, TAIL_TURN_BYTES / 4);
        ck_assert_uint_eq(count_after(&fixture, i - 1), 1);
        watermark_raise(&fixture.synced, i);
    }
    ck_assert_int_gt(size_of(&fixture, 1), 0);
    ck_assert_int_lt(size_of(&fixture, 0), 2 * TAIL_TURN_BYTES);
    ck_assert_int_lt(size_of(&fixture, 1), 2 * TAIL_TURN_BYTES);
    close_tail(&fixture);
}
END_TEST

START_TEST(two_runs_are_one_tail)
{
    struct fixture fixture;
    open_tail(&fixture);
    while (size_of(&fixture, 1) == 0) {
        append(&fixture, LARGE); /* the tables have nothing */
    }
    append(&fixture, SMALL);
    ck_assert_uint_eq(count_after(&fixture, 0), fixture.last.index);
    close_tail(&fixture);
}
END_TEST

struct late {
    struct fixture *fixture;
    atomic_bool is_done;
};

static void *append_late(void *argument)
{
    struct late *late = argument;
    append(late->fixture, SMALL);
    atomic_store(&late->is_done, true);
    return NULL;
}

START_TEST(an_append_waits_for_tables_that_are_far_behind)
{
    struct fixture fixture;
    const struct timespec moment = {.tv_nsec = 50000000};
    open_tail(&fixture);
    while (size_of(&fixture, 1) < TAIL_MOST_BYTES) {
        append(&fixture, LARGE);
    }
    struct late late = {.fixture = &fixture};
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, append_late, &late), 0);
    (void)nanosleep(&moment, NULL);
    ck_assert(!atomic_load(&late.is_done));
    watermark_raise(&fixture.synced, fixture.last.index);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert(atomic_load(&late.is_done));
    ck_assert_uint_eq(count_after(&fixture, fixture.last.index - 1), 1);
    close_tail(&fixture);
}
END_TEST

START_TEST(a_copy_has_what_the_tables_lack)
{
    struct fixture fixture;
    struct fixture copy;
    struct problem problem;
    open_tail(&fixture);
    open_tail(&copy);
    for (int i = 0; i < 4; i++) {
        append(&fixture, SMALL);
    }
    struct tail tail = read_tail(&fixture);
    ck_assert_int_eq(fit(&tail, &fixture.ends[2], ""), TAIL_FITS);
    ck_assert(tail_copy(&tail, copy.folder, &problem));
    tail_fini(&tail);
    memcpy(copy.ends, fixture.ends, sizeof copy.ends);
    ck_assert_uint_eq(count_after(&copy, 2), 2);
    struct tail read = read_tail(&copy);
    ck_assert_int_eq(fit(&read, &fixture.ends[1], "begins at entry 3"), TAIL_BEYOND);
    tail_fini(&read);
    close_tail(&copy);
    close_tail(&fixture);
}
END_TEST

START_TEST(a_deposed_broker_appends_nothing)
{
    struct fixture fixture;
    open_tail(&fixture);
    const struct journal_entry entry = {.index = 1, .bytes = fixture.bytes, .length = 1};
    ck_assert_int_eq(journal_append(fixture.journal, fixture.epoch + 1, &entry, 1),
                     JOURNAL_DEPOSED);
    ck_assert_uint_eq(count_after(&fixture, 0), 0);
    close_tail(&fixture);
}
END_TEST

SUITE("tail", NULL, NULL, TEST(what_was_appended_is_read_back),
      TEST(a_folder_without_a_tail_has_no_entry), TEST(entries_of_the_tables_are_dropped),
      TEST(a_torn_record_is_cut), TEST(a_damaged_record_ends_the_run),
      TEST(another_history_is_refused), TEST(an_old_ledger_is_refused),
      TEST(a_newer_ledger_needs_no_tail), TEST(an_entry_after_a_gap_begins_another_run),
      TEST(the_files_are_used_in_turns_and_stay_short), TEST(two_runs_are_one_tail),
      TEST(an_append_waits_for_tables_that_are_far_behind), TEST(a_copy_has_what_the_tables_lack),
      TEST(a_deposed_broker_appends_nothing))
