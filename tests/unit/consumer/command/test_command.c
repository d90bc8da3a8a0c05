/* The table of subcommands: whole, consistent, and what the manual says. */
#include "consumer/client/names.h"
#include "consumer/client/rows.h"
#include "consumer/command/command.h"
#include "consumer/command/job/replanning.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/show.h"
#include "protocol/message.h"
#include "protocol/reject.h"
#include "protocol/roles.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s", path);
    char *text = calloc(1, 1 << 18);
    ck_assert_ptr_nonnull(text);
    (void)fread(text, 1, (1 << 18) - 1, file);
    ck_assert_int_eq(fclose(file), 0);
    return text;
}

static char *help_of(const struct command *command)
{
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    ck_assert_ptr_nonnull(to);
    command_print_help(to, command);
    ck_assert_int_eq(fclose(to), 0);
    return text;
}

static size_t own_count(const struct command *command)
{
    return command->options != NULL ? command->options->count : 0;
}

START_TEST(every_command_of_the_manual_exists)
{
    static const char *const promised[] = {
        "up",        "down",   "join",    "key",    "submit",     "run",     "quote",   "plan",
        "ps",        "logs",   "fetch",   "cancel", "resume",     "explain", "balance", "ledger",
        "receipt",   "verify", "admin",   "config", "version",    "help",    "devices", "report",
        "providers", "book",   "order",   "watch",  "completion", "trades",  "prices",  "history",
        "judge",     "wait",   "storage", "forget", "shell",      "status",  "train"};
    size_t count = 0;
    (void)command_list(&count);
    ck_assert_uint_eq(count, sizeof promised / sizeof *promised);
    for (size_t i = 0; i < count; i++) {
        ck_assert_msg(command_find(promised[i]) != NULL, "%s", promised[i]);
    }
    ck_assert_ptr_null(command_find("sumbit"));
}
END_TEST

START_TEST(help_names_every_command_and_every_option)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    char *whole = help_of(NULL);
    for (size_t i = 0; i < count; i++) {
        char line[128];
        (void)snprintf(line, sizeof line, "\n  %-10s %s\n", all[i].name, all[i].summary);
        const char *at = strstr(whole, line);
        ck_assert_msg(at != NULL, "no group of help.c has %s", all[i].name);
        ck_assert_msg(strstr(at + 1, line) == NULL, "two groups of help.c have %s", all[i].name);
        char *one = help_of(&all[i]);
        char option[64];
        for (size_t k = 0; k < own_count(&all[i]); k++) {
            bool is_shown = all[i].options->items[k].help != NULL;
            (void)snprintf(option, sizeof option, " --%s ", all[i].options->items[k].name);
            ck_assert_msg((strstr(one, option) != NULL) == is_shown, "%s %s", all[i].name, option);
        }
        ck_assert_msg(strstr(one, "--json") != NULL, "%s has no --json", all[i].name);
        free(one);
    }
    free(whole);
}
END_TEST

static bool takes_word(const struct command *command, const char *word)
{
    const struct option_set set = command_options(command);
    for (size_t i = 0; i < set.count; i++) {
        const struct option_spec *option = set.items[i];
        if (strncmp(word, "--", 2) == 0 ? strcmp(word + 2, option->name) == 0
                                        : option->letter != 0 && word[1] == option->letter) {
            return true;
        }
    }
    return false;
}

/* The first "bourse" of the example runs the command, with options that the command takes. */
static void check_example(const struct command *command, const char *example)
{
    char expected[64];
    char copy[256];
    (void)snprintf(expected, sizeof expected, "bourse %s", command->name);
    const char *at = strstr(example, expected);
    ck_assert_msg(at != NULL, "%s: %s", command->name, example);
    (void)snprintf(copy, sizeof copy, "%s", at + strlen(expected));
    char *quoted = strstr(copy, "$("); /* another command's words */
    if (quoted != NULL) {
        *quoted = '\0';
    }
    char *rest = NULL;
    for (char *word = strtok_r(copy, " |)", &rest); word != NULL && strcmp(word, "--") != 0;
         word = strtok_r(NULL, " |)", &rest)) {
        ck_assert_msg(word[0] != '-' || takes_word(command, word), "%s: %s", example, word);
    }
}

