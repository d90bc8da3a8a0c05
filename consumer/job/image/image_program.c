#include "consumer/job/image/image_program.h"

#include "base/text.h"
#include "formats/elf/elf.h"
#include "formats/image/image_look.h"
#include "protocol/limits.h"
#include "runtime/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum {
    SHOWN_BYTES = 200,
    HEAD_BYTES = 256, /* the kernel reads as much of a script's first line */
    WHY_BYTES = 512,
    ELF_MACHINE_END = 20,   /* the header's field for the machine ends here */
    ELF_HEADER_LEAST = 52,  /* of a file for 32 bits */
    MODE_OWNER_RUNS = 0100, /* all files of an image belong to the program's user */
};
/* The worker searches these folders when there is no variable PATH (provider/jail/jail_wire.c). */
static const char PATH_DEFAULT[] = "/usr/local/bin:/usr/bin:/bin";

struct scene {
    const struct bourse_job *job;
    const struct image_look *look;
    int root_fd;
    struct image_found found; /* of the last look */
    bool is_absent;           /* nothing is at the last path */
    struct elf elf;           /* large */
    char why[WHY_BYTES];      /* what is wrong with the last path */
};

struct content {
    int fd;
    uint64_t offset;
};

static bool read_content(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct content *content = context;
    return file_read_at(content->fd, ret_bytes, length, content->offset + offset);
}

static bool read_root(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    return file_read_at(*(const int *)context, ret_bytes, length, offset);
}

static const char *shown(const char *text, char ret_text[SHOWN_BYTES])
{
    text_printable(text, strlen(text), ret_text, SHOWN_BYTES);
    return ret_text;
}

/* ---------------------------------------------------------------- one file */

/* Says of the path that it `is` so. With a link on the way, the text says where the path leads. */
static bool unfit(struct scene *scene, const char *path, const char *is)
{
    const char *place = scene->found.place;
    const char *plain = path + strspn(path, "/");
    const size_t length = strlen(place);
    char text[SHOWN_BYTES];
    /* The place may also be a folder on the way that is not there. */
    if (strncmp(plain, place, length) == 0 && (plain[length] == '/' || plain[length] == '\0')) {
        (void)snprintf(scene->why, WHY_BYTES, "%s", is);
    } else {
        (void)snprintf(scene->why, WHY_BYTES, "leads to /%s, which %s", shown(place, text), is);
    }
    return false;
}

/* Returns true when a program may be started at the path that was looked up. Else writes what is
 * wrong, as the end of a sentence about the path. */
static bool is_program(struct scene *scene, const char *path)
{
    const struct image_found *found = &scene->found;
    char text[SHOWN_BYTES];
    switch (found->status) {
    case IMAGE_LOOK_UNKNOWN:
        return true;
    case IMAGE_LOOK_ABSENT:
        return unfit(scene, path, "is not in the image");
    case IMAGE_LOOK_NO_FOLDER:
        (void)snprintf(scene->why, WHY_BYTES, "lies below /%s, which is a file and no folder",
                       shown(found->place, text));
        return false;
    case IMAGE_LOOK_LOOP:
        (void)snprintf(scene->why, WHY_BYTES, "leads through more than %d links", IMAGE_LOOK_LINKS);
        return false;
    case IMAGE_LOOK_FOUND:
        break;
    }
    if (found->type != '0') {
        return unfit(scene, path, found->type == '5' ? "is a folder" : "is no plain file");
    }
    if ((found->mode & MODE_OWNER_RUNS) == 0) {
        return unfit(scene, path, "is not executable: chmod it and build the image again");
    }
    return found->size > 0 || unfit(scene, path, "is an empty file");
}

/* Returns true for the numbers in the ELF headers of programs that such a machine starts: its own,
 * and those of 32 bits. */
static bool is_code_for(const char *arch, unsigned machine)
{
    static const struct {
        const char *arch;
        unsigned machines[2];
    } codes[] = {{"x86_64", {62, 3}},
                 {"aarch64", {183, 40}},
                 {"riscv64", {243, 243}},
                 {"loongarch64", {258, 258}}};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        if (strcmp(codes[i].arch, arch) == 0) {
            return machine == codes[i].machines[0] || machine == codes[i].machines[1];
        }
    }
    return true; /* nothing is known */
}

/* Returns true when the system of a device may execute the file that was found. A loader is an ELF
 * file. The kernel takes other files only where an owner has added a rule to binfmt_misc, and no
 * offer says so. */
