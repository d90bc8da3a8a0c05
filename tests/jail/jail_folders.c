/* The tests use folders of many files. The files come out in order, and thousands of inputs go in
 * with few files open at a time. */
#include "fixture.h"

#include "provider/worker/wire.h"

#include <sys/mman.h>

enum { MANY = 5000 };

/* A struct taken counts the files that came out of a folder. */
struct taken {
    size_t count, executables;
    bool keeps_trees;
    char bare[256]; /* empty folders and links, in their order */
    uint64_t bytes;
    char first[64], last[64];
    size_t refuse_at; /* the file that is refused, from 1; 0: none */
};

static enum result_outcome take(void *context, const struct jail_entry *entry,
                                struct problem *ret_problem)
{
    struct taken *taken = context;
    if (entry->is_folder || entry->link[0] != '\0') {
        const size_t used = strlen(taken->bare);
        (void)snprintf(taken->bare + used, sizeof taken->bare - used, "%s%s%s ", entry->name,
                       entry->is_folder ? "/" : ">", entry->link);
        return OUTCOME_OK;
    }
    ck_assert_str_eq(taken->bare, ""); /* the files come first */
    if (taken->count > 0) {
        ck_assert_int_lt(strcmp(taken->last, entry->name), 0);
    } else {
        (void)snprintf(taken->first, sizeof taken->first, "%s", entry->name);
    }
    (void)snprintf(taken->last, sizeof taken->last, "%s", entry->name);
    taken->count++;
    taken->bytes += entry->size;
    taken->executables += entry->is_executable;
    if (taken->count == taken->refuse_at) {
        problem_set(ret_problem, "no room");
        return OUTCOME_CANCELLED;
    }
    return OUTCOME_OK;
}

static struct jail_reply leave_some(struct fixture *fixture, const char *script,
                                    const char *const outputs[2], const char *const *patterns,
                                    struct taken *taken)
{
    const char *const argv[] = {"sh", "-c", script, NULL};
    const struct jail_request request = {.argv = argv,
                                         .stdin_fd = -1,
                                         .outputs = outputs,
                                         .patterns = patterns,
                                         .output_count = 2,
                                         .keeps_trees = taken->keeps_trees,
                                         .take_entry = take,
                                         .take_context = taken,
                                         .output_bytes = 4 * MIB,
                                         .wall_ns = 300 * SECOND};
    struct jail_reply reply;
    jail_run(fixture->jail, &request, &reply);
    return reply;
}

static struct jail_reply leave(struct fixture *fixture, const char *script, struct taken *taken)
{
    static const char *const outputs[] = {"results/", "log"};
    return leave_some(fixture, script, outputs, NULL, taken);
}

/* Leaves a log, and the files of `folder` that the pattern matches. */
static struct jail_reply leave_matches(struct fixture *fixture, const char *script,
                                       const char *folder, const char *pattern, struct taken *taken)
{
    const char *const outputs[] = {folder, "log"};
    const char *const patterns[] = {pattern, NULL};
    return leave_some(fixture, script, outputs, patterns, taken);
}