START_TEST(help_ends_with_two_examples_of_the_command)
{
    size_t count = 0;
    const struct command *all = command_list(&count);
    for (size_t i = 0; i < count; i++) {
        char *help = help_of(&all[i]);
        char end[512];
        for (size_t k = 0; k < 2; k++) {
            ck_assert_msg(all[i].examples[k] != NULL, "%s", all[i].name);
            check_example(&all[i], all[i].examples[k]);
        }
        (void)snprintf(end, sizeof end, "\nexamples:\n  %s\n  %s\n", all[i].examples[0],
                       all[i].examples[1]);
        ck_assert_msg(strlen(help) > strlen(end), "%s", all[i].name);
        ck_assert_str_eq(help + strlen(help) - strlen(end), end);
        free(help);
    }
}
END_TEST

START_TEST(the_list_of_commands_has_groups_and_the_first_steps)
{
    char *help = help_of(NULL);
    const char *jobs = strstr(help, "\njobs:\n");
    const char *market = strstr(help, "\nwhat is on the market:\n");
    const char *for_operator = strstr(help, "\nfor operators:\n");
    ck_assert(jobs != NULL && market != NULL && for_operator != NULL);
    const char *run = strstr(help, "\n  run  ");
    const char *book = strstr(help, "\n  book  ");
    const char *admin = strstr(help, "\n  admin  ");
    ck_assert(jobs < run && run < market && market < book && book < for_operator &&
              for_operator < admin);
    static const char end[] = "  bourse up --detach\n  bourse run -- echo hello\n";
    ck_assert_uint_gt(strlen(help), strlen(end));
    ck_assert_str_eq(help + strlen(help) - strlen(end), end);
    free(help);
}
END_TEST

START_TEST(options_that_few_need_stand_apart)
{
    char *help = help_of(command_find("run"));
    const char *apart = strstr(help, "\noptions that few need:\n");
    ck_assert_ptr_nonnull(apart);
    ck_assert_ptr_nonnull(strstr(apart, "--crash-limit"));
    ck_assert_ptr_nonnull(strstr(apart, "--entrypoint"));
    ck_assert_ptr_null(strstr(apart, "--budget"));
    ck_assert_ptr_null(strstr(apart, "--json"));
    free(help);
}
END_TEST

START_TEST(no_command_has_an_option_or_a_letter_twice)
{
    size_t count = 0;
    size_t common_count = 0;
    const struct command *all = command_list(&count);
    const struct option_spec *common = command_common_options(&common_count);
    for (size_t i = 0; i < count; i++) {
        const struct option_spec *options = all[i].options != NULL ? all[i].options->items : NULL;
        for (size_t k = 0; k < own_count(&all[i]); k++) {
            for (size_t m = 0; m < k; m++) {
                ck_assert_msg(strcmp(options[k].name, options[m].name) != 0, "%s --%s", all[i].name,
                              options[k].name);
                ck_assert_msg(options[k].letter == 0 || options[k].letter != options[m].letter,
                              "%s -%c", all[i].name, options[k].letter);
            }
            for (size_t m = 0; m < common_count; m++) {
                bool redefined = strcmp(options[k].name, common[m].name) == 0;
                ck_assert_msg(redefined || options[k].letter == 0 ||
                                  options[k].letter != common[m].letter,
                              "%s -%c", all[i].name, options[k].letter);
            }
        }
    }
}
END_TEST

START_TEST(the_manual_page_has_every_command_and_option)
{
    char *page = read_whole(BOURSE_SOURCE_DIR "/docs/man/bourse.1");
    size_t count = 0;
    const struct command *all = command_list(&count);
    for (size_t i = 0; i < count; i++) {
        char line[64];
        (void)snprintf(line, sizeof line, ".It Cm %s", all[i].name);
        ck_assert_msg(strstr(page, line) != NULL, "%s", line);
        for (size_t k = 0; k < own_count(&all[i]); k++) {
            (void)snprintf(line, sizeof line, "Fl -%s", all[i].options->items[k].name);
            ck_assert_msg(all[i].options->items[k].help == NULL || strstr(page, line) != NULL,
                          "%s: %s", all[i].name, line);
        }
    }
    free(page);
}
END_TEST

