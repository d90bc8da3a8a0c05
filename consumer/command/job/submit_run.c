/* This file runs submit, resume and run, which show the price before a job goes to the market. */
#include "consumer/command/job/offer.h"
#include "consumer/command/job/piped.h"
#include "consumer/command/job/run_end.h"
#include "consumer/command/job/stream.h"
#include "consumer/command/job/watch.h"
#include "consumer/command/notes.h"
#include "consumer/command/plan/job_choice.h"
#include "consumer/command/show.h"
#include "consumer/job/job_build.h"
#include "consumer/job/submit.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/limits.h"
#include "formats/requirement.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- submit, resume */

void job_ended_line(const struct bourse_job_row *row, char ret_text[JOB_ENDED_SIZE])
{
    char cancelled[32] = "";
    if (row->cancelled > 0) {
        (void)snprintf(cancelled, sizeof cancelled, ", %u cancelled", row->cancelled);
    }
    (void)snprintf(ret_text, JOB_ENDED_SIZE,
                   "job %.8s %s: %u of %u accepted, %u failed%s, %s credits%s%s", row->id,
                   row->state_text, row->accepted, row->subtasks, row->failed, cancelled,
                   cell_money(row->charged_micro),
                   row->state == BOURSE_DONE || row->reason_text[0] == '\0' ? "" : "; ",
                   row->state == BOURSE_DONE ? "" : row->reason_text);
}

void job_say_ended(const struct bourse_job_row *row)
{
    char line[JOB_ENDED_SIZE];
    stream_end_line();
    job_ended_line(row, line);
    (void)fprintf(stderr, "%s\n", line);
}

static bool say_first_failure(void *context, const struct bourse_outcome *outcome)
{
    if (outcome->outcome == 0) {
        return true;
    }
    run_end_say_outcome(context, outcome);
    return false;
}

void job_say_why(struct invocation *invocation, const struct bourse_job_row *row)
{
    struct bourse_error error; /* the job's status matters more than this text */
    if (row->state == BOURSE_FAILED) {
        CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, row->id);
        (void)bourse_outcomes(invocation->bourse, row->id, 0, say_first_failure, tasks, &error);
    }
}

/* `name` is how the job was told to follow others: the option, or the key of a job file. */
static bool may_follow(struct invocation *invocation, const char *name)
{
    return option_given(invocation, "yes") ||
           complain(invocation, BOURSE_USAGE,
                    "%s needs -y: the job is submitted later, when nobody may be here to ask",
                    name) == BOURSE_OK;
}

/* Wrong amounts and times are reported before anything is hashed, asked or sent. */
static bool check_options(struct invocation *invocation)
{
    int64_t ignored = 0;
    if (option_given(invocation, "after") && !may_follow(invocation, "--after")) {
        return false;
    }
    return option_money(invocation, "budget", &ignored) &&
           option_duration_ms(invocation, "wait-at-most", &ignored);
}

/* A job of type ioc or fok that found nothing has already ended when it is accepted. */
static bool has_ended_at_once(struct invocation *invocation, const struct bourse_job *job,
                              const char *id, struct bourse_job_row *ret_row)
{
    struct bourse_error error; /* the job was accepted, so a failure here is ignored */
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    if ((job->file->order != JOB_ORDER_IOC && job->file->order != JOB_ORDER_FOK) ||
        !bourse_jobs(invocation->bourse, id, &jobs, &error) || bourse_jobs_count(jobs) != 1) {
        return false;
    }
    *ret_row = *bourse_jobs_row(jobs, 0);
    ret_row->leases = NULL; /* the list owns the leases */
    ret_row->lease_count = 0;
    return ret_row->state != BOURSE_OPEN;
}

