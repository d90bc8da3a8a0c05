#include "consumer/command/plan/work.h"

#include "base/checked.h"
#include "base/text.h"
#include "consumer/command/plan/picture.h"
#include "consumer/command/show.h"
#include "planner/templates/template_list.h"
#include "runtime/files.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void work_fini(struct work *work)
{
    steps_destroy(&work->steps);
    device_set_destroy(&work->set);
    plan_destroy(&work->plan);
    free(work->placed);
    free(work->classes);
    free(work->calibrations);
    free(work->histories);
}

/* ---------------------------------------------------------------- refusals */

/* Each refusal has its own stable name, see docs/errors.md. */
static int refuse(const struct work *work, enum bourse_status status, const char *prefix,
                  const char *name, const char *text)
{
    struct bourse_error error = {.status = status};
    char whole[sizeof error.text];
    const char *path = work->path != NULL ? work->path : "";
    (void)snprintf(error.name, sizeof error.name, "%s%s", prefix, name);
    (void)snprintf(whole, sizeof whole, "%s%s%s", path, path[0] != '\0' ? ": " : "", text);
    bourse_printable(whole, error.text, sizeof error.text);
    return complain_with(work->invocation, &error);
}

static int no_memory(const struct work *work)
{
    return complain(work->invocation, BOURSE_LOCAL, "there is not enough memory to plan it");
}

/* Writes where a value was given: "--figure", or "plan.yaml:7: figures". */
enum { SAID_SIZE = 160 };
static const char *said_at(const struct work *work, unsigned line, const char *option,
                           const char *key, char ret_text[SAID_SIZE])
{
    if (line == 0) {
        (void)snprintf(ret_text, SAID_SIZE, "--%s", option);
    } else {
        (void)snprintf(ret_text, SAID_SIZE, "%.120s:%u: %s", cell_plain(work->path), line, key);
    }
    return ret_text;
}

/* ---------------------------------------------------------------- what is asked */

/* Returns 0, or the exit status after a message, like all functions below. */
static int read_file(struct work *work)
{
    struct problem problem = {.text = ""};
    uint8_t *bytes = NULL;
    size_t length = 0;
    work->path = option_text(work->invocation, "file", NULL);
    plan_file_begin(&work->request);
    if (work->path == NULL) {
        return BOURSE_OK;
    }
    if (!file_read(work->path, PLAN_FILE_BYTES, &bytes, &length, &problem)) {
        return complain(work->invocation, BOURSE_USAGE, "%s", problem.text);
    }
    bool is_good =
        plan_file_parse((const char *)bytes, length, work->path, &work->request, &problem);
    free(bytes);
    return is_good ? BOURSE_OK : complain(work->invocation, BOURSE_USAGE, "%s", problem.text);
}

/* The command line adds to the file or overrides it. Named devices replace all devices of the
 * file. */
static bool read_given(struct work *work, const char *name, const char *value,
                       struct problem *problem)
{
    struct plan_file *request = &work->request;
    if (strcmp(name, "set") == 0) {
        return plan_file_pair(request->settings, PLAN_FILE_SETTINGS, &request->setting_count, value,
                              problem);
    }
    if (strcmp(name, "place") == 0) {
        return plan_file_pair(request->places, PLAN_FILE_PLACES, &request->place_count, value,
                              problem);
    }
    if (strcmp(name, "devices") == 0) {
        return plan_file_devices(request, value, problem);
    }
    if (strcmp(name, "on-offer") == 0) {
        return plan_file_devices(request, "market", problem);
    }
    if (strcmp(name, "samples") == 0) {
        return plan_file_samples(request, value, problem);
    }
    if (strcmp(name, "interruptible") == 0) {
        return plan_file_risk(request, value, problem);
    }
    if (strcmp(name, "figure") == 0) {
        return plan_file_figure(request, value, problem);
    }
    struct plan_file_link *link = strcmp(name, "pcie") == 0      ? &request->pcie
                                  : strcmp(name, "peer") == 0    ? &request->peer
                                  : strcmp(name, "fabric") == 0  ? &request->fabric
                                  : strcmp(name, "network") == 0 ? &request->network
                                                                 : NULL;
    if (link != NULL) {
        return plan_file_link(link, value, problem);
    }
    if (strcmp(name, "storage") == 0) {
        struct plan_file_link storage = {.is_given = false};
        bool is_good = plan_file_link(&storage, value, problem);
        request->storage = is_good ? storage.link.bandwidth : request->storage;
        return is_good;
    }
    return true;
}