START_TEST(templates_are_in_the_manual_page_and_in_help)
{
    char *page = read_whole(BOURSE_SOURCE_DIR "/docs/man/bourse.1");
    size_t count = 0;
    const struct command *all = command_templates(&count);
    ck_assert_uint_gt(count, 0);
    for (size_t i = 0; i < count; i++) {
        char line[64];
        char *help = help_of(&all[i]);
        (void)snprintf(line, sizeof line, ".It Cm %s", all[i].name);
        const char *section = strstr(page, line);
        ck_assert_msg(section != NULL, "%s", line);
        for (size_t k = 0; k < own_count(&all[i]); k++) {
            (void)snprintf(line, sizeof line, "Fl -%s", all[i].options->items[k].name);
            ck_assert_msg(strstr(section, line) != NULL, "%s: %s", all[i].name, line);
            ck_assert_msg(strstr(help, line + strlen("Fl -")) != NULL, "%s: %s", all[i].name, line);
        }
        free(help);
    }
    ck_assert_ptr_eq(command_template_find("matmul"), all);
    ck_assert_ptr_null(command_template_find("xz"));
    free(page);
}
END_TEST

START_TEST(exit_statuses_are_the_ones_we_promise)
{
    ck_assert_int_eq(bourse_exit_status(BOURSE_OK), 0);
    ck_assert_int_eq(bourse_exit_status(BOURSE_JOB_FAILED), 1);
    ck_assert_int_eq(bourse_exit_status(BOURSE_USAGE), 2);
    ck_assert_int_eq(bourse_exit_status(BOURSE_NOT_FOUND), 3);
    ck_assert_int_eq(bourse_exit_status(BOURSE_REFUSED), 4);
    ck_assert_int_eq(bourse_exit_status(BOURSE_NO_MATCH), 5);
    ck_assert_int_eq(bourse_exit_status(BOURSE_UNREACHABLE), 6);
    ck_assert_int_eq(bourse_exit_status(BOURSE_UNVERIFIED), 7);
    ck_assert_int_eq(bourse_exit_status(BOURSE_TIMED_OUT), 8);
    ck_assert_int_eq(bourse_exit_status(BOURSE_CANCELLED), 9);
    ck_assert_int_eq(bourse_exit_status(BOURSE_LOCAL), 2);
    ck_assert_int_eq(bourse_exit_status(BOURSE_INTERRUPTED), 130);
}
END_TEST

START_TEST(every_refusal_of_the_broker_has_one_of_them)
{
    for (int code = 1; code < REJECT_CODE_COUNT; code++) {
        int status = reject_exit_status((enum reject_code)code);
        ck_assert_msg(status >= 2 && status <= 6, "%s: %d", reject_name((enum reject_code)code),
                      status);
        ck_assert_str_ne(bourse_status_name((enum bourse_status)status), "UNKNOWN");
    }
}
END_TEST

START_TEST(a_job_that_ended_has_its_exit_status)
{
    struct bourse_job_row row = {.state = BOURSE_DONE};
    ck_assert_int_eq(job_exit_status(&row), 0);
    row.state = BOURSE_FAILED;
    ck_assert_int_eq(job_exit_status(&row), 1);
    row.state = BOURSE_WAS_CANCELLED;
    ck_assert_int_eq(job_exit_status(&row), 9);
}
END_TEST

START_TEST(a_job_that_takes_longer_than_expected_says_so_and_what_it_would_cost)
{
    char line[JOB_LINE_SIZE];
    int64_t percent = 0;
    int64_t micro = 0;
    struct bourse_job_row row = {.state = BOURSE_OPEN,
                                 .state_text = "open",
                                 .reason_text = "",
                                 .subtasks = 100,
                                 .accepted = 10,
                                 .running = 2,
                                 .charged_micro = 1000001,
                                 .budget_micro = 10000010,
                                 .left_ms = 90000,
                                 .timed = 10,
                                 .foreseen_ms = 10000,
                                 .took_ms = 12000};
    ck_assert(!progress_drifts(&row, &percent)); /* a fifth is as expected */
    progress_line(&row, 0, line);
    ck_assert_msg(strstr(line, ", about 1m 30s left") != NULL, "%s", line);
    ck_assert_msg(strstr(line, "expected") == NULL, "%s", line);
    row.took_ms = 13500;
    ck_assert(progress_drifts(&row, &percent));
    ck_assert_int_eq(percent, 35);
    progress_line(&row, percent, line);
    ck_assert_msg(strstr(line, "subtasks take 35% longer than expected") != NULL, "%s", line);
    ck_assert(!progress_outgrows(&row, &micro)); /* exactly its budget */
    row.charged_micro++;
    ck_assert(progress_outgrows(&row, &micro));
    ck_assert_int_eq(micro, 10000020);
    row.took_ms = 5000;
    ck_assert(!progress_outgrows(&row, &micro)); /* sooner: its price is another matter */
    progress_line(&row, -50, line);
    ck_assert_msg(strstr(line, "subtasks take 50% less time than expected") != NULL, "%s", line);
    row.timed = 3; /* too few to say */
    ck_assert(!progress_drifts(&row, &percent));
    row.timed = 10;
    row.left_ms = -1;
    row.state = BOURSE_DONE;
    progress_line(&row, 35, line);
    ck_assert_msg(strstr(line, "left") == NULL && strstr(line, "expected") == NULL, "%s", line);
}
END_TEST

