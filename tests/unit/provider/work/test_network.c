/* The count of a month is kept in a file, and waits end when the network stops. */
#include "provider/work/network.h"

#include "base/checked.h"
#include "tests/support/scratch_folder.h"
#include "tests/support/suite.h"

#include <check.h>
#include <unistd.h>

static struct network *network;

static bool open_network(int64_t rate_bytes, int64_t month_bytes)
{
    const struct network_terms terms = {.rate_bytes = rate_bytes, .month_bytes = month_bytes};
    return network_open(folder, &terms, &network, &problem);
}

static int64_t used(void)
{
    json_t *status = network_json(network);
    const int64_t bytes = json_integer_value(json_object_get(status, "used_bytes"));
    json_decref(status);
    return bytes;
}

static void put(const char *text)
{
    char file[128];
    (void)snprintf(file, sizeof file, "%s/network", folder);
    FILE *out = fopen(file, "w");
    ck_assert_ptr_nonnull(out);
    (void)fputs(text, out);
    fclose(out);
}

START_TEST(the_count_outlives_the_agent)
{
    ck_assert_msg(open_network(0, 1000), "%s", problem.text);
    ck_assert_int_eq(used(), 0);
    network_meter(network, 600);
    ck_assert_int_eq(used(), 600);
    ck_assert(network_turn(network, NS_PER_S, &problem));
    network_meter(network, 300);
    network_close(&network);
    ck_assert_ptr_null(network);
    ck_assert(open_network(0, 1000));
    ck_assert_int_eq(used(), 900);
    ck_assert(!network_is_spent(network));
    network_meter(network, 100);
    ck_assert(network_is_spent(network));
    network_close(&network);
    ck_assert(open_network(0, 1000));
    ck_assert(network_is_spent(network));
    network_close(&network);
}
END_TEST

START_TEST(another_month_begins_at_nothing)
{
    put("{\"month\":24300,\"bytes\":999999}"); /* January 2025 */
    ck_assert(open_network(0, 1000));
    ck_assert_int_eq(used(), 0);
    ck_assert(!network_is_spent(network));
    network_close(&network);
}
END_TEST

START_TEST(a_file_that_is_no_count_is_refused)
{
    static const char *const wrong[] = {"",
                                        "{}",
                                        "{\"month\":24300}",
                                        "{\"month\":24300,\"bytes\":-1}",
                                        "{\"month\":-1,\"bytes\":1}",
                                        "{\"month\":4294967296,\"bytes\":1}"};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        put(wrong[i]);
        ck_assert_msg(!open_network(0, 1000), "%s", wrong[i]);
        ck_assert(says("is no count of a month; remove the file to begin the count anew"));
    }
}
END_TEST

START_TEST(a_stop_ends_every_wait)
{
    ck_assert(open_network(1000, 0));
    network_stop(network);
    network_meter(network, INT64_MAX); /* it would wait for ages */
    network_close(&network);
}
END_TEST

START_TEST(a_folder_that_cannot_be_written_is_told)
{
    ck_assert(open_network(0, 1000));
    network_meter(network, 1);
    ck_assert_int_eq(rmdir(folder), 0);
    ck_assert(!network_turn(network, NS_PER_S, &problem));
    ck_assert(says("network"));
    network_close(&network);
    setup(); /* the folder of the test is removed after it */
}
END_TEST

SUITE("the network of the agent", setup, teardown, TEST(the_count_outlives_the_agent),
      TEST(another_month_begins_at_nothing), TEST(a_file_that_is_no_count_is_refused),
      TEST(a_stop_ends_every_wait), TEST(a_folder_that_cannot_be_written_is_told))