/* Says what is sent of a program of this machine. */
static void say_program(struct invocation *invocation, const struct bourse_job *job)
{
    const struct job_program *program = &job->program;
    if (!program->is_own || invocation->quiet || invocation->json) {
        return;
    }
    (void)fprintf(stderr, "program     %s, ", cell_plain(job->file->name));
    (void)fprintf(stderr, "%s, ", cell_bytes(program->bytes));
    if (job->file->is_wasm) {
        (void)fputs("a WASM module, which an engine of the provider runs\n", stderr);
    } else if (program->interpreter[0] != '\0') {
        (void)fprintf(stderr, "a script that the host's %s runs\n",
                      cell_plain(program->interpreter));
    } else if (program->has_host_libraries) {
        (void)fputs("with the libraries of the host\n", stderr);
    } else if (program->arch == NULL) {
        (void)fputs("in the job's image\n", stderr);
    } else if (program->libraries == 0) {
        (void)fputs("needs no libraries\n", stderr);
    } else {
        (void)fprintf(stderr, "with its loader and libraries: %zu files, %s, sent as one archive\n",
                      program->libraries, cell_bytes(program->library_bytes));
    }
}

/* Places the job. On request, waits for its end and fetches its outputs. */
static int submit_and_wait(struct invocation *invocation, struct bourse_job *job)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    const char *folder = option_text(invocation, "output", NULL);
    bool wait = option_given(invocation, "wait") || folder != NULL;
    say_program(invocation, job);
    if (!offer_and_place(invocation, job, id, &status)) {
        return status;
    }
    struct bourse_job_row row;
    if (!wait) {
        const bool has_ended = has_ended_at_once(invocation, job, id, &row);
        status = has_ended ? job_exit_status(&row) : BOURSE_OK;
        if (invocation->json) {
            return json_print(has_ended ? json_job(&row) : json_pack("{s:s}", "job", id), status);
        }
        (void)puts(invocation->quiet ? id : cell_short_id(id));
        if (has_ended && (!invocation->quiet || row.state != BOURSE_DONE)) {
            job_say_ended(&row);
        }
        return status;
    }
    if (!invocation->json) {
        (void)puts(invocation->quiet ? id : cell_short_id(id));
        (void)fflush(stdout);
    }
    struct replanning replanning;
    submit_keep(invocation->bourse, job);
    const bool has_ended = watch_job(invocation, id, &row, &replanning, &status);
    submit_keep(invocation->bourse, NULL);
    if (!has_ended) {
        return status;
    }
    struct bourse_fetched fetched = {.files = 0};
    if (folder != NULL && !fetching_all(invocation, id, folder, &fetched, &error)) {
        return complain_about_job(invocation, id, &error);
    }
    if (invocation->json) {
        json_t *value = json_job(&row);
        (void)json_object_set_new(value, "replans", replanning_json(&replanning));
        (void)(folder != NULL
                   ? json_object_set_new(value, "fetched", json_integer((json_int_t)fetched.files))
                   : 0);
        return json_print(value, job_exit_status(&row));
    }
    notes_say_left_out_of(invocation, id);
    if (!invocation->quiet || row.state != BOURSE_DONE) { /* -q concerns progress */
        job_say_why(invocation, &row);
        job_say_ended(&row);
    }
    return job_exit_status(&row);
}

static bool option_value(struct invocation *invocation, struct value *value)
{
    struct problem problem;
    const char *text = option_text(invocation, "value", NULL);
    if (text != NULL && !value_parse(text, value, &problem)) {
        (void)complain(invocation, BOURSE_USAGE, "--value: %s", problem.text);
        return false;
    }
    return true;
}

static bool option_order(struct invocation *invocation, enum job_order *ret_order)
{
    const char *word = option_text(invocation, "order", job_order_names[*ret_order]);
    for (unsigned order = 0; order < JOB_ORDERS; order++) {
        if (strcmp(word, job_order_names[order]) == 0) {
            *ret_order = (enum job_order)order;
            return true;
        }
    }
    (void)complain(invocation, BOURSE_USAGE,
                   "--order: '%s' is none of market, limit, ioc, fok, post-only and all-or-none",
                   word);
    return false;
}

