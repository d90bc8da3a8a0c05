/* tests/support/machine_files.h writes the files in which a machine says what goes on, below the
 * scratch folder, for tests of the agent's sensors. One program includes it once. */
#ifndef BOURSE_TESTS_MACHINE_FILES_H
#define BOURSE_TESTS_MACHINE_FILES_H

#include "tests/support/scratch_folder.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* Writes a file of the machine, with the folders above it. */
__attribute__((format(printf, 2, 3))) static inline void put(const char *name, const char *format,
                                                             ...)
{
    char file[512];
    va_list arguments;
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    for (char *slash = strchr(file + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        (void)mkdir(file, 0755);
        *slash = '/';
    }
    FILE *out = fopen(file, "w");
    ck_assert_msg(out != NULL, "%s", file);
    va_start(arguments, format);
    (void)vfprintf(out, format, arguments);
    va_end(arguments);
    fclose(out);
}

static inline void drop(const char *name)
{
    char file[512];
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    ck_assert_int_eq(unlink(file), 0);
}

/* Moves the time of the last read of a terminal. */
static inline void type_at(const char *name, long seconds)
{
    char file[512];
    const struct timespec times[2] = {{.tv_sec = seconds}, {.tv_nsec = UTIME_OMIT}};
    (void)snprintf(file, sizeof file, "%s/%s", folder, name);
    ck_assert_int_eq(utimensat(AT_FDCWD, file, times, 0), 0);
}

static inline void put_process(int pid, const char *name, int parent, long ticks)
{
    char file[64];
    (void)snprintf(file, sizeof file, "proc/%d/stat", pid);
    put(file, "%d (%s) S %d 1 1 0 -1 4194304 1 2 3 4 %ld 0 0 0 20 0 1 0 100 1000 10\n", pid, name,
        parent, ticks);
}

static inline void put_busy(long ticks)
{
    put("proc/stat", "cpu  %ld 0 0 5000 400 0 0 0 0 0\ncpu0 1 2 3\n", ticks);
}

#endif
