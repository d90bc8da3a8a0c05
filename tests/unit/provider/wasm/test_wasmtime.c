/* bourse-wasm with a stand-in for wasmtime's library: what a module has around it, how its end is
 * told, what fails at each call, and which versions are taken. */
#include "provider/device/wasm_engine.h"
#include "provider/wasm/wasmtime_api.h"
#include "tests/support/suite.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORY "1048576"

static char folder[] = "/tmp/bourse-wasmtime-XXXXXX";
static int home;

/* ---------------------------------------------------------------- modules */

struct module {
    const char *import_module, *import_name; /* NULL: none */
    int import_kind;                         /* by the format: 0 is a function, 2 a memory */
    unsigned pages;                          /* below 128 */
    bool has_no_start, has_no_memory;
    const char *steps; /* see tests/programs/fake_wasmtime.c */
};

static void put(FILE *file, int byte)
{
    ck_assert_int_eq(fputc(byte, file), byte);
}

static void put_text(FILE *file, const char *text)
{
    put(file, (int)strlen(text));
    ck_assert_int_ge(fputs(text, file), 0);
}

static void put_exports(FILE *file, const struct module *module)
{
    const int count = (module->has_no_start ? 0 : 1) + (module->has_no_memory ? 0 : 1);
    put(file, 7);
    put(file, 1 + (module->has_no_start ? 0 : 9) + (module->has_no_memory ? 0 : 9));
    put(file, count);
    if (!module->has_no_start) {
        put_text(file, "_start");
        put(file, 0);
        put(file, 0);
    }
    if (!module->has_no_memory) {
        put_text(file, "memory");
        put(file, 2);
        put(file, 0);
    }
}