static bool option_objective(struct invocation *invocation, enum job_objective *ret_objective)
{
    const char *word = option_text(invocation, "objective", job_objective_names[*ret_objective]);
    for (unsigned i = 0; i < JOB_OBJECTIVES; i++) {
        if (strcmp(word, job_objective_names[i]) == 0) {
            *ret_objective = (enum job_objective)i;
            return true;
        }
    }
    (void)complain(invocation, BOURSE_USAGE, "--objective: '%s' is none of time, price and energy",
                   word);
    return false;
}

/* Options of submit replace what the job file says. */
struct replaced {
    bool has_order;
    enum job_order order;
    int64_t cap_micro;  /* LIMIT_NONE: not given */
    struct value value; /* RATE_NONE: not given */
    /* The jobs of the file's `after:`. The command waits for them, so they are taken out of it. */
    struct job_strings after;
};

static bool read_replaced(struct invocation *invocation, struct replaced *ret_replaced)
{
    *ret_replaced = (struct replaced){.has_order = option_given(invocation, "order"),
                                      .cap_micro = LIMIT_NONE,
                                      .value = {.rate = RATE_NONE}};
    if (!option_order(invocation, &ret_replaced->order) ||
        !option_value(invocation, &ret_replaced->value) ||
        !option_money(invocation, "cap", &ret_replaced->cap_micro)) {
        return false;
    }
    if (option_given(invocation, "cap") && option_given(invocation, "value")) {
        (void)complain(invocation, BOURSE_USAGE, "give --cap or --value, not both");
        return false;
    }
    return true;
}

/* A cap replaces a value, and a value replaces a cap, because a job has only one of them. */
static bool replace(void *context, struct job_file *file, struct problem *ret_problem)
{
    struct replaced *replaced = context;
    const bool has_cap = limit_is_set(replaced->cap_micro);
    const bool has_value = replaced->value.rate != RATE_NONE;
    job_strings_fini(&replaced->after);
    replaced->after = file->after;
    file->after = (struct job_strings){.items = NULL};
    file->order = replaced->has_order ? replaced->order : file->order;
    if (has_cap || has_value) {
        file->cap_micro = replaced->cap_micro;
        file->value = replaced->value;
    }
    return job_file_check(file, ret_problem);
}

/* Submits a job file. Jobs that the file follows are waited for first. */
static int submit_file(struct invocation *invocation, struct replaced *replaced)
{
    int status = 0;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    const char *path = invocation->words[0];
    if (!job_choice_load(invocation, path, replace, replaced, &job, &status)) {
        return status;
    }
    if (replaced->after.count > 0 && !may_follow(invocation, "after:")) {
        return BOURSE_USAGE;
    }
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (option_given(invocation, "after") || replaced->after.count > 0) {
        if (!wait_for_success(invocation, &replaced->after, &status)) {
            return status;
        }
        bourse_job_destroy(&job); /* files may have changed since, and the market, too */
        if (!job_choice_load(invocation, path, replace, replaced, &job, &status)) {
            return status;
        }
    }
    return submit_and_wait(invocation, job);
}

int command_submit(struct invocation *invocation)
{
    struct replaced replaced;
    if (!check_options(invocation) || !read_replaced(invocation, &replaced)) {
        return BOURSE_USAGE;
    }
    const int status = submit_file(invocation, &replaced);
    job_strings_fini(&replaced.after);
    return status;
}

struct absence {
    struct invocation *invocation;
    size_t count;
    char first[256]; /* reason that the first file cannot be sent */
};

static void say_absent(void *context, const struct bourse_absent *absent)
{
    struct absence *absence = context;
    const char *kind = absent->is_image ? "the image" : cell_plain(absent->name);
    if (absence->count++ == 0) {
        (void)snprintf(absence->first, sizeof absence->first, "%s", cell_sentence(absent->why));
    }
    if (!absence->invocation->json) {
        (void)fprintf(stderr, "bourse: the broker lost %s, and it cannot be sent again: ", kind);
        (void)fprintf(stderr, "%s\n        (SHA-256 %s, %s)\n", cell_sentence(absent->why),
                      absent->hash, cell_bytes(absent->size));
    }
}

