#include "consumer/job/program/own_program.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/job/program/libraries.h"
#include "consumer/job/program/library_image.h"
#include "formats/limits.h"
#include "formats/wasm/wasm_head.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096, SCRIPT_LINE_BYTES = 256 /* as the kernel reads */ };

/* This struct has the program while it is added to the job. */
struct own {
    struct bourse_job *job;
    const char *word;       /* as `run` has it */
    char path[PATH_BYTES];  /* to open, without symbolic links */
    char start[PATH_BYTES]; /* how the subtask starts it: "./NAME" */
    uint64_t size;
    struct problem *problem;
};

static bool no_memory(struct own *own)
{
    problem_set(own->problem, "out of memory");
    return false;
}

/* Providers offer programs below /usr, so such a path names a host program. */
static bool is_host_path(const char *word)
{
    static const char *const roots[] = {"/usr/", "/bin/", "/sbin/"};
    bool is_host = false;
    for (size_t i = 0; i < sizeof roots / sizeof roots[0]; i++) {
        is_host = is_host || strncmp(word, roots[i], strlen(roots[i])) == 0;
    }
    return is_host;
}

static bool may_be_own(const struct job_file *file)
{
    const char *word = file->run.count > 0 ? file->run.items[0] : "";
    const bool may_be_file = strchr(word, '/') != NULL || file->is_wasm; /* a module is a file */
    return file->task_count == 0 && !file->is_noop && !file->is_tensor && !file->is_kernel &&
           !file->is_plugin && !file->is_onnx && word[0] != '\0' && may_be_file &&
           strpbrk(word, "{}") == NULL && (file->is_wasm || !is_host_path(word));
}

/* ---------------------------------------------------------------- the new command */

/* Puts `count` words before the arguments, in place of the program's name. */
static bool start_with(struct own *own, const char *const *words, size_t count)
{
    struct job_strings *run = &own->job->file->run;
    struct job_strings made = {.items = NULL};
    bool good = true;
    for (size_t i = 0; good && i < count; i++) {
        good = job_strings_add(&made, FORMAT_ARGUMENTS, words[i]);
    }
    for (size_t i = 1; good && i < run->count; i++) {
        good = job_strings_add(&made, FORMAT_ARGUMENTS, run->items[i]);
    }
    struct job_strings *old = good ? run : &made;
    for (size_t i = 0; i < old->count; i++) {
        free(old->items[i]);
    }
    free(old->items);
    if (good) {
        *run = made;
    } else {
        problem_set(own->problem, "out of memory, or more than %d arguments", FORMAT_ARGUMENTS);
    }
    return good;
}

/* ---------------------------------------------------------------- scripts */

/* Reads the interpreter of a script, as the kernel does: one word, and the rest of the line as one
 * argument. Both point into `line`; an absent argument is NULL. */
static bool read_first_line(char *line, char **ret_program, char **ret_argument)
{
    line[strcspn(line, "\n")] = '\0';
    char *at = line + 2 + strspn(line + 2, " \t");
    char *end = at + strcspn(at, " \t\r");
    char *rest = end + strspn(end, " \t\r");
    size_t length = strlen(rest);
    while (length > 0 && strchr(" \t\r", rest[length - 1]) != NULL) {
        rest[--length] = '\0';
    }
    *end = '\0';
    *ret_program = at;
    *ret_argument = length > 0 ? rest : NULL;
    return at[0] == '/';
}

