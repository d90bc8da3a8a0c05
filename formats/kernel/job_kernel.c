/* The key `kernel` of a job file is read here, and made into the words of kernel_op.h. The job's
 * `run` holds these words. The kernel's files join the job's files and outputs, so that they travel
 * like those of any job. */
#include "formats/job_internal.h"
#include "formats/job_keys.h"
#include "formats/kernel/kernel_op.h"
#include "formats/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const keys[] = {"source", "entry", "global", "local", "options", "arguments"};
enum { KEYS = sizeof keys / sizeof keys[0], WORD_BYTES = 24 };

/* Adds one word of the launch. Returns false when something was refused. */
static bool add_word(struct yaml_value value, struct job_file *job, const char *word)
{
    return job_strings_add(&job->run, KERNEL_WORDS, word) || job_read_no_memory(value);
}

static bool add_number(struct yaml_value value, struct job_file *job, int64_t number)
{
    char word[WORD_BYTES];
    (void)snprintf(word, sizeof word, "%" PRId64, number);
    return add_word(value, job, word);
}

/* Adds the name to the list once. A name with a placeholder is of a file that `each` or `files`
 * brings. */
static bool add_name(struct yaml_value value, struct job_strings *names, size_t most,
                     const char *name)
{
    for (size_t i = 0; i < names->count; i++) {
        if (strcmp(names->items[i], name) == 0) {
            return true;
        }
    }
    if (names->count == most) {
        yaml_refuse(value, "the job has %zu files of this sort already, which is the most", most);
        return false;
    }
    return job_strings_add(names, most, name) || job_read_no_memory(value);
}

/* Adds the word of a file that the kernel reads, and the file to the job's. */
static bool add_file(struct yaml_value value, struct job_file *job)
{
    const char *name = yaml_text(value, FORMAT_PATH_BYTES, NULL);
    return name != NULL && add_word(value, job, name) &&
           (strpbrk(name, "{}") != NULL || add_name(value, &job->files, FORMAT_SHARED_FILES, name));
}

/* Adds the word of a file that the kernel leaves, and the file to the job's outputs. */
static bool add_result(struct yaml_value value, struct job_file *job)
{
    const char *name = yaml_text(value, FORMAT_PATH_BYTES, NULL);
    return name != NULL && add_word(value, job, name) &&
           add_name(value, &job->outputs, FORMAT_OUTPUTS, name);
}

/* Adds a range, which is one number or a list of them. */
static bool add_range(struct yaml_value value, struct job_file *job, const char *option)
{
    char word[FORMAT_UNIT_BYTES * KERNEL_DIMENSIONS];
    size_t length = 0;
    const bool is_list = yaml_kind(value) != YAML_KIND_TEXT;
    if (is_list && !yaml_is_list(value, KERNEL_DIMENSIONS)) {
        return false;
    }
    if (is_list && yaml_count(value) == 0) {
        yaml_refuse(value, "an empty range; write one to %d numbers, as in [1024, 1024]",
                    KERNEL_DIMENSIONS);
        return false;
    }
    for (size_t i = 0; i < (is_list ? yaml_count(value) : 1); i++) {
        const char *text =
            yaml_text(is_list ? yaml_item(value, i) : value, FORMAT_UNIT_BYTES - 2, NULL);
        if (text == NULL) {
            return false;
        }
        length +=
            (size_t)snprintf(word + length, sizeof word - length, "%s%s", i > 0 ? "," : "", text);
    }
    return add_word(value, job, option) && add_word(value, job, word);
}

static bool add_size(struct yaml_value value, struct job_file *job)
{
    const int64_t size = yaml_bytes(value, 1, (int64_t)KERNEL_SIZE_MOST, 0);
    return size > 0 && add_number(value, job, size);
}

