/* The page shows an operator the brokers of a market. `cluster leave` finds one by a name. */
#include "broker/cluster/status_page.h"

#include "broker/cluster/leave.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two brokers: rank 0 leads, rank 1 follows. */
static struct etcd_inquiry found;
static struct folder_copy own;
static struct etcd_roster_list list;
static struct status_page page;

static void add(unsigned rank, const char *id, uint64_t index)
{
    struct etcd_member *member = &list.brokers[list.count].member;
    list.brokers[list.count].is_readable = true;
    list.brokers[list.count++].is_alive = true;
    *member = (struct etcd_member){.rank = rank,
                                   .runs = true,
                                   .index = index,
                                   .seen_ms = 98000,
                                   .state_command = 50,
                                   .state = {{5}},
                                   .rules = 22,
                                   .rules_first = 21,
                                   .rules_last = 22,
                                   .version = "1.2.3"};
    (void)snprintf(member->id, sizeof member->id, "%s", id);
    (void)snprintf(member->broker, sizeof member->broker, "%s/7", id);
    (void)snprintf(member->control, sizeof member->control, "tcp://10.0.0.%u:4770", rank + 1);
}

static void setup(void)
{
    found = (struct etcd_inquiry){.member_count = 1,
                                  .has_journal = true,
                                  .leader = {.epoch = 3, .address = "tcp://10.0.0.1:4770"},
                                  .last = 100,
                                  .last_log_ns = 9000000000};
    found.members[0] = (struct etcd_inquiry_member){.url = "https://10.0.0.1:2379",
                                                    .answers = true,
                                                    .version = "3.6.14",
                                                    .database_bytes = 4096,
                                                    .live_bytes = 2048,
                                                    .quota_bytes = 8192};
    strcpy(found.leader.broker, "00000000000000aa/7");
    own = (struct folder_copy){.last = 98, .log_ns = 8500000000};
    list = (struct etcd_roster_list){.count = 0};
    add(0, "00000000000000aa", 96);
    add(1, "00000000000000bb", 95);
    page = (struct status_page){.etcd = &found,
                                .own = &own,
                                .brokers = &list,
                                .own_id = "00000000000000bb",
                                .now_ms = 100000};
}

static void shows(void (*write)(FILE *, const struct status_page *), const char *text)
{
    char *written = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&written, &length);
    ck_assert_ptr_nonnull(out);
    write(out, &page);
    (void)fclose(out);
    ck_assert_msg(strstr(written, text) != NULL, "no '%s' in:\n%s", text, written);
    free(written);
}

START_TEST(brokers_that_run_are_shown)
{
    shows(status_page_text,
          "own       98 here: 2 behind, 500 ms stale\n"
          "rules     22 in force\n"
          "broker    0 leads, tcp://10.0.0.1:4770, entry 96, 0 behind, seen 2 s "
          "ago, state agrees at command 50, knows rules 21 to 22, release 1.2.3\n"
          "broker    1 follows, tcp://10.0.0.2:4770, entry 95, 0 behind, seen 2 "
          "s ago, state agrees at command 50, knows rules 21 to 22, release 1.2.3, this "
          "folder\n");
    shows(status_page_json, "\"own_index\":98,\"own_is_old\":false,\"lag\":2,\"stale_ms\":500");
    shows(status_page_json, "\"rank\":1,\"role\":\"follows\"");
    shows(status_page_json, "\"state_agrees\":true,\"rules\":[21,22]");
    shows(status_page_metrics, "\nbourse_cluster_epoch 3\n");
    shows(status_page_metrics, "\nbourse_broker_leads{id=\"00000000000000aa\",rank=\"0\",address="
                               "\"tcp://10.0.0.1:4770\"} 1\n"
                               "bourse_broker_leads{id=\"00000000000000bb\",rank=\"1\",address="
                               "\"tcp://10.0.0.2:4770\"} 0\n");
    shows(status_page_metrics, "\nbourse_etcd_free_bytes{url=\"https://10.0.0.1:2379\"} 4096\n");
}
END_TEST

START_TEST(one_that_lags_says_how_much)
{
    list.brokers[1].member.lag_ms = 2500;
    ck_assert_uint_eq(status_page_behind(&page, 0), 0);
    ck_assert_uint_eq(status_page_behind(&page, 1), 5);
    shows(status_page_text, "entry 95, 5 behind, for 2.5 s, seen");
    shows(
        status_page_metrics,
        "bourse_broker_behind_entries{id=\"00000000000000bb\",rank=\"1\",address=\"tcp://10.0.0.2:"
        "4770\"} 5\n");
    list.brokers[1].member.lag_ms = -1;
    shows(status_page_text, "5 behind, not up to date since its start");
    list.brokers[1].member.lag_ms = 0;
    list.brokers[1].is_alive = false;
    ck_assert_int_eq(status_page_role(&page, 1), STATUS_PAGE_SILENT);
    ck_assert_uint_eq(status_page_behind(&page, 1), 5); /* nobody knows of a later entry */
    list.brokers[1].member.runs = false;
    ck_assert_int_eq(status_page_role(&page, 1), STATUS_PAGE_STOPPED);
}
END_TEST

