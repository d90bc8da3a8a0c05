/* This file takes the entries of a folder that came as one archive into the inputs of a subtask.
 *
 * An input whose name ends with a slash is a tar archive of the files below that folder, and "./"
 * stands for the work folder. The archive is a stranger's. Its headers are read, and its content is
 * only copied. Empty folders and links are taken where the manifest says that they are kept. */
#include "base/pattern.h"
#include "base/text.h"
#include "formats/staging/staged_link.h"
#include "formats/tar.h"
#include "formats/template.h"
#include "provider/executors/program_internal.h"
#include "runtime/files.h"

#include <stdio.h>
#include <string.h>

struct gathering {
    struct run *run;
    struct store_blob *blob;
    const char *folder;  /* "" or with a slash at its end */
    const char *pattern; /* below the folder; NULL: every file is taken */
    struct outcome *outcome;
    bool has_link; /* links come last, so that no file lies below one */
};

static bool read_blob(void *context, uint64_t offset, uint8_t *ret_bytes, size_t length)
{
    const struct store_blob *blob = context;
    return file_read_at(blob->fd, ret_bytes, length, offset);
}

/* Says why an entry may not be in the archive, or returns NULL. */
static const char *why_unfit(struct gathering *gathering, const struct tar_entry *entry)
{
    const bool is_bare = entry->type == '5' || entry->type == '2';
    if (entry->type != '0' &&
        !(is_bare && program_keeps_trees(gathering->run->program->manifest))) {
        return "it has an entry that is no file";
    }
    if (gathering->has_link && entry->type != '2') {
        return "it has an entry behind a link";
    }
    gathering->has_link = entry->type == '2';
    return gathering->pattern == NULL || pattern_reach(gathering->pattern, entry->name,
                                                       entry->type == '5') == PATTERN_MATCHES
               ? NULL
               : "it has a file that the output's pattern does not match";
}

static bool take_file(struct gathering *gathering, const char *name, const struct tar_entry *entry,
                      struct problem *ret_problem)
{
    struct run *run = gathering->run;
    if (!program_gather(run, name, gathering->blob, (entry->mode & 0100) != 0,
                        gathering->outcome)) {
        problem_set(ret_problem, "%s", gathering->outcome->detail);
        return false;
    }
    struct jail_input *input = &run->inputs[run->input_count - 1];
    input->offset = entry->offset;
    input->size = entry->size;
    input->content = NULL; /* the hash is the archive's, and says nothing of this file */
    return true;
}

static bool take_entry(void *context, const struct tar_entry *entry, struct problem *ret_problem)
{
    struct gathering *gathering = context;
    struct run *run = gathering->run;
    const char *why = why_unfit(gathering, entry);
    if (why != NULL) {
        problem_set(ret_problem, "%s", why);
        return false;
    }
    if (run->input_count >= LIMIT_INPUTS + LIMIT_FOLDER_FILES) {
        problem_set(ret_problem, "the subtask has more than %d files", LIMIT_FOLDER_FILES);
        return false;
    }
    const char *name = program_keep_text(run, gathering->folder, entry->name);
    if (name == NULL) {
        problem_set(ret_problem, "out of memory");
        return false;
    }
    /* The target is judged by the name below the folder, so that no link leads out of the
     * folder. */
    why = entry->type == '2' ? staged_link_problem(entry->name, entry->link) : NULL;
    if (why != NULL) {
        problem_set(ret_problem, "it has a link that %s", why);
        return false;
    }
    return entry->type == '0' ? take_file(gathering, name, entry, ret_problem)
                              : program_gather_bare(run, name, entry->link, ret_problem) != NULL;
}

bool program_gather_folder(struct run *run, const char *name, const char *pattern,
                           struct store_blob *blob, struct outcome *outcome)
{
    const bool is_top = strcmp(name, "./") == 0;
    struct gathering gathering = {
        .run = run, .blob = blob, .folder = is_top ? "" : name, .outcome = outcome};
    char folder[LIMIT_PATH_BYTES + 3];
    if (pattern != NULL) { /* the codec bounds it */
        pattern_split(pattern, folder, &gathering.pattern);
    }
    const struct tar_limits limits = {.entries = 2 * LIMIT_FOLDER_FILES, .bytes = UINT64_MAX};
    const struct tar_source source = {.size = blob->size, .read = read_blob, .context = blob};
    struct problem problem = {""};
    if (blob->is_lent || (!is_top && !template_output_safe(name))) {
        return program_refuse(outcome, "an input's folder leads out of the work folder, or is no "
                                       "plain text");
    }
    const enum tar_status status =
        tar_walk(&source, &limits, take_entry, &gathering, NULL, &problem);
    if (status != TAR_OK) {
        char shown[64];
        outcome_fail(outcome, status == TAR_UNREADABLE ? OUTCOME_JAIL_FAILED : OUTCOME_REFUSED,
                     "the archive of the folder %s: %s",
                     (text_printable(name, strlen(name), shown, sizeof shown), shown),
                     problem.text);
    }
    return status == TAR_OK;
}
