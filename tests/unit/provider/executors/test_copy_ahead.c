/* The agent's half of copies ahead: what it offers for the next subtask, and when. The test is
 * bourse-kernel at the other end of the connection. */
#include "provider/executors/copy_ahead.h"

#include "base/cursor.h"
#include "provider/device/kernel_device.h"
#include "provider/tensor/ahead.h"
#include "tests/support/store_play.h"
#include "tests/support/suite.h"

#include <sys/socket.h>

/* Subtask i is one launch with the input "i<i>", which is blob i of the store, and with blob 14. */
enum { SUBTASKS = 3, SHARED = 14, RECORD = 32 + 8 + 1 };

static struct play play;
static struct copy_ahead *ahead;
static bool shares;

static Bourse__V1__Manifest manifest;
static Bourse__V1__ManifestSubtask subtasks[SUBTASKS], *subtask_list[SUBTASKS];
static Bourse__V1__ManifestInput inputs[SUBTASKS], *input_list[SUBTASKS], shared, *shared_list[1];
static char names[SUBTASKS][4];
static char *arguments[] = {"k.ptx", "add",     "--global", "1",       "--input",
                            "{in}",  "--input", "common",   "--input", "common"};

static Bourse__V1__ManifestInput input_of(char *name, size_t blob)
{
    Bourse__V1__ManifestInput input = BOURSE__V1__MANIFEST_INPUT__INIT;
    input.name = name;
    input.size = BLOB_BYTES;
    input.hash = (ProtobufCBinaryData){.len = sizeof play.source.hashes[blob].bytes,
                                       .data = play.source.hashes[blob].bytes};
    return input;
}

static bool shares_jail(void *context, uint32_t index, uint32_t next)
{
    ck_assert_ptr_eq(context, &play);
    ck_assert_uint_eq(next, index + 1);
    return shares;
}

static void begin(void)
{
    static const struct kernel_device device = {.api = KERNEL_CUDA, .name = "F100", .kind = "gpu"};
    static const struct config config;
    play_start(&play, UINT64_MAX);
    manifest = (Bourse__V1__Manifest)BOURSE__V1__MANIFEST__INIT;
    manifest.executor = "kernel";
    manifest.arguments = arguments;
    manifest.n_arguments = sizeof arguments / sizeof arguments[0];
    manifest.subtask_count = SUBTASKS;
    manifest.n_subtasks = SUBTASKS;
    manifest.subtasks = subtask_list;
    for (size_t i = 0; i < SUBTASKS; i++) {
        (void)snprintf(names[i], sizeof names[i], "i%zu", i);
        inputs[i] = input_of(names[i], i);
        input_list[i] = &inputs[i];
        subtasks[i] = (Bourse__V1__ManifestSubtask)BOURSE__V1__MANIFEST_SUBTASK__INIT;
        subtasks[i].inputs = &input_list[i];
        subtasks[i].n_inputs = 1;
        subtask_list[i] = &subtasks[i];
    }
    static char common[] = "common";
    shared = input_of(common, SHARED);
    shared_list[0] = &shared;
    manifest.shared = shared_list;
    manifest.n_shared = 1;
    shares = true;
    const struct copy_ahead_config terms = {.store = play.store,
                                            .config = &config,
                                            .device = &device,
                                            .job = job,
                                            .shares_jail = shares_jail,
                                            .context = &play};
    ahead = copy_ahead_create(&terms);
    ck_assert_ptr_nonnull(ahead);
}

static void end(void)
{
    copy_ahead_destroy(&ahead);
    ck_assert_ptr_null(ahead);
    play_end(&play);
}

static int run(uint32_t index)
{
    int connection = -1;
    ck_assert(copy_ahead_begin(ahead, &manifest, index, &connection));
    return connection;
}

static void read_all(int connection, void *bytes, size_t size)
{
    ck_assert_int_eq(recv(connection, bytes, size, MSG_WAITALL), (ssize_t)size);
}

