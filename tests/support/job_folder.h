/* tests/support/job_folder.h is the fixture of tests that build a job from its file. The test
 * stands in an empty folder, and sees what the builder makes of a job file there. One program
 * includes the header once. */
#ifndef BOURSE_TESTS_JOB_FOLDER_H
#define BOURSE_TESTS_JOB_FOLDER_H

#include "consumer/job/bourse_job.h"
#include "formats/npy.h"
#include "protocol/codec.h"

#include <check.h>
#include <ftw.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/bourse-prepare-XXXXXX";
static char here[64];

static inline void setup(void)
{
    ck_assert_int_ge(sodium_init(), 0);
    (void)snprintf(here, sizeof here, "%s", folder);
    ck_assert_ptr_nonnull(mkdtemp(here));
    ck_assert_int_eq(chdir(here), 0);
}

static inline int remove_one(const char *path, const struct stat *status, int type, struct FTW *ftw)
{
    (void)status;
    (void)type;
    (void)ftw;
    return remove(path);
}

static inline void teardown(void)
{
    ck_assert_int_eq(chdir("/"), 0);
    ck_assert_int_eq(nftw(here, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

static inline void put(const char *name, const char *content)
{
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(content, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

/* Zeros. */
static inline void put_matrix(const char *name, uint32_t rows, uint32_t columns)
{
    uint8_t head[NPY_MATRIX_BYTES];
    const float zero = 0;
    FILE *file = fopen(name, "w");
    ck_assert_ptr_nonnull(file);
    npy_write_matrix(rows, columns, head);
    ck_assert_uint_eq(fwrite(head, 1, sizeof head, file), sizeof head);
    for (uint32_t i = 0; i < rows * columns; i++) {
        ck_assert_uint_eq(fwrite(&zero, sizeof zero, 1, file), 1);
    }
    ck_assert_int_eq(fclose(file), 0);
}

static inline struct bourse_job *prepared(const char *text)
{
    struct bourse_job *job = NULL;
    struct bourse_error error = {.text = ""};
    if (!bourse_job_parse(text, strlen(text), ".", &job, &error)) {
        ck_abort_msg("refused: %s", error.text);
    }
    return job;
}

static inline struct bourse_error refused(const char *text)
{
    struct bourse_job *job = NULL;
    struct bourse_error error = {.text = ""};
    ck_assert(!bourse_job_parse(text, strlen(text), ".", &job, &error));
    ck_assert_ptr_null(job);
    return error;
}

static inline Bourse__V1__Manifest *manifest_of(const struct bourse_job *job)
{
    Bourse__V1__Manifest *manifest = NULL;
    ck_assert_int_eq(codec_decode_manifest(job->manifest, job->manifest_length, &manifest, NULL),
                     CODEC_OK);
    return manifest;
}

static inline void manifest_free(Bourse__V1__Manifest **self)
{
    ProtobufCMessage *message = &(*self)->base;
    codec_free(&message);
}

#endif
