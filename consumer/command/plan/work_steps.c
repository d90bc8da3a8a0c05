#include "consumer/command/plan/work_steps.h"

#include "consumer/command/plan/plan_model.h"
#include "consumer/command/plan/work_refusal.h"
#include "consumer/command/show.h"
#include "planner/templates/template_list.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

static int find_template(struct work *work, const char *name)
{
    char names[300] = "";
    work->template = template_named(name);
    if (work->template != NULL) {
        return BOURSE_OK;
    }
    for (size_t i = 0; i < template_count(); i++) {
        size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                       template_at(i)->name);
    }
    char text[800];
    const bool is_file = access(name, F_OK) == 0;
    (void)snprintf(text, sizeof text,
                   is_file
                       ? "\"%.64s\" is a file and no template. A job's file is planned on what is "
                         "on offer: leave out what is for templates (--devices, --set ...); a "
                         "plan file is said with --file. Templates are %s"
                       : "there is no template \"%.64s\"; there are %s",
                   name, names);
    return work_refuse(work, BOURSE_USAGE, "TEMPLATE_", "UNKNOWN", text);
}

static bool is_preset(const struct plan_file_pair *setting)
{
    return strcmp(setting->name, TEMPLATE_PRESET) == 0;
}

static const struct plan_file_pair *setting_of(const struct plan_file *request, const char *name)
{
    for (size_t i = 0; i < request->setting_count; i++) {
        if (strcmp(request->settings[i].name, name) == 0) {
            return &request->settings[i];
        }
    }
    return NULL;
}

/* Sets the template's parameter for the batch, by the template's own name. */
static int set_batch(struct work *work)
{
    const size_t batch = template_batch(work->template);
    char value[24];
    struct problem problem = {.text = ""};
    if (work->request.batch == 0) {
        return BOURSE_OK;
    }
    if (batch == TEMPLATE_NO_PARAMETER) {
        problem_set(&problem, "%s has no batch", work->template->name);
        return work_refuse(work, BOURSE_USAGE, "TEMPLATE_", "VALUE", problem.text);
    }
    const struct plan_file_pair *setting =
        setting_of(&work->request, work->template->parameters[batch].name);
    const bool is_given = option_given(work->invocation, "batch");
    if (setting != NULL && (setting->line == 0) == is_given) {
        problem_set(&problem, "%s is said twice, as the batch and as %s=%s; say it once",
                    setting->name, setting->name, setting->value);
        return work_refuse(work, BOURSE_USAGE, "TEMPLATE_", "VALUE", problem.text);
    }
    if (setting != NULL && setting->line == 0) {
        return BOURSE_OK; /* the command line overrides the file's batch */
    }
    (void)snprintf(value, sizeof value, "%" PRId64, work->request.batch);
    return template_set(work->template, work->template->parameters[batch].name, value, work->values,
                        &problem)
               ? BOURSE_OK
               : work_refuse(work, BOURSE_USAGE, "TEMPLATE_", steps_status_name(STEPS_BAD_VALUE),
                             problem.text);
}

/* A whole number outside the parameter's range has a name of its own; any other value is
 * "VALUE". */
static const char *wrong_name(const struct work *work, const struct plan_file_pair *setting)
{
    const size_t index = template_parameter(work->template, setting->name);
    const char *digits = setting->value + (setting->value[0] == '-');
    const bool is_number = digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
    return index != TEMPLATE_NO_PARAMETER && is_number &&
                   work->template->parameters[index].choices == NULL
               ? steps_status_name(STEPS_BAD_VALUE)
               : "VALUE";
}

/* A preset comes first, wherever it stands, because other settings are meant to change it. */
static int set_values(struct work *work)
{
    template_begin(work->template, work->values);
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request.setting_count; i++) {
            struct problem problem = {.text = ""};
            const struct plan_file_pair *setting = &work->request.settings[i];
            if (is_preset(setting) == (pass == 0) &&
                !template_set(work->template, setting->name, setting->value, work->values,
                              &problem)) {
                return work_refuse(work, BOURSE_USAGE, "TEMPLATE_", wrong_name(work, setting),
                                   problem.text);
            }
        }
    }
    return set_batch(work);
}

int work_steps_make(struct work *work)
{
    const char *name =
        work->invocation->word_count > 0 ? work->invocation->words[0] : work->request.template;
    if (work->invocation->word_count > 0 && plan_model_is_named(name)) {
        return plan_model_make(work, name);
    }
    if (option_given(work->invocation, "dim")) {
        return complain(work->invocation, BOURSE_USAGE,
                        "--dim is for a model, as in `bourse plan model.onnx --dim batch=16`; a "
                        "template's values are said with --set");
    }
    int status = find_template(work, name);
    status = status == BOURSE_OK ? set_values(work) : status;
    if (status != BOURSE_OK) {
        return status;
    }
    struct problem problem = {.text = ""};
    enum steps_status made = template_create(work->template, work->values, &work->steps, &problem);
    if (made == STEPS_NO_MEMORY) {
        return work_no_memory(work);
    }
    return made == STEPS_OK ? BOURSE_OK
                            : work_refuse(work, BOURSE_USAGE, "TEMPLATE_", steps_status_name(made),
                                          problem.text);
}
