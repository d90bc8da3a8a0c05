/* A command has the sizes of what its results leave for other subtasks. */
#include "base/cleanup.h"
#include "broker/core/translate_internal.h"
#include "protocol/codec.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>

static ProtobufCBinaryData bytes_of(const uint8_t *bytes, size_t length)
{
    return (ProtobufCBinaryData){.len = length, .data = (uint8_t *)(uintptr_t)bytes};
}

/* Translates a result that leaves two files of these sizes. */
static uint64_t translated(uint64_t first, uint64_t second)
{
    static const struct id128 cluster = {{7}};
    static const uint8_t zeros[32];
    Bourse__V1__Output outputs[2] = {BOURSE__V1__OUTPUT__INIT, BOURSE__V1__OUTPUT__INIT};
    Bourse__V1__Output *pointers[2] = {&outputs[0], &outputs[1]};
    Bourse__V1__Result result = BOURSE__V1__RESULT__INIT;
    Bourse__V1__Results results = BOURSE__V1__RESULTS__INIT;
    struct translation translation = {0};
    struct codec_error error;
    size_t length = 0;
    for (size_t i = 0; i < 2; i++) {
        outputs[i].name = (char *)(uintptr_t)(i == 0 ? "large" : "small");
        outputs[i].hash = bytes_of(zeros, sizeof zeros);
        outputs[i].size = i == 0 ? first : second;
    }
    result.cluster = bytes_of(cluster.bytes, sizeof cluster.bytes);
    result.job = result.device = bytes_of(zeros, 16);
    result.provider = result.manifest = bytes_of(zeros, sizeof zeros);
    result.attempt = 1;
    result.lease = 1;
    result.n_outputs = 2;
    result.outputs = pointers;
    uint8_t *bytes = codec_encode(&result.base, &length);
    ck_assert_ptr_nonnull(bytes);
    ProtobufCBinaryData one = bytes_of(bytes, length);
    results.signature = bytes_of((const uint8_t[64]){0}, 64);
    results.n_results = 1;
    results.results = &one;
    ck_assert_int_eq(translate_results(&results, &cluster, &translation, &error), REJECT_NONE);
    const uint64_t size = translation.command.results.results[0].output_bytes;
    translation_fini(&translation);
    free(bytes);
    return size;
}

START_TEST(the_size_is_that_of_all_files_together)
{
    ck_assert_uint_eq(translated(70000, 5), 70005);
    ck_assert_uint_eq(translated(0, 0), 0);
    ck_assert_uint_eq(translated(INT64_MAX, INT64_MAX), UINT64_MAX - 1);
}
END_TEST

SUITE("translate_results", NULL, NULL, TEST(the_size_is_that_of_all_files_together))
