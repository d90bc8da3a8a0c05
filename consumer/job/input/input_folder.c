#include "consumer/job/input/input_folder.h"

#include "base/text.h"
#include "formats/ignore.h"
#include "formats/limits.h"
#include "formats/staging/staged_link.h"
#include "runtime/files.h"

#include <errno.h>
#include <fts.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES_MAX = 4096 };

struct walk {
    struct input_list *list;
    struct input_tree *tree;     /* NULL: only files count */
    const char *given;           /* the name as the user wrote it */
    size_t most;                 /* files that the name may stand for */
    size_t before;               /* files in the list when the walk began */
    size_t offset;               /* where the name begins in every path */
    size_t below;                /* where the name below the walked folder begins */
    const struct ignore *ignore; /* NULL: every file counts */
    char root[PATH_BYTES_MAX];   /* the folder without symbolic links */
    int64_t bytes;
    struct problem *problem;
};

/* Returns the name in the work folder of what is at the path. The walked folder itself may be the
 * work folder, whose name is "". */
static const char *name_of(const struct walk *walk, const char *path)
{
    return strlen(path) < walk->offset ? "" : input_list_name(path + walk->offset);
}

/* Adds the file at `path`. The path `named` gives the file its name, without the job file's
 * folder. */
static bool add(struct walk *walk, const char *path, const char *named, const struct stat *status)
{
    if (walk->list->count - walk->before >= walk->most) {
        problem_set(walk->problem,
                    "'%s' stands for more than %zu files, the most that a subtask has; pack them "
                    "with tar, or leave some out",
                    input_shown(walk->given).text, walk->most);
        return false;
    }
    if (status->st_size > INPUT_FOLDER_BYTES_MAX - walk->bytes) {
        problem_set(walk->problem, "the files of '%s' have more than %lld bytes together",
                    input_shown(walk->given).text, (long long)INPUT_FOLDER_BYTES_MAX);
        return false;
    }
    const char *name = name_of(walk, named);
    walk->bytes += status->st_size;
    return input_list_add_as(walk->list, path, name, walk->problem) &&
           (walk->tree == NULL || input_tree_add_file(walk->tree, name, status, walk->problem));
}

/* ---------------------------------------------------------------- folders */

static bool is_below(const char *path, const char *root)
{
    const size_t length = strlen(root);
    return strncmp(path, root, length) == 0 && (path[length] == '/' || root[length - 1] == '/');
}

/* Reads the target of a link. Returns NULL when the link may travel, or the reason why not. */
static const char *why_no_link(const struct walk *walk, const FTSENT *entry,
                               char ret_target[PATH_BYTES_MAX])
{
    const ssize_t length = readlink(entry->fts_path, ret_target, PATH_BYTES_MAX - 1);
    if (length < 0) {
        return "cannot be read";
    }
    ret_target[length] = '\0';
    return staged_link_problem(entry->fts_path + walk->below, ret_target);
}

/* A link that does not travel becomes a copy of the file that it leads to. */
static bool add_copy(struct walk *walk, const char *path, const char *why_not)
{
    char target[PATH_BYTES_MAX];
    struct stat status;
    const char *why = NULL;
    if (realpath(path, target) == NULL || stat(target, &status) != 0) {
        why = why_not != NULL ? why_not : "leads to nothing";
    } else if (!is_below(target, walk->root)) {
        why = "leads out of the folder";
    } else if (!S_ISREG(status.st_mode)) {
        why = why_not != NULL ? why_not : "leads to something other than a regular file";
    }
    if (why != NULL) {
        problem_set(walk->problem, "the symbolic link %s %s, and a subtask sees no other file",
                    input_shown(path).text, why);
        return false;
    }
    return add(walk, target, path, &status);
}

static bool add_link(struct walk *walk, const FTSENT *entry)
{
    char target[PATH_BYTES_MAX];
    const char *why_not = walk->tree == NULL ? NULL : why_no_link(walk, entry, target);
    return walk->tree != NULL && why_not == NULL
               ? input_tree_add_link(walk->tree, name_of(walk, entry->fts_path), target,
                                     entry->fts_statp, walk->problem)
               : add_copy(walk, entry->fts_path, why_not);
}

