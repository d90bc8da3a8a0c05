#include "consumer/job/image/image_config_apply.h"

#include "consumer/job/image/image_user.h"
#include "formats/limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool no_memory(struct problem *problem)
{
    problem_set(problem, "out of memory");
    return false;
}

/* Returns the template that stands for the text itself: each brace is doubled. */
static char *as_template(const char *text)
{
    char *made = malloc(2 * strlen(text) + 1);
    char *at = made;
    for (; made != NULL && *text != '\0'; text++) {
        if (*text == '{' || *text == '}') {
            *at++ = *text;
        }
        *at++ = *text;
    }
    if (made != NULL) {
        *at = '\0';
    }
    return made;
}

/* ---------------------------------------------------------------- commands */

static void strings_fini(struct job_strings *strings)
{
    for (size_t i = 0; i < strings->count; i++) {
        free(strings->items[i]);
    }
    free(strings->items);
    *strings = (struct job_strings){.items = NULL};
}

/* Appends words of the image, which are no templates. */
static bool add_words(struct job_strings *made, const struct job_strings *words)
{
    bool good = true;
    for (size_t i = 0; good && i < words->count; i++) {
        char *text = as_template(words->items[i]);
        good = text != NULL && job_strings_add(made, FORMAT_ARGUMENTS, text);
        free(text);
    }
    return good;
}

/* Makes the command of a run: the entrypoint, then the job's words or the image's. */
static bool make_run(struct job_strings *run, const struct job_strings *entrypoint,
                     const struct job_strings *cmd, struct problem *problem)
{
    struct job_strings made = {.items = NULL};
    bool good = add_words(&made, entrypoint);
    if (run->count == 0 && cmd != NULL) {
        good = good && add_words(&made, cmd);
    }
    for (size_t i = 0; good && i < run->count; i++) {
        good = job_strings_add(&made, FORMAT_ARGUMENTS, run->items[i]);
    }
    if (!good) {
        strings_fini(&made);
        problem_set(problem,
                    "out of memory, or the entrypoint and the command have more than %d "
                    "words",
                    FORMAT_ARGUMENTS);
        return false;
    }
    strings_fini(run);
    *run = made;
    return true;
}

/* An entrypoint of the job replaces the image's, and the image's command then does not fit. A
 * program of the consumer's own starts by itself. A task without a command has the job's. */
static bool make_runs(struct bourse_job *job, const struct image_config *config,
                      struct problem *problem)
{
    struct job_file *file = job->file;
    const struct job_strings *entrypoint =
        file->has_entrypoint ? &file->entrypoint : &config->entrypoint;
    const struct job_strings *cmd = file->has_entrypoint ? NULL : &config->cmd;
    bool needs_run = file->task_count == 0 || file->run.count > 0;
    bool good = true;
    for (size_t i = 0; good && i < file->task_count; i++) {
        struct job_strings *run = &file->tasks[i].run;
        needs_run = needs_run || run->count == 0;
        good = run->count == 0 || make_run(run, entrypoint, cmd, problem);
    }
    return good &&
           (!needs_run || job->program.is_own || make_run(&file->run, entrypoint, cmd, problem));
}

/* ---------------------------------------------------------------- variables */

static bool is_given(const struct job_file *file, const char *name)
{
    bool is = false;
    for (size_t i = 0; i < file->env_count; i++) {
        is = is || strcmp(file->env[i].name, name) == 0;
    }
    return is;
}

/* Adds the image's variables that the job does not set. The last variable of a name counts, so the
 * variables are added from the last to the first, each name once. */
static bool add_variables(struct job_file *file, const struct image_config *config,
                          struct problem *problem)
{
    for (size_t i = config->env.count; i-- > 0;) {
        const char *text = config->env.items[i];
        const char *equals = strchr(text, '=');
        char name[FORMAT_NAME_BYTES + 1];
        const size_t length = (size_t)(equals - text);
        if (length >= sizeof name) {
            problem_set(problem, "its Env has a name of more than %d bytes", FORMAT_NAME_BYTES);
            return false;
        }
        memcpy(name, text, length);
        name[length] = '\0';
        if (is_given(file, name)) {
            continue;
        }
        if (file->env_count >= FORMAT_VARIABLES) {
            problem_set(problem, "more than %d variables with those of the image",
                        FORMAT_VARIABLES);
            return false;
        }
        char *value = as_template(equals + 1);
        const bool good = value != NULL && job_file_add_variable(file, name, value);
        free(value);
        if (!good) {
            return no_memory(problem);
        }
    }
    return true;
}

/* ---------------------------------------------------------------- folder and user */

/* A mount of the jail hides what the image has there. */
static bool is_hidden(const char *directory)
{
    static const char *const places[] = {"/work/", "/tmp/", "/dev/", "/proc/"};
    bool is = false;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        is = is || strncmp(directory, places[i], strlen(places[i])) == 0;
    }
    return is;
}

static bool set_directory(struct bourse_job *job, const struct image_config *config,
                          struct problem *problem)
{
    const char *said = job->file->directory;
    const char *directory = said != NULL ? said : config->directory;
    if (said == NULL && is_hidden(directory)) {
        problem_set(problem, "its WorkingDir is below /work, /tmp, /dev or /proc, which jails have "
                             "of their own; say `directory: /work`");
        return false;
    }
    if (directory[0] == '\0' || strcmp(directory, "/work") == 0) {
        return true;
    }
    return job_file_set(&job->start.directory, directory) || no_memory(problem);
}

/* A jail has one user, and never root. */
static bool set_user(struct bourse_job *job, const struct image_config *config, int root_fd,
                     struct problem *problem)
{
    uint32_t user = 0;
    uint32_t group = 0;
    if (config->user[0] == '\0') {
        return true;
    }
    if (!image_user_find(config->user, root_fd, &user, &group, problem)) {
        return false;
    }
    job->start.has_user = user != 0;
    job->start.user = user;
    job->start.group = group;
    return true;
}

/* The consumer's own program lies in the work folder, whatever folder it starts in. */
static bool place_program(struct bourse_job *job, struct problem *problem)
{
    struct job_strings *run = &job->file->run;
    if (!job->program.is_own || job->start.directory == NULL || run->count == 0 ||
        strncmp(run->items[0], "./", 2) != 0) {
        return true;
    }
    const size_t size = strlen(run->items[0]) + sizeof "/work";
    char *path = malloc(size);
    if (path == NULL) {
        return no_memory(problem);
    }
    (void)snprintf(path, size, "/work%s", run->items[0] + 1);
    free(run->items[0]);
    run->items[0] = path;
    return true;
}

bool image_config_apply(struct bourse_job *job, const struct image_config *config, int root_fd,
                        struct problem *ret_problem)
{
    job->start.arch = config->arch[0] != '\0' ? image_arch(config->arch) : NULL;
    return make_runs(job, config, ret_problem) && add_variables(job->file, config, ret_problem) &&
           set_directory(job, config, ret_problem) && set_user(job, config, root_fd, ret_problem) &&
           place_program(job, ret_problem);
}
