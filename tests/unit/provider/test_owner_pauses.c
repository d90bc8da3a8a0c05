/* The owner's pauses are kept in a file, which a restart reads. */
#include "provider/pauses.h"
#include "runtime/files.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>
#include <unistd.h>

static void put(const char *text)
{
    ck_assert(file_write(path, text, strlen(text), 0600, &problem));
}

static bool add(struct pauses *pauses, uint8_t id, const char *label, int64_t until_ms,
                int64_t saved_ns)
{
    struct paused_device device = {.id = {{id}}, .until_ms = until_ms, .saved_ns = saved_ns};
    (void)snprintf(device.label, sizeof device.label, "%s", label);
    return pauses_add(pauses, &device);
}

START_TEST(what_was_paused_is_read_again)
{
    static struct pauses pauses, read;
    pauses = (struct pauses){.is_whole = false};
    ck_assert(add(&pauses, 1, "gpu", 0, 5));
    ck_assert(add(&pauses, 2, "attic", 77, 0));
    ck_assert(add(&pauses, 1, "gpu0", 99, 0)); /* another label, and another end */
    ck_assert_uint_eq(pauses.count, 2);
    ck_assert_msg(pauses_write(path, &pauses, &problem), "%s", problem.text);
    ck_assert_msg(pauses_read(path, &read, &problem), "%s", problem.text);
    ck_assert(!read.is_whole && read.count == 2);
    ck_assert_int_eq(pauses_device(&read, "gpu0")->until_ms, 99);
    ck_assert_int_eq(pauses_device(&read, "attic")->until_ms, 77);
    ck_assert_ptr_null(pauses_device(&read, "gpu"));

    pauses_remove(&pauses, &(struct id128){{1}});
    pauses_remove(&pauses, &(struct id128){{9}});
    pauses.is_whole = true;
    ck_assert(pauses_write(path, &pauses, &problem));
    ck_assert(pauses_read(path, &read, &problem));
    ck_assert(read.is_whole && read.count == 1 && read.until_ms == 0);

    pauses = (struct pauses){.is_whole = false};
    ck_assert(pauses_write(path, &pauses, &problem));
    ck_assert_int_ne(access(path, F_OK), 0); /* nothing is paused */
    ck_assert(pauses_write(path, &pauses, &problem));
    ck_assert(!pauses_read(path, &read, &problem));
}
END_TEST

START_TEST(the_file_of_an_older_agent_is_a_pause_of_everything)
{
    static struct pauses read;
    put("{\"until_ms\":1790000000000}\n");
    ck_assert(pauses_read(path, &read, &problem));
    ck_assert(read.is_whole && read.count == 0 && read.until_ms == 1790000000000);
}
END_TEST

START_TEST(what_is_no_such_file_is_refused)
{
    static const char *const bad[] = {
        "",
        "{}",
        "[]",
        "{\"until_ms\":-1}",
        "{\"until_ms\":\"0\"}",
        "{\"until_ms\":0",
        "{\"devices\":{}}",
        "{\"devices\":[{\"device\":\"a\",\"until_ms\":0}]}",
        "{\"devices\":[{\"device\":\"a\",\"id\":\"5c\",\"until_ms\":0}]}",
        "{\"devices\":[{\"device\":\"\",\"id\":\"00112233445566778899aabbccddeeff\","
        "\"until_ms\":0}]}",
        "{\"devices\":[{\"device\":\"a\"}]}",
        "{\"devices\":[{\"until_ms\":0}]}",
        "{\"devices\":[\"a\"]}",
    };
    static struct pauses read;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        read = (struct pauses){.until_ms = -7};
        put(bad[i]);
        ck_assert_msg(!pauses_read(path, &read, &problem), "%s", bad[i]);
        ck_assert(problem.text[0] != '\0' && read.until_ms == -7);
    }
}
END_TEST

START_TEST(no_more_devices_are_paused_than_an_agent_has)
{
    static struct pauses pauses;
    pauses = (struct pauses){.is_whole = false};
    for (int i = 0; i < PAUSES_DEVICES_MAX; i++) {
        ck_assert(add(&pauses, (uint8_t)(i + 1), "d", 0, 0));
    }
    ck_assert(!add(&pauses, 200, "one more", 0, 0));
    ck_assert(add(&pauses, 1, "d", 5, 0));
}
END_TEST

SUITE("pauses", setup, teardown, TEST(what_was_paused_is_read_again),
      TEST(the_file_of_an_older_agent_is_a_pause_of_everything),
      TEST(what_is_no_such_file_is_refused), TEST(no_more_devices_are_paused_than_an_agent_has))
