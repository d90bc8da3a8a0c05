#include "broker/storage/market_key.h"

#include "base/text.h"
#include "broker/storage/folder.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PUBLIC_BYTES = 65 }; /* 64 hex digits and a newline */

bool market_key_is_credential(const char *name)
{
    return keyfile_has_credential(name);
}

static bool find_file(const char *path, bool *ret_found, struct problem *ret_problem)
{
    struct stat status;
    *ret_found = lstat(path, &status) == 0;
    if (!*ret_found && errno != ENOENT) {
        problem_set_unseen(ret_problem, path, " cannot be looked at", errno);
        return false;
    }
    return true;
}

static bool open_credential(const char *name, const char *path, bool found, bool may_make,
                            struct identity **ret_key, unsigned *ret_notes,
                            struct problem *ret_problem)
{
    if (found) {
        problem_set(ret_problem,
                    "%s is there, and the service has a credential of that name, too: remove the "
                    "one that is not this market's",
                    path);
        return false;
    }
    const bool is_of_log = strcmp(name, MARKET_LOG_KEY) == 0;
    if (is_of_log && may_make) {
        problem_set(ret_problem,
                    "there is no market beside %s yet, and a credential of that name founds none: "
                    "start once without the credential, then move the key",
                    path);
        return false;
    }
    if (!keyfile_load_credential(name, ret_key, ret_notes, ret_problem)) {
        return false;
    }
    if (is_of_log && (*ret_notes & KEYFILE_SIGNED) == 0) {
        identity_destroy(ret_key);
        problem_set(ret_problem,
                    "the credential %s lacks the line \"signed\", which the broker cannot write "
                    "there: start once with the file %s, then move that file",
                    name, path);
        return false;
    }
    return true;
}

bool market_key_open(const char *folder, const char *name, bool may_make,
                     struct identity **ret_key, unsigned *ret_notes, struct problem *ret_problem)
{
    char path[PATH_MAX];
    bool found = false;
    if (!folder_path(folder, name, path, sizeof path, ret_problem) ||
        !find_file(path, &found, ret_problem)) {
        return false;
    }
    if (market_key_is_credential(name)) {
        return open_credential(name, path, found, may_make, ret_key, ret_notes, ret_problem);
    }
    if (found) {
        return keyfile_load_noted(path, ret_key, ret_notes, ret_problem);
    }
    if (!may_make) {
        problem_set(ret_problem, "%s is missing beside %s: put it back, no other will do", path,
                    MARKET_DATABASE);
        return false;
    }
    return keyfile_create(path, ret_key, ret_problem);
}

/* Sets the path of the file that stands for a key elsewhere: `log.public` for `log.key`. */
static bool public_path(const char *folder, const char *name, char ret_path[PATH_MAX],
                        struct problem *ret_problem)
{
    char told[32] = "";
    const char *end = strchr(name, '.');
    const size_t length = end == NULL ? strlen(name) : (size_t)(end - name);
    assert(length + sizeof MARKET_KEY_PUBLIC <= sizeof told);
    memcpy(told, name, length);
    memcpy(told + length, MARKET_KEY_PUBLIC, sizeof MARKET_KEY_PUBLIC);
    return folder_path(folder, told, ret_path, PATH_MAX, ret_problem);
}

bool market_key_is_elsewhere(const char *folder, const char *name)
{
    char path[PATH_MAX];
    struct problem problem;
    return public_path(folder, name, path, &problem) && access(path, F_OK) == 0;
}

/* Returns true when the file has these bytes already: most starts change nothing. */
static bool has_bytes(const char *path, const char text[PUBLIC_BYTES])
{
    uint8_t *bytes = NULL;
    size_t length = 0;
    struct problem unread;
    const bool same = file_read(path, PUBLIC_BYTES, &bytes, &length, &unread) &&
                      length == PUBLIC_BYTES && memcmp(bytes, text, length) == 0;
    free(bytes);
    return same;
}

bool market_key_tell(const char *folder, const char *name, const struct key32 *key,
                     struct problem *ret_problem)
{
    char path[PATH_MAX];
    char text[PUBLIC_BYTES + 1];
    if (!public_path(folder, name, path, ret_problem)) {
        return false;
    }
    if (!market_key_is_credential(name)) {
        (void)unlink(path); /* a file that stays is only read where the key file is missing */
        return true;
    }
    text_hex(key->bytes, sizeof key->bytes, text);
    text[PUBLIC_BYTES - 1] = '\n';
    return has_bytes(path, text) || file_write(path, text, PUBLIC_BYTES, 0600, ret_problem);
}
