/* tests/fuzz/as_file.h - gives a fuzzer's bytes to a decoder that reads a file. */
#ifndef BOURSE_TESTS_FUZZ_AS_FILE_H
#define BOURSE_TESTS_FUZZ_AS_FILE_H

#include <assert.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { AS_FILE_PATH = 64 };

/* A folder of this process alone, gone when it ends. */
static const char *as_file_folder(void)
{
    static char folder[AS_FILE_PATH];
    if (folder[0] == '\0') {
        (void)snprintf(folder, sizeof folder, "/tmp/bourse-fuzz-XXXXXX");
        assert(mkdtemp(folder) != NULL);
    }
    return folder;
}

static char as_file_path_now[2 * AS_FILE_PATH];

static inline void as_file_remove(void)
{
    (void)unlink(as_file_path_now);
    (void)rmdir(as_file_folder());
}

/* The bytes as FOLDER/name, private; the path stands until the next call. */
static inline const char *as_file(const char *name, const uint8_t *data, size_t size)
{
    if (as_file_path_now[0] == '\0') {
        (void)atexit(as_file_remove);
    }
    (void)snprintf(as_file_path_now, sizeof as_file_path_now, "%s/%s", as_file_folder(), name);
    int file = open(as_file_path_now, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert(file >= 0);
    assert(write(file, data, size) == (ssize_t)size);
    assert(close(file) == 0);
    return as_file_path_now;
}

#endif
