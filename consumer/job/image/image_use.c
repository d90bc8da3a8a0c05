#include "consumer/job/image/image_use.h"

#include "consumer/job/image/image_cache.h"
#include "consumer/job/image/image_config_apply.h"
#include "consumer/job/image/image_fetch.h"
#include "consumer/job/image/image_flatten.h"
#include "consumer/job/image/image_program.h"
#include "consumer/job/image/image_source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

static char empty[] = "";

/* An opened is a container image while its archive is made. */
struct opened {
    struct image_fetched fetched;
    struct image_source source;
    enum image_form form;
    struct image_description *description; /* NULL: a plain tar */
    int archive;                           /* -1: none */
    int cache;                             /* the folder; -1: none */
    bool is_made;                          /* the archive is not in the cache yet */
};

static void opened_fini(struct opened *opened)
{
    if (opened->archive >= 0) {
        (void)close(opened->archive); /* whole, or a file without a name: nothing to lose */
    }
    if (opened->cache >= 0) {
        (void)close(opened->cache); /* read only: nothing to lose */
    }
    if (opened->description != NULL) {
        image_description_fini(opened->description);
        free(opened->description);
    }
    image_source_fini(&opened->source);
    image_fetched_fini(&opened->fetched);
}

/* ---------------------------------------------------------------- which image */

/* Returns the architecture that the needs ask for by name, or NULL. */
static const char *asked_arch(const struct requirement *needs)
{
    const char *arch = NULL;
    for (uint32_t i = 0; i < needs->count; i++) {
        const struct requirement_node *node = &needs->nodes[i];
        if (node->op == REQUIREMENT_OR) {
            return NULL;
        }
        const bool is_denied = i + 1 < needs->count && node[1].op == REQUIREMENT_NOT;
        if (!is_denied && node->op == REQUIREMENT_EQ && node->attribute.is_text &&
            strcmp(node->attribute.name, "arch") == 0) {
            arch = node->attribute.text;
        }
    }
    return arch;
}

/* Chooses the architecture of an image of several platforms: the one that the needs ask for, or
 * else the one of this machine. */
static void choose_arch(const struct requirement *needs, char ret_arch[ATTRIBUTE_TEXT_SIZE])
{
    struct utsname machine;
    const char *arch = asked_arch(needs);
    if (arch == NULL && uname(&machine) == 0) {
        arch = machine.machine;
    }
    (void)snprintf(ret_arch, ATTRIBUTE_TEXT_SIZE, "%.*s", ATTRIBUTE_TEXT_SIZE - 1,
                   arch != NULL ? arch : "x86_64");
}

/* Says what an image may be, for a name that is no file and no name of skopeo's. */
static bool no_image(const char *name, int error, struct problem *problem)
{
    const size_t length = strcspn(name, ":/");
    if (error == ENOENT && name[length] == ':' && length < 32) {
        problem_set(problem,
                    "%.200s: there is no such file, and images are not taken from \"%.*s:\"; an "
                    "image is a folder, a tar, or a name such as docker://debian:12",
                    input_shown(name).text, (int)length, input_shown(name).text);
    } else {
        problem_set(problem,
                    "%.200s: %s; an image is a folder, a tar, or a name such as docker://debian:12",
                    input_shown(name).text, strerror(error));
    }
    return false;
}

/* Opens the image. A file or folder of that name is taken before a name of skopeo's, so that every
 * file can be given. */
static bool open_source(struct opened *opened, const char *folder, const char *name,
                        const char *arch, struct problem *problem)
{
    char path[IMAGE_FETCH_PATH_BYTES];
    const size_t length = input_list_prefix(folder, name, false, path, sizeof path);
    if (length + strlen(name) >= sizeof path) {
        problem_set(problem, "the name has more than %zu bytes with its folder", sizeof path - 1);
        return false;
    }
    (void)snprintf(path + length, sizeof path - length, "%s", name);
    const int error = access(path, F_OK) == 0 ? 0 : errno;
    if (error != 0 && !image_fetch_is_name(name)) {
        return no_image(name, error, problem);
    }
    if (error != 0) {
        const char *go_arch = image_arch_of_device(arch);
        if (!image_fetch(name, folder, go_arch != NULL ? go_arch : arch, &opened->fetched,
                         problem)) {
            return false;
        }
        memcpy(path, opened->fetched.layout, strlen(opened->fetched.layout) + 1);
    }
    return image_source_open(path, &opened->source, &opened->form, problem);
}

