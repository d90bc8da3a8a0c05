/* The models of tests/golden/models are what tests/support/onnx_models.h writes, byte for byte. Run
 * with a folder, the program writes them there. */
#include "runtime/files.h"
#include "tests/support/onnx_models.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

enum { PATH_SIZE = 1024, MODEL_MOST = 1 << 20 };

START_TEST(a_model_has_its_golden_bytes)
{
    char path[PATH_SIZE];
    uint8_t *golden = NULL;
    size_t length = 0;
    struct problem problem = {""};
    struct onnx_bytes bytes = onnx_model_write((size_t)_i);
    (void)snprintf(path, sizeof path, BOURSE_SOURCE_DIR "/tests/golden/models/%s.onnx",
                   onnx_model_names[_i]);
    ck_assert_msg(file_read(path, MODEL_MOST, &golden, &length, &problem), "%s", problem.text);
    ck_assert_uint_eq(length, bytes.size);
    ck_assert_mem_eq(golden, bytes.at, length);
    free(golden);
    onnx_bytes_fini(&bytes);
}
END_TEST

static int write_all(const char *folder)
{
    for (size_t i = 0; i < ONNX_MODELS; i++) {
        char path[PATH_SIZE];
        struct problem problem = {""};
        struct onnx_bytes bytes = onnx_model_write(i);
        (void)snprintf(path, sizeof path, "%s/%s.onnx", folder, onnx_model_names[i]);
        const bool is_written = file_write(path, bytes.at, bytes.size, 0644, &problem);
        onnx_bytes_fini(&bytes);
        if (!is_written) {
            (void)fprintf(stderr, "%s\n", problem.text);
            return EXIT_FAILURE;
        }
    }
    return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    const struct suite_test tests[] = {LOOP(a_model_has_its_golden_bytes, 0, ONNX_MODELS)};
    return argc > 1 ? write_all(argv[1]) : suite_main("models", NULL, NULL, tests, 1);
}
