#include "consumer/job/input_check.h"

#include "base/text.h"
#include "consumer/model/model_check.h"
#include "consumer/product/matrix.h"
#include "formats/generate/generate_words.h"
#include "formats/kernel/kernel_op.h"
#include "formats/onnx/onnx_words.h"
#include "formats/tensor_op.h"
#include "formats/wasm/wasm_head.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH_BYTES = 4096 };

/* A scene is the content of one command's work folder. */
struct scene {
    const struct bourse_job *job;
    const char *folder;
    const struct job_task *task; /* NULL: a job without tasks */
    size_t own_from, own_to;     /* range of its files in the job's own files */
    struct problem *problem;
};

static const struct input_file *find(const struct input_list *list, size_t from, size_t to,
                                     const char *name)
{
    for (size_t i = from; i < to; i++) {
        if (strcmp(list->items[i].name, name) == 0) {
            return &list->items[i];
        }
    }
    return NULL;
}

static const struct input_file *file_named(const struct scene *scene, const char *name)
{
    const struct bourse_job *job = scene->job;
    const struct input_file *file = find(&job->shared, 0, job->shared.count, name);
    return file != NULL ? file : find(&job->own, scene->own_from, scene->own_to, name);
}

/* Returns true when another task hands the file to this one, or may hand it over in a folder. */
static bool is_taken(const struct scene *scene, const char *name)
{
    bool taken = false;
    for (size_t i = 0; scene->task != NULL && i < scene->task->wait_count; i++) {
        const char *from = scene->task->waits[i].name;
        taken = taken ||
                (from != NULL && (strcmp(from, name) == 0 || strcmp(from, "./") == 0 ||
                                  (template_is_folder(from) && template_paths_meet(from, name))));
    }
    return taken;
}

/* Returns true for a link of the job's files, and for what a link to a folder may lead to. */
static bool is_linked(const struct scene *scene, const char *name)
{
    const struct bourse_job *job = scene->job;
    return input_tree_has_link_to(&job->tree, name) ||
           (scene->task != NULL &&
            input_tree_has_link_to(&job->own_trees[scene->task - job->file->tasks], name));
}

static bool is_left(const struct scene *scene, const char *name)
{
    const struct job_file *file = scene->job->file;
    const struct job_strings *outputs =
        scene->task != NULL ? job_task_outputs(file, scene->task) : &file->outputs;
    bool left = false;
    for (size_t i = 0; i < outputs->count; i++) {
        const char *output = outputs->items[i];
        left = left || (template_is_pattern(output) ? template_pattern_meets(output, name)
                                                    : strcmp(output, name) == 0);
    }
    return left;
}

static bool has_holes(const char *text)
{
    return strpbrk(text, "{}") != NULL;
}

/* ---------------------------------------------------------------- programs */

/* Returns the name of a file in the work folder that a word may mean, or NULL. */
static const char *name_in(const char *word)
{
    while (word[0] == '.' && word[1] == '/') {
        word += 2;
    }
    bool is_name = word[0] != '-' && !has_holes(word) && strpbrk(word, " \t\n*?[$;|=,:") == NULL &&
                   template_path_safe(word);
    return is_name ? word : NULL;
}

static bool is_here(const struct scene *scene, const char *name)
{
    char path[PATH_BYTES];
    struct stat status;
    int length = snprintf(path, sizeof path, "%s/%s", scene->folder, name);
    return length > 0 && (size_t)length < sizeof path && lstat(path, &status) == 0 &&
           S_ISREG(status.st_mode);
}

/* Returns true when the program runs the file that its first word names. */
static bool runs_scripts(const char *program)
{
    static const char *const programs[] = {"sh",   "bash", "dash", "zsh", "python", "python3",
                                           "perl", "ruby", "node", "lua", "Rscript"};
    bool runs = false;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        runs = runs || strcmp(program, programs[i]) == 0;
    }
    return runs;
}