/* A file that is left out may be of any kind, because nobody opens the file. */
static bool is_left_out(const struct walk *walk, const FTSENT *entry)
{
    return walk->ignore != NULL && entry->fts_level > 0 &&
           (strcmp(entry->fts_path + walk->offset, INPUT_FOLDER_IGNORE) == 0 ||
            ignore_leaves_out(walk->ignore, entry->fts_path + walk->offset,
                              entry->fts_info == FTS_D || entry->fts_info == FTS_DNR));
}

static bool add_entry(struct walk *walk, const FTSENT *entry)
{
    switch (entry->fts_info) {
    case FTS_D:
        return walk->tree == NULL ||
               input_tree_add_folder(walk->tree, name_of(walk, entry->fts_path), entry->fts_statp,
                                     walk->problem);
    case FTS_DP:
        return true;
    case FTS_F:
        return add(walk, entry->fts_path, entry->fts_path, entry->fts_statp);
    case FTS_SL:
    case FTS_SLNONE:
        return add_link(walk, entry);
    case FTS_DEFAULT:
        problem_set(walk->problem,
                    "%s is a device, a socket or a pipe, which cannot be sent; move it out of '%s'",
                    input_shown(entry->fts_path).text, input_shown(walk->given).text);
        return false;
    default:
        problem_set(walk->problem, "%s: %s", input_shown(entry->fts_path).text,
                    strerror(entry->fts_errno != 0 ? entry->fts_errno : ELOOP));
        return false;
    }
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

static bool add_tree(struct walk *walk, char *path)
{
    char *const roots[] = {path, NULL};
    const size_t before = walk->list->count;
    bool has_left_out = false;
    if (realpath(path, walk->root) == NULL) {
        problem_set(walk->problem, "%s: %s", input_shown(path).text, strerror(errno));
        return false;
    }
    walk->below = strlen(path) + (path[strlen(path) - 1] != '/');
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, by_name);
    bool good = tree != NULL;
    if (!good) {
        problem_set(walk->problem, "%s: %s", input_shown(path).text, strerror(errno));
    }
    errno = 0;
    for (FTSENT *entry; good && (entry = fts_read(tree)) != NULL; errno = 0) {
        if (is_left_out(walk, entry)) {
            (void)fts_set(tree, entry, FTS_SKIP); /* cannot fail with this word */
            has_left_out = true;
        } else {
            good = add_entry(walk, entry);
        }
    }
    if (good && errno != 0) {
        problem_set(walk->problem, "%s: %s", input_shown(path).text, strerror(errno));
        good = false;
    }
    if (tree != NULL) {
        (void)fts_close(tree); /* read only: nothing to lose */
    }
    if (good && walk->list->count == before && (walk->tree == NULL || walk->ignore != NULL)) {
        problem_set(walk->problem,
                    "there is no file in the folder %s%s; add one, or name another "
                    "folder",
                    input_shown(path).text, has_left_out ? " that its ignore file keeps" : "");
        good = false;
    }
    return good;
}

/* ---------------------------------------------------------------- names */

/* Adds the file or the folder at `path`. A path that is itself a symbolic link is refused, as in
 * `each:`. */
static bool add_path(struct walk *walk, char *path)
{
    struct stat status = {.st_size = 0}; /* opening a file that is missing reports it */
    size_t length = strlen(path);
    if (lstat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        status.st_size = 0; /* a file that is named alone may have any size */
        return add(walk, path, path, &status);
    }
    while (length > walk->offset + 1 && path[length - 1] == '/') {
        path[--length] = '\0';
    }
    return add_tree(walk, path);
}

static bool add_pattern(struct walk *walk, const char *pattern)
{
    glob_t matches = {.gl_pathc = 0};
    const int status = glob(pattern, 0, NULL, &matches);
    bool good = status == 0;
    if (!good) {
        problem_set(walk->problem, "%s '%s'",
                    status == GLOB_NOMATCH ? "no file or folder matches"
                                           : "out of memory, or a folder cannot be read, for",
                    input_shown(walk->given).text);
    }
    for (size_t i = 0; good && i < matches.gl_pathc; i++) {
        good = add_path(walk, matches.gl_pathv[i]);
    }
    globfree(&matches);
    return good;
}