/* Reads the list of the next subtask's two inputs, of which one has this blob. */
static void expect_list(int connection, size_t blob)
{
    uint8_t bytes[4 + 2 * RECORD];
    struct hash32 hash;
    read_all(connection, bytes, sizeof bytes);
    struct reader in = reader_over(bytes, sizeof bytes);
    ck_assert_uint_eq(reader_u32(&in), 2);
    for (size_t i = 0; i < 2; i++) {
        reader_bytes(&in, hash.bytes, sizeof hash.bytes);
        ck_assert(hash32_equal(&hash, &play.source.hashes[i == 0 ? blob : SHARED]));
        ck_assert_uint_eq(reader_u64(&in), BLOB_BYTES);
        ck_assert_uint_eq(reader_u8(&in), AHEAD_FILE);
    }
    ck_assert(reader_finished(&in));
}

static void say(int connection, uint8_t word)
{
    ck_assert_int_eq(send(connection, &word, 1, MSG_NOSIGNAL), 1);
}

static void expect_blob(int connection, size_t blob)
{
    uint8_t bytes[BLOB_BYTES + 1];
    read_all(connection, bytes, sizeof bytes);
    ck_assert_mem_eq(bytes, play.source.bytes[blob], BLOB_BYTES);
    ck_assert_uint_eq(bytes[BLOB_BYTES], AHEAD_GOOD);
}

static void expect_end(int connection)
{
    uint8_t byte;
    ck_assert_int_le(recv(connection, &byte, 1, 0), 0);
    (void)close(connection);
}

START_TEST(the_inputs_of_the_next_subtask_are_sent_as_they_are_asked_for)
{
    const int connection = run(0);
    copy_ahead_announce(ahead, 1, NULL);
    expect_list(connection, 1);
    say(connection, AHEAD_SEND);
    expect_blob(connection, 1);
    say(connection, AHEAD_SKIP); /* the device has the other one */
    expect_end(connection);
    copy_ahead_end(ahead);
    copy_ahead_announce(ahead, 2, NULL); /* before the run that it comes after */
    const int second = run(1);
    expect_list(second, 2);
    say(second, AHEAD_SKIP);
    say(second, AHEAD_SEND);
    expect_blob(second, SHARED);
    expect_end(second);
    copy_ahead_end(ahead);
}
END_TEST

START_TEST(a_subtask_that_begins_itself_is_not_sent)
{
    copy_ahead_announce(ahead, 1, NULL);
    const int first = run(1); /* the announcement is over */
    copy_ahead_end(ahead);
    expect_end(first);
    const int connection = run(0);
    copy_ahead_announce(ahead, 1, NULL);
    expect_list(connection, 1);
    copy_ahead_end(ahead);
    const int second = run(1); /* while bourse-kernel has not answered yet */
    say(connection, AHEAD_SEND);
    expect_end(connection);
    copy_ahead_end(ahead);
    expect_end(second);
}
END_TEST

START_TEST(another_jail_and_a_word_that_is_none_end_it)
{
    shares = false;
    int connection = run(0);
    copy_ahead_announce(ahead, 1, NULL);
    expect_end(connection);
    copy_ahead_end(ahead);
    shares = true;
    connection = run(0);
    copy_ahead_announce(ahead, 1, NULL);
    expect_list(connection, 1);
    say(connection, 77);
    expect_end(connection);
    copy_ahead_end(ahead);
}
END_TEST

START_TEST(a_jail_that_ends_ends_it)
{
    const int connection = run(0);
    copy_ahead_announce(ahead, 1, NULL);
    expect_list(connection, 1);
    (void)close(connection); /* end() does not wait */
    copy_ahead_end(ahead);
}
END_TEST

SUITE("copy_ahead", begin, end, TEST(the_inputs_of_the_next_subtask_are_sent_as_they_are_asked_for),
      TEST(a_subtask_that_begins_itself_is_not_sent),
      TEST(another_jail_and_a_word_that_is_none_end_it), TEST(a_jail_that_ends_ends_it))