static int read_options(struct work *work)
{
    struct invocation *invocation = work->invocation;
    struct plan_file *request = &work->request;
    if (option_given(invocation, "devices") || option_given(invocation, "on-offer")) {
        request->devices = (struct device_list){.part_count = 0};
        request->is_market = false;
    }
    for (size_t i = 0; i < invocation->given_count; i++) {
        struct problem problem = {.text = ""};
        const struct given *given = &invocation->given[i];
        if (!read_given(work, given->name, given->value, &problem)) {
            return complain(invocation, BOURSE_USAGE, "--%s: %s", given->name, problem.text);
        }
    }
    /* A named market without named devices means the devices of that market. */
    request->is_market = request->is_market ||
                         (request->devices.part_count == 0 && option_given(invocation, "market"));
    request->may_stream = request->may_stream || option_given(invocation, "stream");
    if (!option_duration_ns(invocation, "deadline", &request->deadline_ns) ||
        !option_count(invocation, "batch", 1, PLAN_FILE_BATCH_MOST, &request->batch) ||
        !option_money(invocation, "budget", &request->budget_micro) ||
        !option_money(invocation, "worth", &request->worth_micro)) {
        return BOURSE_USAGE;
    }
    if (option_given(invocation, "objective")) {
        (void)snprintf(request->objective, sizeof request->objective, "%.*s",
                       PLAN_FILE_WORD_SIZE - 1, option_text(invocation, "objective", ""));
    }
    return BOURSE_OK;
}

static int read_objective(struct work *work)
{
    const char *text = work->request.objective;
    work->objective = PLAN_TIME;
    if (text[0] != '\0' && !plan_objective_find(text, &work->objective)) {
        return complain(work->invocation, BOURSE_USAGE,
                        "objective \"%s\" is none of time, price, energy and value",
                        cell_plain(text));
    }
    if (work->objective == PLAN_VALUE && work->request.worth_micro < 1) {
        return complain(work->invocation, BOURSE_USAGE,
                        "by value needs --worth: how many credits an hour sooner is worth");
    }
    if (work->objective != PLAN_VALUE && work->request.worth_micro > 0) {
        return complain(work->invocation, BOURSE_USAGE,
                        "--worth is for --objective value alone; by %s it says nothing",
                        plan_objective_name(work->objective));
    }
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- the work */

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
    return refuse(work, BOURSE_USAGE, "TEMPLATE_", "UNKNOWN", text);
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
        return refuse(work, BOURSE_USAGE, "TEMPLATE_", "VALUE", problem.text);
    }
    const struct plan_file_pair *setting =
        setting_of(&work->request, work->template->parameters[batch].name);
    const bool is_given = option_given(work->invocation, "batch");
    if (setting != NULL && (setting->line == 0) == is_given) {
        problem_set(&problem, "%s is said twice, as the batch and as %s=%s; say it once",
                    setting->name, setting->name, setting->value);
        return refuse(work, BOURSE_USAGE, "TEMPLATE_", "VALUE", problem.text);
    }
    if (setting != NULL && setting->line == 0) {
        return BOURSE_OK; /* the command line overrides the file's batch */
    }
    (void)snprintf(value, sizeof value, "%" PRId64, work->request.batch);
    return template_set(work->template, work->template->parameters[batch].name, value, work->values,
                        &problem)
               ? BOURSE_OK
               : refuse(work, BOURSE_USAGE, "TEMPLATE_", steps_status_name(STEPS_BAD_VALUE),
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
                return refuse(work, BOURSE_USAGE, "TEMPLATE_", wrong_name(work, setting),
                              problem.text);
            }
        }
    }
    return set_batch(work);
}