/* Files that the broker lost and this machine has go with the job. Returns false when some file is
 * missing here. */
static bool look_for_files(struct invocation *invocation, struct bourse_job *job, int *ret_status)
{
    struct absence absence = {.invocation = invocation};
    struct bourse_error error;
    if (!bourse_job_look_for_files(invocation->bourse, job, option_text(invocation, "files", "."),
                                   option_text(invocation, "image", NULL), say_absent, &absence,
                                   &error)) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    if (absence.count == 0 || option_given(invocation, "anyway")) {
        return true;
    }
    *ret_status =
        complain(invocation, BOURSE_LOCAL,
                 "%zu file%s that the job needs %s lost and cannot be sent (%s%s). Say "
                 "with --files where the job's files are, or with --image where its image is. "
                 "With --anyway, the subtasks that need none of them run",
                 absence.count, text_plural(absence.count), absence.count == 1 ? "is" : "are",
                 absence.first, absence.count == 1 ? "" : ", ...");
    return false;
}

int command_resume(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    int64_t cap_micro = LIMIT_NONE;
    int64_t good_for_ms = 0;
    int64_t deadline_ms = 0;
    int64_t deadline_at_ms = 0;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_error error;
    if (!check_options(invocation) || !option_money(invocation, "cap", &cap_micro) ||
        !option_duration_ms(invocation, "good-till", &good_for_ms) ||
        !option_end(invocation, "deadline", &deadline_ms, &deadline_at_ms)) {
        return BOURSE_USAGE;
    }
    if (good_for_ms > FORMAT_GOOD_TILL_MS || deadline_ms > FORMAT_GOOD_TILL_MS) {
        return complain(invocation, BOURSE_USAGE, "%s is at most 366d",
                        good_for_ms > FORMAT_GOOD_TILL_MS ? "--good-till" : "--deadline");
    }
    if (!command_connect(invocation, &status) ||
        !command_resolve_job(invocation, invocation->words[0], id, &status)) {
        return status;
    }
    if (!bourse_job_resume(invocation->bourse, id, cap_micro,
                           option_text(invocation, "value", NULL), good_for_ms, &job, &error)) {
        return complain_with(invocation, &error);
    }
    if (option_given(invocation, "deadline")) { /* instead of the first job's */
        job->file->deadline_ms = deadline_ms;
        job->file->deadline_at_ms = deadline_at_ms;
    }
    return look_for_files(invocation, job, &status) ? submit_and_wait(invocation, job) : status;
}

/* ---------------------------------------------------------------- run */

static bool add_list(struct invocation *invocation, const char *option, struct job_strings *strings,
                     size_t most)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        if (strcmp(invocation->given[i].name, option) == 0 &&
            !job_strings_add(strings, most, invocation->given[i].value)) {
            (void)complain(invocation, BOURSE_USAGE, "--%s: at most %zu", option, most);
            return false;
        }
    }
    return true;
}

static bool add_variables(struct invocation *invocation, struct job_file *file)
{
    for (size_t i = 0; i < invocation->given_count; i++) {
        const char *value = invocation->given[i].value;
        if (strcmp(invocation->given[i].name, "env") != 0) {
            continue;
        }
        const char *equals = strchr(value, '=');
        char *name = equals != NULL ? strndup(value, (size_t)(equals - value)) : NULL;
        bool ok = name != NULL && name[0] != '\0' && job_file_add_variable(file, name, equals + 1);
        free(name);
        if (!ok) {
            (void)complain(invocation, BOURSE_USAGE,
                           equals == NULL || equals == value
                               ? "--env %s: write NAME=VALUE"
                               : "--env %.64s: the variable cannot be added; a job has at most %d "
                                 "variables",
                           value, FORMAT_VARIABLES);
            return false;
        }
    }
    return true;
}

