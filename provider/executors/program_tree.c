/* This file makes the work folder look like the folder that its files come from.
 *
 * The listing is a stranger's (formats/staging/work_tree.h). It gives files the permissions and the
 * time that they have there, and adds folders and links. The jail makes a link when all files have
 * their places, so nothing is ever placed through a link. */
#include "base/array.h"
#include "formats/staging/staged_link.h"
#include "formats/staging/work_tree.h"
#include "formats/template.h"
#include "provider/executors/program_internal.h"
#include "runtime/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *program_keep_text(struct run *run, const char *folder, const char *name)
{
    struct texts *placed = &run->placed;
    const size_t size = strlen(folder) + strlen(name) + 1;
    char **items =
        array_with_room(placed->items, placed->count, &placed->capacity, sizeof *placed->items);
    if (items == NULL) {
        return NULL;
    }
    placed->items = items;
    char *copy = malloc(size);
    if (copy != NULL) {
        (void)snprintf(copy, size, "%s%s", folder, name);
        placed->items[placed->count++] = copy;
    }
    return copy;
}

/* ---------------------------------------------------------------- folders and links */

static const char *why_no_bare(const struct run *run, const char *name, const char *target)
{
    const char *checkpoint = run->request.checkpoint;
    const bool is_link = target[0] != '\0';
    if (run->input_count >= LIMIT_INPUTS + 3 * LIMIT_FOLDER_FILES) {
        return "the subtask has too many files, folders and links";
    }
    if (!template_path_safe(name)) {
        return "an input's name leads out of the work folder or is no plain text";
    }
    if (is_link && checkpoint != NULL && template_paths_meet(checkpoint, name)) {
        return "a link lies where the job saves its state";
    }
    return is_link ? staged_link_problem(name, target) : NULL;
}

struct jail_input *program_gather_bare(struct run *run, const char *name, const char *target,
                                       struct problem *ret_problem)
{
    const char *why = why_no_bare(run, name, target);
    if (why != NULL) {
        problem_set(ret_problem, "%s", why);
        return NULL;
    }
    struct jail_input *inputs =
        array_with_room(run->inputs, run->input_count, &run->input_capacity, sizeof *run->inputs);
    const char *link = target[0] == '\0' ? NULL : program_keep_text(run, "", target);
    if (inputs != NULL) {
        run->inputs = inputs;
    }
    if (inputs == NULL || (link == NULL && target[0] != '\0')) {
        problem_set(ret_problem, "out of memory");
        return NULL;
    }
    inputs[run->input_count] =
        (struct jail_input){.name = name, .fd = -1, .is_folder = link == NULL, .link = link};
    return &inputs[run->input_count++];
}

/* ---------------------------------------------------------------- the listing */

/* A file among the inputs, to be found by its name. */
struct placed_file {
    const char *name;
    size_t input; /* its index */
};

struct reading {
    struct run *run;
    struct placed_file *files; /* in the order of a listing */
    size_t count;
};

static int by_name(const void *a, const void *b)
{
    return work_tree_compare(((const struct placed_file *)a)->name,
                             ((const struct placed_file *)b)->name);
}

/* Sorts the files among the inputs. Returns false with the problem when memory is short. */
static bool sort_files(struct reading *reading, struct problem *ret_problem)
{
    const struct run *run = reading->run;
    reading->files = calloc(run->input_count + 1, sizeof *reading->files);
    for (size_t i = 0; reading->files != NULL && i < run->input_count; i++) {
        if (!run->inputs[i].is_folder && run->inputs[i].link == NULL) {
            reading->files[reading->count++] =
                (struct placed_file){.name = run->inputs[i].name, .input = i};
        }
    }
    if (reading->count > 0) {
        qsort(reading->files, reading->count, sizeof *reading->files, by_name);
    }
    if (reading->files == NULL) {
        problem_set(ret_problem, "out of memory");
    }
    return reading->files != NULL;
}

/* Returns the input that the entry describes, or NULL with the problem. */
static struct jail_input *input_of(struct reading *reading, const struct work_tree_entry *entry,
                                   struct problem *ret_problem)
{
    struct run *run = reading->run;
    if (entry->kind != WORK_TREE_FILE) {
        const char *name = program_keep_text(run, "", entry->name);
        if (name == NULL) {
            problem_set(ret_problem, "out of memory");
            return NULL;
        }
        return program_gather_bare(run, name, entry->target, ret_problem);
    }
    const struct placed_file key = {.name = entry->name};
    const struct placed_file *found =
        reading->count == 0 ? NULL
                            : bsearch(&key, reading->files, reading->count, sizeof key, by_name);
    if (found == NULL) {
        problem_set(ret_problem, "it lists a file that the subtask does not have");
        return NULL;
    }
    return &run->inputs[found->input];
}

static bool take_entry(void *context, const struct work_tree_entry *entry,
                       struct problem *ret_problem)
{
    struct jail_input *input = input_of(context, entry, ret_problem);
    if (input == NULL) {
        return false;
    }
    input->has_look = true;
    input->look = (struct jail_look){.mode = entry->mode, .modified_ns = entry->modified_ns};
    return true;
}

/* Reads the whole blob. Returns NULL with the problem. */
static uint8_t *read_listing(const struct store_blob *blob, struct problem *ret_problem)
{
    if (blob->is_lent || blob->size > WORK_TREE_BYTES) {
        problem_set(ret_problem, "it is larger than %d bytes", WORK_TREE_BYTES);
        return NULL;
    }
    uint8_t *bytes = malloc((size_t)blob->size + 1);
    if (bytes == NULL || !file_read_at(blob->fd, bytes, (size_t)blob->size, 0)) {
        problem_set(ret_problem, "it cannot be read here");
        free(bytes);
        return NULL;
    }
    return bytes;
}

bool program_gather_tree(struct run *run, const struct store_blob *blob, struct outcome *outcome)
{
    struct reading reading = {.run = run};
    struct problem problem = {""};
    uint8_t *bytes = read_listing(blob, &problem);
    const bool is_read = bytes != NULL && sort_files(&reading, &problem);
    const bool good =
        is_read && work_tree_read(bytes, (size_t)blob->size, take_entry, &reading, &problem);
    if (!good) {
        outcome_fail(outcome, is_read ? OUTCOME_REFUSED : OUTCOME_JAIL_FAILED,
                     "the listing of the job's folder: %s", problem.text);
    }
    free(reading.files);
    free(bytes);
    return good;
}
