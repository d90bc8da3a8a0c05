/* provider/worker/work_checkpoint.c sends the files of a checkpoint. Only folders and regular files
 * are accepted.
 *
 * The program may have left anything in the folder, as with outputs. No link is followed, and
 * opening a pipe or a device has no effect. The number, depth and size of entries are checked
 * before an entry costs anything. */
#include "base/cursor.h"
#include "provider/worker/packet.h"
#include "provider/worker/wire.h"
#include "provider/worker/worker.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static_assert(LIMIT_CHECKPOINT_FILES == 256, "the texts of refuse() name 256");

struct walk {
    const struct worker *worker;
    const struct run *run;
    struct outcome *outcome;
    int root;
    char *folders[LIMIT_CHECKPOINT_FILES]; /* names below the root; the root is "." */
    size_t folder_count, file_count;
    uint64_t bytes;
};

static bool refuse(struct walk *walk, const char *name, const char *why)
{
    (void)snprintf(walk->outcome->detail, sizeof walk->outcome->detail,
                   "nothing was saved: %.64s/%.96s %s", walk->run->checkpoint, name, why);
    return false;
}

static bool send_file(struct walk *walk, const char *name, int file, uint64_t size)
{
    uint8_t bytes[LIMIT_PATH_BYTES + 32];
    const size_t length = strlen(name);
    struct writer out = writer_over(bytes, sizeof bytes);
    if (!wire_saved_name_valid(name)) {
        return refuse(walk, "", "holds a name with control characters, or not in UTF-8");
    }
    if (walk->file_count == LIMIT_CHECKPOINT_FILES) {
        return refuse(walk, "", "holds more than 256 files");
    }
    if (size > walk->run->output_bytes - walk->bytes) {
        return refuse(walk, name, "is larger than what is left of the output limit");
    }
    walk->file_count++;
    walk->bytes += size;
    writer_u8(&out, WIRE_SAVED);
    writer_u32(&out, walk->run->number);
    writer_u64(&out, size);
    writer_u32(&out, (uint32_t)length);
    writer_bytes(&out, name, length);
    if (out.failed || !packet_send(walk->worker->socket, bytes, out.position, &file, 1)) {
        _exit(1); /* see send_message() in main.c */
    }
    return true;
}

static bool add_folder(struct walk *walk, const char *name)
{
    if (walk->folder_count == LIMIT_CHECKPOINT_FILES) {
        return refuse(walk, "", "holds more than 256 folders");
    }
    walk->folders[walk->folder_count] = strdup(name);
    if (walk->folders[walk->folder_count] == NULL) {
        return refuse(walk, name, "could not be listed: out of memory");
    }
    walk->folder_count++;
    return true;
}

static bool take_entry(struct walk *walk, const char *name)
{
    struct stat status;
    const int file = stage_open(walk->root, name);
    if (file < 0) {
        return refuse(walk, name, stage_why_missing(errno));
    }
    bool good = false;
    if (fstat(file, &status) != 0) {
        good = refuse(walk, name, "cannot be examined");
    } else if (S_ISDIR(status.st_mode)) {
        good = add_folder(walk, name);
    } else if (S_ISREG(status.st_mode)) {
        good = send_file(walk, name, file, (uint64_t)status.st_size);
    } else {
        good = refuse(walk, name, "is neither a file nor a folder");
    }
    (void)close(file);
    return good;
}

static bool take_folder(struct walk *walk, const char *folder)
{
    DIR *stream = stage_list(walk->root, folder);
    if (stream == NULL) {
        return refuse(walk, folder, stage_why_missing(errno));
    }
    char name[LIMIT_PATH_BYTES];
    const char *last;
    bool good = true;
    while (good && stage_next(stream, folder, strlen(walk->run->checkpoint) + 2, name, &last)) {
        good = name[0] != '\0' ? take_entry(walk, name)
                               : refuse(walk, folder, "holds a name that is too long");
    }
    (void)closedir(stream);
    return good;
}

void work_checkpoint_send(const struct worker *worker, const struct run *run,
                          struct outcome *outcome)
{
    struct walk walk = {.worker = worker, .run = run, .outcome = outcome};
    walk.root = stage_open(worker->folders[FOLDER_WORK], run->checkpoint);
    bool good =
        walk.root >= 0 ? add_folder(&walk, ".") : refuse(&walk, "", stage_why_missing(errno));
    for (size_t i = 0; good && i < walk.folder_count; i++) {
        good = take_folder(&walk, walk.folders[i]);
    }
    if (good && walk.file_count == 0) {
        good = refuse(&walk, "", "is empty");
    }
    outcome->has_checkpoint = good;
    for (size_t i = 0; i < walk.folder_count; i++) {
        free(walk.folders[i]);
    }
    if (walk.root >= 0) {
        (void)close(walk.root);
    }
}