static bool set_source(struct invocation *invocation, struct job_file *file)
{
    struct problem problem = {.text = ""};
    const char *array = option_text(invocation, "array", NULL);
    const char *lines = option_text(invocation, "lines", option_text(invocation, "prompts", NULL));
    bool each = option_given(invocation, "each");
    if ((each ? 1 : 0) + (array != NULL) + (lines != NULL) > 1) {
        (void)complain(invocation, BOURSE_USAGE, "give one of --each, --array and --lines");
        return false;
    }
    if (each) {
        file->source = TEMPLATE_EACH;
        return add_list(invocation, "each", &file->each, FORMAT_PATTERNS);
    }
    if (array != NULL) {
        file->source = TEMPLATE_ARRAY;
        if (!range_parse(array, &file->array, &problem)) {
            (void)complain(invocation, BOURSE_USAGE, "--array: %s", problem.text);
            return false;
        }
    }
    if (lines != NULL) {
        file->source = TEMPLATE_LINES;
        return job_file_set(&file->lines, lines);
    }
    return true;
}

static bool set_numbers(struct invocation *invocation, struct job_file *file)
{
    int64_t slots = file->slots;
    int64_t at_most = file->at_most;
    int64_t retries = file->retries;
    int64_t parts = 0;
    file->term_ms = 0; /* without --term, job_file_check sets the term */
    bool ok =
        option_count(invocation, "parts", 1, FORMAT_SUBTASKS, &parts) &&
        option_count(invocation, "slots", 1, FORMAT_SLOTS, &slots) &&
        option_count(invocation, "at-most", 1, FORMAT_SUBTASKS, &at_most) &&
        option_count(invocation, "retries", 0, FORMAT_RETRIES, &retries) &&
        option_count(invocation, "crash-limit", 0, FORMAT_RETRIES, &file->crash_limit) &&
        option_count(invocation, "interruptions", 0, FORMAT_INTERRUPTIONS, &file->interruptions) &&
        option_duration_ms(invocation, "limit", &file->limit_ms) &&
        option_duration_ms(invocation, "term", &file->term_ms) &&
        option_duration_ms(invocation, "expect", &file->expect_ms) &&
        option_duration_ms(invocation, "good-till", &file->good_till_ms) &&
        option_end(invocation, "deadline", &file->deadline_ms, &file->deadline_at_ms) &&
        option_money(invocation, "cap", &file->cap_micro) &&
        option_value(invocation, &file->value) && option_order(invocation, &file->order) &&
        option_objective(invocation, &file->objective);
    file->slots = (uint32_t)slots;
    file->at_most = (uint32_t)at_most;
    file->retries = (uint32_t)retries;
    file->parts = (uint32_t)parts;
    file->host_libraries = option_given(invocation, "host-libraries");
    return ok;
}

static bool set_text(char **field, const char *text)
{
    return text == NULL || job_file_set(field, text);
}

static bool set_entrypoint(struct invocation *invocation, struct job_file *file)
{
    const char *program = option_text(invocation, "entrypoint", NULL);
    file->has_entrypoint = program != NULL;
    return program == NULL || program[0] == '\0' ||
           job_strings_add(&file->entrypoint, FORMAT_ARGUMENTS, program);
}

/* The refusal of a job begins with a key of job files, as in "outputs: ...". The user of `run`
 * wrote an option instead, so the text begins with the option: "--out: ...". Other texts stay. */