/* Adds one entry of `arguments`, such as {output: c.bin, size: 4MiB}. */
static bool add_argument(struct yaml_value map, struct job_file *job)
{
    static const char *const known[] = {"input", "output", "inout", "size",  "local", "int",
                                        "uint",  "long",   "ulong", "float", "double"};
    yaml_known_keys(map, known, sizeof known / sizeof known[0]);
    const bool is_inout = yaml_present(yaml_key(map, "inout"));
    const bool is_output = yaml_present(yaml_key(map, "output"));
    const char *kind = NULL;
    size_t count = 0;
    for (enum kernel_argument_kind i = 0; i < KERNEL_KINDS; i++) {
        const bool is_given = yaml_present(yaml_key(map, kernel_op_word(i)));
        kind = is_given && !(i == KERNEL_OUTPUT && is_inout) ? kernel_op_word(i) : kind;
        count += is_given;
    }
    const bool fits = is_inout ? is_output && count == 2 : count == 1;
    if (!fits || yaml_present(yaml_key(map, "size")) != (is_output && !is_inout)) {
        yaml_refuse(map, "an argument is one of {input: FILE}, {output: FILE, size: 4MiB}, "
                         "{inout: FILE, output: FILE}, {local: 1KiB} and {float: 2.5}, which may "
                         "be int, uint, long, ulong or double too");
        return false;
    }
    char option[WORD_BYTES];
    struct yaml_value value = yaml_key(map, kind);
    (void)snprintf(option, sizeof option, "--%s", kind);
    if (!add_word(map, job, option)) {
        return false;
    }
    if (is_inout) {
        return add_file(value, job) && add_result(yaml_key(map, "output"), job);
    }
    if (is_output) {
        return add_result(value, job) && add_size(yaml_key(map, "size"), job);
    }
    if (strcmp(kind, "input") == 0) {
        return add_file(value, job);
    }
    if (strcmp(kind, "local") == 0) {
        return add_size(value, job);
    }
    const char *number = yaml_text(value, FORMAT_PATH_BYTES, NULL);
    return number != NULL && add_word(value, job, number);
}

void job_kernel_read(struct yaml_value map, struct job_file *job)
{
    if (!yaml_present(map) || !yaml_is_map(map, KEYS)) {
        return;
    }
    job->is_kernel = true;
    job->run_line = yaml_line(map);
    yaml_known_keys(map, keys, KEYS);
    const char *entry = yaml_text(yaml_required(map, "entry"), FORMAT_NAME_BYTES, NULL);
    if (!add_file(yaml_required(map, "source"), job) || entry == NULL ||
        !add_word(map, job, entry) || !add_range(yaml_required(map, "global"), job, "--global")) {
        return;
    }
    struct yaml_value local = yaml_key(map, "local");
    struct yaml_value options = yaml_key(map, "options");
    struct yaml_value arguments = yaml_key(map, "arguments");
    if (yaml_present(local) && !add_range(local, job, "--group")) {
        return;
    }
    if (yaml_present(options)) {
        const char *text = yaml_text(options, KERNEL_OPTIONS_BYTES, NULL);
        if (text == NULL || !add_word(options, job, "--options") || !add_word(options, job, text)) {
            return;
        }
    }
    if (!yaml_present(arguments) || !yaml_is_list(arguments, KERNEL_ARGUMENTS)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(arguments); i++) {
        struct yaml_value argument = yaml_item(arguments, i);
        if (!yaml_is_map(argument, KERNEL_DIMENSIONS) || !add_argument(argument, job)) {
            return;
        }
    }
}

bool job_kernel_check(const struct job_file *job, struct job_fault *fault)
{
    const char *other = job->is_tensor                ? "executor"
                        : job->image != NULL          ? "image"
                        : job->has_entrypoint         ? "entrypoint"
                        : job->directory != NULL      ? "directory"
                        : job->env_count > 0          ? "env"
                        : job->standard_input != NULL ? "stdin"
                        : job->checkpoint != NULL     ? "checkpoint"
                                                      : NULL;
    fault->field = "kernel";
    fault->item = SIZE_MAX; /* the key itself, not one of its entries */
    if (other != NULL) {
        problem_set(&fault->what,
                    "does not go with %s: a kernel takes only files, numbers and local memory",
                    other);
        return false;
    }
    for (size_t i = 0; i < job->run.count; i++) {
        if (!template_check(job->run.items[i], job->source, &fault->what)) {
            return false;
        }
    }
    struct kernel_op op;
    return kernel_op_read((const char *const *)job->run.items, job->run.count, true, &op,
                          &fault->what);
}
