/* NVIDIA's assembler takes the PTX of the measuring program, of docs/jobfile.md and of
 * scripts/gpu-check, for every architecture from sm_75 to sm_100 that it lists itself. The test
 * prints which of the wanted architectures the assembler does not list. The build finds the
 * assembler where the CUDA toolkit is installed; elsewhere the program is skipped. */
#include "provider/kernel/cuda_measure.h"
#include "provider/kernel/cuda_product.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef BOURSE_PTXAS
static char place[] = "/tmp/bourse-ptx-XXXXXX";
static char text[1 << 18];

enum { ARCHS_MOST = 64, ARCH_SIZE = 16, FIRST_ARCH = 75, LAST_ARCH = 100 };
static char archs[ARCHS_MOST][ARCH_SIZE];
static size_t arch_count;

/* Runs the assembler with these words. Returns its exit status, and what it prints. */
static int run_ptxas(const char *words, char *ret_said, size_t capacity)
{
    char command[512];
    (void)snprintf(command, sizeof command, "%s %s 2>&1", BOURSE_PTXAS, words);
    FILE *output = popen(command, "r");
    ck_assert_ptr_nonnull(output);
    const size_t length = fread(ret_said, 1, capacity - 1, output);
    ret_said[length] = '\0';
    return pclose(output);
}

static bool is_listed(const char *arch)
{
    bool is_there = false;
    for (size_t i = 0; i < arch_count; i++) {
        is_there = is_there || strcmp(archs[i], arch) == 0;
    }
    return is_there;
}

/* Reads the architectures out of the assembler's help, where each stands as 'sm_90'. */
static void list_archs(void)
{
    static const char *const wanted[] = {"sm_75", "sm_80", "sm_86", "sm_87",
                                         "sm_88", "sm_89", "sm_90", "sm_100"};
    (void)run_ptxas("--help", text, sizeof text);
    arch_count = 0;
    for (const char *at = text; (at = strstr(at, "'sm_")) != NULL; at++) {
        char arch[ARCH_SIZE];
        const size_t length = strcspn(at + 1, "'");
        const long number = strtol(at + 4, NULL, 10);
        (void)snprintf(arch, sizeof arch, "%.*s", (int)length, at + 1);
        if (number >= FIRST_ARCH && number <= LAST_ARCH && !is_listed(arch)) {
            ck_assert_uint_lt(arch_count, ARCHS_MOST);
            memcpy(archs[arch_count++], arch, sizeof arch);
        }
    }
    ck_assert_msg(arch_count > 0, "%s --help lists no architecture from sm_75 to sm_100",
                  BOURSE_PTXAS);
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        if (!is_listed(wanted[i])) {
            (void)printf("left out: %s, which this ptxas does not list\n", wanted[i]);
        }
    }
}

static void assemble_for_all(const char *ptx)
{
    static char said[4096];
    char words[256];
    const int fd = mkstemp(strcpy(place, "/tmp/bourse-ptx-XXXXXX"));
    ck_assert_int_eq(write(fd, ptx, strlen(ptx)), (ssize_t)strlen(ptx));
    (void)close(fd);
    for (size_t i = 0; i < arch_count; i++) {
        (void)snprintf(words, sizeof words, "-arch=%s -o /dev/null %s", archs[i], place);
        const int status = run_ptxas(words, said, sizeof said);
        ck_assert_msg(status == 0, "%s: %s", archs[i], said);
    }
    (void)unlink(place);
}

START_TEST(the_measuring_program_is_assembled)
{
    assemble_for_all(cuda_measure_source);
}
END_TEST

START_TEST(the_program_of_products_is_assembled)
{
    assemble_for_all(cuda_product().source);
}
END_TEST

static void read_text(const char *name)
{
    FILE *file = fopen(name, "r");
    ck_assert_ptr_nonnull(file);
    const size_t length = fread(text, 1, sizeof text - 1, file);
    (void)fclose(file);
    text[length] = '\0';
}

START_TEST(the_product_of_gpu_check_is_assembled)
{
    read_text(BOURSE_SOURCE_DIR "/bench/gpu/matmul.ptx");
    assemble_for_all(text);
}
END_TEST

START_TEST(the_example_of_the_docs_is_assembled)
{
    static const char fence[] = "```ptx\n";
    read_text(BOURSE_SOURCE_DIR "/docs/jobfile.md");
    char *begin = strstr(text, fence);
    ck_assert_ptr_nonnull(begin);
    begin += strlen(fence);
    char *end = strstr(begin, "```");
    ck_assert_ptr_nonnull(end);
    *end = '\0';
    assemble_for_all(begin);
}
END_TEST

SUITE("cuda_ptx", list_archs, NULL, TEST(the_measuring_program_is_assembled),
      TEST(the_program_of_products_is_assembled), TEST(the_product_of_gpu_check_is_assembled),
      TEST(the_example_of_the_docs_is_assembled))
#else
int main(void)
{
    (void)cuda_measure_source;
    (void)cuda_product();
    (void)puts("skipped: no ptxas; the CUDA toolkit is not installed");
    return 77;
}
#endif