/* A host offers programs by their names. With env, the argument names the program. */
static bool add_script(struct own *own, char *line)
{
    char *program = NULL;
    char *argument = NULL;
    const bool is_path = read_first_line(line, &program, &argument);
    const char *name = is_path ? strrchr(program, '/') + 1 : "";
    char shown[SCRIPT_LINE_BYTES];
    text_printable(program, strlen(program), shown, sizeof shown);
    if (!is_path || name[0] == '\0' || (!is_host_path(program) && strcmp(name, "env") != 0)) {
        problem_set(own->problem,
                    "%.200s begins with #!%.100s, and providers have programs below /usr and /bin "
                    "alone; write for example #!/usr/bin/env python3",
                    own->word, shown);
        return false;
    }
    if (strcmp(name, "env") == 0 && argument != NULL && argument[0] != '-' &&
        strpbrk(argument, " \t=/") == NULL) {
        name = argument;
        argument = NULL;
    }
    if (strpbrk(name, "{}") != NULL || (argument != NULL && strpbrk(argument, "{}") != NULL)) {
        problem_set(own->problem, "%.200s has a brace in its first line, which no job can pass on",
                    own->word);
        return false;
    }
    (void)snprintf(own->job->program.interpreter, sizeof own->job->program.interpreter, "%s", name);
    const char *words[] = {name, argument != NULL ? argument : own->start, own->start};
    return start_with(own, words, argument != NULL ? 3 : 2);
}

/* ---------------------------------------------------------------- ELF programs */

/* Names an image that no file has, for messages. */
static bool name_image(struct own *own)
{
    char text[FORMAT_PATH_BYTES];
    (void)snprintf(text, sizeof text, "libraries of %.900s", own->start);
    return job_file_set(&own->job->file->image, text) || no_memory(own);
}

static bool add_image(struct own *own, const struct elf *elf)
{
    CLEANUP(libraries_fini) struct libraries libraries = {.items = NULL};
    if (elf->interpreter[0] != '\0' && !library_image_has_place(elf->interpreter)) {
        problem_set(own->problem,
                    "%.200s has the loader %.200s, and only loaders in /lib, /lib64, /usr/lib and "
                    "/usr/lib64 can be sent; link the program statically, or give an image",
                    own->word, elf->interpreter);
        return false;
    }
    if (!libraries_find(own->path, elf, &libraries, own->problem)) {
        return false;
    }
    int fd = input_temporary(own->problem);
    if (fd < 0) {
        return false;
    }
    if (!library_image_write(&libraries, fd, own->problem)) {
        (void)close(fd); /* the file has no name and ends here */
        return false;
    }
    own->job->program.libraries = libraries.count;
    own->job->program.library_bytes = libraries.bytes;
    return name_image(own) && input_list_add_held(&own->job->image, fd, own->job->file->image,
                                                  "libraries.tar", own->problem);
}

static bool add_elf(struct own *own, const struct elf *elf)
{
    if (!elf->is_program) {
        problem_set(own->problem, "%.200s is an ELF file and no program", own->word);
        return false;
    }
    own->job->program.arch = elf->machine;
    if (own->job->file->host_libraries) {
        const char *words[] = {"env", own->start};
        own->job->program.has_host_libraries = true;
        return start_with(own, words, 2);
    }
    const char *words[] = {own->start};
    return add_image(own, elf) && start_with(own, words, 1);
}

/* ---------------------------------------------------------------- WASM modules */

/* A module needs an engine, and is no file that this machine executes. */
static bool add_module(struct own *own, const char *head, size_t length)
{
    struct job_file *file = own->job->file;
    struct problem why;
    const char *other = file->checkpoint != NULL     ? "checkpoint"
                        : file->terminal.columns > 0 ? "a terminal"
                        : file->directory != NULL    ? "directory"
                        : file->has_entrypoint       ? "entrypoint"
                                                     : NULL;
    if (!wasm_head_check(head, length, &why)) {
        problem_set(own->problem, "%.200s is %.250s", own->word, why.text);
        return false;
    }
    if (other != NULL) {
        problem_set(own->problem, "%.200s is a WASM module, which does not go with %s", own->word,
                    other);
        return false;
    }
    file->is_wasm = true;
    const char *words[] = {own->start};
    return start_with(own, words, 1);
}

/* ---------------------------------------------------------------- any program */

/* A file that nobody may execute can only be a module, which an engine runs. */
static bool may_execute(const struct own *own)
{
    struct stat status;
    return stat(own->path, &status) == 0 && (status.st_mode & 0111) != 0;
}

