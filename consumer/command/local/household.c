#include "consumer/command/local/household.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/units.h"
#include "formats/yaml.h"
#include "protocol/identity.h"
#include "runtime/files.h"
#include "runtime/keyfile.h"
#include "runtime/market.h"
#include "runtime/private_folder.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONFIG_SIZE = 8192, PROGRAM_NAME_MAX = 63, PATH_SIZE = PATH_MAX };

static bool join_path(char ret_path[PATH_SIZE], const char *folder, const char *name)
{
    int length = snprintf(ret_path, PATH_SIZE, "%s/%s", folder, name);
    return length > 0 && length < PATH_SIZE;
}

static bool exists(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    struct stat status;
    return join_path(path, folder, name) && lstat(path, &status) == 0;
}

/* ---------------------------------------------------------------- the folder */

static bool find_user(const char *user, struct household *household, struct problem *ret_problem)
{
    const struct passwd *entry = getpwnam(user);
    if (entry == NULL) {
        problem_set(
            ret_problem,
            "no user '%s' on this machine, and jobs never run as root; run: useradd --system "
            "--no-create-home --shell /usr/sbin/nologin %s",
            user, user);
        return false;
    }
    if (entry->pw_uid == 0) {
        problem_set(ret_problem, "--user %s: the agent does not run as root", user);
        return false;
    }
    household->agent_uid = entry->pw_uid;
    household->agent_gid = entry->pw_gid;
    (void)snprintf(household->user, sizeof household->user, "%s", user);
    return true;
}

/* Checks that the agent's user may pass through every folder above. */
static bool can_pass(const struct household *household, struct problem *ret_problem)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", household->folder);
    for (char *slash = strrchr(path, '/'); slash != NULL && slash != path;
         slash = strrchr(path, '/')) {
        *slash = '\0';
        struct stat status;
        if (stat(path, &status) != 0) {
            if (errno == ENOENT) {
                continue; /* make_system_parents lets every user pass */
            }
            problem_set(ret_problem, "%s: %s", path, strerror(errno));
            return false;
        }
        mode_t bit = status.st_uid == household->agent_uid   ? 0100
                     : status.st_gid == household->agent_gid ? 0010
                                                             : 0001;
        if ((status.st_mode & bit) == 0) {
            problem_set(ret_problem,
                        "the agent runs as user %s, who may not pass through %s; give a --dir "
                        "that this user can reach, such as below /var/lib/bourse, or run: "
                        "chmod o+x '%s'",
                        household->user, path, path);
            return false;
        }
    }
    return true;
}

static bool absolute(const char *folder, char *ret_path, size_t capacity,
                     struct problem *ret_problem)
{
    char here[PATH_SIZE] = "";
    if (folder[0] != '/' && getcwd(here, sizeof here) == NULL) {
        problem_set(ret_problem, "the path of the current folder cannot be read: %s",
                    strerror(errno));
        return false;
    }
    int length = snprintf(ret_path, capacity, "%s%s%s", here, here[0] != '\0' ? "/" : "", folder);
    if (length < 0 || (size_t)length >= capacity) {
        problem_set(ret_problem, "%.100s...: the path of the market's folder is too long", folder);
        return false;
    }
    while (length > 1 && ret_path[length - 1] == '/') {
        ret_path[--length] = '\0';
    }
    return true;
}

/* The agent's user passes through the parents, so they must not be 0700 as private_folder would
 * make them. */
static void make_system_parents(const char *folder)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s", folder);
    mode_t before = umask(0022);
    for (char *at = strchr(path + 1, '/'); at != NULL; at = strchr(at + 1, '/')) {
        *at = '\0';
        (void)mkdir(path, 0755); /* already there, or private_folder reports the fault */
        *at = '/';
    }
    (void)umask(before);
}

bool household_open(const char *folder, const char *user, bool create,
                    struct household *ret_household, struct problem *ret_problem)
{
    *ret_household = (struct household){.root = geteuid() == 0};
    if (!absolute(folder, ret_household->folder, sizeof ret_household->folder, ret_problem)) {
        return false;
    }
    if (ret_household->root && create) {
        if (!find_user(user, ret_household, ret_problem) || !can_pass(ret_household, ret_problem)) {
            return false; /* before anything is made */
        }
        make_system_parents(ret_household->folder);
    }
    if (!private_folder(ret_household->folder, create, ret_problem)) {
        return false;
    }
    if (!ret_household->root || !create) {
        return true;
    }
    /* The setgid bit gives everything that the broker makes there, its sockets too, to this
     * group. */
    if (chown(ret_household->folder, 0, ret_household->agent_gid) != 0 ||
        chmod(ret_household->folder, 02710) != 0) {
        problem_set(ret_problem, "%s: %s", ret_household->folder, strerror(errno));
        return false;
    }
    return can_pass(ret_household, ret_problem);
}