static void name_option(const struct invocation *invocation, const char *text, char *ret_text,
                        size_t capacity)
{
    static const struct {
        const char *key, *option;
    } others[] = {{"outputs", "out"}, {"files", "file"}};
    enum { KEY_SIZE = 32 };
    char option[KEY_SIZE];
    const size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz_");
    (void)snprintf(ret_text, capacity, "%s", text);
    if (length >= KEY_SIZE || strncmp(text + length, ": ", 2) != 0) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        option[i] = text[i] == '_' ? '-' : text[i];
    }
    option[length] = '\0';
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        if (strcmp(option, others[i].key) == 0) {
            (void)snprintf(option, sizeof option, "%s", others[i].option);
        }
    }
    if (option_given(invocation, option)) {
        (void)snprintf(ret_text, capacity, "--%s%s", option, text + length);
    }
}

struct job_file *job_from_arguments(struct invocation *invocation)
{
    CLEANUP(job_file_destroy) struct job_file *file = job_file_create();
    struct problem problem = {.text = ""};
    const char *needs = option_text(invocation, "needs", NULL);
    bool ok = file != NULL;
    if (invocation->word_count == 0 && !option_given(invocation, "image")) {
        (void)complain(invocation, BOURSE_USAGE,
                       "run needs [OPTIONS] -- PROGRAM [ARGUMENT ...]; see `bourse help run`");
        return NULL;
    }
    for (int i = 0; ok && i < invocation->word_count; i++) {
        ok = job_strings_add(&file->run, FORMAT_ARGUMENTS, invocation->words[i]);
    }
    file->is_onnx = ok && (strcmp(invocation->command->name, "run model") == 0 ||
                           strcmp(invocation->command->name, "train") == 0);
    if (!ok || !set_text(&file->name, option_text(invocation, "name", NULL)) ||
        !set_text(&file->image, option_text(invocation, "image", NULL)) ||
        !set_text(&file->directory, option_text(invocation, "directory", NULL)) ||
        !set_entrypoint(invocation, file) ||
        !set_text(&file->workdir, option_text(invocation, "workdir", NULL)) ||
        !set_text(&file->standard_input, option_text(invocation, "stdin", NULL)) ||
        !set_text(&file->checkpoint, option_text(invocation, "checkpoint", NULL))) {
        (void)complain(invocation, BOURSE_USAGE,
                       "out of memory, or the program has more than %d arguments",
                       FORMAT_ARGUMENTS);
        return NULL;
    }
    if (needs != NULL && !requirement_parse(needs, &file->needs, &problem)) {
        (void)complain(invocation, BOURSE_USAGE, "--needs: %s", problem.text);
        return NULL;
    }
    if (!set_source(invocation, file) ||
        !add_list(invocation, "file", &file->files, FORMAT_SHARED_FILES) ||
        !add_list(invocation, "out", &file->outputs, FORMAT_OUTPUTS) ||
        !add_variables(invocation, file) || !set_numbers(invocation, file)) {
        return NULL;
    }
    if (!job_file_check(file, &problem)) {
        char text[sizeof problem.text + 8];
        name_option(invocation, problem.text, text, sizeof text);
        (void)complain(invocation, BOURSE_USAGE, "%s", text);
        return NULL;
    }
    struct job_file *made = file;
    file = NULL;
    return made;
}

int command_run(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    struct bourse_error error;
    struct job_file *file = check_options(invocation) ? job_from_arguments(invocation) : NULL;
    if (file == NULL) {
        return BOURSE_USAGE;
    }
    int piped_fd = -1;
    bool has_outputs = file->outputs.count > 0;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    status = piped_read(invocation, file, &piped_fd);
    if (status != BOURSE_OK) {
        job_file_destroy(&file);
        return status;
    }
    if (!job_build_piped(file, ".", piped_fd, &job, &error)) {
        struct bourse_error named = error;
        name_option(invocation, error.text, named.text, sizeof named.text);
        return complain_with(invocation, &named);
    }
    say_program(invocation, job);
    if (!command_connect(invocation, &status) ||
        (option_given(invocation, "after") &&
         !wait_for_success(invocation, &(struct job_strings){.items = NULL}, &status)) ||
        !offer_and_place(invocation, job, id, &status)) {
        return status;
    }
    return run_end_wait(invocation, job, id, has_outputs);
}
