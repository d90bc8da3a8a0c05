/* The command executor in a real jail: templates, streams, outputs, and what it refuses. */
#include "fixture.h"

#include "base/sha256.h"
#include "formats/staging/work_tree.h"
#include "provider/executors/program.h"
#include "runtime/archive.h"
#include "tests/support/suite.h"

#include <limits.h>
#include <sys/mman.h>

static struct config config;

struct given { /* a manifest in the making */
    Bourse__V1__Manifest manifest;
    Bourse__V1__ManifestInput input;
    Bourse__V1__ManifestInput *inputs[1];
    Bourse__V1__ManifestSubtask subtask;
    Bourse__V1__ManifestSubtask *subtasks[1];
    struct store_blob blob;
};

static int file_of(const char *text)
{
    int fd = memfd_create("input", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return fd;
}

/* One subtask with the input "notes.txt" holding `text`, and `arguments` as its templates. */
static void give(struct given *given, const char *text, char **arguments, size_t count)
{
    static const struct hash32 hash = {{1}};
    memset(given, 0, sizeof *given);
    bourse__v1__manifest__init(&given->manifest);
    bourse__v1__manifest_input__init(&given->input);
    bourse__v1__manifest_subtask__init(&given->subtask);
    given->input.name = (char *)(uintptr_t) "notes.txt";
    given->input.hash = (ProtobufCBinaryData){32, (uint8_t *)(uintptr_t)hash.bytes};
    given->input.size = strlen(text);
    given->inputs[0] = &given->input;
    given->subtask.n_inputs = 1;
    given->subtask.inputs = given->inputs;
    given->subtasks[0] = &given->subtask;
    given->manifest.version = 1;
    given->manifest.executor = (char *)(uintptr_t) "command";
    given->manifest.name = (char *)(uintptr_t) "test";
    given->manifest.arguments = arguments;
    given->manifest.n_arguments = count;
    given->manifest.n_subtasks = 1;
    given->manifest.subtasks = given->subtasks;
    given->manifest.subtask_count = 1;
    given->blob = (struct store_blob){.size = strlen(text), .fd = file_of(text)};
}

#define GIVE(given, text, ...)                                                                     \
    char *arguments[] = {__VA_ARGS__};                                                             \
    give((given), (text), arguments, sizeof arguments / sizeof arguments[0])

static enum store_status fetch_nothing(void *context, size_t thread, const struct hash32 *hash,
                                       const struct id128 *job, uint64_t cap, int fd,
                                       uint64_t *ret_size, struct problem *ret_problem)
{
    (void)context, (void)thread, (void)hash, (void)job, (void)cap, (void)fd, (void)ret_size;
    problem_set(ret_problem, "nothing is fetched here");
    return STORE_MISSING;
}

static void name_cache(const struct fixture *fixture, char ret_folder[PATH_MAX])
{
    (void)snprintf(ret_folder, PATH_MAX, "%s/cache", fixture->folder);
}

static struct store *open_store(const struct fixture *fixture)
{
    char folder[PATH_MAX];
    struct problem problem;
    struct store *store = NULL;
    name_cache(fixture, folder);
    struct store_config cache = {
        .folder = folder, .cap_bytes = 1 << 20, .threads = 1, .fetch = fetch_nothing};
    ck_assert_msg(store_open(&cache, &store, &problem), "%s", problem.text);
    return store;
}

static void close_store(const struct fixture *fixture, struct store **store)
{
    char folder[PATH_MAX];
    store_close(store);
    name_cache(fixture, folder);
    fixture_remove(folder);
}

static struct outcome *run(struct fixture *fixture, struct given *given)
{
    static const struct id128 job = {{1}};
    struct agent_work work = {.lease = 1};
    struct problem problem;
    bool ended;
    struct outcome *outcome = outcome_create(&work, &job);
    ck_assert_msg(program_check(&given->manifest, &problem), "%s", problem.text);
    struct store *store = open_store(fixture);
    struct program program = {.manifest = &given->manifest,
                              .config = &config,
                              .inputs = &given->blob,
                              .jail = fixture->jail,
                              .store = store,
                              .limit_ms = 300000};
    program_run(&program, outcome, &ended);
    close_store(fixture, &store);
    ck_assert(!ended);
    close(given->blob.fd);
    return outcome;
}

static void begin(struct fixture *fixture)
{
    struct problem problem;
    *fixture = fixture_open(getuid() == 0 ? WAY_SERVICE : WAY_ORDINARY);
    ck_assert_msg(config_read(fixture->folder, NULL, &config, &problem), "%s", problem.text);
    (void)snprintf(config.spool, sizeof config.spool, "%s", fixture->folder);
}

static void expect_text(const struct kept *kept, const char *text)
{
    ck_assert_ptr_nonnull(kept->name);
    ck_assert_uint_eq(kept->size, strlen(text));
    ck_assert_mem_eq(kept->bytes, text, strlen(text));
}

START_TEST(templates_streams_and_outputs_come_through)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    GIVE(&given, "one\ntwo\n", "sh", "-c", "tr a-z A-Z < $1 > $2; echo $NAME; echo bad >&2", "sh",
         "{in}", "{out}");
    Bourse__V1__ManifestVariable variable = BOURSE__V1__MANIFEST_VARIABLE__INIT;
    Bourse__V1__ManifestVariable *variables[] = {&variable};
    char *outputs[] = {"{out}"};
    variable.name = "NAME";
    variable.value = "task {index}";
    given.manifest.n_environment = 1;
    given.manifest.environment = variables;
    given.manifest.n_outputs = 1;
    given.manifest.outputs = outputs;

    struct outcome *outcome = run(&fixture, &given);
    ck_assert_msg(outcome->result == OUTCOME_OK, "%d %s", (int)outcome->result, outcome->detail);
    expect_text(&outcome->standard_output, "task 0\n");
    expect_text(&outcome->standard_error, "bad\n");
    ck_assert_uint_eq(outcome->output_count, 1);
    ck_assert_str_eq(outcome->outputs[0].name, "out/notes.txt");
    expect_text(&outcome->outputs[0], "ONE\nTWO\n");
    ck_assert_int_gt(outcome->busy_ns, 0);
    outcome_destroy(&outcome);
    fixture_close(&fixture);
}
END_TEST