/* ---------------------------------------------------------------- keys */

static bool public_key(const char *folder, const char *name, char ret_hex[65],
                       struct problem *ret_problem)
{
    char path[PATH_SIZE];
    CLEANUP(identity_destroy) struct identity *identity = NULL;
    if (!join_path(path, folder, name)) {
        problem_set(ret_problem, "%.100s...: the path of the key %s is too long", folder, name);
        return false;
    }
    bool ok = exists(folder, name) ? keyfile_load(path, &identity, ret_problem)
                                   : keyfile_create(path, &identity, ret_problem);
    if (ok) {
        text_hex(identity_key(identity)->bytes, sizeof identity_key(identity)->bytes, ret_hex);
    }
    return ok;
}

/* ---------------------------------------------------------------- config files */

static bool write_broker_config(const struct household *household,
                                const struct household_wishes *wishes, const char *owner,
                                const char *provider, struct problem *ret_problem)
{
    char path[PATH_SIZE];
    char credits[UNITS_TEXT_SIZE];
    char band[UNITS_TEXT_SIZE];
    char text[CONFIG_SIZE];
    units_money_text(wishes->credits_micro, credits);
    units_money_text(PRICE_BAND_MICRO, band);
    int length = snprintf(
        text, sizeof text,
        "# Written by `bourse up`. docs/operator.md lists the keys.\n"
        "genesis: # counts for the first start only\n"
        "  price_band: \"%s\"\n"
        "  accounts:\n"
        "    - {key: \"%s\", name: owner, roles: [consumer, operator], credits: \"%s\"}\n"
        "    - {key: \"%s\", name: provider, roles: [provider, referee], credits: \"0\"}\n",
        band, owner, credits, provider);
    return join_path(path, household->folder, MARKET_BROKER_CONFIG) && length > 0 &&
           file_write(path, text, (size_t)length, 0600, ret_problem);
}

/* Writes "xz,gzip" as a YAML list of quoted texts; "" for none. */
static bool program_list(const char *programs, char *ret_text, size_t capacity,
                         struct problem *ret_problem)
{
    size_t used = 0;
    ret_text[0] = '\0';
    for (const char *name = programs; name != NULL && *name != '\0';) {
        size_t length = strcspn(name, ",");
        char one[PROGRAM_NAME_MAX + 1];
        char quoted[4 * PROGRAM_NAME_MAX];
        int wrote = length > 0 && length <= PROGRAM_NAME_MAX
                        ? snprintf(one, sizeof one, "%.*s", (int)length, name)
                        : -1;
        if (wrote < 0 || !yaml_quote(one, quoted, sizeof quoted) ||
            used + strlen(quoted) + 4 >= capacity) {
            problem_set(ret_problem,
                        "--programs: a list of names of at most %d bytes, separated by commas",
                        PROGRAM_NAME_MAX);
            return false;
        }
        used += (size_t)snprintf(ret_text + used, capacity - used, "%s%s", used == 0 ? "" : ", ",
                                 quoted);
        name += length + (name[length] == ',');
    }
    return true;
}

static bool write_provider_config(const struct household *household, const char *folder,
                                  const struct household_wishes *wishes,
                                  struct problem *ret_problem)
{
    char path[PATH_SIZE];
    char price[UNITS_TEXT_SIZE];
    char programs[CONFIG_SIZE / 2];
    char slots[64] = "";
    char text[CONFIG_SIZE];
    units_money_text(wishes->price_micro, price);
    if (!program_list(wishes->programs, programs, sizeof programs, ret_problem)) {
        return false;
    }
    if (wishes->slots > 0) {
        (void)snprintf(slots, sizeof slots, "slots: %" PRId64 "\n", wishes->slots);
    }
    int length = snprintf(text, sizeof text,
                          "# Written by `bourse up`. docs/provider.md lists the keys.\n"
                          "market: ../" MARKET_FILE "\nprice: \"%s\"\n%s%s%s%s%s%s%s",
                          price, slots, programs[0] != '\0' ? "programs: [" : "", programs,
                          programs[0] != '\0' ? "]\n" : "", household->root ? "user: \"" : "",
                          household->user, household->root ? "\"\n" : "");
    return join_path(path, folder, MARKET_PROVIDER_CONFIG) && length > 0 &&
           (size_t)length < sizeof text &&
           file_write(path, text, (size_t)length, 0600, ret_problem);
}