/* New rules wait for the brokers that do not know them. */
START_TEST(the_rules_in_force_and_what_the_next_ones_wait_for_are_shown)
{
    shows(status_page_text, "\nrules     22 in force\nbroker");
    shows(status_page_json, "\"rules_in_force\":22,\"no_space\"");
    shows(status_page_metrics, "\nbourse_cluster_rules 22\n");
    add(2, "00000000000000cc", 96);
    list.brokers[1].member.rules_first = 22;
    list.brokers[1].member.rules_last = 23;
    shows(status_page_text, "rules     22 in force, 23 when these brokers know them: 0, 2\n");
    list.brokers[0].member.rules_last = list.brokers[2].member.rules_last = 23;
    list.brokers[2].is_readable = false;
    shows(status_page_text, "rules     22 in force, 23 when these brokers know them: "
                            "00000000000000cc\n");
    list.brokers[2].is_readable = true;
    shows(status_page_text, "rules     22 in force, 23 within seconds\n");
    list.brokers[0].member.rules = 23;
    shows(status_page_text, "rules     23 in force\n");
}
END_TEST

START_TEST(only_states_of_one_command_are_compared)
{
    list.brokers[1].member.state.bytes[0] = 6;
    ck_assert_int_eq(status_page_state(&page, 1), STATUS_PAGE_DIFFERS);
    shows(status_page_text, "STATE DIFFERS at command 50");
    shows(status_page_metrics,
          "bourse_broker_state_agrees{id=\"00000000000000bb\",rank=\"1\",address=\"tcp://10.0.0.2:"
          "4770\"} 0\n");
    list.brokers[1].member.state_command = 49;
    ck_assert_int_eq(status_page_state(&page, 1), STATUS_PAGE_UNKNOWN);
    shows(status_page_json, "\"state_agrees\":null");
    list.brokers[1].member.state_command = 50;
    strcpy(found.leader.broker, "00000000000000cc/1"); /* has no record */
    ck_assert_int_eq(status_page_state(&page, 1), STATUS_PAGE_UNKNOWN);
    ck_assert_int_eq(status_page_role(&page, 0), STATUS_PAGE_FOLLOWS);
}
END_TEST

START_TEST(a_record_of_another_release_is_named)
{
    list.brokers[1].is_readable = false;
    shows(status_page_text, "broker    00000000000000bb: another release wrote its record\n");
    shows(status_page_json, "{\"id\":\"00000000000000bb\",\"is_readable\":false,");
    page.is_own_old = true;
    shows(status_page_text, "own       this folder is of a journal that has ended");
    found = (struct etcd_inquiry){.member_count = 0};
    shows(status_page_metrics, "\nbourse_cluster_up 0\n");
    shows(status_page_text, "leader    none");
}
END_TEST

START_TEST(a_broker_is_found_by_rank_address_and_id)
{
    struct problem problem;
    ck_assert_int_eq(leave_find(&list, "1", &problem), 1);
    ck_assert_int_eq(leave_find(&list, "tcp://10.0.0.1:4770", &problem), 0);
    ck_assert_int_eq(leave_find(&list, "00000000000000bb", &problem), 1);
    ck_assert_int_eq(leave_find(&list, "2", &problem), -1);
    ck_assert_ptr_nonnull(strstr(problem.text, "no broker of this market"));
    list.brokers[1].member.rank = 0;
    ck_assert_int_eq(leave_find(&list, "0", &problem), -1);
    ck_assert_ptr_nonnull(strstr(problem.text, "two brokers"));
    list.brokers[1].is_readable = false; /* its rank is unknown, its id is not */
    ck_assert_int_eq(leave_find(&list, "0", &problem), 0);
    ck_assert_int_eq(leave_find(&list, "00000000000000bb", &problem), 1);
}
END_TEST

START_TEST(somebody_stays_when_one_leaves)
{
    add(2, "00000000000000cc", 90);
    list.brokers[0].is_alive = false;
    ck_assert_int_eq(leave_stays(&list, 1), 2); /* it runs */
    ck_assert_int_eq(leave_stays(&list, 2), 1);
    list.count = 1;
    ck_assert_int_eq(leave_stays(&list, 0), -1);
}
END_TEST

SUITE("status_page", setup, NULL, TEST(brokers_that_run_are_shown),
      TEST(one_that_lags_says_how_much),
      TEST(the_rules_in_force_and_what_the_next_ones_wait_for_are_shown),
      TEST(only_states_of_one_command_are_compared), TEST(a_record_of_another_release_is_named),
      TEST(a_broker_is_found_by_rank_address_and_id), TEST(somebody_stays_when_one_leaves))
