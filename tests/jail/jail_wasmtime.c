/* The tests run WASM modules by bourse-wasm in a real jail, with a stand-in for wasmtime's library
 * inside, since a jail shows no library of the build's. The stand-in does what stands in a module's
 * bytes (tests/programs/fake_wasmtime.c). */
#include "fixture.h"
#include "provider/executors/wasm.h"

#include <sys/mman.h>

#define MEMORY_BYTES (512 * MIB)

static struct wasm_engine engine;

static struct wasm_trial trial_of(const struct fixture *fixture)
{
    return (struct wasm_trial){
        .launcher = fixture->launcher, .cgroups = fixture->cgroups, .worker_path = fixture->worker};
}

/* Tries the engine: the program runs the library in a jail. */
static void look(const struct fixture *fixture, const char *program, const char *library)
{
    const struct wasm_trial trial = trial_of(fixture);
    engine = (struct wasm_engine){.is_library = true};
    (void)snprintf(engine.host, sizeof engine.host, "%s/%s", BOURSE_BIN_DIR, program);
    (void)snprintf(engine.path, sizeof engine.path, "%s", library);
    wasm_look(&trial, &engine);
}

/* Opens a jail for modules, whose engine was tried. */
static struct fixture open_with_engine(int way)
{
    struct fixture fixture = fixture_open(way);
    struct problem problem;
    look(&fixture, "bourse-wasm-fake", "/inside");
    ck_assert_str_eq(engine.unusable, "");
    struct jail_spec spec = fixture_spec(&fixture);
    spec.name = "lane-1";
    wasm_show(&engine, &spec);
    spec.limits.memory_bytes = MEMORY_BYTES;
    spec.limits.processes = 64;
    jail_close(&fixture.jail);
    ck_assert_msg(jail_open(fixture.launcher, &spec, &fixture.jail, &problem), "%s", problem.text);
    return fixture;
}

/* Returns a file in memory with a module that takes these steps, and its size. */
static int make_module(const char *steps, uint64_t *ret_size)
{
    static const char head[] = "\0asm\1\0\0\0"
                               "\5\3\1\0\1"                        /* a memory of one page */
                               "\7\x13\2\6memory\2\0\6_start\0\0"; /* both are exported */
    char bytes[256];
    const size_t before = sizeof head - 1;
    const int file = memfd_create("module", MFD_CLOEXEC);
    memcpy(bytes, head, before);
    const int length = snprintf(bytes + before, sizeof bytes - before, "%c%cfake:%s", 0,
                                (char)(strlen(steps) + 6), steps);
    *ret_size = before + (size_t)length + 1;
    ck_assert_int_eq(write(file, bytes, *ret_size), (ssize_t)*ret_size);
    return file;
}

/* Runs a module with a word and a file `own.txt` beside it. */
static void run(struct fixture *fixture, const char *steps, uint64_t wall_ns,
                struct jail_reply *reply)
{
    struct wasm_words words;
    const char *argv[16];
    uint64_t size;
    const int module = make_module(steps, &size);
    const int own = memfd_create("own", MFD_CLOEXEC);
    ck_assert_int_eq(write(own, "own\n", 4), 4);
    const struct jail_input inputs[] = {
        {.name = "m.wasm", .fd = module, .size = size},
        {.name = "own.txt", .fd = own, .size = 4},
    };
    wasm_fill(&engine, MEMORY_BYTES, &words);
    memcpy(argv, words.items, words.count * sizeof argv[0]);
    size_t count = words.count;
    argv[count++] = "-e";
    argv[count++] = "COLOR=blue";
    argv[count++] = "--";
    argv[count++] = "m.wasm";
    argv[count++] = "one";
    argv[count] = NULL;
    const struct jail_request request = {
        .argv = argv, .inputs = inputs, .input_count = 2, .stdin_fd = -1, .wall_ns = wall_ns};
    memset(reply, 0, sizeof *reply);
    jail_run(fixture->jail, &request, reply);
    (void)close(own);
    (void)close(module);
}

