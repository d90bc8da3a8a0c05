/* The tests run WASM modules in a real jail. They show what a module sees of the jail, how much
 * memory it takes, and how the agent tries the engine at its start. wat2wasm makes the modules of
 * tests/support/wasm. */
#include "fixture.h"
#include "provider/executors/wasm.h"

#include <sys/mman.h>

enum { MODULE_OPEN, MODULE_WORDS, MODULE_BOMB, MODULE_SPIN, MODULES };
static const char *const names[MODULES] = {"open", "words", "bomb", "spin"};
static int modules[MODULES]; /* files in memory, made before the first test */

#define MEMORY_BYTES (512 * MIB)

static struct wasm_engine engine;

/* Returns a file in memory with the module, or -1. */
static int assemble(const char *name)
{
    char command[512];
    char bytes[4096];
    (void)snprintf(command, sizeof command,
                   "wat2wasm " BOURSE_SOURCE_DIR "/tests/support/wasm/%s.wat -o /dev/stdout", name);
    FILE *pipe = popen(command, "r"); /* the words are ours */
    const size_t length = pipe == NULL ? 0 : fread(bytes, 1, sizeof bytes, pipe);
    const bool good = pipe != NULL && pclose(pipe) == 0 && length > 0 && length < sizeof bytes;
    const int file = memfd_create(name, MFD_CLOEXEC);
    return good && write(file, bytes, length) == (ssize_t)length ? file : -1;
}

static struct wasm_trial trial_of(const struct fixture *fixture)
{
    return (struct wasm_trial){
        .launcher = fixture->launcher, .cgroups = fixture->cgroups, .worker_path = fixture->worker};
}

static void set_engine(const struct fixture *fixture, const char *path)
{
    engine = (struct wasm_engine){.path = ""};
    (void)snprintf(engine.path, sizeof engine.path, "%s", path);
    (void)snprintf(engine.host, sizeof engine.host, "%s", fixture->wasm);
}

/* Opens a jail for modules, whose engine was tried. */
static struct fixture open_with_engine(int way)
{
    struct fixture fixture = fixture_open(way);
    const struct wasm_trial trial = trial_of(&fixture);
    struct problem problem;
    set_engine(&fixture, "/usr/bin/node");
    wasm_look(&trial, &engine);
    ck_assert_str_eq(engine.unusable, "");
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    spec.wasm_host = fixture.wasm;
    spec.limits.memory_bytes = MEMORY_BYTES;
    spec.limits.processes = 64;
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    return fixture;
}

/* Runs a module with at most two words and a file `own.txt` beside it. */
static void run(struct fixture *fixture, int module, const char *first, const char *second,
                uint64_t wall_ns, struct jail_reply *reply)
{
    struct wasm_words words;
    const char *argv[16];
    struct stat status;
    const int own = memfd_create("own", MFD_CLOEXEC);
    ck_assert_int_eq(write(own, "own", 3), 3);
    ck_assert_int_eq(fstat(modules[module], &status), 0);
    const struct jail_input inputs[] = {
        {.name = "m.wasm", .fd = modules[module], .size = (uint64_t)status.st_size},
        {.name = "own.txt", .fd = own, .size = 3},
    };
    wasm_fill(&engine, MEMORY_BYTES, &words);
    memcpy(argv, words.items, words.count * sizeof argv[0]);
    size_t count = words.count;
    argv[count++] = "--";
    argv[count++] = "m.wasm";
    argv[count++] = first;
    argv[count++] = second;
    argv[count] = NULL;
    const struct jail_request request = {
        .argv = argv, .inputs = inputs, .input_count = 2, .stdin_fd = -1, .wall_ns = wall_ns};
    memset(reply, 0, sizeof *reply);
    jail_run(fixture->jail, &request, reply);
    (void)close(own);
}