static bool is_code(struct scene *scene, const char *path, bool is_loader)
{
    const char *arch = scene->job->start.arch;
    const uint64_t size = scene->found.size;
    uint8_t head[ELF_MACHINE_END] = {0};
    const size_t length = size < sizeof head ? (size_t)size : sizeof head;
    char is[96];
    if (!file_read_at(scene->root_fd, head, length, scene->found.offset)) {
        return true;
    }
    if (memcmp(head, "\177ELF", 4) != 0) {
        return (!is_loader && memcmp(head, "#!", 2) == 0) ||
               unfit(scene, path,
                     is_loader ? "is no ELF file"
                               : "is neither an ELF file nor a script with #! at its begin");
    }
    if (size < ELF_HEADER_LEAST) {
        (void)snprintf(is, sizeof is, "is an ELF file that was cut after %llu bytes",
                       (unsigned long long)size);
        return unfit(scene, path, is);
    }
    if (arch != NULL && !is_code_for(arch, head[18] | (unsigned)head[19] << 8)) {
        (void)snprintf(is, sizeof is, "is an ELF file for another machine than the image's, %.32s",
                       arch);
        return unfit(scene, path, is);
    }
    return true;
}

/* Copies the interpreter of a script's first line. Returns false when the line names none. */
static bool script_interpreter(const struct scene *scene, char ret_path[HEAD_BYTES])
{
    char head[HEAD_BYTES] = "";
    const uint64_t size = scene->found.size;
    const size_t length = size < sizeof head - 1 ? (size_t)size : sizeof head - 1;
    if (!file_read_at(scene->root_fd, head, length, scene->found.offset) ||
        memcmp(head, "#!", 2) != 0) {
        return false;
    }
    const char *from = head + 2 + strspn(head + 2, " \t");
    const size_t name = strcspn(from, " \t\n");
    if (from + name == head + sizeof head - 1) { /* the name is cut */
        return false;
    }
    memcpy(ret_path, from, name);
    ret_path[name] = '\0';
    return true;
}

/* Copies the path of the loader or interpreter that starts the file. Returns false when there is
 * none, or when nothing certain can be said. */
static bool find_starter(struct scene *scene, char ret_path[ELF_TEXT_BYTES], bool *ret_is_loader)
{
    struct content content = {.fd = scene->root_fd, .offset = scene->found.offset};
    const struct elf_source source = {
        .size = scene->found.size, .read = read_content, .context = &content};
    struct problem why;
    *ret_is_loader = elf_read(&source, &scene->elf, &why) == ELF_OK;
    if (*ret_is_loader) {
        memcpy(ret_path, scene->elf.interpreter, strlen(scene->elf.interpreter) + 1);
    } else if (!script_interpreter(scene, ret_path)) {
        return false;
    }
    return ret_path[0] == '/';
}

/* Returns true when the program may start. Else writes what is wrong, as the end of a sentence
 * about the path. */
static bool may_start(struct scene *scene, const char *path)
{
    char starter[ELF_TEXT_BYTES];
    char what[WHY_BYTES];
    char text[SHOWN_BYTES];
    bool is_loader;
    image_look_find(scene->look, path, &scene->found);
    scene->is_absent = scene->found.status == IMAGE_LOOK_ABSENT;
    if (!is_program(scene, path)) {
        return false;
    }
    if (scene->found.status != IMAGE_LOOK_FOUND) {
        return true;
    }
    if (!is_code(scene, path, false)) {
        return false;
    }
    if (!find_starter(scene, starter, &is_loader)) {
        return true;
    }
    image_look_find(scene->look, starter, &scene->found);
    if (is_program(scene, starter) &&
        (scene->found.status != IMAGE_LOOK_FOUND || is_code(scene, starter, is_loader))) {
        return true;
    }
    memcpy(what, scene->why, sizeof what);
    (void)snprintf(scene->why, WHY_BYTES, "is started by %s, which %.280s", shown(starter, text),
                   what);
    return false;
}

/* ---------------------------------------------------------------- commands */

/* Returns the variable's value of a task, else of the job, or NULL. */
static const char *variable(const struct job_file *file, const struct job_task *task,
                            const char *name)
{
    const char *value = NULL;
    for (size_t i = 0; i < file->env_count; i++) {
        value = strcmp(file->env[i].name, name) == 0 ? file->env[i].value : value;
    }
    for (size_t i = 0; task != NULL && i < task->env_count; i++) {
        value = strcmp(task->env[i].name, name) == 0 ? task->env[i].value : value;
    }
    return value;
}