START_TEST(a_start_learns_which_version_it_is)
{
    struct fixture fixture = fixture_open(_i);
    look(&fixture, "bourse-wasm-fake", "/inside");
    ck_assert_str_eq(engine.unusable, "");
    ck_assert_str_eq(engine.name, "wasmtime 47.0.3");
    ck_assert(engine.is_known && wasm_engine_suffices(&engine, 512 * MIB));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_start_learns_why_a_library_runs_no_modules)
{
    struct fixture fixture = fixture_open(_i);
    look(&fixture, "bourse-wasm", "/usr/lib/no-such-libwasmtime.so");
    ck_assert_msg(strstr(engine.unusable, "wasmtime's library does not load") != NULL, "%s",
                  engine.unusable);
    look(&fixture, "bourse-wasm", "libc.so.6");
    ck_assert_msg(strstr(engine.unusable, "the library has no function wasm_config_new") != NULL,
                  "%s", engine.unusable);
    ck_assert(!wasm_engine_suffices(&engine, 1024 * MIB));
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_module_has_its_words_and_its_folder)
{
    static struct jail_reply reply;
    static const char wanted[] = "m.wasm\0one\0COLOR=blue\0own\n";
    char text[256];
    struct fixture fixture = open_with_engine(_i);
    run(&fixture, "words\nread own.txt", 100 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    ck_assert_uint_eq(reply.standard_output.size, sizeof wanted - 1);
    (void)fixture_output(&reply.standard_output, text, sizeof text);
    ck_assert_int_eq(memcmp(text, wanted, sizeof wanted - 1), 0);
    jail_reply_fini(&reply);
    run(&fixture, "exit 7", 100 * SECOND, &reply);
    ck_assert(reply.outcome == OUTCOME_PROGRAM_FAILED && reply.exit_code == 7);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(a_trap_is_told)
{
    static struct jail_reply reply;
    char text[256];
    struct fixture fixture = open_with_engine(_i);
    run(&fixture, "trap 9", 100 * SECOND, &reply);
    ck_assert(reply.outcome == OUTCOME_PROGRAM_FAILED && reply.exit_code == WASM_TRAPPED);
    ck_assert(wasm_explain(&reply, text, sizeof text));
    ck_assert_str_eq(text, "the module trapped: unreachable");
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

START_TEST(memory_and_time_end_a_module_and_not_the_jail)
{
    static struct jail_reply reply;
    struct fixture fixture = open_with_engine(_i);
    run(&fixture, "grow 448", 100 * SECOND, &reply); /* the engine has 64 MiB of the 512 */
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    jail_reply_fini(&reply);
    run(&fixture, "grow 449", 100 * SECOND, &reply);
    ck_assert(reply.outcome == OUTCOME_PROGRAM_FAILED && reply.exit_code == 9);
    jail_reply_fini(&reply);
    if (engine.has_group) { /* else the engine gets no more addresses, and goes on */
        run(&fixture, "eat 1024", 100 * SECOND, &reply);
        ck_assert_msg(reply.outcome == OUTCOME_MEMORY_LIMIT, "%d: %s", (int)reply.outcome,
                      reply.detail);
        jail_reply_fini(&reply);
    }
    run(&fixture, "spin", SECOND, &reply);
    ck_assert_int_eq(reply.outcome, OUTCOME_TIME_LIMIT);
    ck_assert(!reply.jail_ended);
    jail_reply_fini(&reply);
    run(&fixture, "say again", 100 * SECOND, &reply);
    ck_assert_msg(reply.outcome == OUTCOME_OK, "%s", reply.detail);
    jail_reply_fini(&reply);
    fixture_close(&fixture);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        a_start_learns_which_version_it_is,
        a_start_learns_why_a_library_runs_no_modules,
        a_module_has_its_words_and_its_folder,
        a_trap_is_told,
        memory_and_time_end_a_module_and_not_the_jail,
    };
    return fixture_main("jail_wasmtime", tests, sizeof tests / sizeof *tests);
}
