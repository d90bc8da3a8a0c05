/* provider/worker/output_folder.c sends the files of a folder that is an output, or those that an
 * output's pattern matches.
 *
 * The program may have left anything in the folder. No link is followed, and opening a pipe or a
 * device has no effect. Devices, pipes and sockets are left out, and so are links that could lead
 * out of the folder. The detail counts what is left out. The number, the depth and the names of
 * entries are checked before a file is opened. Files go in the order of their names' bytes, and so
 * do then empty folders and links, so that the same folder always makes the same archive. */
#include "base/cursor.h"
#include "base/pattern.h"
#include "formats/staging/staged_link.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct names {
    char **items; /* below the root; the root is "." */
    size_t count, capacity;
};

struct walk {
    const struct worker *worker;
    const struct run *run;
    struct outcome *outcome;
    size_t output;
    int root;
    const char *pattern; /* below the root; NULL: everything is meant */
    struct names folders, files;
    struct names empty, links; /* of a run that keeps them */
    size_t name_bytes;
    size_t kept; /* entries of the listed folder that are meant */
    size_t seen; /* names that were compared with the pattern */
    uint64_t left_out;
    char left_out_name[64]; /* the first of these */
};

/* The entries of one ENTRIES, and the descriptors of its files. */
struct batch {
    uint8_t bytes[WIRE_MESSAGE_BYTES];
    struct writer out;
    int files[WIRE_ENTRIES_MAX];
    size_t file_count, count;
};

static bool refuse(const struct walk *walk, enum result_outcome what, const char *name,
                   const char *why)
{
    const char *folder = walk->run->outputs[walk->output];
    const bool is_top = strcmp(folder, ".") == 0;
    const bool is_named = walk->pattern != NULL && name[0] != '\0';
    walk->outcome->outcome = what;
    (void)snprintf(walk->outcome->detail, sizeof walk->outcome->detail,
                   "output %.80s%s%.80s%s%.80s %s", is_top ? "" : folder, is_top ? "" : "/",
                   walk->pattern != NULL ? walk->pattern : name, is_named ? ": " : "",
                   is_named ? name : "", why);
    return false;
}

static bool add_name(struct walk *walk, struct names *names, const char *name)
{
    if (names->count == names->capacity) {
        const size_t capacity = names->capacity == 0 ? 64 : 2 * names->capacity;
        char **items = realloc(names->items, capacity * sizeof *items);
        if (items == NULL) {
            return refuse(walk, OUTCOME_JAIL_FAILED, name, "cannot be listed: out of memory");
        }
        names->items = items;
        names->capacity = capacity;
    }
    names->items[names->count] = strdup(name);
    if (names->items[names->count] == NULL) {
        return refuse(walk, OUTCOME_JAIL_FAILED, name, "cannot be listed: out of memory");
    }
    names->count++;
    return true;
}

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->count; i++) {
        free(names->items[i]);
    }
    free(names->items);
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---------------------------------------------------------------- what is there */

static bool is_too_deep(const char *name)
{
    size_t depth = 0;
    for (const char *c = name; *c != '\0'; c++) {
        depth += *c == '/';
    }
    return depth >= LIMIT_FOLDER_DEPTH;
}

/* Returns true when the entry is meant, or is a folder in which entries may be meant. */
static bool is_meant(const struct walk *walk, const char *name, mode_t mode)
{
    const bool is_folder = S_ISDIR(mode);
    const enum pattern_reach reach =
        walk->pattern == NULL ? PATTERN_MATCHES : pattern_reach(walk->pattern, name, is_folder);
    return reach == PATTERN_MATCHES || (reach == PATTERN_ABOVE && is_folder);
}

static size_t entries_of(const struct walk *walk)
{
    return walk->files.count + walk->folders.count + walk->links.count;
}

