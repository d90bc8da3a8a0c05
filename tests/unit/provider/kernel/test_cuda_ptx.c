/* NVIDIA's assembler takes the PTX of the measuring program, of docs/jobfile.md and of
 * scripts/gpu-check. The build finds the assembler where the CUDA toolkit is installed; elsewhere
 * the program is skipped. */
#include "provider/kernel/cuda_measure.h"
#include "provider/kernel/cuda_product.h"
#include "tests/support/suite.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef BOURSE_PTXAS
static char place[] = "/tmp/bourse-ptx-XXXXXX";
static char text[1 << 18];

/* Assembles the text for one architecture. Returns false when this assembler does not know the
 * architecture. */
static bool assemble(const char *ptx, const char *arch)
{
    char command[512];
    char said[4096] = "";
    const int fd = mkstemp(strcpy(place, "/tmp/bourse-ptx-XXXXXX"));
    ck_assert_int_eq(write(fd, ptx, strlen(ptx)), (ssize_t)strlen(ptx));
    (void)close(fd);
    (void)snprintf(command, sizeof command, "%s -arch=%s -o /dev/null %s 2>&1", BOURSE_PTXAS, arch,
                   place);
    FILE *output = popen(command, "r");
    ck_assert_ptr_nonnull(output);
    (void)fread(said, 1, sizeof said - 1, output);
    const int status = pclose(output);
    (void)unlink(place);
    if (strstr(said, "is not defined for option") != NULL) {
        return false;
    }
    ck_assert_msg(status == 0, "%s: %s", arch, said);
    return true;
}

static void assemble_for_all(const char *ptx)
{
    static const char *const archs[] = {"sm_75", "sm_80",  "sm_86", "sm_89",
                                        "sm_90", "sm_100", "sm_120"};
    size_t known = 0;
    for (size_t i = 0; i < sizeof archs / sizeof archs[0]; i++) {
        known += (size_t)assemble(ptx, archs[i]);
    }
    ck_assert_uint_gt(known, 0);
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

SUITE("cuda_ptx", NULL, NULL, TEST(the_measuring_program_is_assembled),
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