/* A word that looks like a file's name, and names a file here, was meant as a file. */
static bool check_program(const struct scene *scene, const struct job_strings *run)
{
    bool is_host = scene->job->file->image == NULL;
    for (size_t i = 1; i < run->count; i++) {
        const char *name = name_in(run->items[i]);
        if (name == NULL || file_named(scene, name) != NULL || is_linked(scene, name) ||
            is_taken(scene, name) || is_left(scene, name)) {
            continue;
        }
        if (strpbrk(name, "./") != NULL && is_here(scene, name)) {
            problem_set(scene->problem,
                        "'%s' lies here and is none of the job's files, and a subtask has no "
                        "others: add it to them (files:, or --file)",
                        input_shown(name).text);
            return false;
        }
        if (i == 1 && is_host && runs_scripts(run->items[0])) {
            problem_set(scene->problem,
                        "%s is to run '%s', which is none of the job's files: add it to them "
                        "(files:, or --file)",
                        run->items[0], input_shown(name).text);
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- operations on matrices */

struct operand {
    const char *name;              /* name in the work folder; NULL: a template gives it */
    const struct input_file *file; /* NULL: an output of another task */
    bool is_each;                  /* one file for each subtask */
    uint64_t rows, columns;        /* 0 x 0: unknown */
};

static bool find_operand(const struct scene *scene, const char *name, struct operand *operand)
{
    bool is_each = strcmp(name, "{in}") == 0 && scene->job->file->source == TEMPLATE_EACH;
    *operand = (struct operand){.is_each = is_each};
    if (has_holes(name)) {
        return true;
    }
    operand->name = name;
    operand->file = file_named(scene, name);
    if (operand->file != NULL || is_taken(scene, name)) {
        return true;
    }
    problem_set(scene->problem, "'%s' is none of the job's files: add it to them (files:)",
                input_shown(name).text);
    return false;
}

/* Reads the shape of the operand; with one file for each subtask, that of subtask `index`. */
static bool read_operand(const struct scene *scene, size_t index, struct operand *operand)
{
    if (operand->is_each) {
        operand->file = &scene->job->own.items[index];
    }
    bool is_read = operand->file == NULL || (!operand->is_each && index > 0);
    return is_read ||
           matrix_shape(operand->file->path, &operand->rows, &operand->columns, scene->problem);
}

static bool is_known(const struct operand *operand)
{
    return operand->file != NULL;
}

static bool shapes_fit(const struct scene *scene, const struct operand *a, const struct operand *b,
                       const struct operand *c)
{
    if (is_known(a) && is_known(b) && a->columns != b->rows) {
        problem_set(scene->problem,
                    "%s is %" PRIu64 " x %" PRIu64 " and %s %" PRIu64 " x %" PRIu64
                    "; the first must have as many columns as the second has rows",
                    input_shown(a->file->name).text, a->rows, a->columns,
                    input_shown(b->file->name).text, b->rows, b->columns);
        return false;
    }
    if (is_known(c) &&
        ((is_known(a) && c->rows != a->rows) || (is_known(b) && c->columns != b->columns))) {
        problem_set(scene->problem,
                    "%s is %" PRIu64 " x %" PRIu64
                    ", and what it is added to has another shape; it must have the rows of the "
                    "first factor and the columns of the second",
                    input_shown(c->file->name).text, c->rows, c->columns);
        return false;
    }
    return true;
}

/* Returns true when the factor, which is a number, is zero in any form. */
static bool is_zero(const char *factor)
{
    return strcspn(factor, "123456789") >= strcspn(factor, "eE");
}

/* The factor is read as float32, as in the multiplication. */
static bool check_factor(const struct scene *scene, const char *option, const char *factor)
{
    if (!has_holes(factor) && isinf(strtof(factor, NULL))) {
        problem_set(scene->problem, "%s %s is more than a float32 holds, which is 3.4e38 at most",
                    option, factor);
        return false;
    }
    if (!has_holes(factor) && !is_zero(factor) && strtof(factor, NULL) == 0) {
        problem_set(scene->problem,
                    "%s %s is less than a float32 holds, which is 1.4e-45 at least; write 0 if "
                    "that is meant",
                    option, factor);
        return false;
    }
    return true;
}

/* An operation makes one file. Every other output must be a file that was there before. */
static bool check_result(const struct scene *scene, const struct tensor_op *op)
{
    const struct job_file *file = scene->job->file;
    const struct job_strings *outputs =
        scene->task != NULL ? job_task_outputs(file, scene->task) : &file->outputs;
    for (size_t i = 0; op->result != NULL && !has_holes(op->result) && i < outputs->count; i++) {
        const char *output = outputs->items[i];
        if (strcmp(output, op->result) != 0 && !has_holes(output) &&
            file_named(scene, output) == NULL && !is_taken(scene, output)) {
            problem_set(scene->problem,
                        "the operation makes '%s' and nothing else, so there will be no '%s'; "
                        "write one name here and in outputs",
                        input_shown(op->result).text, input_shown(output).text);
            return false;
        }
    }
    return true;
}

static bool check_operation(const struct scene *scene, const struct job_strings *run)
{
    struct tensor_op op;
    struct operand a;
    struct operand b;
    struct operand c = {.name = NULL};
    if (!tensor_op_read((const char *const *)run->items, run->count, true, &op, scene->problem) ||
        !find_operand(scene, op.a, &a) || !find_operand(scene, op.b, &b) ||
        (op.c != NULL && !find_operand(scene, op.c, &c))) {
        return false;
    }
    if (op.is_drawn) {
        problem_set(scene->problem,
                    "the seed \"" TENSOR_DRAWN
                    "\" is for the checks that `verify: cheap` makes; write %d "
                    "hexadecimal digits",
                    2 * TENSOR_SEED_BYTES);
        return false;
    }
    if (!check_factor(scene, "--alpha", op.alpha) || !check_factor(scene, "--beta", op.beta) ||
        !check_result(scene, &op)) {
        return false;
    }
    if (op.verb != TENSOR_GEMM || strtof(op.beta, NULL) == 0) {
        c = (struct operand){.name = NULL}; /* either compared or not read at all */
    }
    size_t count = a.is_each || b.is_each || c.is_each ? scene->job->own.count : 1;
    for (size_t i = 0; i < count; i++) {
        if (!read_operand(scene, i, &a) || !read_operand(scene, i, &b) ||
            !read_operand(scene, i, &c) || !shapes_fit(scene, &a, &b, &c)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- kernels */

/* Returns true when the file is one of the job's, or a template gives its name. */
static bool check_read(const struct scene *scene, const char *name)
{
    if (has_holes(name) || file_named(scene, name) != NULL) {
        return true;
    }
    problem_set(scene->problem, "'%s' is none of the job's files: add it to them (files:)",
                input_shown(name).text);
    return false;
}

static bool check_kernel(const struct scene *scene, const struct job_strings *run)
{
    struct kernel_op op;
    if (!kernel_op_read((const char *const *)run->items, run->count, true, &op, scene->problem) ||
        !check_read(scene, op.source)) {
        return false;
    }
    for (size_t i = 0; i < op.argument_count; i++) {
        if (op.arguments[i].file != NULL && !check_read(scene, op.arguments[i].file)) {
            return false;
        }
    }
    return true;
}

/* ---------------------------------------------------------------- WASM modules */

/* Reads the begin of a file that the job has here. */
static bool check_head(const struct scene *scene, const struct input_file *file)
{
    uint8_t head[WASM_HEAD_BYTES];
    uint64_t size;
    struct problem why;
    const int fd = input_file_open(file, &size, scene->problem);
    if (fd < 0) {
        return false;
    }
    const ssize_t length = pread(fd, head, sizeof head, 0);
    (void)close(fd);
    if (!wasm_head_check(head, length > 0 ? (size_t)length : 0, &why)) {
        problem_set(scene->problem, "'%s' is %.300s", input_shown(file->name).text, why.text);
        return false;
    }
    return true;
}

/* A module may be an output of another task, or the file of `each`. */
static bool check_module(const struct scene *scene, const struct job_strings *run)
{
    const char *word = run->items[0];
    const char *name = strncmp(word, "./", 2) == 0 ? word + 2 : word;
    const struct input_file *file = file_named(scene, name);
    return (file == NULL
                ? is_linked(scene, name) || is_taken(scene, name) || check_read(scene, name)
                : check_head(scene, file)) &&
           check_program(scene, run);
}

/* ---------------------------------------------------------------- models */

/* Files of tasks may be outputs of other tasks, so that only the words are checked. */
static bool check_model(const struct scene *scene, const struct job_strings *run)
{
    struct onnx_words words;
    struct generate_words text;
    if (scene->task != NULL && generate_words_are((const char *const *)run->items, run->count)) {
        return generate_words_read((const char *const *)run->items, run->count, true, &text,
                                   scene->problem);
    }
    return scene->task != NULL ? onnx_words_read((const char *const *)run->items, run->count, true,
                                                 &words, scene->problem)
                               : model_check_job(scene->job, scene->problem);
}

/* ---------------------------------------------------------------- all */

static bool check_command(const struct scene *scene, const struct job_strings *run)
{
    return scene->job->file->is_plugin   ? true /* the plug-in knows its arguments */
           : scene->job->file->is_wasm   ? check_module(scene, run)
           : scene->job->file->is_onnx   ? check_model(scene, run)
           : scene->job->file->is_kernel ? check_kernel(scene, run)
           : scene->job->file->is_tensor ? check_operation(scene, run)
                                         : check_program(scene, run);
}

/* A folder of the job's files may reach where the program saves its state. */
static bool check_checkpoint(const struct bourse_job *job, struct problem *ret_problem)
{
    const char *checkpoint = job->file->checkpoint;
    for (size_t i = 0; checkpoint != NULL && i < job->shared.count; i++) {
        if (template_paths_meet(checkpoint, job->shared.items[i].name)) {
            problem_set(ret_problem,
                        "'%s' of the job's files lies where the program saves its state",
                        input_shown(job->shared.items[i].name).text);
            return false;
        }
    }
    if (checkpoint != NULL && input_tree_has_link_to(&job->tree, checkpoint)) {
        problem_set(ret_problem, "'%s', where the program saves its state, is or passes a link",
                    input_shown(checkpoint).text);
        return false;
    }
    return true;
}

bool input_check_job(const struct bourse_job *job, const char *folder, unsigned *ret_line,
                     struct problem *ret_problem)
{
    const struct job_file *file = job->file;
    struct scene scene = {.job = job, .folder = folder, .problem = ret_problem};
    *ret_line = file->run_line;
    if (file->is_noop) {
        return true;
    }
    if (!check_checkpoint(job, ret_problem)) {
        return false;
    }
    if (file->task_count == 0) {
        scene.own_to = job->own.count;
        return check_command(&scene, &file->run);
    }
    for (size_t i = 0; i < file->task_count; i++) {
        scene.task = &file->tasks[i];
        scene.own_from = job->own_of[i];
        scene.own_to = job->own_of[i + 1];
        *ret_line = scene.task->line;
        if (!check_command(&scene, job_task_run(file, scene.task))) {
            return false;
        }
    }
    return true;
}
