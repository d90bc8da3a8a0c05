/* tests/support/scratch_folder.h is the fixture of tests about files: a folder of mode 0700 below
 * /tmp, the path of one file in it, and what the last call said. One program includes it once. */
#ifndef BOURSE_TESTS_SCRATCH_FOLDER_H
#define BOURSE_TESTS_SCRATCH_FOLDER_H

#include "base/problem.h"
#include "runtime/process.h"

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64];
static char path[128];
static struct problem problem;

static inline void setup(void)
{
    ck_assert(process_start(&problem));
    strcpy(folder, "/tmp/bourse-files-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder)); /* 0700 */
    (void)snprintf(path, sizeof path, "%s/a.key", folder);
    problem.text[0] = '\0';
}

static inline void teardown(void)
{
    char command[128];
    (void)snprintf(command, sizeof command, "rm -rf '%s'", folder);
    ck_assert_int_eq(system(command), 0);
}

static inline bool says(const char *part)
{
    return strstr(problem.text, part) != NULL;
}

#endif