static int make_steps(struct work *work)
{
    const char *name =
        work->invocation->word_count > 0 ? work->invocation->words[0] : work->request.template;
    int status = find_template(work, name);
    status = status == BOURSE_OK ? set_values(work) : status;
    if (status != BOURSE_OK) {
        return status;
    }
    struct problem problem = {.text = ""};
    enum steps_status made = template_create(work->template, work->values, &work->steps, &problem);
    if (made == STEPS_NO_MEMORY) {
        return no_memory(work);
    }
    return made == STEPS_OK
               ? BOURSE_OK
               : refuse(work, BOURSE_USAGE, "TEMPLATE_", steps_status_name(made), problem.text);
}

/* ---------------------------------------------------------------- the devices */

static int refuse_devices(const struct work *work, enum device_set_status status,
                          const struct problem *problem)
{
    return status == DEVICE_SET_NO_MEMORY
               ? no_memory(work)
               : refuse(work, BOURSE_USAGE, "", device_set_status_name(status), problem->text);
}

static int add_list(struct work *work)
{
    const struct device_list *list = &work->request.devices;
    for (size_t i = 0; i < list->part_count; i++) {
        const struct device_list_part *part = &list->parts[i];
        const struct catalogue_device *known = NULL;
        struct problem problem = {.text = ""};
        enum device_set_status status = device_set_find(part->name, &known, &problem);
        for (uint32_t k = 0; status == DEVICE_SET_OK && k < part->count; k++) {
            status = device_set_add(work->set, part->host, known, NULL, NULL,
                                    strcmp(known->kind, "cpu") == 0, part->price_micro, &problem);
        }
        if (status != DEVICE_SET_OK) {
            return refuse_devices(work, status, &problem);
        }
    }
    return BOURSE_OK;
}

static void apply_link(const struct plan_file_link *from, struct device_set_link *to)
{
    if (from->is_given) {
        to->bandwidth = (double)from->link.bandwidth;
        to->latency_s =
            from->has_latency ? (double)from->link.latency_ns / NS_PER_S : to->latency_s;
    }
}

/* Adds figures that the catalogue or the agent does not know. */
static int add_figures(struct work *work)
{
    static const enum profile_figure known[] = {
        FIGURE_MEMORY, FIGURE_BANDWIDTH, FIGURE_FP64, FIGURE_FP32, FIGURE_TF32,        FIGURE_FP16,
        FIGURE_BF16,   FIGURE_FP8,       FIGURE_INT8, FIGURE_INT4, FIGURE_INTERCONNECT};
    for (size_t i = 0; i < work->request.figure_count; i++) {
        const struct plan_file_figure *given = &work->request.figures[i];
        size_t number = 0;
        while (strcmp(plan_file_figure_name(number), given->name) != 0) {
            number++;
        }
        assert(number < sizeof known / sizeof known[0]);
        if (!device_set_declare(work->set, given->device, known[number], (double)given->value)) {
            char said[SAID_SIZE];
            return complain(work->invocation, BOURSE_USAGE,
                            "%s %s: no such device is among those of the plan, of which the "
                            "first is \"%s\"",
                            said_at(work, given->line, "figure", "figures", said),
                            cell_plain(given->device), work->set->items[0].name);
        }
    }
    return BOURSE_OK;
}

static int make_devices(struct work *work)
{
    const struct plan_file *request = &work->request;
    struct device_set_links links = device_set_defaults();
    int status = BOURSE_OK;
    work->set = device_set_create();
    if (work->set == NULL) {
        return no_memory(work);
    }
    if (request->is_market ? !work_market(work, &status) : (status = add_list(work)) != BOURSE_OK) {
        return status;
    }
    if (work->set->count == 0) {
        return complain(
            work->invocation, BOURSE_USAGE,
            "on which devices? --devices h100:2,tpu-v5p:4 names some of `bourse devices "
            "--catalogue`; --on-offer takes those of the market");
    }
    status = add_figures(work);
    if (status != BOURSE_OK) {
        return status;
    }
    apply_link(&request->pcie, &links.wires[DEVICE_SET_PCIE]);
    apply_link(&request->peer, &links.wires[DEVICE_SET_PEER]);
    apply_link(&request->fabric, &links.wires[DEVICE_SET_FABRIC]);
    apply_link(&request->network, &links.wires[DEVICE_SET_NETWORK]);
    links.storage = (double)request->storage;
    links.may_stream = request->may_stream;
    struct problem problem = {.text = ""};
    enum device_set_status linked = device_set_link(work->set, &links, &problem);
    if (linked != DEVICE_SET_OK) {
        return refuse_devices(work, linked, &problem);
    }
    for (size_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        work->costs[i] = item->cost;
        work->devices[i] = (struct plan_device){.name = item->name,
                                                .cost = &work->costs[i],
                                                .memory = item->memory,
                                                .price_micro = item->price_micro,
                                                .idle_w = {.source = FIGURE_UNKNOWN}};
    }
    return BOURSE_OK;
}