START_TEST(what_was_told_of_a_job_is_told_again_when_it_has_changed_by_a_fifth)
{
    struct replanning replanning = {.count = 0};
    ck_assert(replanning_is_news(&replanning, -34));
    replanning.made[replanning.count++].percent = -34;
    ck_assert(!replanning_is_news(&replanning, -34));
    ck_assert(!replanning_is_news(&replanning, -21)); /* 79 for 66 */
    ck_assert(replanning_is_news(&replanning, -20));
    ck_assert(replanning_is_news(&replanning, 30));
    replanning.made[replanning.count++].percent = 900;
    ck_assert(!replanning_is_news(&replanning, 1100));
    ck_assert(replanning_is_news(&replanning, 1101));
}
END_TEST

START_TEST(a_job_is_planned_anew_when_it_is_a_fifth_off_its_last_plan)
{
    struct replanning replanning = {.count = 0};
    struct bourse_job_row row = {
        .state = BOURSE_OPEN, .timed = 4, .foreseen_ms = 1000, .took_ms = 1200};
    ck_assert(!replanning_is_due(&replanning, &row));
    row.took_ms = 1201;
    ck_assert(replanning_is_due(&replanning, &row));
    row.timed = 3; /* too few to say */
    ck_assert(!replanning_is_due(&replanning, &row));
    /* Planned at ten times: a fifth off that it takes. */
    replanning.foreseen_ms = 1000;
    replanning.took_ms = 10000;
    row.timed = 8;
    row.foreseen_ms = 2000;
    row.took_ms = 24000;
    ck_assert(!replanning_is_due(&replanning, &row));
    row.took_ms = 24001;
    ck_assert(replanning_is_due(&replanning, &row));
    row.took_ms = 15999;
    ck_assert(replanning_is_due(&replanning, &row));
    row.foreseen_ms = INT64_MAX; /* more than can be told */
    ck_assert(!replanning_is_due(&replanning, &row));
    row.foreseen_ms = 2000;
    replanning.tries = REPLANS_MOST;
    ck_assert(!replanning_is_due(&replanning, &row));
    replanning.tries = 0;
    /* A job found to go as planned is not looked at with every result. */
    ck_assert(replanning_is_due(&replanning, &row));
    replanning.looked_at = 6;
    ck_assert(!replanning_is_due(&replanning, &row));
    row.timed = 9;
    ck_assert(replanning_is_due(&replanning, &row));
    row.state = BOURSE_DONE;
    ck_assert(!replanning_is_due(&replanning, &row));
}
END_TEST