/* Reads a link's target. Returns false when the link does not travel. */
static bool read_link(int folder, const char *last, const char *name,
                      char ret_target[LIMIT_PATH_BYTES])
{
    const ssize_t length = readlinkat(folder, last, ret_target, LIMIT_PATH_BYTES);
    if (length < 0 || length >= LIMIT_PATH_BYTES) {
        return false;
    }
    ret_target[length] = '\0';
    return staged_link_problem(name, ret_target) == NULL;
}

/* Returns true for an entry that comes out. */
static bool is_kept(const struct walk *walk, int folder, const char *last, const char *name,
                    mode_t mode, char ret_target[LIMIT_PATH_BYTES])
{
    return S_ISDIR(mode) || S_ISREG(mode) ||
           (S_ISLNK(mode) && walk->run->keeps_trees && read_link(folder, last, name, ret_target));
}

static bool take_entry(struct walk *walk, int folder, const char *name, const char *last)
{
    struct stat status;
    char why[96];
    char target[LIMIT_PATH_BYTES] = "";
    if (fstatat(folder, last, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return refuse(walk, OUTCOME_OUTPUT_MISSING, name, "cannot be examined");
    }
    if (walk->pattern != NULL && ++walk->seen > LIMIT_PATTERN_NAMES) {
        (void)snprintf(why, sizeof why, "has to be looked for among more than %d names",
                       LIMIT_PATTERN_NAMES);
        return refuse(walk, OUTCOME_OUTPUT_LIMIT, "", why);
    }
    if (!is_meant(walk, name, status.st_mode)) {
        return true;
    }
    if (!is_kept(walk, folder, last, name, status.st_mode, target)) {
        if (walk->left_out++ == 0) {
            text_printable(name, strlen(name), walk->left_out_name, sizeof walk->left_out_name);
        }
        return true;
    }
    if (!wire_saved_name_valid(name)) {
        return refuse(walk, OUTCOME_OUTPUT_MISSING, "",
                      "holds a name with control characters, or not in UTF-8, or too long");
    }
    walk->kept++;
    walk->name_bytes += strlen(name) + strlen(target);
    if (entries_of(walk) > LIMIT_FOLDER_FILES || walk->name_bytes > LIMIT_FOLDER_NAMES) {
        (void)snprintf(why, sizeof why,
                       "holds more than %d files, folders and links, or %d bytes of names",
                       LIMIT_FOLDER_FILES, LIMIT_FOLDER_NAMES);
        return refuse(walk, OUTCOME_OUTPUT_LIMIT, "", why);
    }
    if (S_ISDIR(status.st_mode) && is_too_deep(name)) {
        (void)snprintf(why, sizeof why, "holds more than %d folders in one another",
                       LIMIT_FOLDER_DEPTH);
        return refuse(walk, OUTCOME_OUTPUT_LIMIT, "", why);
    }
    return add_name(walk,
                    S_ISDIR(status.st_mode)   ? &walk->folders
                    : S_ISLNK(status.st_mode) ? &walk->links
                                              : &walk->files,
                    name);
}

/* Returns true for a folder below the root that is an output itself, whatever it holds. */
static bool is_whole(const struct walk *walk, const char *folder)
{
    return strcmp(folder, ".") != 0 &&
           (walk->pattern == NULL || pattern_reach(walk->pattern, folder, true) == PATTERN_MATCHES);
}

static bool list_folder(struct walk *walk, const char *folder)
{
    DIR *stream = stage_list(walk->root, folder);
    if (stream == NULL) {
        return refuse(walk, OUTCOME_OUTPUT_MISSING, strcmp(folder, ".") == 0 ? "" : folder,
                      errno == ENOTDIR ? "is no folder" : stage_why_missing(errno));
    }
    char name[LIMIT_PATH_BYTES];
    const char *last;
    const size_t room = strlen(walk->run->outputs[walk->output]) + 2;
    bool good = true;
    walk->kept = 0;
    while (good && stage_next(stream, folder, room, name, &last)) {
        good = name[0] != '\0'
                   ? take_entry(walk, dirfd(stream), name, last)
                   : refuse(walk, OUTCOME_OUTPUT_MISSING, "", "holds a name that is too long");
    }
    (void)closedir(stream);
    return good && (walk->kept > 0 || !walk->run->keeps_trees || !is_whole(walk, folder) ||
                    add_name(walk, &walk->empty, folder));
}

/* ---------------------------------------------------------------- what is sent */

static void start_batch(const struct walk *walk, struct batch *batch)
{
    batch->out = writer_over(batch->bytes, sizeof batch->bytes);
    batch->count = batch->file_count = 0;
    writer_u8(&batch->out, WIRE_ENTRIES);
    writer_u32(&batch->out, walk->run->number);
    writer_u32(&batch->out, (uint32_t)walk->output);
    writer_u32(&batch->out, 0); /* the count, known when the batch is sent */
}

/* Sends the files and waits until the agent has copied them. */
static bool send_batch(const struct walk *walk, struct batch *batch)
{
    enum { COUNT_AT = 1 + 4 + 4 };
    int files[WIRE_MAPPED_MAX];
    size_t file_count = 0;
    const size_t count = batch->count;
    struct writer head = writer_over(batch->bytes + COUNT_AT, 4);
    if (count == 0) {
        return true;
    }
    writer_u32(&head, (uint32_t)count);
    if (batch->out.failed || !packet_send(walk->worker->socket, batch->bytes, batch->out.position,
                                          batch->files, batch->file_count)) {
        _exit(1); /* see send_message() in main.c */
    }
    packet_close_files(batch->files, batch->file_count);
    start_batch(walk, batch);
    return worker_wait(walk->worker, walk->run, WIRE_MORE, files, &file_count, walk->outcome);
}

/* Adds what an entry takes to the total. */
static bool count_bytes(const struct walk *walk, const char *name, uint64_t bytes, uint64_t *total)
{
    char why[128];
    if (bytes > walk->run->output_bytes - *total) {
        (void)snprintf(why, sizeof why,
                       "and the files before it take %llu bytes; the output limit is %llu bytes",
                       (unsigned long long)(*total + bytes),
                       (unsigned long long)walk->run->output_bytes);
        return refuse(walk, OUTCOME_OUTPUT_LIMIT, name, why);
    }
    *total += bytes;
    return true;
}

static void write_text(struct batch *batch, const char *text)
{
    const size_t length = strlen(text);
    writer_u32(&batch->out, (uint32_t)length);
    writer_bytes(&batch->out, text, length);
}

/* Adds an entry, which has a target when it is a link, and sends a batch that is full. */
static bool add_entry(const struct walk *walk, struct batch *batch, enum wire_entry_kind kind,
                      const char *name, uint64_t size, const char *target)
{
    batch->count++;
    writer_u8(&batch->out, (uint8_t)kind);
    writer_u64(&batch->out, size);
    write_text(batch, name);
    if (kind == WIRE_ENTRY_LINK) {
        write_text(batch, target);
    }
    const bool is_full = batch->count == WIRE_ENTRIES_MAX ||
                         batch->out.position + 2 * LIMIT_PATH_BYTES + 32 > sizeof batch->bytes;
    return !is_full || send_batch(walk, batch);
}

static bool add_file(const struct walk *walk, struct batch *batch, const char *name,
                     uint64_t *total)
{
    struct stat status;
    const int file = stage_open(walk->root, name);
    if (file < 0 || fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
        const int error = errno;
        if (file >= 0) {
            (void)close(file);
        }
        return refuse(walk, OUTCOME_OUTPUT_MISSING, name,
                      file < 0 ? stage_why_missing(error) : "is not a regular file");
    }
    if (!count_bytes(walk, name, wire_entry_bytes(strlen(name), (uint64_t)status.st_size), total)) {
        (void)close(file);
        return false;
    }
    batch->files[batch->file_count++] = file;
    return add_entry(walk, batch,
                     (status.st_mode & S_IXUSR) != 0 ? WIRE_ENTRY_PROGRAM : WIRE_ENTRY_FILE, name,
                     (uint64_t)status.st_size, "");
}

static bool add_link(const struct walk *walk, struct batch *batch, const char *name,
                     uint64_t *total)
{
    char target[LIMIT_PATH_BYTES];
    return read_link(walk->root, name, name, target)
               ? count_bytes(walk, name, wire_entry_bytes(strlen(name) + strlen(target), 0),
                             total) &&
                     add_entry(walk, batch, WIRE_ENTRY_LINK, name, 0, target)
               : refuse(walk, OUTCOME_OUTPUT_MISSING, name, "cannot be read");
}

static void sort_names(struct names *names)
{
    if (names->count > 0) {
        qsort(names->items, names->count, sizeof *names->items, by_bytes);
    }
}

static bool send_entries(struct walk *walk, uint64_t *total)
{
    static struct batch batch; /* large; the worker has one thread */
    bool good = true;
    sort_names(&walk->files);
    sort_names(&walk->empty);
    sort_names(&walk->links);
    start_batch(walk, &batch);
    for (size_t i = 0; good && i < walk->files.count; i++) {
        good = add_file(walk, &batch, walk->files.items[i], total);
    }
    for (size_t i = 0; good && i < walk->empty.count; i++) {
        const char *name = walk->empty.items[i];
        good = count_bytes(walk, name, wire_entry_bytes(strlen(name), 0), total) &&
               add_entry(walk, &batch, WIRE_ENTRY_FOLDER, name, 0, "");
    }
    for (size_t i = 0; good && i < walk->links.count; i++) {
        good = add_link(walk, &batch, walk->links.items[i], total);
    }
    good = good && send_batch(walk, &batch);
    packet_close_files(batch.files, good ? 0 : batch.file_count);
    return good;
}

static void note_left_out(const struct walk *walk)
{
    const char *folder = walk->run->outputs[walk->output];
    const bool is_top = strcmp(folder, ".") == 0;
    if (walk->left_out > 0) {
        char *const detail = walk->outcome->detail; /* another folder may have a note there */
        const size_t used = strlen(detail);
        (void)snprintf(detail + used, sizeof walk->outcome->detail - used,
                       "%sleft out of %.64s%s%.64s: %llu links, devices, pipes or sockets, as %s",
                       used > 0 ? "; " : "", is_top ? "" : folder, is_top ? "" : "/",
                       walk->pattern != NULL ? walk->pattern : "",
                       (unsigned long long)walk->left_out, walk->left_out_name);
    }
}

bool output_folder_send(const struct worker *worker, const struct run *run, size_t output,
                        uint64_t *total, struct outcome *outcome)
{
    struct walk walk = {.worker = worker,
                        .run = run,
                        .outcome = outcome,
                        .output = output,
                        .pattern = run->patterns[output]};
    walk.root = stage_open(worker->folders[FOLDER_WORK], run->outputs[output]);
    bool good = walk.root >= 0
                    ? add_name(&walk, &walk.folders, ".")
                    : stage_output_failed(outcome, run->outputs[output], stage_why_missing(errno));
    if (good && WIRE_ARCHIVE_END_BYTES > run->output_bytes - *total) {
        good = refuse(&walk, OUTCOME_OUTPUT_LIMIT, "", "does not fit below the output limit");
    }
    *total += good ? WIRE_ARCHIVE_END_BYTES : 0;
    for (size_t i = 0; good && i < walk.folders.count; i++) {
        good = list_folder(&walk, walk.folders.items[i]);
    }
    if (good && walk.files.count == 0) {
        good = refuse(&walk, OUTCOME_OUTPUT_MISSING, "",
                      walk.pattern != NULL ? "matches no file" : "holds no file");
    }
    good = good && send_entries(&walk, total);
    if (good) {
        note_left_out(&walk);
    }
    names_fini(&walk.folders);
    names_fini(&walk.files);
    names_fini(&walk.empty);
    names_fini(&walk.links);
    if (walk.root >= 0) {
        (void)close(walk.root);
    }
    return good;
}