/* Adds the risk that devices of one name, or all devices, are taken away. */
static int add_risk(struct work *work, const struct plan_file_risk *given)
{
    const struct catalogue_device *known = NULL;
    struct problem problem = {.text = ""};
    const bool is_all = given->device[0] == '\0';
    struct spot_risk risk = {.per_hour = given->per_hour,
                             .restart_s = (double)given->restart_ns / NS_PER_S,
                             .checkpoint_s = (double)given->checkpoint_ns / NS_PER_S};
    risk.interval_s = spot_interval(&risk);
    if (!is_all && device_set_find(given->device, &known, &problem) != DEVICE_SET_OK) {
        known = NULL; /* the word may be a device's name in the plan */
    }
    bool is_any = false;
    for (size_t i = 0; i < work->set->count; i++) {
        const struct device_set_item *item = &work->set->items[i];
        if (is_all || (known != NULL && item->known == known) ||
            strcmp(item->name, given->device) == 0) {
            work->devices[i].risk = risk;
            is_any = true;
        }
    }
    char said[SAID_SIZE];
    return is_any ? BOURSE_OK
                  : complain(work->invocation, BOURSE_USAGE,
                             "%s %s: no such device is among those of the plan, of which the first "
                             "is \"%s\"",
                             said_at(work, given->line, "interruptible", "interruptible", said),
                             cell_plain(given->device), work->set->items[0].name);
}

/* Risks of all devices come first, then those of named ones. */
static int add_risks(struct work *work)
{
    int status = BOURSE_OK;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < work->request.risk_count && status == BOURSE_OK; i++) {
            const struct plan_file_risk *risk = &work->request.risks[i];
            if ((risk->device[0] == '\0') == (pass == 0)) {
                status = add_risk(work, risk);
            }
        }
    }
    return status;
}

/* Returns the device with that name in the plan, else the only one that `--devices` names so. */
static uint32_t find_device(const struct work *work, const char *name, bool *ret_is_several)
{
    *ret_is_several = false;
    const struct catalogue_device *known = NULL;
    struct problem problem = {.text = ""};
    uint32_t found = PLAN_ANYWHERE;
    for (uint32_t i = 0; i < work->set->count; i++) {
        if (strcmp(work->set->items[i].name, name) == 0) {
            return i;
        }
    }
    if (device_set_find(name, &known, &problem) != DEVICE_SET_OK) {
        return PLAN_ANYWHERE;
    }
    for (uint32_t i = 0; i < work->set->count; i++) {
        if (work->set->items[i].known == known) {
            *ret_is_several = found != PLAN_ANYWHERE;
            if (*ret_is_several) {
                return PLAN_ANYWHERE;
            }
            found = i;
        }
    }
    return found;
}

static int place_steps(struct work *work)
{
    if (work->request.place_count == 0) {
        return BOURSE_OK;
    }
    work->placed = calloc(work->steps->step_count, sizeof *work->placed);
    if (work->placed == NULL) {
        return no_memory(work);
    }
    for (size_t i = 0; i < work->steps->step_count; i++) {
        work->placed[i] = PLAN_ANYWHERE;
    }
    for (size_t i = 0; i < work->request.place_count; i++) {
        const struct plan_file_pair *place = &work->request.places[i];
        size_t step = steps_find(work->steps, place->name);
        bool is_several = false;
        uint32_t device = find_device(work, place->value, &is_several);
        if (step == work->steps->step_count || device == PLAN_ANYWHERE) {
            char said[SAID_SIZE];
            return complain(work->invocation, BOURSE_USAGE,
                            "%s %s=%s: %s; here the first step is \"%s\", the first device \"%s\"",
                            said_at(work, place->line, "place", "place", said),
                            cell_plain(place->name), cell_plain(place->value),
                            is_several                ? "several devices are called so"
                            : device == PLAN_ANYWHERE ? "there is no such device"
                                                      : "there is no such step",
                            work->steps->steps[0].name, work->set->items[0].name);
        }
        work->placed[step] = device;
    }
    return BOURSE_OK;
}