START_TEST(every_file_comes_out_in_order)
{
    struct fixture fixture = fixture_open(_i);
    struct taken taken = {.count = 0};
    struct jail_reply reply = leave(
        &fixture,
        "echo done >log; cd results; mkdir -p b/c; i=0; while [ $i -lt 500 ]; do echo x >b/f$i; "
        "i=$((i+1)); done; echo x >b/c/deep; : >a; chmod 4711 a; ln -s /etc/passwd z; mkfifo p",
        &taken);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_uint_eq(taken.count, 502);
    ck_assert_uint_eq(taken.bytes, 2 * 501);
    ck_assert_uint_eq(taken.executables, 1);
    ck_assert_str_eq(taken.first, "a");
    ck_assert_str_eq(taken.last, "b/f99");
    ck_assert_uint_eq(reply.output_count, 2);
    ck_assert_int_eq(reply.outputs[0].fd, -1);
    ck_assert_uint_eq(reply.outputs[1].size, 5);
    ck_assert_ptr_nonnull(strstr(reply.detail, "left out of results/: 2 links"));
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(empty_folders_and_links_come_out)
{
    struct fixture fixture = fixture_open(_i);
    struct taken taken = {.keeps_trees = true};
    struct jail_reply reply =
        leave(&fixture,
              ": >log; cd results; mkdir -p a/b c d/e; : >a/f; ln -s ../c a/up; ln -s a/f l; "
              "ln -s . self; ln -s loop loop; ln -s absent dangling; ln -s a to-folder; "
              "ln -s /etc/passwd out1; ln -s .. out2; ln -s ../../etc a/out3; "
              "ln -s a/../../.. out4; mkfifo d/e/pipe",
              &taken);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_uint_eq(taken.count, 1);
    ck_assert_str_eq(taken.bare, "a/b/ c/ d/e/ a/up>../c dangling>absent l>a/f loop>loop self>. "
                                 "to-folder>a ");
    ck_assert_ptr_nonnull(strstr(reply.detail, "left out of results/: 5 links"));
    jail_reply_fini(&reply);
    taken = (struct taken){.keeps_trees = true};
    reply = leave_matches(&fixture,
                          ": >log; mkdir -p run-1/a run-2 other/b; : >run-2/f; ln -s f run-2/l; "
                          "ln -s f other/l; ln -s run-2 run-l",
                          "./", "run-*", &taken);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_str_eq(taken.bare, "run-1/a/ run-2/l>f run-l>run-2 ");
    jail_reply_fini(&reply);
    taken = (struct taken){.keeps_trees = true};
    reply = leave(&fixture, ": >log; mkdir results/a; ln -s a results/l", &taken);
    ck_assert_int_eq(reply.outcome, OUTCOME_OUTPUT_MISSING);
    ck_assert_ptr_nonnull(strstr(reply.detail, "holds no file"));
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

/* The owner's bit counts alone, whatever the umask leaves to others. */
START_TEST(a_file_that_its_owner_may_execute_is_executable)
{
    static const struct {
        const char *mode;
        bool is_executable;
    } cases[] = {{"0644", false}, {"0755", true},  {"0700", true}, {"0655", false},
                 {"4755", true},  {"6644", false}, {"0500", true}};
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[128];
        struct taken taken = {.count = 0};
        (void)snprintf(script, sizeof script, "echo x >log; : >results/f; chmod %s log results/f",
                       cases[i].mode);
        struct jail_reply reply = leave(&fixture, script, &taken);
        ck_assert_msg(reply.outcome == OUTCOME_OK, "%s: %s", cases[i].mode, reply.detail);
        ck_assert_msg(reply.outputs[1].is_executable == cases[i].is_executable, "%s",
                      cases[i].mode);
        ck_assert_uint_eq(reply.outputs[1].size, 2);
        ck_assert_uint_eq(taken.executables, cases[i].is_executable);
        jail_reply_fini(&reply);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_files_that_match_come_out)
{
    static const struct {
        const char *folder, *pattern, *script, *first, *last;
        size_t count;
    } cases[] = {
        {"./", "part-*", ": >part-b; : >part-a; : >other; mkdir d; : >d/part-c", "part-a", "part-b",
         2},
        {"results/", "*.csv", "cd results; : >a.csv; : >b.txt; mkdir c; : >c/d.csv; : >.e.csv",
         "a.csv", "a.csv", 1},
        {"results/", "[!a-c]*", "cd results; : >a; : >d; : >ü; : >.d", "d", "ü", 2},
        {"./", "*/x?.csv", "mkdir p q .r; : >p/x1.csv; : >q/x2.csv; : >.r/x3.csv; : >q/x.csv",
         "p/x1.csv", "q/x2.csv", 2},
        {"./", "run-*", "mkdir -p run-1/a run-2; : >run-1/a/.f; : >run-2/g; : >run-3", "run-1/a/.f",
         "run-3", 3},
        {"./", "run-*/", "mkdir -p run-1/a run-2; : >run-1/a/.f; : >run-2/g; : >run-3",
         "run-1/a/.f", "run-2/g", 2},
        {"./", "a[1].txt", ": >'a[1].txt'; : >a1.txt; : >a2.txt", "a1.txt", "a[1].txt", 2},
        {"a[1]/", "*", "cd 'a[1]'; : >x", "x", "x", 1},
        /* A file that does not match may have any name. */
        {"./", "good*", ": >\"$(printf 'a\\nb')\"; : >\"$(printf '\\377')\"; : >good", "good",
         "good", 1},
    };
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[256];
        struct taken taken = {.count = 0};
        (void)snprintf(script, sizeof script, ": >log; %s", cases[i].script);
        struct jail_reply reply =
            leave_matches(&fixture, script, cases[i].folder, cases[i].pattern, &taken);
        ck_assert_msg(reply.outcome == OUTCOME_OK, "%zu: %s", i, reply.detail);
        ck_assert_msg(taken.count == cases[i].count, "%zu: %zu", i, taken.count);
        ck_assert_str_eq(taken.first, cases[i].first);
        ck_assert_str_eq(taken.last, cases[i].last);
        ck_assert_int_eq(reply.outputs[0].fd, -1);
        jail_reply_fini(&reply);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_pattern_without_a_file_or_with_a_bad_one_fails)
{
    static const struct {
        const char *folder, *pattern, *script, *why;
        enum result_outcome outcome;
    } cases[] = {
        {"./", "part-*", ":", "output part-* matches no file", OUTCOME_OUTPUT_MISSING},
        {"results/", "*.csv", ": >results/b", "output results/*.csv matches no file",
         OUTCOME_OUTPUT_MISSING},
        {"./", "run-*/", ": >run-1; mkdir run-2", "output run-*/ matches no file",
         OUTCOME_OUTPUT_MISSING},
        {"./", "l*", ": >a; ln -s a l; rm log; : >log2", "output log was not written",
         OUTCOME_OUTPUT_MISSING},
        {"./", "x*", "ln -s /etc x; mkfifo xx", "output x* matches no file",
         OUTCOME_OUTPUT_MISSING},
        {"./", "*/passwd", "ln -s /etc x", "output */passwd matches no file",
         OUTCOME_OUTPUT_MISSING},
        {"results/", "*", "rmdir results; ln -s /etc results", "symbolic link",
         OUTCOME_OUTPUT_MISSING},
        {"./", "x*", ": >x; chmod 0 x", "output x*: x cannot be read", OUTCOME_OUTPUT_MISSING},
        {"./", "x*", ": >\"x$(printf 'a\\nb')\"", "control characters", OUTCOME_OUTPUT_MISSING},
        {"./", "x*", "head -c 5000000 /dev/zero >xx", "output limit", OUTCOME_OUTPUT_LIMIT},
        {"./", "d", "i=0; while [ $i -lt 66 ]; do mkdir d; cd d; i=$((i+1)); done; : >f",
         "more than 64 folders", OUTCOME_OUTPUT_LIMIT},
    };
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char script[256];
        struct taken taken = {.count = 0};
        (void)snprintf(script, sizeof script, ": >log; %s", cases[i].script);
        struct jail_reply reply =
            leave_matches(&fixture, script, cases[i].folder, cases[i].pattern, &taken);
        ck_assert_msg(reply.outcome == cases[i].outcome, "%zu: %d %s", i, reply.outcome,
                      reply.detail);
        ck_assert_msg(strstr(reply.detail, cases[i].why) != NULL, "%s", reply.detail);
        ck_assert(!reply.jail_ended);
        jail_reply_fini(&reply);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_no_folder_fails)
{
    static const struct {
        const char *script, *why;
        enum result_outcome outcome;
    } cases[] = {
        {": >log", "holds no file", OUTCOME_OUTPUT_MISSING},
        {": >log; rmdir results", "was not written", OUTCOME_OUTPUT_MISSING},
        {": >log; rmdir results; : >results", "is no folder", OUTCOME_OUTPUT_MISSING},
        {": >log; rmdir results; ln -s /etc results", "symbolic link", OUTCOME_OUTPUT_MISSING},
        {": >log; : >results/x; chmod 0 results/x", "cannot be read", OUTCOME_OUTPUT_MISSING},
        {": >log; : >\"results/$(printf 'a\\nb')\"", "control characters", OUTCOME_OUTPUT_MISSING},
        {": >log; head -c 5000000 /dev/zero >results/x", "output limit", OUTCOME_OUTPUT_LIMIT},
        {"head -c 4194000 /dev/zero >log; : >results/x", "output limit", OUTCOME_OUTPUT_LIMIT},
        {": >log; cd results; i=0; while [ $i -lt 65 ]; do mkdir d; cd d; i=$((i+1)); done; : >f",
         "more than 64 folders", OUTCOME_OUTPUT_LIMIT},
    };
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct taken taken = {.count = 0};
        struct jail_reply reply = leave(&fixture, cases[i].script, &taken);
        ck_assert_msg(reply.outcome == cases[i].outcome, "%zu: %d %s", i, reply.outcome,
                      reply.detail);
        ck_assert_msg(strstr(reply.detail, cases[i].why) != NULL, "%s", reply.detail);
        ck_assert(!reply.jail_ended);
        jail_reply_fini(&reply);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_file_that_cannot_be_kept_ends_the_run)
{
    struct fixture fixture = fixture_open(_i);
    struct taken taken = {.refuse_at = 40};
    const char *script = ": >log; i=0; while [ $i -lt 100 ]; do : >results/$i; i=$((i+1)); done";
    struct jail_reply reply = leave(&fixture, script, &taken);
    ck_assert_int_eq(reply.outcome, OUTCOME_CANCELLED);
    ck_assert_str_eq(reply.detail, "no room");
    ck_assert_uint_eq(taken.count, 40);
    ck_assert(!reply.jail_ended);
    jail_reply_fini(&reply);
    taken = (struct taken){.count = 0};
    reply = leave(&fixture, script, &taken); /* the jail goes on, and is empty again */
    ck_assert_int_eq(reply.outcome, OUTCOME_OK);
    ck_assert_uint_eq(taken.count, 100);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(thousands_of_parts_of_a_file_go_in)
{
    struct fixture fixture = fixture_open(_i);
    static struct jail_input inputs[MANY];
    static char names[MANY][24];
    static char bytes[2 * MANY];
    const int file = memfd_create("archive", MFD_CLOEXEC);
    for (size_t i = 0; i < MANY; i++) {
        (void)snprintf(names[i], sizeof names[i], "d%zu/f%zu", i % 7, i);
        bytes[2 * i] = (char)('a' + i % 26);
        bytes[2 * i + 1] = '\n';
        inputs[i] = (struct jail_input){
            .name = names[i], .fd = file, .offset = 2 * i, .size = 2, .executable = i == 7};
    }
    ck_assert_int_eq(write(file, bytes, sizeof bytes), (ssize_t)sizeof bytes);
    const char *const argv[] = {"sh", "-c",
                                "cat d*/f* - | wc -c; cat d0/f4998 d1/f1; test -x d0/f7 && "
                                "test ! -x d1/f8 && test ! -w d1/f8; ls /proc/1/fd | wc -l",
                                NULL};
    const struct jail_request request = {.argv = argv,
                                         .inputs = inputs,
                                         .input_count = MANY,
                                         .stdin_bytes = "last",
                                         .stdin_size = 4,
                                         .wall_ns = 300 * SECOND};
    struct jail_reply reply;
    char text[64];
    jail_run(fixture.jail, &request, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_msg(strncmp(fixture_output(&reply.standard_output, text, sizeof text),
                          "10004\ng\nb\n", 10) == 0,
                  "%s", text);
    jail_reply_fini(&reply);
    inputs[MANY - 1].name = names[0]; /* the same name again */
    jail_run(fixture.jail, &request, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_PROGRAM_FAILED);
    ck_assert_ptr_nonnull(strstr(reply.detail, "d0/f0: File exists"));
    jail_reply_fini(&reply);
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_folder_arrives_as_it_was)
{
    static const struct jail_look old = {.mode = 0640, .modified_ns = 1000000000123456789};
    static const struct jail_look tool = {.mode = 0700, .modified_ns = 1000000001000000000};
    static const struct jail_look early = {.mode = 0, .modified_ns = -1500000000};
    static const struct jail_look closed = {.mode = 0550, .modified_ns = 1000000002000000000};
    const int file = memfd_create("input", MFD_CLOEXEC);
    ck_assert_int_eq(write(file, "x", 1), 1);
    const struct jail_input inputs[] = {
        {.name = "l", .fd = -1, .link = "d/f", .has_look = true, .look = early},
        {.name = "d/up", .fd = -1, .link = "../e"},
        {.name = "d", .fd = -1, .is_folder = true, .has_look = true, .look = closed},
        {.name = "d/f", .fd = file, .size = 1, .has_look = true, .look = old},
        {.name = "t", .fd = file, .size = 1, .has_look = true, .look = tool},
        {.name = "e/deep", .fd = -1, .is_folder = true, .has_look = true, .look = closed},
        {.name = "self", .fd = -1, .link = "."},
        {.name = "plain", .fd = file, .size = 1},
        {.name = "nothing", .fd = -1, .link = "absent"},
    };
    const char *const argv[] = {
        "sh", "-c",
        "stat -c '%n %a %.9Y' d/f t d; stat -c '%n %.9Y' l; readlink l d/up self nothing; "
        "cat l; test -d d/up/deep && test -w d/f && test ! -w plain && test ! -e nothing && "
        "echo y >>d/f && cat l",
        NULL};
    struct fixture fixture = fixture_open(_i);
    struct jail_request request = {
        .argv = argv, .inputs = inputs, .input_count = 9, .wall_ns = 300 * SECOND};
    struct jail_reply reply;
    char text[512];
    jail_run(fixture.jail, &request, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text),
                     "d/f 640 1000000000.123456789\nt 700 1000000001.000000000\n"
                     "d 550 1000000002.000000000\nl -1.500000000\n"
                     "d/f\n../e\n.\nabsent\nxxy\n");
    jail_reply_fini(&reply);
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

/* A file must never land where a link leads, whichever comes first. */
START_TEST(nothing_is_placed_through_a_link)
{
    static const struct jail_input cases[][2] = {
        {{.name = "a", .fd = -1, .link = "b"}, {.name = "a/x", .size = 1}},
        {{.name = "a/x", .size = 1}, {.name = "a", .fd = -1, .link = "b"}},
        {{.name = "a", .fd = -1, .link = "b"}, {.name = "a/x", .fd = -1, .link = "y"}},
        {{.name = "a", .fd = -1, .link = "b"}, {.name = "a/x", .fd = -1, .is_folder = true}},
        {{.name = "a", .fd = -1, .link = "b"}, {.name = "a", .size = 1}},
    };
    const int file = memfd_create("input", MFD_CLOEXEC);
    ck_assert_int_eq(write(file, "x", 1), 1);
    struct fixture fixture = fixture_open(_i);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct jail_input inputs[3] = {
            {.name = "b", .fd = -1, .is_folder = true}, cases[i][0], cases[i][1]};
        for (size_t k = 0; k < 3; k++) {
            inputs[k].fd = inputs[k].size > 0 ? file : -1;
        }
        const char *const argv[] = {"sh", "-c", "ls -R", NULL};
        const struct jail_request request = {
            .argv = argv, .inputs = inputs, .input_count = 3, .wall_ns = 300 * SECOND};
        struct jail_reply reply;
        jail_run(fixture.jail, &request, &reply);
        ck_assert_msg(reply.outcome == OUTCOME_PROGRAM_FAILED, "%zu: %d %s", i, reply.outcome,
                      reply.detail);
        ck_assert_ptr_nonnull(strstr(reply.detail, "a: File exists"));
        ck_assert(!reply.jail_ended);
        jail_reply_fini(&reply);
    }
    (void)close(file);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        every_file_comes_out_in_order,
        a_file_that_its_owner_may_execute_is_executable,
        the_files_that_match_come_out,
        a_pattern_without_a_file_or_with_a_bad_one_fails,
        what_is_no_folder_fails,
        a_file_that_cannot_be_kept_ends_the_run,
        thousands_of_parts_of_a_file_go_in,
        empty_folders_and_links_come_out,
        a_folder_arrives_as_it_was,
        nothing_is_placed_through_a_link,
    };
    return fixture_main("jail_folders", tests, sizeof tests / sizeof *tests);
}