static bool make_archive(struct opened *opened, struct problem *problem)
{
    opened->cache = image_cache_open();
    opened->archive = image_cache_find(opened->cache, &opened->description->root_hash);
    if (opened->archive >= 0) {
        return true;
    }
    opened->is_made = true;
    opened->archive = image_cache_begin(opened->cache, problem);
    return opened->archive >= 0 && image_flatten(&opened->source, opened->description,
                                                 &image_flatten_caps, opened->archive, problem);
}

/* Opens the image and makes its archive; a plain tar has neither description nor archive. */
static bool open_image(struct opened *opened, const char *folder, const char *name,
                       const char *arch, struct problem *problem)
{
    *opened =
        (struct opened){.fetched = {.lock = -1}, .source = {.fd = -1}, .archive = -1, .cache = -1};
    if (!open_source(opened, folder, name, arch, problem)) {
        return false;
    }
    if (opened->form == IMAGE_FORM_ROOT) {
        return true;
    }
    opened->description = calloc(1, sizeof *opened->description);
    if (opened->description == NULL) {
        problem_set(problem, "out of memory");
        return false;
    }
    struct problem why = {.text = ""};
    if (!image_describe(&opened->source, opened->form, arch, opened->description, &why) ||
        !make_archive(opened, &why)) {
        problem_set(problem, "%s: %.400s", input_shown(name).text, why.text);
        return false;
    }
    return true;
}

static bool append_archive(struct opened *opened, const char *name, struct input_list *list,
                           struct problem *problem)
{
    const int archive = opened->archive;
    if (opened->is_made) { /* nothing of a refused image stays */
        image_cache_keep(opened->cache, &opened->description->root_hash, archive);
    }
    opened->archive = -1; /* the list closes the file, on failure too */
    return input_list_add_held(list, archive, name, "image.tar", problem);
}

/* ---------------------------------------------------------------- jobs */

/* Checks that the job has a command, its own or the image's. */
static bool has_runs(const struct job_file *file, bool is_container, struct problem *problem)
{
    bool has = file->run.count > 0;
    if (file->task_count > 0 && !has) {
        has = true;
        for (size_t i = 0; i < file->task_count; i++) {
            has = has && file->tasks[i].run.count > 0;
        }
    }
    if (!has) { /* image_line is 0 when the image was given on the command line */
        problem_set(problem, "%s says no command; %s",
                    is_container ? "its configuration (Entrypoint, Cmd)"
                                 : "a plain tar of a root file system",
                    file->image_line > 0 ? "write one, as in run: [xz, -9, \"{in}\"]"
                                         : "give one after --, as in -- xz -9 FILE");
    }
    return has;
}

static bool use_container(struct bourse_job *job, struct opened *opened, struct problem *problem)
{
    struct job_file *file = job->file;
    const char *arch = image_arch(opened->description->config.arch);
    const char *asked = asked_arch(&file->needs);
    if (asked != NULL && strcmp(asked, arch) != 0) {
        problem_set(problem, "the image is for %s, and needs asks for devices with arch = %s", arch,
                    asked);
        return false;
    }
    return image_config_apply(job, &opened->description->config, opened->archive, problem);
}

/* Applies an empty configuration: a plain tar has none, but the job may say how its program
 * starts. */
static bool use_root(struct bourse_job *job, struct problem *problem)
{
    const struct image_config none = {.user = empty, .directory = empty};
    return image_config_apply(job, &none, -1, problem);
}

bool image_use(struct bourse_job *job, const char *folder, struct problem *ret_problem)
{
    struct job_file *file = job->file;
    struct opened opened;
    char arch[ATTRIBUTE_TEXT_SIZE];
    if (file->image == NULL || job->image.count > 0) { /* no image, or a program's libraries */
        return true;
    }
    choose_arch(&file->needs, arch);
    bool good =
        open_image(&opened, folder, file->image, arch, ret_problem) &&
        (opened.description == NULL ? use_root(job, ret_problem)
                                    : use_container(job, &opened, ret_problem)) &&
        has_runs(file, opened.description != NULL, ret_problem) &&
        job_file_check(file, ret_problem) &&
        (opened.description == NULL || image_program_check(job, opened.archive, ret_problem)) &&
        (opened.description == NULL ||
         append_archive(&opened, file->image, &job->image, ret_problem));
    opened_fini(&opened);
    return good;
}

bool image_use_archive(const char *folder, const char *name, const struct requirement *needs,
                       struct input_list *list, struct problem *ret_problem)
{
    struct opened opened;
    char arch[ATTRIBUTE_TEXT_SIZE];
    choose_arch(needs, arch);
    bool good = open_image(&opened, folder, name, arch, ret_problem) &&
                (opened.description == NULL ? input_list_add_file(folder, name, list, ret_problem)
                                            : append_archive(&opened, name, list, ret_problem));
    opened_fini(&opened);
    return good;
}