bool input_folder_add(const char *folder, const char *name, size_t most, struct input_list *list,
                      struct input_tree *tree, struct problem *ret_problem)
{
    struct walk walk = {.list = list,
                        .tree = tree,
                        .given = name,
                        .most = most,
                        .before = list->count,
                        .problem = ret_problem};
    char path[PATH_BYTES_MAX];
    char prefix[PATH_BYTES_MAX];
    struct stat status;
    if (2 * strlen(folder) + strlen(name) + 8 > sizeof path) {
        problem_set(ret_problem, "the path '%s' is too long", input_shown(name).text);
        return false;
    }
    walk.offset = input_list_prefix(folder, name, false, prefix, sizeof prefix);
    (void)snprintf(path, sizeof path, "%.*s%s", (int)walk.offset, prefix, name);
    if (lstat(path, &status) == 0 || strpbrk(name, "*?[") == NULL) {
        return add_path(&walk, path);
    }
    (void)input_list_prefix(folder, name, true, prefix, sizeof prefix);
    const size_t length = strlen(prefix);
    (void)snprintf(path, sizeof path, "%s", prefix);
    (void)snprintf(path + length, sizeof path - length, "%s", name);
    return add_pattern(&walk, path);
}

/* ---------------------------------------------------------------- work folders */

/* Reads the ignore file. Where there is none, nothing is left out. */
static struct ignore *read_ignore(const char *work, struct problem *ret_problem)
{
    char path[PATH_BYTES_MAX];
    struct stat status;
    struct problem why = {.text = ""};
    uint8_t *text = NULL;
    size_t length = 0;
    (void)snprintf(path, sizeof path, "%s/%s", work, INPUT_FOLDER_IGNORE);
    if (lstat(path, &status) != 0 && errno == ENOENT) {
        return ignore_parse("", 0, ret_problem);
    }
    if (!file_read(path, IGNORE_FILE_BYTES, &text, &length, ret_problem)) {
        return NULL;
    }
    struct ignore *ignore = ignore_parse((const char *)text, length, &why);
    if (ignore == NULL) {
        problem_set(ret_problem, "%s: %s", input_shown(path).text, why.text);
    }
    free(text);
    return ignore;
}

bool input_folder_add_work(const char *work, struct input_list *list, struct input_tree *tree,
                           struct problem *ret_problem)
{
    struct walk walk = {.list = list,
                        .tree = tree,
                        .given = work,
                        .most = FORMAT_FOLDER_FILES,
                        .before = list->count,
                        .problem = ret_problem};
    char path[PATH_BYTES_MAX];
    struct stat status;
    size_t length = strlen(work);
    while (length > 1 && work[length - 1] == '/') {
        length--;
    }
    const int written = snprintf(path, sizeof path, "%.*s", (int)length, work);
    if (written < 1 || (size_t)written + sizeof INPUT_FOLDER_IGNORE + 1 > sizeof path) {
        problem_set(ret_problem, "the name of a folder is needed, and '%s' is too long or empty",
                    input_shown(work).text);
        return false;
    }
    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        problem_set(ret_problem, "'%s' is no folder here", input_shown(work).text);
        return false;
    }
    if (realpath(path, walk.root) == NULL) {
        problem_set(ret_problem, "%s: %s", input_shown(path).text, strerror(errno));
        return false;
    }
    struct ignore *ignore = read_ignore(path, ret_problem);
    if (ignore == NULL) {
        return false;
    }
    walk.ignore = ignore;
    (void)snprintf(path, sizeof path, "%s", walk.root); /* the walk follows no link */
    walk.offset = strlen(path) + (strcmp(path, "/") != 0);
    const bool good = add_tree(&walk, path);
    ignore_destroy(&ignore);
    return good;
}
