/* tests/support/config_text.h reads the config of a provider from a text. */
#ifndef BOURSE_TESTS_SUPPORT_CONFIG_TEXT_H
#define BOURSE_TESTS_SUPPORT_CONFIG_TEXT_H

#include "provider/config.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static inline bool read_text(const char *text, struct config *ret_config, struct problem *problem)
{
    char folder[] = "/tmp/bourse-config-XXXXXX";
    char file[64];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(file, sizeof file, "%s/provider.yaml", folder);
    FILE *out = fopen(file, "w");
    fputs(text, out);
    fclose(out);
    bool good = config_read(folder, NULL, ret_config, problem);
    (void)unlink(file);
    (void)rmdir(folder);
    return good;
}

#endif
