/* This part of epoch.h reads and writes the file of the epoch's secrets. */
#include "broker/storage/epoch.h"

#include "base/text.h"
#include "runtime/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The file is "bourse-epoch 1\n", then each secret in hex with a newline. */
static const char title[] = "bourse-epoch 1\n";
enum {
    TITLE_LENGTH = sizeof title - 1,
    HEX_LENGTH = 64,
    FILE_LENGTH = TITLE_LENGTH + 2 * (HEX_LENGTH + 1)
};

static bool read_secret(const uint8_t *line, struct hash32 *ret_secret)
{
    char hex[HEX_LENGTH + 1] = "";
    memcpy(hex, line, HEX_LENGTH);
    return line[HEX_LENGTH] == '\n' && text_unhex(hex, ret_secret->bytes, sizeof ret_secret->bytes);
}

enum epoch_file epoch_load(const char *path, struct epoch_secrets *ret_secrets,
                           struct problem *ret_problem)
{
    struct stat status;
    uint8_t *bytes = NULL;
    size_t length = 0;
    *ret_secrets = (struct epoch_secrets){.now = {{0}}};
    if (lstat(path, &status) != 0) {
        if (errno == ENOENT) {
            return EPOCH_LOADED;
        }
        problem_set_unread(ret_problem, path, errno);
        return EPOCH_UNREAD;
    }
    errno = 0;
    if (!file_read(path, FILE_LENGTH, &bytes, &length, ret_problem)) {
        return problem_is_of_disk(errno) ? EPOCH_UNREAD : EPOCH_SPOILT;
    }
    const bool good = length == FILE_LENGTH && memcmp(bytes, title, TITLE_LENGTH) == 0 &&
                      read_secret(bytes + TITLE_LENGTH, &ret_secrets->now) &&
                      read_secret(bytes + TITLE_LENGTH + HEX_LENGTH + 1, &ret_secrets->next);
    free(bytes);
    if (!good) {
        problem_set(ret_problem,
                    "%s is not the file that a broker keeps its epoch's secrets in: move it away; "
                    "the dice of the last epoch cannot be recomputed then",
                    path);
    }
    return good ? EPOCH_LOADED : EPOCH_SPOILT;
}

bool epoch_store(const char *path, const struct epoch_secrets *secrets, struct problem *ret_problem)
{
    char text[FILE_LENGTH + 1];
    char *line = text + TITLE_LENGTH;
    const struct hash32 *const lines[] = {&secrets->now, &secrets->next};
    memcpy(text, title, sizeof title);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        text_hex(lines[i]->bytes, sizeof lines[i]->bytes, line);
        line[HEX_LENGTH] = '\n';
        line += HEX_LENGTH + 1;
    }
    return file_write(path, text, FILE_LENGTH, 0600, ret_problem);
}