static bool add_content(struct own *own, int fd)
{
    char line[SCRIPT_LINE_BYTES + 1] = "";
    ssize_t length = pread(fd, line, SCRIPT_LINE_BYTES, 0);
    const size_t head = length > 0 ? (size_t)length : 0;
    if (own->job->file->is_wasm || wasm_head_is(line, head)) {
        return add_module(own, line, head);
    }
    if (!may_execute(own)) {
        problem_set(own->problem, "%.200s is no file that may be executed; chmod +x makes one so",
                    own->word);
        return false;
    }
    if (length >= 2 && line[0] == '#' && line[1] == '!') {
        return add_script(own, line);
    }
    struct problem why = {.text = ""};
    struct elf *elf = malloc(sizeof *elf);
    if (elf == NULL) {
        return no_memory(own);
    }
    const enum elf_status status = libraries_read_elf(fd, own->size, elf, &why);
    bool good = status == ELF_OK;
    if (status == ELF_FOREIGN) {
        problem_set(own->problem,
                    "%.200s is neither an ELF program nor a script that begins with #!", own->word);
    } else if (!good) {
        problem_set(own->problem, "%.200s: %.300s", own->word, why.text);
    }
    good = good && add_elf(own, elf);
    free(elf);
    return good;
}

/* Returns false with the problem unless the file is there. */
static bool find_file(struct own *own, const char *folder)
{
    char path[PATH_BYTES];
    struct stat status;
    const bool is_here = own->word[0] == '/' || strcmp(folder, ".") == 0;
    int length =
        snprintf(path, sizeof path, "%s%s%s", is_here ? "" : folder, is_here ? "" : "/", own->word);
    if (length < 0 || (size_t)length >= sizeof path || realpath(path, own->path) == NULL ||
        stat(own->path, &status) != 0) {
        problem_set(own->problem, "%.200s: %s", own->word, strerror(errno));
        return false;
    }
    if (!S_ISREG(status.st_mode)) {
        problem_set(own->problem, "%.200s is no file that may be executed", own->word);
        return false;
    }
    return true;
}

/* The file's name in the job is the path that the user wrote, below the work folder. */
static bool add_file(struct own *own)
{
    const char *name = own->word;
    while (name[0] == '/' || strncmp(name, "./", 2) == 0 || strncmp(name, "../", 3) == 0) {
        name += name[0] == '/' ? 1 : name[1] == '/' ? 2 : 3;
    }
    (void)snprintf(own->start, sizeof own->start, "./%.4000s", name);
    return input_list_add_as(&own->job->shared, own->path, name, own->problem);
}

bool own_program_add(struct bourse_job *job, const char *folder, struct problem *ret_problem)
{
    if (!may_be_own(job->file)) {
        return true;
    }
    struct own own = {.job = job, .word = job->file->run.items[0], .problem = ret_problem};
    const bool has_image = job->file->image != NULL;
    struct problem ignored; /* what is not here may be in the image, or be an input of `each` */
    if (has_image) {
        own.problem = &ignored;
        if (own.word[0] == '/' || job->file->source == TEMPLATE_EACH || !find_file(&own, folder) ||
            !may_execute(&own)) {
            return true;
        }
        own.problem = ret_problem;
    }
    if (!find_file(&own, folder) || !add_file(&own)) {
        return false;
    }
    int fd = input_open(own.path, &own.size, ret_problem);
    if (fd < 0) {
        return false;
    }
    char *word = strdup(own.word); /* `run` changes below */
    own.word = word;
    const char *words[] = {own.start};
    bool good = word == NULL ? no_memory(&own)
                : has_image  ? start_with(&own, words, 1)
                             : add_content(&own, fd);
    (void)close(fd); /* read only: nothing to lose */
    free(word);
    job->program.is_own = good;
    job->program.bytes = own.size;
    return good;
}

void own_program_drop_again(struct bourse_job *job)
{
    char path[PATH_BYTES];
    struct input_list *shared = &job->shared;
    size_t kept = 0;
    for (size_t i = 0; i < shared->count; i++) {
        struct input_file *file = &shared->items[i];
        if (job->program.is_own && i > 0 && strcmp(file->name, shared->items[0].name) == 0 &&
            realpath(file->path, path) != NULL && strcmp(path, shared->items[0].path) == 0) {
            free(file->path);
        } else {
            shared->items[kept++] = *file;
        }
    }
    shared->count = kept;
}