static void write_module(const struct module *module)
{
    FILE *file = fopen("m.wasm", "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite("\0asm\1\0\0\0", 1, 8, file), 8);
    if (module->import_name != NULL) {
        put(file, 2);
        put(file, (int)(5 + strlen(module->import_module) + strlen(module->import_name)) +
                      (module->import_kind == 2 ? 1 : 0));
        put(file, 1);
        put_text(file, module->import_module);
        put_text(file, module->import_name);
        put(file, module->import_kind);
        put(file, 0);
        if (module->import_kind == 2) {
            put(file, 1);
        }
    }
    if (!module->has_no_memory) {
        put(file, 5);
        put(file, 3);
        put(file, 1);
        put(file, 0);
        put(file, (int)module->pages);
    }
    put_exports(file, module);
    if (module->steps != NULL) {
        put(file, 0);
        put(file, (int)(strlen(module->steps) + 6));
        ck_assert_int_ge(fprintf(file, "fake:%s", module->steps), 0);
        put(file, 0);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static void write_text(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* ---------------------------------------------------------------- the program */

static const char *text_of(const char *name)
{
    static char text[8192];
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    text[fread(text, 1, sizeof text - 1, file)] = '\0';
    (void)fclose(file);
    return text;
}

/* Runs the program with these words of a shell behind the library's path. Fills `out` and `err`. */
static int run_with(const char *fake, const char *library, const char *words)
{
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "FAKE_WASMTIME='%s' %s/bourse-wasm %s %s >out 2>err <in", fake, BOURSE_BIN_DIR,
                   library, words);
    const int status = system(command);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int run(const char *fake, const char *words)
{
    return run_with(fake, BOURSE_FAKE_WASMTIME, words);
}

static int run_steps(const char *steps, const char *words)
{
    const struct module module = {.pages = 1, .steps = steps};
    write_module(&module);
    return run("", words);
}

static void expect(int status, int wanted, const char *error)
{
    ck_assert_msg(status == wanted, "%d: %s", status, text_of("err"));
    ck_assert_str_eq(text_of("err"), error);
}

/* ---------------------------------------------------------------- what a module has */

START_TEST(a_module_has_its_words_and_variables)
{
    expect(run_steps("words", MEMORY " -e COLOR='blue red' -e EMPTY= -e BARE -- m.wasm one ''"), 0,
           "");
    char text[128];
    FILE *file = fopen("out", "r");
    const size_t length = fread(text, 1, sizeof text, file);
    (void)fclose(file);
    static const char wanted[] = "m.wasm\0one\0\0COLOR=blue red\0EMPTY=\0BARE=";
    ck_assert_uint_eq(length, sizeof wanted);
    ck_assert_int_eq(memcmp(text, wanted, length), 0);
}
END_TEST

START_TEST(a_module_has_the_streams_and_the_folder_under_two_names)
{
    write_text("in", "from standard input\n");
    write_text("own.txt", "own\n");
    expect(run_steps("copy\nread own.txt\nfolders\n", MEMORY " -- m.wasm"), 0, "");
    ck_assert_str_eq(text_of("out"), "from standard input\nown\n. is .\n/work is .\n");
    expect(run_steps("read ../own.txt", MEMORY " -- m.wasm"), 76, "");
}
END_TEST

START_TEST(the_exit_code_is_the_modules)
{
    expect(run_steps("say done\nexit 0\nsay never", MEMORY " -- m.wasm"), 0, "");
    ck_assert_str_eq(text_of("out"), "done\n");
    expect(run_steps("exit 7", MEMORY " -- m.wasm"), 7, "");
    expect(run_steps("exit 126", MEMORY " -- m.wasm"), 126, "");
}
END_TEST

/* The stand-in ends with a line and 70 when one thing reserves addresses and another does not. */
START_TEST(the_memory_of_a_module_is_bounded)
{
    static const char *const ways[] = {"8388608 -- m.wasm", "8388608 -r -- m.wasm"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        expect(run_steps("grow 8", ways[i]), 0, "");
        expect(run_steps("grow 9", ways[i]), 9, "");
    }
    const struct module large = {.pages = 17};
    write_module(&large);
    expect(run("", MEMORY " -- m.wasm"), WASM_UNUSABLE,
           "bourse-wasm: out of memory: the module wants 2 MiB at its start, and the subtask has 1 "
           "MiB for it (limits: memory)\n");
    const struct module exact = {.pages = 16};
    write_module(&exact);
    expect(run("", MEMORY " -- m.wasm"), 0, "");
}
END_TEST

/* ---------------------------------------------------------------- how it ends */

START_TEST(a_trap_is_told_in_words)
{
    static const struct {
        const char *steps, *said;
    } ways[] = {
        {"trap 0", "its calls are nested too deeply"},
        {"trap 1", "memory access out of bounds"},
        {"trap 3", "table access out of bounds"},
        {"trap 4", "a call of an element of a table that is null"},
        {"trap 5", "a call of an element of a table that has another type"},
        {"trap 6", "integer overflow"},
        {"trap 7", "divide by zero"},
        {"trap 8", "a number that no integer of the type can hold"},
        {"trap 9", "unreachable"},
        {"trap 10", "wasm trap: number 10"}, /* in the library's own words */
        {"trap -1", "wasm trap: number -1"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char wanted[128];
        (void)snprintf(wanted, sizeof wanted, "bourse-wasm: the module trapped: %s\n",
                       ways[i].said);
        expect(run_steps(ways[i].steps, MEMORY " -- m.wasm"), WASM_TRAPPED, wanted);
    }
}
END_TEST

START_TEST(an_error_that_is_no_trap_is_told_in_one_line)
{
    expect(run_steps("raise memory limit", MEMORY " -- m.wasm"), WASM_UNUSABLE,
           "bourse-wasm: the module does not start: memory limit Caused by: the fake\n");
}
END_TEST

START_TEST(what_is_no_program_of_wasi_is_told)
{
    static const struct {
        struct module module;
        const char *said;
    } ways[] = {
        {{.import_module = "env", .import_name = "gpu_run"},
         "the module imports the function env.gpu_run, which WASI preview 1 does not have"},
        {{.import_module = "env", .import_name = "memory", .import_kind = 2},
         "the module imports the memory env.memory, which WASI preview 1 does not have"},
        {{.import_module = "wasi_snapshot_preview1", .import_name = "sock_open"},
         "the module imports the function wasi_snapshot_preview1.sock_open, which WASI preview 1 "
         "does not have"},
        {{.import_module = "wasi_snapshot_preview1", .import_name = "fd_write", .import_kind = 2},
         "the module imports the memory wasi_snapshot_preview1.fd_write, which WASI preview 1 does "
         "not have"},
        {{.import_module = "wasi_unstable", .import_name = "fd_write"},
         "the module is for WASI of before preview 1 (wasi_unstable); build it again with a newer "
         "compiler"},
        {{.has_no_start = true},
         "the module has no function _start, so it is a library and no program"},
        {{.has_no_memory = true}, "the module does not export its memory, as WASI demands"},
    };
    char wanted[256];
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        write_module(&ways[i].module);
        (void)snprintf(wanted, sizeof wanted, "bourse-wasm: %s\n", ways[i].said);
        expect(run("", MEMORY " -- m.wasm"), WASM_UNUSABLE, wanted);
    }
    const struct module good = {.import_module = "wasi_snapshot_preview1",
                                .import_name = "fd_write"};
    write_module(&good);
    expect(run("", MEMORY " -- m.wasm"), 0, "");
}
END_TEST

START_TEST(what_is_no_module_is_told)
{
    const struct module good = {.pages = 1};
    write_text("m.wasm", "#!/bin/sh\n");
    expect(run("", MEMORY " -- m.wasm"), WASM_UNUSABLE,
           "bourse-wasm: the file is no WASM module: it does not begin with \\0asm\n");
    ck_assert_int_eq(system("printf '\\0asm\\15\\0\\1\\0' >m.wasm"), 0);
    expect(run("", MEMORY " -- m.wasm"), WASM_UNUSABLE,
           "bourse-wasm: the file is a component, and this engine runs core modules alone\n");
    write_module(&good);
    ck_assert_int_eq(truncate("m.wasm", 20), 0);
    expect(run("", MEMORY " -- m.wasm"), WASM_UNUSABLE,
           "bourse-wasm: the engine does not take the module: failed to parse WebAssembly module "
           "Caused by: unexpected end\n");
    expect(run("", MEMORY " -- none.wasm"), WASM_UNUSABLE,
           "bourse-wasm: the module cannot be read: No such file or directory\n");
}
END_TEST

START_TEST(words_that_are_no_utf8_are_told)
{
    static const char said[] =
        "bourse-wasm: an argument or a variable is no UTF-8, which wasmtime demands\n";
    expect(run_steps("exit 0", MEMORY " -- m.wasm $(printf '\\377')"), WASM_UNUSABLE, said);
    expect(run_steps("exit 0", MEMORY " -e A=$(printf '\\377') -- m.wasm"), WASM_UNUSABLE, said);
}
END_TEST

START_TEST(words_that_no_agent_writes_are_refused)
{
    static const char *const ways[] = {"",           "-- m.wasm",       MEMORY,
                                       MEMORY " --", MEMORY " m.wasm",  "1MiB -- m.wasm",
                                       "-1 --trial", MEMORY " -e A=b ", MEMORY " --trial more"};
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        ck_assert_int_eq(run("", ways[i]), 2);
        ck_assert_ptr_nonnull(strstr(text_of("err"), "usage: bourse-wasm"));
    }
}
END_TEST

/* ---------------------------------------------------------------- the library */

START_TEST(every_call_that_fails_is_told)
{
    static const struct {
        const char *function, *said;
    } ways[] = {
        {"wasm_config_new", "the engine failed: wasmtime makes no engine"},
        {"wasm_engine_new_with_config", "the engine failed: wasmtime makes no engine"},
        {"wasmtime_module_new", "the engine failed: wasmtime compiles no empty module: the fake "
                                "fails Caused by: it was told to"},
        {"wasmtime_module_serialize", "the engine failed: wasmtime compiles no empty module: the "
                                      "fake fails Caused by: it was told to"},
        {"wasmtime_store_new", "the engine failed: it makes no store"},
        {"wasmtime_linker_new", "the engine failed: it makes no linker"},
        {"wasmtime_linker_define_wasi", "the engine failed: the fake fails Caused by: it was told "
                                        "to"},
        {"wasi_config_new", "the engine failed: it makes no surroundings"},
        {"wasi_config_set_argv", "an argument or a variable is no UTF-8, which wasmtime demands"},
        {"wasi_config_set_env", "an argument or a variable is no UTF-8, which wasmtime demands"},
        {"wasi_config_preopen_dir", "the engine failed: it does not open the work folder"},
        {"wasmtime_context_set_wasi", "the engine failed: the fake fails Caused by: it was told "
                                      "to"},
        {"wasmtime_linker_module", "the module does not link: the fake fails Caused by: it was "
                                   "told to"},
        {"wasmtime_linker_get_default", "the engine failed: the fake fails Caused by: it was told "
                                        "to"},
        {"wasmtime_func_call", "the module does not start: the fake fails Caused by: it was told "
                               "to"},
    };
    const struct module module = {.pages = 1};
    write_module(&module);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char fake[64], wanted[256];
        (void)snprintf(fake, sizeof fake, "fail:%s", ways[i].function);
        (void)snprintf(wanted, sizeof wanted, "bourse-wasm: %s\n", ways[i].said);
        expect(run(fake, MEMORY " -- m.wasm"), WASM_UNUSABLE, wanted);
    }
}
END_TEST

START_TEST(the_trial_says_the_version)
{
    expect(run("", "67108864 --trial"), 0, "");
    ck_assert_str_eq(text_of("out"), "wasm\nwasmtime 47.0.3\n");
    expect(run("fail:wasmtime_func_call", "67108864 -r --trial"), WASM_UNUSABLE,
           "bourse-wasm: the module does not start: the fake fails Caused by: it was told to\n");
    ck_assert_str_eq(text_of("out"), "");
}
END_TEST

/* The stand-in ends with a line and 70 when a folder has the rights of another version. */
START_TEST(only_versions_that_are_known_run_modules)
{
    static const struct {
        const char *fake, *said; /* NULL: it runs */
    } ways[] = {
        {"version:28.0.0", NULL},
        {"version:47.0.4", NULL},
        {"version:48.0.0", NULL},
        {"version:48", NULL},
        {"version:27.0.0", "the library is wasmtime 27.0.0, and only 28 to 48 is known here; "
                           "install one of these"},
        {"version:49.0.1", "the library is wasmtime 49.0.1, and only 28 to 48 is known here; "
                           "install one of these"},
        {"version:4800.0", "the library is wasmtime 4800.0, and only 28 to 48 is known here; "
                           "install one of these"},
        {"version:v47", "the library does not say its version, and only wasmtime 28 to 48 is "
                        "known here; install one of these"},
        {"mute", "the library does not say its version, and only wasmtime 28 to 48 is known here; "
                 "install one of these"},
    };
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        char wanted[256] = "";
        if (ways[i].said != NULL) {
            (void)snprintf(wanted, sizeof wanted, "bourse-wasm: the engine failed: %s\n",
                           ways[i].said);
        }
        expect(run(ways[i].fake, MEMORY " --trial"), ways[i].said == NULL ? 0 : WASM_UNUSABLE,
               wanted);
    }
}
END_TEST

START_TEST(a_library_that_is_not_wasmtimes_is_told)
{
    ck_assert_int_eq(run_with("", "/no/such/libwasmtime.so", MEMORY " --trial"), WASM_UNUSABLE);
    ck_assert_ptr_nonnull(strstr(text_of("err"), "bourse-wasm: the engine failed: wasmtime's "
                                                 "library does not load: /no/such/libwasmtime.so"));
    ck_assert_int_eq(run_with("", "libm.so.6", MEMORY " --trial"), WASM_UNUSABLE);
    ck_assert_ptr_nonnull(strstr(text_of("err"),
                                 "bourse-wasm: the engine failed: the library has no function "
                                 "wasm_config_new, so it is no wasmtime of version 28 to 48"));
}
END_TEST

/* ---------------------------------------------------------------- compiled modules */

/* A module as wasmtime compiles it: two sections besides the first, which is none. */
static struct {
    Elf64_Ehdr head;
    Elf64_Shdr sections[3];
    char names[32];
    char engine[16];
} compiled;

static void fill_compiled(const char *version)
{
    memset(&compiled, 0, sizeof compiled);
    memcpy(compiled.head.e_ident, ELFMAG, SELFMAG);
    compiled.head.e_ident[EI_CLASS] = ELFCLASS64;
    compiled.head.e_shoff = (uint64_t)((char *)compiled.sections - (char *)&compiled);
    compiled.head.e_shentsize = sizeof compiled.sections[0];
    compiled.head.e_shnum = 3;
    compiled.head.e_shstrndx = 1;
    compiled.sections[1].sh_offset = (uint64_t)(compiled.names - (char *)&compiled);
    compiled.sections[1].sh_size = sizeof compiled.names;
    compiled.sections[2].sh_name = 1;
    compiled.sections[2].sh_offset = (uint64_t)(compiled.engine - (char *)&compiled);
    compiled.sections[2].sh_size = sizeof compiled.engine;
    memcpy(compiled.names + 1, WASMTIME_VERSION_SECTION, sizeof WASMTIME_VERSION_SECTION);
    compiled.engine[1] = (char)strlen(version);
    memcpy(compiled.engine + 2, version, strlen(version));
}

static unsigned version_of(size_t size)
{
    char text[32];
    char *bytes = malloc(size + 1); /* a read behind the end is found */
    ck_assert_ptr_nonnull(bytes);
    memcpy(bytes, &compiled, size);
    bytes = realloc(bytes, size > 0 ? size : 1);
    const unsigned version = wasmtime_api_version(bytes, size, text, sizeof text);
    free(bytes);
    return version;
}

START_TEST(a_compiled_module_says_its_version)
{
    fill_compiled("36.0.2");
    ck_assert_uint_eq(version_of(sizeof compiled), 36);
    for (size_t size = 0; size < sizeof compiled; size++) {
        ck_assert_uint_eq(version_of(size), 0);
    }
}
END_TEST

START_TEST(bytes_that_lie_about_their_places_say_no_version)
{
    for (size_t i = 0; i < 6; i++) {
        fill_compiled("36.0.2");
        *(i == 0   ? &compiled.head.e_shoff
          : i == 1 ? &compiled.sections[1].sh_offset
          : i == 2 ? &compiled.sections[1].sh_size
          : i == 3 ? &compiled.sections[2].sh_offset
          : i == 4 ? &compiled.sections[2].sh_size
                   : (uint64_t *)(void *)compiled.engine) = UINT64_MAX;
        ck_assert_uint_eq(version_of(sizeof compiled), 0);
    }
    fill_compiled("36.0.2");
    compiled.engine[1] = 100; /* longer than the section */
    ck_assert_uint_eq(version_of(sizeof compiled), 0);
}
END_TEST

static void begin(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(chdir(folder), 0);
    write_text("in", "");
}

static void end(void)
{
    char command[128];
    ck_assert_int_eq(fchdir(home), 0);
    (void)close(home);
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

SUITE("wasmtime", begin, end, TEST(a_module_has_its_words_and_variables),
      TEST(a_module_has_the_streams_and_the_folder_under_two_names),
      TEST(the_exit_code_is_the_modules), TEST(the_memory_of_a_module_is_bounded),
      TEST(a_trap_is_told_in_words), TEST(an_error_that_is_no_trap_is_told_in_one_line),
      TEST(what_is_no_program_of_wasi_is_told), TEST(what_is_no_module_is_told),
      TEST(words_that_are_no_utf8_are_told), TEST(words_that_no_agent_writes_are_refused),
      TEST(every_call_that_fails_is_told), TEST(the_trial_says_the_version),
      TEST(only_versions_that_are_known_run_modules), TEST(a_library_that_is_not_wasmtimes_is_told),
      TEST(a_compiled_module_says_its_version),
      TEST(bytes_that_lie_about_their_places_say_no_version))