/* ---------------------------------------------------------------- the plan */

static int make_plan(struct work *work)
{
    const struct plan_input input = {.steps = work->steps,
                                     .template = work->template,
                                     .values = work->values,
                                     .devices = work->devices,
                                     .device_count = work->set->count,
                                     .topology = work->set->topology,
                                     .objective = work->objective,
                                     .deadline_s = (double)work->request.deadline_ns / NS_PER_S,
                                     .budget_micro = work->request.budget_micro,
                                     .worth_micro = work->request.worth_micro,
                                     .placed = work->placed,
                                     .histories = work->histories,
                                     .may_fall_back = option_given(work->invocation, "fall-back"),
                                     .may_leave_out = true,
                                     .effort = PLAN_EFFORT};
    struct plan_fault fault = {.step = PLAN_ANYWHERE};
    enum plan_status status = plan_make(&(struct plan_work){.steps = &input}, &work->plan, &fault);
    if (status == PLAN_OK) {
        return BOURSE_OK;
    }
    if (status == PLAN_NO_MEMORY) {
        return no_memory(work);
    }
    return refuse(work, status == PLAN_BAD_INPUT ? BOURSE_USAGE : BOURSE_NO_MATCH, "PLAN_",
                  plan_status_name(status), fault.problem.text);
}

bool work_is_requested(const struct invocation *invocation)
{
    static const char *const of_work[] = {"file", "devices", "templates"};
    if (invocation->word_count == 0 && option_given(invocation, "on-offer")) {
        return true;
    }
    for (size_t i = 0; i < sizeof of_work / sizeof of_work[0]; i++) {
        if (option_given(invocation, of_work[i])) {
            return true;
        }
    }
    return invocation->word_count > 0 && template_named(invocation->words[0]) != NULL;
}

static int make_work(struct work *work)
{
    int status = read_file(work);
    status = status == BOURSE_OK ? read_options(work) : status;
    status = status == BOURSE_OK ? read_objective(work) : status;
    status = status == BOURSE_OK ? make_steps(work) : status;
    status = status == BOURSE_OK ? make_devices(work) : status;
    status = status == BOURSE_OK ? add_risks(work) : status;
    status = status == BOURSE_OK ? place_steps(work) : status;
    status = status == BOURSE_OK ? work_learn(work) : status;
    return status == BOURSE_OK ? make_plan(work) : status;
}

int plan_work(struct invocation *invocation)
{
    if (option_given(invocation, "templates")) {
        return plan_templates(invocation);
    }
    if (option_given(invocation, "file") && invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "plan takes a template or --file FILE, which names one, not both");
    }
    if (!option_given(invocation, "file") && invocation->word_count == 0) {
        return complain(invocation, BOURSE_USAGE,
                        "what is to be planned? a template, as in `bourse plan llm --devices "
                        "h100:2`; `bourse plan --templates` lists them");
    }
    struct work work = {.invocation = invocation};
    unsigned width = 0;
    const char *svg = NULL;
    int status = BOURSE_USAGE;
    if (picture_width(invocation, &width) && picture_path(invocation, &svg, &status)) {
        status = make_work(&work);
    }
    if (status == BOURSE_OK && svg != NULL) {
        (void)picture_write(invocation, svg, work_draw(&work, NULL), &status);
    }
    if (status == BOURSE_OK && invocation->json) {
        status = work_show_json(&work);
    } else if (status == BOURSE_OK && invocation->quiet) {
        (void)printf("%.9g\n", work.plan->total.makespan_s.value);
    } else if (status == BOURSE_OK) {
        work_show(&work, width);
    }
    work_fini(&work);
    return status;
}