START_TEST(standard_input_is_the_file_or_a_text)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    GIVE(&given, "from the file", "cat");
    given.manifest.standard_input = (char *)(uintptr_t) "{in}";
    struct outcome *outcome = run(&fixture, &given);
    expect_text(&outcome->standard_output, "from the file");
    outcome_destroy(&outcome);

    give(&given, "x", arguments, 1);
    given.manifest.standard_input = (char *)(uintptr_t) "the file is {in}";
    outcome = run(&fixture, &given);
    expect_text(&outcome->standard_output, "the file is notes.txt");
    outcome_destroy(&outcome);
    fixture_close(&fixture);
}
END_TEST

START_TEST(large_outputs_go_to_the_spool_and_keep_their_hash)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    char *outputs[] = {"big"};
    GIVE(&given, "x", "sh", "-c", "head -c 3000000 /dev/zero > big");
    given.manifest.n_outputs = 1;
    given.manifest.outputs = outputs;
    struct outcome *outcome = run(&fixture, &given);
    ck_assert_int_eq(outcome->result, OUTCOME_OK);
    ck_assert_uint_eq(outcome->outputs[0].size, 3000000);
    ck_assert_int_ge(outcome->outputs[0].fd, 0);
    uint8_t *zeros = calloc(1, 3000000);
    struct hash32 hash = sha256_of(zeros, 3000000);
    ck_assert(hash32_equal(&hash, &outcome->outputs[0].hash));
    ck_assert_int_eq(pread(outcome->outputs[0].fd, zeros, 3000000, 0), 3000000);
    struct hash32 spooled = sha256_of(zeros, 3000000);
    ck_assert(hash32_equal(&spooled, &hash));
    free(zeros);
    outcome_destroy(&outcome);
    fixture_close(&fixture);
}
END_TEST