static bool has_braces(const char *text)
{
    return strpbrk(text, "{}") != NULL;
}

/* Looks for a name without a slash in every folder of the list, as the worker does. */
static bool is_on_path(struct scene *scene, const char *name, const char *folders,
                       struct problem *problem)
{
    char path[LIMIT_PATH_BYTES]; /* the worker leaves out longer ones */
    char found[WHY_BYTES] = "";  /* the first program of that name that cannot start */
    char text[SHOWN_BYTES];
    char list[SHOWN_BYTES];
    for (const char *folder = folders; *folder != '\0';) {
        const size_t length = strcspn(folder, ":");
        if (length > 0 && length + strlen(name) + 2 <= sizeof path) {
            (void)snprintf(path, sizeof path, "%.*s/%s", (int)length, folder, name);
            if (folder[0] != '/' || may_start(scene, path)) {
                return true; /* found, or in a folder of which nothing is known */
            }
            if (found[0] == '\0' && !scene->is_absent) {
                (void)snprintf(found, sizeof found, ": %s %.300s", shown(path, text), scene->why);
            }
        }
        folder += length + (folder[length] == ':');
    }
    problem_set(problem, "the program \"%.64s\" is in no folder of its PATH, %s%s", name,
                folders[0] != '\0' ? shown(folders, list) : "which is empty", found);
    return false;
}

/* The kernel takes no longer path. */
static bool is_short(const char *path, struct problem *problem)
{
    char text[SHOWN_BYTES];
    if (strlen(path) < IMAGE_LOOK_PATH_BYTES) {
        return true;
    }
    problem_set(problem, "the program %.64s... has a path of %zu bytes; %d are the most",
                shown(path, text), strlen(path), IMAGE_LOOK_PATH_BYTES - 1);
    return false;
}

static bool is_at(struct scene *scene, const char *path, struct problem *problem)
{
    char text[SHOWN_BYTES];
    if (may_start(scene, path)) {
        return true;
    }
    problem_set(problem, "the program %s %.300s", shown(path, text), scene->why);
    return false;
}

static bool check_run(struct scene *scene, const struct job_task *task,
                      const struct job_strings *run, struct problem *problem)
{
    const char *name = run->count > 0 ? run->items[0] : "";
    const char *directory = scene->job->start.directory;
    char path[IMAGE_LOOK_PATH_BYTES];
    if (name[0] == '\0' || has_braces(name)) {
        return true;
    }
    if (strchr(name, '/') != NULL && !is_short(name, problem)) {
        return false;
    }
    if (name[0] == '/') {
        return is_at(scene, name, problem);
    }
    if (strchr(name, '/') != NULL) {
        while (strncmp(name, "./", 2) == 0) {
            name += 2 + strspn(name + 2, "/");
        }
        const int made = directory == NULL /* the work folder */
                             ? -1
                             : snprintf(path, sizeof path, "%s/%s", directory, name);
        return made < 0 || (size_t)made >= sizeof path || is_at(scene, path, problem);
    }
    const char *folders = variable(scene->job->file, task, "PATH");
    folders = folders != NULL ? folders : PATH_DEFAULT;
    return has_braces(folders) || is_on_path(scene, name, folders, problem);
}

static bool check_runs(struct scene *scene, struct problem *problem)
{
    const struct job_file *file = scene->job->file;
    bool good = file->task_count > 0 || check_run(scene, NULL, &file->run, problem);
    for (size_t i = 0; good && i < file->task_count; i++) {
        const struct job_task *task = &file->tasks[i];
        good = check_run(scene, task, job_task_run(file, task), problem);
    }
    return good;
}

bool image_program_check(const struct bourse_job *job, int root_fd, struct problem *ret_problem)
{
    struct stat status;
    if (fstat(root_fd, &status) != 0) {
        problem_set(ret_problem, "the image's archive cannot be read");
        return false;
    }
    const struct tar_source source = {
        .size = (uint64_t)status.st_size, .read = read_root, .context = &root_fd};
    struct image_look *look = image_look_create(&source, ret_problem);
    struct scene *scene = calloc(1, sizeof *scene);
    bool good = look != NULL && scene != NULL;
    if (look != NULL && scene == NULL) {
        problem_set(ret_problem, "out of memory");
    }
    if (good) {
        scene->job = job;
        scene->look = look;
        scene->root_fd = root_fd;
        good = check_runs(scene, ret_problem);
    }
    free(scene);
    image_look_destroy(&look);
    return good;
}
