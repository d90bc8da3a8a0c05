/* tests/support/pjrt_play.h is the fixture of tests of bourse-pjrt. It has a folder with a program
 * and two arrays, the library that computes and fails, and two ways to ask: in this process, and by
 * the program itself. One program includes it once. */
#ifndef BOURSE_TESTS_SUPPORT_PJRT_PLAY_H
#define BOURSE_TESTS_SUPPORT_PJRT_PLAY_H

#include "formats/npy.h"
#include "provider/pjrt/pjrt_serve.h"

#include <check.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DESCRIBE "{\"bourse\":1,\"do\":\"describe\"}\n"
#define PROBE "{\"bourse\":1,\"do\":\"probe\"}\n"
#define FIGURES "{\"bourse\":1,\"do\":\"figures\"}\n"
#define RUN(words)                                                                                 \
    "{\"bourse\":1,\"do\":\"run\",\"operation\":\"mlir\",\"arguments\":[" words "]}\n"
#define NPY BOURSE_SOURCE_DIR "/tests/golden/npy/"
#define ADD RUN("\"add.mlir\",\"a.npy\",\"b.npy\",\"to\",\"c.npy\"")

static char folder[64];
static int home;
static char *said;
static size_t said_length;

/* Functions of the fake library. */
static int (*count_alive)(void);
static int (*count_compiled)(void);
static const char *(*tell_options)(void);

static inline void pjrt_find(void *library, const char *name, void *ret_function)
{
    void *place = dlsym(library, name);
    ck_assert_msg(place != NULL, "%s", name);
    memcpy(ret_function, &place, sizeof place);
}

static inline void write_file(const char *name, const char *text)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static inline void write_array(const char *name, const struct npy *shape, const void *data,
                               size_t size)
{
    uint8_t header[NPY_HEADER_MOST];
    const size_t length = npy_write(shape, header);
    FILE *file = fopen(name, "wb");
    ck_assert_ptr_nonnull(file);
    ck_assert_uint_eq(fwrite(header, 1, length, file), length);
    ck_assert_uint_eq(fwrite(data, 1, size, file), size);
    ck_assert_int_eq(fclose(file), 0);
}

static inline size_t read_bytes(const char *name, void *ret_bytes, size_t capacity)
{
    FILE *file = fopen(name, "rb");
    ck_assert_msg(file != NULL, "%s", name);
    const size_t length = fread(ret_bytes, 1, capacity, file);
    ck_assert_int_eq(fclose(file), 0);
    return length;
}

/* Reads an array that was written. */
static inline struct npy read_array(const char *name, void *ret_data, size_t capacity)
{
    static uint8_t bytes[1 << 16];
    struct npy npy;
    struct problem problem;
    const size_t length = read_bytes(name, bytes, sizeof bytes);
    ck_assert_msg(npy_read(bytes, length, length, &npy, &problem), "%s", problem.text);
    ck_assert_uint_le(npy.data_bytes, capacity);
    memcpy(ret_data, bytes + npy.data_offset, npy.data_bytes);
    return npy;
}

static inline void begin(void)
{
    const struct npy matrix = {.kind = 'f', .item_bytes = 4, .dimension_count = 2, .shape = {2, 3}};
    const float a[] = {1, 2, 3, 4, 5, 6};
    const float b[] = {10, 20, 30, 40, 50, 60};
    void *library = dlopen(BOURSE_FAKE_PJRT, RTLD_NOW | RTLD_LOCAL);
    ck_assert_msg(library != NULL, "%s", dlerror());
    pjrt_find(library, "fake_pjrt_alive", (void *)&count_alive);
    pjrt_find(library, "fake_pjrt_compiled", (void *)&count_compiled);
    pjrt_find(library, "fake_pjrt_options", (void *)&tell_options);
    strcpy(folder, "/tmp/bourse-pjrt-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ck_assert_int_eq(chdir(folder), 0);
    write_array("a.npy", &matrix, a, sizeof a);
    write_array("b.npy", &matrix, b, sizeof b);
    write_file("add.mlir", "module @add {\n"
                           "  func.func public @main(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>) -> "
                           "tensor<2x3xf32> {\n"
                           "    %c = stablehlo.add %a, %b : tensor<2x3xf32>\n"
                           "    return %c : tensor<2x3xf32>\n"
                           "  }\n"
                           "}\n");
    (void)unsetenv("FAKE_PJRT");
}

static inline void end(void)
{
    free(said);
    said = NULL;
    (void)unsetenv("FAKE_PJRT");
    ck_assert_int_eq(fchdir(home), 0);
    (void)close(home);
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

/* Lets this process answer the requests. Nothing of the library's is left when it ends well. */
static inline int serve_with(const struct pjrt_options *options, const char *requests)
{
    FILE *in = fmemopen((void *)(uintptr_t)requests, strlen(requests), "r");
    free(said);
    FILE *out = open_memstream(&said, &said_length);
    ck_assert(in != NULL && out != NULL);
    const int status = pjrt_serve(options, in, out);
    (void)fclose(in);
    (void)fclose(out);
    if (status == 0) {
        ck_assert_int_eq(count_alive(), 0);
    }
    return status;
}

static inline const char *serve(const char *requests)
{
    const struct pjrt_options options = {.library = BOURSE_FAKE_PJRT};
    ck_assert_int_eq(serve_with(&options, requests), 0);
    return said;
}

/* Lets the program answer the requests, with a failing library. Fills `answer` and `errors`, the
 * files of its output. Returns its exit status. */
static inline int run_program(const char *fake, const char *arguments, const char *requests)
{
    char command[1024];
    write_file("requests", requests);
    (void)snprintf(command, sizeof command,
                   "FAKE_PJRT='%s' %s/bourse-pjrt %s <requests >answer 2>errors", fake,
                   BOURSE_BIN_DIR, arguments);
    const int status = system(command);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static inline const char *text_of(const char *name)
{
    static char text[16384];
    text[read_bytes(name, text, sizeof text - 1)] = '\0';
    return text;
}

static inline void expect_in(const char *text, const char *wanted)
{
    ck_assert_msg(strstr(text, wanted) != NULL, "\"%s\" is not in: %s", wanted, text);
}

#endif