START_TEST(a_start_learns_what_the_engine_is)
{
    struct fixture fixture = fixture_open(_i);
    const struct wasm_trial trial = trial_of(&fixture);
    set_engine(&fixture, "/usr/bin/node");
    wasm_look(&trial, &engine);
    ck_assert_str_eq(engine.unusable, "");
    ck_assert_msg(strncmp(engine.name, "node v", 6) == 0, "%s", engine.name);
    ck_assert(engine.is_known &&
              engine.has_group == (fixture.cgroups != NULL && cgroups_memory(fixture.cgroups)));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_start_learns_why_no_modules_run)
{
    static const struct {
        const char *path, *said;
    } ways[] = {
        {"/usr/bin/true", "/usr/bin/true: /usr/bin/true says nothing"},
        {"/usr/bin/false", "/usr/bin/false: exit code 1"},
        {"/usr/bin/echo", "what it printed is not what the module says"},
        {"/usr/bin/no-such-engine", "no such program in the jail"},
    };
    struct fixture fixture = fixture_open(_i);
    const struct wasm_trial trial = trial_of(&fixture);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        set_engine(&fixture, ways[i].path);
        wasm_look(&trial, &engine);
        ck_assert_msg(strstr(engine.unusable, ways[i].said) != NULL, "%s", engine.unusable);
        ck_assert(!wasm_engine_suffices(&engine, 1024 * MIB));
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_module_sees_its_folder_and_nothing_else)
{
    enum { NO_SUCH_FILE = 44, NOT_PERMITTED = 63, NOT_CAPABLE = 76 }; /* numbers of WASI */
    static const struct {
        const char *path, *link;
        int code;
    } ways[] = {
        {"own.txt", "", 0},
        {"own.txt", "link", 0},
        {"none.txt", "", NO_SUCH_FILE},
        {"../etc/passwd", "", NOT_CAPABLE},
        {"../../../../etc/passwd", "", NOT_CAPABLE},
        {"own/../../etc/passwd", "", NOT_CAPABLE},
        {"/etc/passwd", "", NOT_CAPABLE},
        {"/proc/self/environ", "", NOT_CAPABLE},
        {"/.bourse-wasm.cjs", "", NOT_CAPABLE},
        {"/work/own.txt", "", NOT_CAPABLE}, /* a path of WASI begins at a folder that is given */
        {"../etc/passwd", "link", NOT_CAPABLE},
        {"/etc/passwd", "link", NOT_PERMITTED},
    };
    static struct jail_reply reply;
    struct fixture fixture = open_with_engine(_i);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char text[64];
        const bool has_link = ways[i].link[0] != '\0';
        run(&fixture, MODULE_OPEN, ways[i].path, has_link ? ways[i].link : NULL, 100 * SECOND,
            &reply);
        ck_assert_msg(reply.exit_code == ways[i].code, "%s %s: %d: %s", ways[i].path, ways[i].link,
                      reply.exit_code, reply.detail);
        ck_assert_int_eq(reply.outcome, ways[i].code == 0 ? OUTCOME_OK : OUTCOME_PROGRAM_FAILED);
        ck_assert_str_eq(fixture_output(&reply.standard_output, text, sizeof text),
                         ways[i].code == 0 ? "own" : "");
        jail_reply_fini(&reply);
    }
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_module_has_its_words_and_no_variable_of_the_jail)
{
    static struct jail_reply reply;
    char text[256];
    struct fixture fixture = open_with_engine(_i);
    run(&fixture, MODULE_WORDS, "one", "two words", 100 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_uint_eq(reply.standard_output.size, sizeof "m.wasm\0one\0two words");
    (void)fixture_output(&reply.standard_output, text, sizeof text);
    ck_assert_int_eq(memcmp(text, "m.wasm\0one\0two words", sizeof "m.wasm\0one\0two words"), 0);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(memory_and_time_end_a_module_and_not_the_jail)
{
    static struct jail_reply reply;
    struct fixture fixture = open_with_engine(_i);
    run(&fixture, MODULE_BOMB, NULL, NULL, 100 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_PROGRAM_FAILED && reply.exit_code == 9, "%d: %s",
                  (int)reply.outcome, reply.detail); /* the engine gave it no more */
    ck_assert_int_gt(reply.peak_memory_bytes, (int64_t)(256 * MIB));
    ck_assert_int_lt(reply.peak_memory_bytes, (int64_t)MEMORY_BYTES);
    jail_reply_fini(&reply);
    run(&fixture, MODULE_SPIN, "0", NULL, SECOND, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_TIME_LIMIT);
    ck_assert(!reply.jail_ended);
    jail_reply_fini(&reply);
    run(&fixture, MODULE_SPIN, "1", NULL, 100 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    if (access("/usr/bin/node", X_OK) != 0 || access("/usr/bin/wat2wasm", X_OK) != 0) {
        (void)puts("skipped: node or wat2wasm is not installed");
        return 77;
    }
    for (size_t i = 0; i < MODULES; i++) {
        modules[i] = assemble(names[i]);
        if (modules[i] < 0) {
            (void)fprintf(stderr, "wat2wasm makes no module of %s.wat\n", names[i]);
            return 1;
        }
    }
    const TTest *const tests[] = {
        a_start_learns_what_the_engine_is,
        a_start_learns_why_no_modules_run,
        a_module_sees_its_folder_and_nothing_else,
        a_module_has_its_words_and_no_variable_of_the_jail,
        memory_and_time_end_a_module_and_not_the_jail,
    };
    return fixture_main("jail_wasm", tests, sizeof tests / sizeof *tests);
}
