/* The tests make the words that start a WASM module, read what its engine says, and compute how
 * much memory it needs. */
#include "provider/executors/wasm.h"

#include "provider/tensor/ask.h"
#include "tests/support/suite.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static const struct wasm_engine engine = {
    .path = "/usr/bin/node", .has_group = true, .is_known = true};

static bool has_word(const struct wasm_words *words, const char *word)
{
    bool found = false;
    for (size_t i = 0; i < words->count; i++) {
        found = found || strcmp(words->items[i], word) == 0;
    }
    return found;
}

START_TEST(a_module_has_the_memory_that_the_engine_leaves)
{
    struct wasm_words words;
    wasm_fill(&engine, 256 * MIB, &words);
    ck_assert_str_eq(words.items[0], "/usr/bin/node");
    ck_assert_str_eq(words.items[words.count - 1], WASM_HOST);
    ck_assert(has_word(&words, "--wasm-max-mem-pages=3072")); /* 192 MiB */
    ck_assert(!has_word(&words, "--disable-wasm-trap-handler"));
    wasm_fill(&engine, 1000000 * MIB, &words); /* more than 32 bits reach */
    ck_assert(has_word(&words, "--wasm-max-mem-pages=65536"));
}
END_TEST

START_TEST(without_a_control_group_no_addresses_are_reserved)
{
    struct wasm_engine bare = engine;
    struct wasm_words words;
    bare.has_group = false;
    ck_assert_uint_eq(wasm_engine_least(&bare), 512 * MIB);
    ck_assert(!wasm_engine_suffices(&bare, 512 * MIB - 1));
    ck_assert(wasm_engine_suffices(&bare, 512 * MIB));
    wasm_fill(&bare, 512 * MIB, &words);
    ck_assert(has_word(&words, "--disable-wasm-trap-handler"));
}
END_TEST

START_TEST(a_library_is_run_by_our_own_program)
{
    struct wasm_engine library = {.path = "/usr/lib/libwasmtime.so",
                                  .host = "/home/agent/wasm-runner",
                                  .is_library = true,
                                  .has_group = true,
                                  .is_known = true};
    struct wasm_words words;
    struct jail_spec spec = {.name = "jail"};
    wasm_fill(&library, 256 * MIB, &words);
    ck_assert_uint_eq(words.count, 4);
    ck_assert_str_eq(words.items[0], WASM_RUNNER);
    ck_assert_str_eq(words.items[1], "/usr/lib/libwasmtime.so");
    ck_assert_str_eq(words.items[2], "201326592"); /* 192 MiB */
    ck_assert_str_eq(words.items[3], "-r");
    wasm_show(&library, &spec);
    ck_assert_str_eq(spec.wasm_runner, "/home/agent/wasm-runner");
    ck_assert_ptr_null(spec.wasm_host);
    library.has_group = false; /* no addresses are reserved */
    wasm_fill(&library, 1000000 * MIB, &words);
    ck_assert_uint_eq(words.count, 3);
    ck_assert_str_eq(words.items[2], "4294967296");
    wasm_show(&engine, &spec);
    ck_assert_ptr_null(spec.wasm_runner);
    ck_assert_ptr_nonnull(spec.wasm_host);
}
END_TEST

START_TEST(an_engine_that_does_not_run_suffices_for_nothing)
{
    struct wasm_engine broken = engine;
    ck_assert_uint_eq(wasm_engine_least(&engine), 128 * MIB);
    ck_assert(wasm_engine_suffices(&engine, 128 * MIB));
    ck_assert(!wasm_engine_suffices(&engine, 128 * MIB - 1));
    (void)snprintf(broken.unusable, sizeof broken.unusable, "it does not run");
    ck_assert(!wasm_engine_suffices(&broken, 1024 * MIB));
    broken = engine;
    broken.is_known = false;
    ck_assert(!wasm_engine_suffices(&broken, 1024 * MIB));
}
END_TEST

/* Returns what is explained of a run whose standard error is the text; NULL: nothing. */
static const char *explained(const char *text)
{
    static char said[LIMIT_TEXT_BYTES];
    const int fd = memfd_create("stderr", MFD_CLOEXEC);
    const struct jail_reply reply = {.standard_error = {.fd = fd, .size = strlen(text)}};
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    const bool has = wasm_explain(&reply, said, sizeof said);
    (void)close(fd);
    return has ? said : NULL;
}

START_TEST(the_last_line_explains_a_failure)
{
    static char text[5000];
    static const struct jail_reply silent = {.standard_error = {.fd = -1}};
    char said[64] = "untouched";
    ck_assert_str_eq(explained("bourse-wasm: the module trapped: unreachable\n"),
                     "the module trapped: unreachable");
    ck_assert_str_eq(explained("hello\nbourse-wasm: a\nbourse-wasm: b\n\n"), "b");
    ck_assert_ptr_null(explained("bourse-wasm: a\nthe program goes on\n"));
    ck_assert_ptr_null(explained("bourse-wasm: \n"));
    ck_assert_ptr_null(explained("bourse-wasm\n"));
    ck_assert_ptr_null(explained(" bourse-wasm: a\n"));
    ck_assert_ptr_null(explained(""));
    ck_assert_ptr_null(strchr(explained("bourse-wasm: \x1b[31mred\n"), '\x1b'));
    memset(text, 'x', sizeof text - 1);
    ck_assert_ptr_null(explained(text));
    memcpy(text + sizeof text - 20, "\nbourse-wasm: end\n", 18); /* far behind the begin */
    text[sizeof text - 2] = '\0';
    ck_assert_str_eq(explained(text), "end");
    ck_assert(!wasm_explain(&silent, said, sizeof said));
    ck_assert_str_eq(said, "untouched");
}
END_TEST

START_TEST(a_manifest_of_modules_has_no_image_and_saves_nothing)
{
    static char wasm[] = "wasm", text[] = "state";
    Bourse__V1__Manifest manifest = BOURSE__V1__MANIFEST__INIT;
    struct problem problem = {""};
    manifest.executor = wasm;
    ck_assert(wasm_names(&manifest) && wasm_check(&manifest, &problem));
    manifest.checkpoint = text;
    ck_assert(!wasm_check(&manifest, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "saves no state"));
    manifest.checkpoint = NULL;
    manifest.directory = text;
    ck_assert(!wasm_check(&manifest, &problem));
    manifest.directory = NULL;
    manifest.has_image = 1;
    ck_assert(!wasm_check(&manifest, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "has no image"));
    manifest.executor = text;
    ck_assert(!wasm_names(&manifest));
}
END_TEST

SUITE("wasm", NULL, NULL, TEST(a_module_has_the_memory_that_the_engine_leaves),
      TEST(without_a_control_group_no_addresses_are_reserved),
      TEST(a_library_is_run_by_our_own_program),
      TEST(an_engine_that_does_not_run_suffices_for_nothing),
      TEST(the_last_line_explains_a_failure),
      TEST(a_manifest_of_modules_has_no_image_and_saves_nothing))