START_TEST(a_new_plan_says_which_limit_is_in_the_way)
{
    char text[REPLAN_TEXT];
    const struct bourse_job_row row = {.id = "0123456789abcdef0123456789abcde",
                                       .budget_micro = 2000000};
    struct replan replan = {.percent = 900,
                            .left_ns = 3 * INT64_C(1000000000),
                            .cost_micro = 1500000,
                            .lanes = 2,
                            .takes_ms = 500,
                            .limit_ms = 600000};
    replanning_text(&replan, &row, text);
    ck_assert_str_eq(text, "subtasks of job 01234567 take 900% longer than planned; planned anew, "
                           "the rest takes about 3.0s on 2 lanes, and all costs about 1.50 "
                           "credits, within its budget of 2.00");
    replan.late_ns = 2 * INT64_C(1000000000);
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "takes about 3.0s on 2 lanes, which misses the deadline by 2.0s, "
                               "and all costs") != NULL,
                  "%s", text);
    replan.slots = 8;
    replan.sooner_ns = INT64_C(1000000000);
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "it takes 1.0s: `bourse order replace 01234567 --at-most 8`") !=
                      NULL,
                  "%s", text);
    replan.budget_micro = 2100000;
    replanning_text(&replan, &row, text);
    ck_assert_msg(
        strstr(text, "within its budget of 2.00, which has no room for another lease; ") != NULL,
        "%s", text);
    ck_assert_msg(strstr(text, "`bourse order replace 01234567 --at-most 8 --budget 2.10`") != NULL,
                  "%s", text);
    replan.slots = 0; /* none is said, the budget alone is in the way */
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "it takes 1.0s: `bourse order replace 01234567 --budget 2.10`") !=
                      NULL,
                  "%s", text);
    replan.takes_ms = replan.limit_ms;
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "is ended at its limit of 10m") != NULL, "%s", text);
    replan.cost_micro = 2000001;
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "more than its budget of 2.00") != NULL, "%s", text);
    ck_assert_msg(strstr(text, "`bourse order replace 01234567 --budget 2.000001`") != NULL, "%s",
                  text);
    replan.percent = -60;
    replan.cost_micro = 1;
    replan.takes_ms = 1;
    replan.sooner_ns = 0;
    replanning_text(&replan, &row, text);
    ck_assert_msg(strstr(text, "take 60% less than planned") != NULL, "%s", text);
}
END_TEST

/* A halt lets jobs wait, and a freeze cancels them: one number travels for both. */
START_TEST(a_freeze_of_the_account_and_a_halt_are_told_apart)
{
    uint8_t bytes[32] = {1};
    struct bourse_job_row row;
    Bourse__V1__JobRow wire = BOURSE__V1__JOB_ROW__INIT;
    wire.name = (char *)bytes + 1; /* "" */
    wire.job = (ProtobufCBinaryData){.data = bytes, .len = 16};
    wire.manifest = (ProtobufCBinaryData){.data = bytes, .len = 32};
    wire.reason = JOB_REASON_HALTED;
    wire.state = JOB_OPEN;
    wire.waiting = 1;
    rows_job(&wire, &row);
    ck_assert_ptr_nonnull(strstr(row.reason_text, "the operator halted the market"));
    wire.running = 1; /* its programs are told */
    rows_job(&wire, &row);
    ck_assert_ptr_nonnull(strstr(row.reason_text, "the operator froze the account"));
    wire.state = JOB_CANCELLED;
    wire.running = 0;
    rows_job(&wire, &row);
    ck_assert_ptr_nonnull(strstr(row.reason_text, "`bourse resume` runs the rest"));
}
END_TEST

START_TEST(every_number_that_travels_has_a_word)
{
    for (unsigned i = 0; i < OUTCOME_COUNT; i++) {
        ck_assert_str_ne(names_outcome(i), "unknown");
    }
    for (unsigned i = 0; i <= JOB_REASON_DEADLINE; i++) {
        ck_assert_str_ne(names_job_reason(i), "unknown");
    }
    for (unsigned i = 0; i <= JOB_CANCELLED; i++) {
        ck_assert_str_ne(names_job_state(i), "unknown");
    }
    ck_assert_str_eq(names_outcome(12345), "unknown");
    char roles[64];
    roles_text(ROLE_CONSUMER | ROLE_OPERATOR, roles, sizeof roles);
    ck_assert_str_eq(roles, "consumer, operator");
    ck_assert_uint_eq(role_named("provider"), ROLE_PROVIDER);
    ck_assert_uint_eq(role_named("king"), 0);
}
END_TEST

START_TEST(text_of_strangers_is_made_printable_in_tables)
{
    static const char *const titles[] = {"A", "B"};
    struct grid table = grid_of(2, titles, "lr");
    const char *cells[] = {"\033[31mred\nline\xe2\x80\xae", "12"};
    grid_add(&table, cells);
    char *text = NULL;
    size_t length = 0;
    FILE *to = open_memstream(&text, &length);
    grid_print(&table, to, false);
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_str_eq(text, "A                B\n?[31mred?line?  12\n");
    free(text);
    grid_fini(&table);
}
END_TEST