START_TEST(failures_keep_their_kind)
{
    static const struct {
        const char *script;
        enum result_outcome outcome;
    } cases[] = {{"exit 7", OUTCOME_PROGRAM_FAILED},
                 {"kill -SEGV $$", OUTCOME_SIGNALLED},
                 {"true", OUTCOME_OUTPUT_MISSING}};
    struct fixture fixture;
    begin(&fixture);
    char *outputs[] = {"never"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct given given;
        GIVE(&given, "x", "sh", "-c", (char *)(uintptr_t)cases[i].script);
        given.manifest.n_outputs = 1;
        given.manifest.outputs = outputs;
        struct outcome *outcome = run(&fixture, &given);
        ck_assert_int_eq(outcome->result, cases[i].outcome);
        ck_assert_uint_eq(outcome->output_count, 0);
        outcome_destroy(&outcome);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(the_subtask_s_own_limit_holds)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    GIVE(&given, "x", "sleep", "30");
    Bourse__V1__ManifestLimits limits = BOURSE__V1__MANIFEST_LIMITS__INIT;
    limits.has_wall_ms = 1;
    limits.wall_ms = 200;
    given.manifest.limits = &limits;
    struct outcome *outcome = run(&fixture, &given);
    ck_assert_int_eq(outcome->result, OUTCOME_TIME_LIMIT);
    outcome_destroy(&outcome);
    fixture_close(&fixture);
}
END_TEST

/* Makes the subtask's only input a listing or an archive. */
static void give_bytes(struct given *given, const char *name, const void *bytes, size_t length)
{
    (void)close(given->blob.fd);
    given->input.name = (char *)(uintptr_t)name;
    given->input.size = length;
    given->blob = (struct store_blob){.size = length, .fd = memfd_create("input", MFD_CLOEXEC)};
    ck_assert_int_eq(write(given->blob.fd, bytes, length), (ssize_t)length);
}

static size_t list(const struct work_tree_entry *entries, size_t count, uint8_t ret_bytes[1024])
{
    struct writer out = writer_over(ret_bytes, 1024);
    work_tree_write_head(&out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        work_tree_write(&out, &entries[i]);
    }
    ck_assert(!out.failed);
    return out.position;
}

START_TEST(a_hostile_listing_is_refused)
{
    static const struct {
        struct work_tree_entry entries[2];
        size_t count;
        const char *why; /* NULL: it is fine */
    } cases[] = {
        {{{WORK_TREE_FOLDER, 0755, 1, "a", ""}, {WORK_TREE_LINK, 0, 1, "b", "a"}}, 2, NULL},
        {{{WORK_TREE_LINK, 0, 1, "a", ".."}, {WORK_TREE_FOLDER, 0755, 1, "a/passwd", ""}},
         2,
         "leads out of the folder"},
        {{{WORK_TREE_LINK, 0, 1, "a", "/etc"}, {WORK_TREE_FILE, 0644, 1, "a/passwd", ""}},
         2,
         "has an absolute target"},
        {{{WORK_TREE_LINK, 0, 1, "a", "b"}, {WORK_TREE_FOLDER, 0755, 1, "a/passwd", ""}},
         2,
         "lies below a file or a link"},
        {{{WORK_TREE_FILE, 0644, 1, "a", ""}}, 1, "does not have"},
    };
    struct fixture fixture;
    begin(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct given given;
        uint8_t bytes[1024];
        GIVE(&given, "x", "sh", "-c", "readlink b");
        give_bytes(&given, ".", bytes, list(cases[i].entries, cases[i].count, bytes));
        struct outcome *outcome = run(&fixture, &given);
        if (cases[i].why == NULL) {
            ck_assert_msg(outcome->result == OUTCOME_OK, "%s", outcome->detail);
            expect_text(&outcome->standard_output, "a\n");
        } else {
            ck_assert_int_eq(outcome->result, OUTCOME_REFUSED);
            ck_assert_msg(strstr(outcome->detail, cases[i].why) != NULL, "%s", outcome->detail);
        }
        outcome_destroy(&outcome);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_hostile_archive_is_refused)
{
    static const struct {
        struct {
            char type;
            const char *name, *target;
        } entries[2];
        bool keeps_trees;
        const char *why; /* NULL: it is fine */
    } cases[] = {
        {{{'5', "c", ""}, {'2', "l", "c"}}, true, NULL},
        {{{'5', "c", ""}, {'2', "l", "c"}}, false, "no file"},
        {{{'2', "a", "b"}, {'0', "a/passwd", ""}}, true, "behind a link"},
        {{{'2', "a", "/etc"}, {'0', "a/passwd", ""}}, true, "absolute"},
        {{{'2', "a", ".."}, {'0', "a/passwd", ""}}, true, "leads out"},
        {{{'5', "c", ""}, {'2', "c/l", "../.."}}, true, "leads out"}, /* of the folder d */
    };
    struct fixture fixture;
    begin(&fixture);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static char bytes[8192];
        struct given given;
        struct problem problem;
        struct archive archive = {.fd = memfd_create("archive", MFD_CLOEXEC), .problem = &problem};
        for (size_t k = 0; k < 2; k++) {
            ck_assert(archive_put_header(&archive, cases[i].entries[k].type,
                                         cases[i].entries[k].name, cases[i].entries[k].target, 0755,
                                         0));
        }
        ck_assert(archive_put_end(&archive) &&
                  pread(archive.fd, bytes, sizeof bytes, 0) == (ssize_t)archive.length);
        (void)close(archive.fd);
        GIVE(&given, "x", "sh", "-c", "test -d d/c && readlink d/l");
        give_bytes(&given, "d/", bytes, archive.length);
        given.manifest.has_trees = given.manifest.trees = cases[i].keeps_trees;
        struct outcome *outcome = run(&fixture, &given);
        if (cases[i].why == NULL) {
            ck_assert_msg(outcome->result == OUTCOME_OK, "%s", outcome->detail);
            expect_text(&outcome->standard_output, "c\n");
        } else {
            ck_assert_int_eq(outcome->result, OUTCOME_REFUSED);
            ck_assert_msg(strstr(outcome->detail, cases[i].why) != NULL, "%zu: %s", i,
                          outcome->detail);
        }
        outcome_destroy(&outcome);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(what_is_not_allowed_does_not_run)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    {
        GIVE(&given, "x", "no-such-program");
        struct outcome *outcome = run(&fixture, &given);
        ck_assert_int_eq(outcome->result, OUTCOME_PROGRAM_MISSING);
        outcome_destroy(&outcome);
    }
    {
        GIVE(&given, "x", "./notes.txt"); /* an input is no program of the owner's */
        struct outcome *outcome = run(&fixture, &given);
        ck_assert_int_eq(outcome->result, OUTCOME_PROGRAM_MISSING);
        outcome_destroy(&outcome);
    }
    {
        GIVE(&given, "x", "cat", "{in}");
        char *outputs[] = {"../escape"};
        given.manifest.n_outputs = 1;
        given.manifest.outputs = outputs;
        struct outcome *outcome = run(&fixture, &given);
        ck_assert_int_eq(outcome->result, OUTCOME_REFUSED);
        outcome_destroy(&outcome);
    }
    {
        GIVE(&given, "x", "cat");
        given.input.name = (char *)(uintptr_t) "/etc/passwd";
        struct outcome *outcome = run(&fixture, &given);
        ck_assert_int_eq(outcome->result, OUTCOME_REFUSED);
        outcome_destroy(&outcome);
    }
    fixture_close(&fixture);
}
END_TEST

#define TEXT(text) ((char *)(uintptr_t)(text))

/* A subtask with a program, variables, outputs and limits of its own, and a file that another
 * left. */
START_TEST(a_task_is_a_program_of_its_own)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    GIVE(&given, "one\n", "false");
    Bourse__V1__ManifestVariable shared[2] = {BOURSE__V1__MANIFEST_VARIABLE__INIT,
                                              BOURSE__V1__MANIFEST_VARIABLE__INIT};
    Bourse__V1__ManifestVariable *variables[] = {&shared[0], &shared[1]};
    Bourse__V1__ManifestVariable own = BOURSE__V1__MANIFEST_VARIABLE__INIT;
    Bourse__V1__ManifestVariable *owns[] = {&own};
    Bourse__V1__ManifestFrom from = BOURSE__V1__MANIFEST_FROM__INIT;
    Bourse__V1__ManifestFrom waits = BOURSE__V1__MANIFEST_FROM__INIT;
    Bourse__V1__ManifestFrom *froms[] = {&waits, &from};
    Bourse__V1__ManifestTask task = BOURSE__V1__MANIFEST_TASK__INIT;
    char *program[] = {TEXT("sh"), TEXT("-c"), TEXT("cat notes.txt part.txt - > {out}; echo $A$B")};
    char *outputs[] = {TEXT("{out}")};
    char *nobodys[] = {TEXT("never")};
    shared[0].name = TEXT("A"), shared[0].value = TEXT("a");
    shared[1].name = TEXT("B"), shared[1].value = TEXT("b");
    own.name = TEXT("B"), own.value = TEXT("{value}!");
    from.task = 0, from.name = TEXT("part.txt"), from.output = TEXT("out/split");
    waits.task = 1;
    task.name = TEXT("join");
    task.arguments = program, task.n_arguments = 3;
    task.environment = owns, task.n_environment = 1;
    task.outputs = outputs, task.n_outputs = 1;
    task.standard_input = TEXT("typed\n");
    task.from = froms, task.n_from = 2;
    given.manifest.environment = variables, given.manifest.n_environment = 2;
    given.manifest.outputs = nobodys, given.manifest.n_outputs = 1;
    Bourse__V1__ManifestSubtask other = BOURSE__V1__MANIFEST_SUBTASK__INIT;
    Bourse__V1__ManifestSubtask *subtasks[] = {&other, &other, &given.subtask};
    given.subtask.task = &task;
    given.manifest.subtasks = subtasks;
    given.manifest.n_subtasks = given.manifest.subtask_count = 3;

    static const struct id128 job = {{1}};
    struct agent_work work = {.lease = 1, .index = 2};
    struct problem problem;
    bool ended;
    struct outcome *outcome = outcome_create(&work, &job);
    ck_assert_msg(program_check(&given.manifest, &problem), "%s", problem.text);
    ck_assert_uint_eq(program_taken_count(&given.manifest, 2), 1);
    ck_assert_ptr_eq(program_taken(&given.manifest, 2, 0), &from);
    struct store *store = open_store(&fixture);
    struct store_blob inputs[] = {given.blob, {.size = 4, .fd = file_of("two\n")}};
    struct program joining = {.manifest = &given.manifest,
                              .config = &config,
                              .index = 2,
                              .inputs = inputs,
                              .jail = fixture.jail,
                              .store = store,
                              .limit_ms = 300000};
    program_run(&joining, outcome, &ended);
    close_store(&fixture, &store);
    ck_assert_msg(outcome->result == OUTCOME_OK, "%d %s", (int)outcome->result, outcome->detail);
    expect_text(&outcome->standard_output, "ajoin!\n");
    ck_assert_uint_eq(outcome->output_count, 1);
    ck_assert_str_eq(outcome->outputs[0].name, "out/join");
    expect_text(&outcome->outputs[0], "one\ntwo\ntyped\n");
    outcome_destroy(&outcome);

    from.task = 2; /* itself */
    ck_assert(!program_check(&given.manifest, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "does not come before it"));
    close(inputs[0].fd);
    close(inputs[1].fd);
    fixture_close(&fixture);
}
END_TEST

/* An output that is left of a job keeps its number. */
START_TEST(a_number_that_was_kept_names_the_output)
{
    struct fixture fixture;
    struct given given;
    begin(&fixture);
    GIVE(&given, "x", "sh", "-c", "echo {index} > {out}");
    char *outputs[] = {TEXT("{out}")};
    given.subtask.n_inputs = 0;
    given.subtask.has_number = 1;
    given.subtask.number = 42;
    given.manifest.outputs = outputs, given.manifest.n_outputs = 1;
    struct outcome *outcome = run(&fixture, &given);
    ck_assert_msg(outcome->result == OUTCOME_OK, "%d %s", (int)outcome->result, outcome->detail);
    ck_assert_str_eq(outcome->outputs[0].name, "out/42");
    expect_text(&outcome->outputs[0], "42\n");
    outcome_destroy(&outcome);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_wrong_manifest_is_refused_once)
{
    struct given given;
    struct problem problem;
    GIVE(&given, "x", "cat", "{in}");
    ck_assert(program_check(&given.manifest, &problem));
    given.manifest.version = 2;
    ck_assert(!program_check(&given.manifest, &problem));
    given.manifest.version = 1;
    given.manifest.executor = (char *)(uintptr_t) "bitcoin";
    ck_assert(!program_check(&given.manifest, &problem));
    given.manifest.executor = (char *)(uintptr_t) "command";
    given.manifest.subtask_count = 2;
    ck_assert(!program_check(&given.manifest, &problem));
    given.manifest.subtask_count = 1;
    arguments[1] = (char *)(uintptr_t) "{inn}";
    ck_assert(!program_check(&given.manifest, &problem));
    given.manifest.n_arguments = 0;
    ck_assert(!program_check(&given.manifest, &problem));
    close(given.blob.fd);
}
END_TEST

int main(void)
{
    int skip = fixture_start();
    if (skip != 0) {
        return skip;
    }
    Suite *suite = suite_create("command executor");
    TCase *tcase = tcase_create("command");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, templates_streams_and_outputs_come_through);
    tcase_add_test(tcase, standard_input_is_the_file_or_a_text);
    tcase_add_test(tcase, large_outputs_go_to_the_spool_and_keep_their_hash);
    tcase_add_test(tcase, failures_keep_their_kind);
    tcase_add_test(tcase, the_subtask_s_own_limit_holds);
    tcase_add_test(tcase, a_hostile_listing_is_refused);
    tcase_add_test(tcase, a_hostile_archive_is_refused);
    tcase_add_test(tcase, what_is_not_allowed_does_not_run);
    tcase_add_test(tcase, a_task_is_a_program_of_its_own);
    tcase_add_test(tcase, a_number_that_was_kept_names_the_output);
    tcase_add_test(tcase, a_wrong_manifest_is_refused_once);
    suite_add_tcase(suite, tcase);
    const int status = suite_run(suite);
    fixture_remove(fixture_root);
    return status;
}