/* ---------------------------------------------------------------- as the agent's user */

/* Lets this process act as the agent's user to make the files in the agent's folder. The agent can
 * then read them, and a missing right shows at once. */
static bool become_agent(const struct household *household, struct problem *ret_problem)
{
    if (household->root &&
        (setegid(household->agent_gid) != 0 || seteuid(household->agent_uid) != 0)) {
        problem_set(ret_problem, "this command cannot act as user %s: %s", household->user,
                    strerror(errno));
        return false; /* the caller ends the program */
    }
    return true;
}

static bool become_self(const struct household *household, struct problem *ret_problem)
{
    if (household->root && (seteuid(0) != 0 || setegid(0) != 0)) {
        problem_set(ret_problem, "this command cannot act as root again: %s", strerror(errno));
        return false;
    }
    return true;
}

static bool make_agent_folder(const struct household *household, char ret_folder[PATH_SIZE],
                              struct problem *ret_problem)
{
    if (!join_path(ret_folder, household->folder, MARKET_PROVIDER)) {
        problem_set(ret_problem, "%.100s...: the path of the agent's folder is too long",
                    household->folder);
        return false;
    }
    if (mkdir(ret_folder, 0700) != 0 && errno != EEXIST) {
        problem_set(ret_problem, "%s: %s", ret_folder, strerror(errno));
        return false;
    }
    struct stat status;
    if (lstat(ret_folder, &status) != 0 || !S_ISDIR(status.st_mode)) {
        problem_set(ret_problem, "%s is not a folder", ret_folder);
        return false;
    }
    if (household->root && (lchown(ret_folder, household->agent_uid, household->agent_gid) != 0 ||
                            chmod(ret_folder, 0700) != 0)) {
        problem_set(ret_problem, "%s: %s", ret_folder, strerror(errno));
        return false;
    }
    return true;
}

bool household_furnish(const struct household *household, const struct household_wishes *wishes,
                       struct household_made *ret_made, struct problem *ret_problem)
{
    char agent[PATH_SIZE];
    char owner[65] = "";
    bool first = !exists(household->folder, MARKET_BROKER_CONFIG);
    *ret_made = (struct household_made){.broker_config = false};
    if (!make_agent_folder(household, agent, ret_problem) ||
        !become_agent(household, ret_problem)) {
        return false;
    }
    ret_made->agent_key = first && !exists(agent, MARKET_PROVIDER_KEY);
    ret_made->agent_config = !exists(agent, MARKET_PROVIDER_CONFIG);
    const bool has_key = first || exists(agent, MARKET_PROVIDER_KEY);
    bool made =
        (!has_key || public_key(agent, MARKET_PROVIDER_KEY, ret_made->agent, ret_problem)) &&
        (!ret_made->agent_config || write_provider_config(household, agent, wishes, ret_problem));
    if (!become_self(household, ret_problem) || !made || !first) {
        return made;
    }
    ret_made->owner_key = !exists(household->folder, MARKET_OWNER_KEY);
    ret_made->broker_config = true;
    return public_key(household->folder, MARKET_OWNER_KEY, owner, ret_problem) &&
           write_broker_config(household, wishes, owner, ret_made->agent, ret_problem);
}

static void remove_made(const char *folder, const char *name, bool was_made)
{
    char path[PATH_SIZE];
    if (was_made && join_path(path, folder, name)) {
        (void)unlink(path); /* a failed call may not have made it */
    }
}

void household_clear(const struct household *household, const struct household_made *made)
{
    char agent[PATH_SIZE];
    if (join_path(agent, household->folder, MARKET_PROVIDER)) {
        remove_made(agent, MARKET_PROVIDER_CONFIG, made->agent_config);
        remove_made(agent, MARKET_PROVIDER_KEY, made->agent_key);
        (void)rmdir(agent); /* fails while something is in it */
    }
    remove_made(household->folder, MARKET_BROKER_CONFIG, made->broker_config);
    remove_made(household->folder, MARKET_OWNER_KEY, made->owner_key);
    (void)rmdir(household->folder);
}
