/* This file checks the names of a job's outputs, and of the folder where its programs save their
 * state. */
#include "formats/job_internal.h"

#include "base/pattern.h"
#include "base/text.h"
#include "formats/limits.h"

#include <stdlib.h>
#include <string.h>

#define FAULT(fault, key, index, ...)                                                              \
    ((fault)->field = (key), (fault)->item = (index), problem_set(&(fault)->what, __VA_ARGS__),    \
     false)

/* Returns true when files may have this name: a listing must show the name as it is. */
static bool name_fits(const char *field, size_t index, const char *text, struct job_fault *fault)
{
    char shown[80];
    text_printable(text, strlen(text), shown, sizeof shown);
    return text_is_plain(text, strlen(text)) ||
           FAULT(fault, field, index,
                 "\"%s\" would misname its file: no control characters and no bidirectional marks",
                 shown);
}

/* Returns true when a file may belong to both outputs. Two patterns may share files, because nobody
 * can say which files these are. */
static bool outputs_meet(const char *a, const char *b)
{
    const bool is_a = template_is_pattern(a);
    const bool is_b = template_is_pattern(b);
    return is_a != is_b ? template_pattern_meets(is_a ? a : b, is_a ? b : a)
                        : !is_a && template_paths_meet(a, b);
}

static bool fault_of_two(const char *text, const char *other, size_t index, struct job_fault *fault)
{
    const bool has_pattern = template_is_pattern(text) || template_is_pattern(other);
    const bool is_other_first =
        has_pattern ? template_is_pattern(other) : strlen(other) > strlen(text);
    char first[80];
    char second[80];
    text_printable(is_other_first ? other : text, strlen(is_other_first ? other : text), first,
                   sizeof first);
    text_printable(is_other_first ? text : other, strlen(is_other_first ? text : other), second,
                   sizeof second);
    return has_pattern ? FAULT(fault, "outputs", index,
                               "the pattern \"%s\" also takes \"%s\", which is an output, too",
                               first, second)
                       : FAULT(fault, "outputs", index,
                               "\"%s\" lies below \"%s\", which is an output, too", first, second);
}

/* Compares an output with those before it. */
static bool check_output_apart(const struct job_file *job, size_t index, struct job_fault *fault)
{
    const char *text = job->outputs.items[index];
    for (size_t k = 0; k < index; k++) {
        const char *other = job->outputs.items[k];
        if (strcmp(other, text) == 0) {
            return FAULT(fault, "outputs", index, "the same output is given twice");
        }
        if (outputs_meet(text, other)) {
            return fault_of_two(text, other, index, fault);
        }
    }
    return true;
}

/* Checks what holds for patterns beside the rules of names. */
static bool check_pattern(const struct job_file *job, size_t index,
                          const struct template_values *sample, struct job_fault *fault)
{
    const char *text = job->outputs.items[index];
    char *pattern = template_pattern(text, sample, FORMAT_PATH_BYTES);
    const char *why = pattern == NULL ? "is too long" : pattern_problem(pattern);
    char shown[80];
    text_printable(text, strlen(text), shown, sizeof shown);
    free(pattern);
    if (why != NULL) {
        return FAULT(fault, "outputs", index, "the pattern \"%s\" %s", shown, why);
    }
    if (job->is_tensor || job->is_kernel || job->is_plugin) {
        return FAULT(fault, "outputs", index,
                     "\"%s\" is a pattern, which only the files of programs have; name the file",
                     shown);
    }
    return true;
}

/* Checks an output with plain samples in its placeholders. The real values are unknown until the
 * subtasks are known. */
static bool check_output(const struct job_file *job, size_t index, struct job_fault *fault)
{
    const char *text = job->outputs.items[index];
    const struct template_values sample = {
        .in = job->source == TEMPLATE_EACH ? "in" : NULL, .value = "value", .index = 0};
    char path[FORMAT_PATH_BYTES + 1];
    if (!job_template_fits(job, "outputs", index, text, fault) ||
        !name_fits("outputs", index, text, fault)) {
        return false;
    }
    enum template_status status = template_expand(text, &sample, path, sizeof path, NULL);
    if (status == TEMPLATE_TOO_LONG) {
        return FAULT(fault, "outputs", index, "longer than %d bytes", FORMAT_PATH_BYTES);
    }
    if (status == TEMPLATE_MALFORMED || !template_output_safe(path)) {
        char shown[80];
        text_printable(text, strlen(text), shown, sizeof shown);
        if (status == TEMPLATE_OK && path[0] != '/' && strstr(path, "//") != NULL) {
            return FAULT(fault, "outputs", index, "\"%s\" has two slashes in a row; write one",
                         shown);
        }
        return FAULT(fault, "outputs", index,
                     "\"%s\" must be a path inside the work folder: relative, without \"..\"",
                     shown);
    }
    return (!template_is_pattern(text) || check_pattern(job, index, &sample, fault)) &&
           check_output_apart(job, index, fault);
}

bool job_check_outputs(const struct job_file *job, struct job_fault *fault)
{
    if (job->outputs.count > FORMAT_OUTPUTS) {
        return FAULT(fault, "outputs", 0, "%zu items; at most %d are taken", job->outputs.count,
                     FORMAT_OUTPUTS);
    }
    for (size_t i = 0; i < job->outputs.count; i++) {
        if (!check_output(job, i, fault)) {
            return false;
        }
    }
    return true;
}

static bool check_apart(const struct job_file *job, const char *field,
                        const struct job_strings *names, bool is_output, struct job_fault *fault)
{
    for (size_t i = 0; i < names->count; i++) {
        const char *name = names->items[i];
        if (is_output && template_is_pattern(name) ? template_pattern_meets(name, job->checkpoint)
                                                   : template_paths_meet(job->checkpoint, name)) {
            char shown[80];
            text_printable(name, strlen(name), shown, sizeof shown);
            return FAULT(fault, "checkpoint", 0, "\"%s\" of %s lies there too", shown, field);
        }
    }
    return true;
}

bool job_check_checkpoint(const struct job_file *job, struct job_fault *fault)
{
    const char *text = job->checkpoint;
    if (text == NULL) {
        return true;
    }
    if (!job_text_fits("checkpoint", 0, text, FORMAT_PATH_BYTES, fault) ||
        !name_fits("checkpoint", 0, text, fault)) {
        return false;
    }
    if (!template_path_safe(text) || strpbrk(text, "{}") != NULL) {
        char shown[80];
        text_printable(text, strlen(text), shown, sizeof shown);
        if (template_is_folder(text)) {
            return FAULT(fault, "checkpoint", 0, "\"%s\" ends with a slash: leave it out", shown);
        }
        return FAULT(
            fault, "checkpoint", 0,
            "\"%s\" must be a folder inside the work folder: relative, without \"..\", {, }",
            shown);
    }
    if (job->is_noop || job->is_tensor || job->is_plugin || job->is_wasm || job->is_onnx) {
        return FAULT(fault, "checkpoint", 0, "only programs save their state");
    }
    if (strcmp(job->verify, "none") != 0) {
        return FAULT(fault, "checkpoint", 0, "does not go with verify: %s", job->verify);
    }
    return check_apart(job, "outputs", &job->outputs, true, fault) &&
           check_apart(job, "files", &job->files, false, fault) &&
           check_apart(job, "each", &job->each, false, fault);
}