START_TEST(options_are_read_with_their_units)
{
    static struct invocation invocation;
    int status = 0;
    char *argv[] = {(char *)(uintptr_t) "bourse",
                    (char *)(uintptr_t) "run",
                    (char *)(uintptr_t) "--budget",
                    (char *)(uintptr_t) "2.50",
                    (char *)(uintptr_t) "--limit",
                    (char *)(uintptr_t) "1m30s",
                    (char *)(uintptr_t) "-y",
                    (char *)(uintptr_t) "ls",
                    (char *)(uintptr_t) "-y",
                    (char *)(uintptr_t) "--budget",
                    NULL};
    ck_assert_int_eq(setenv("HOME", "/nonexistent", 1), 0);
    ck_assert_int_eq(unsetenv("BOURSE_COLOR"), 0);
    ck_assert(command_parse(&invocation, 10, argv, &status));
    int64_t value = 0;
    ck_assert(option_money(&invocation, "budget", &value));
    ck_assert_int_eq(value, 2500000);
    ck_assert(option_duration_ms(&invocation, "limit", &value));
    ck_assert_int_eq(value, 90000);
    ck_assert(option_given(&invocation, "yes"));
    /* Words behind the program are the program's. */
    ck_assert_int_eq(invocation.word_count, 3);
    ck_assert_str_eq(invocation.words[1], "-y");
}
END_TEST

static bool parse(struct invocation *invocation, const char *const *words, int count,
                  int *ret_status)
{
    static char *argv[16];
    for (int i = 0; i < count; i++) {
        argv[i] = (char *)(uintptr_t)words[i]; /* getopt only reorders them */
    }
    argv[count] = NULL;
    memset(invocation, 0, sizeof *invocation);
    ck_assert_int_eq(setenv("HOME", "/nonexistent", 1), 0);
    ck_assert_int_eq(unsetenv("BOURSE_COLOR"), 0);
    return command_parse(invocation, count, argv, ret_status);
}

START_TEST(matmul_is_a_template_only_as_the_first_word_after_run)
{
    static struct invocation invocation;
    int status = 0;
    static const char *const product[] = {"bourse", "run", "-y", "matmul",  "a",
                                          "b",      "-o",  "c",  "--tiles", "2x2"};
    ck_assert(parse(&invocation, product, 10, &status));
    ck_assert_str_eq(invocation.command->name, "run matmul");
    ck_assert_int_eq(invocation.word_count, 2);
    ck_assert_str_eq(invocation.words[1], "b");
    ck_assert_str_eq(option_text(&invocation, "output", ""), "c");
    ck_assert(option_given(&invocation, "yes"));

    static const char *const program[] = {"bourse", "run", "-y", "--", "matmul", "-o", "c"};
    ck_assert(parse(&invocation, program, 7, &status));
    ck_assert_str_eq(invocation.command->name, "run");
    ck_assert_int_eq(invocation.word_count, 3);

    static const char *const later[] = {"bourse", "run", "time", "matmul", "-o", "c"};
    ck_assert(parse(&invocation, later, 6, &status));
    ck_assert_str_eq(invocation.command->name, "run");
    ck_assert_int_eq(invocation.word_count, 4);

    static const char *const foreign[] = {"bourse", "run", "--each", "x", "matmul", "a", "b"};
    ck_assert(!parse(&invocation, foreign, 7, &status)); /* said to be no option of the template */
    ck_assert_int_eq(status, BOURSE_USAGE);
}
END_TEST

SUITE("command", NULL, NULL, TEST(every_command_of_the_manual_exists),
      TEST(help_names_every_command_and_every_option),
      TEST(help_ends_with_two_examples_of_the_command),
      TEST(the_list_of_commands_has_groups_and_the_first_steps),
      TEST(options_that_few_need_stand_apart), TEST(no_command_has_an_option_or_a_letter_twice),
      TEST(the_manual_page_has_every_command_and_option),
      TEST(templates_are_in_the_manual_page_and_in_help),
      TEST(matmul_is_a_template_only_as_the_first_word_after_run),
      TEST(exit_statuses_are_the_ones_we_promise),
      TEST(every_refusal_of_the_broker_has_one_of_them), TEST(a_job_that_ended_has_its_exit_status),
      TEST(a_job_that_takes_longer_than_expected_says_so_and_what_it_would_cost),
      TEST(what_was_told_of_a_job_is_told_again_when_it_has_changed_by_a_fifth),
      TEST(a_job_is_planned_anew_when_it_is_a_fifth_off_its_last_plan),
      TEST(a_new_plan_says_which_limit_is_in_the_way),
      TEST(a_freeze_of_the_account_and_a_halt_are_told_apart),
      TEST(every_number_that_travels_has_a_word),
      TEST(text_of_strangers_is_made_printable_in_tables), TEST(options_are_read_with_their_units))
