#include "formats/plan_file.h"

#include "base/cleanup.h"
#include "base/limit.h"
#include "base/text.h"
#include "formats/units.h"
#include "formats/yaml.h"

#include <stdio.h>
#include <string.h>

#define DEADLINE_MOST_NS (INT64_C(366) * 24 * 3600 * 1000000000)
enum { DEVICES_TEXT_MOST = 4096, LINK_TEXT_MOST = 100 };

void plan_file_begin(struct plan_file *file)
{
    memset(file, 0, sizeof *file);
    file->budget_micro = LIMIT_NONE;
}

bool plan_file_devices(struct plan_file *file, const char *text, struct problem *ret_problem)
{
    bool is_market = strcmp(text, "market") == 0;
    if ((is_market && file->devices.part_count > 0) || file->is_market) {
        problem_set(ret_problem,
                    "devices are those of the market, or those that are named, not both");
        return false;
    }
    file->is_market = is_market;
    return is_market || device_list_add(&file->devices, text, ret_problem);
}

bool plan_file_link(struct plan_file_link *link, const char *text, struct problem *ret_problem)
{
    struct device_link read = {.latency_ns = -1};
    if (!device_link_read(text, &read, ret_problem)) {
        return false;
    }
    *link = (struct plan_file_link){
        .is_given = true, .has_latency = read.latency_ns >= 0, .link = read};
    return true;
}

/* Refuses an option that the command line gives twice. An option replaces the file's value, but
 * not another option. */
static bool refuse_twice(const char *what, struct problem *problem)
{
    char shown[2 * PLAN_FILE_WORD_SIZE];
    text_printable(what, strlen(what), shown, sizeof shown);
    problem_set(problem, "%s: said twice; say it once", shown);
    return false;
}

static bool put_pair(struct plan_file_pair *pairs, size_t most, size_t *count, const char *name,
                     size_t name_length, const char *value, unsigned line, struct problem *problem)
{
    char shown[PLAN_FILE_WORD_SIZE];
    text_printable(name, name_length, shown, sizeof shown);
    if (name_length == 0 || name_length >= sizeof pairs->name || value[0] == '\0' ||
        strlen(value) >= sizeof pairs->value) {
        problem_set(problem,
                    "\"%s\": a name and a value have 1 to %d characters each, as in NAME=VALUE",
                    shown, PLAN_FILE_WORD_SIZE - 1);
        return false;
    }
    size_t at = 0;
    while (at < *count && (strlen(pairs[at].name) != name_length ||
                           memcmp(pairs[at].name, name, name_length) != 0)) {
        at++;
    }
    if (at == most) {
        problem_set(problem, "\"%s\" is one more than the %zu that there may be", shown, most);
        return false;
    }
    *count += at == *count;
    (void)snprintf(pairs[at].name, sizeof pairs[at].name, "%.*s", (int)name_length, name);
    (void)snprintf(pairs[at].value, sizeof pairs[at].value, "%s", value);
    pairs[at].line = line;
    return true;
}

bool plan_file_pair(struct plan_file_pair *pairs, size_t most, size_t *count, const char *text,
                    struct problem *ret_problem)
{
    const char *equals = strchr(text, '=');
    if (equals == NULL) {
        char shown[PLAN_FILE_WORD_SIZE];
        text_printable(text, strlen(text), shown, sizeof shown);
        problem_set(ret_problem, "\"%s\" has no value; write NAME=VALUE", shown);
        return false;
    }
    return put_pair(pairs, most, count, text, (size_t)(equals - text), equals + 1, 0, ret_problem);
}

/* ---------------------------------------------------------------- samples */

/* Sets the samples file of a device; replaces an earlier one. */
static bool put_samples(struct plan_file *file, const char *device, size_t device_length,
                        const char *path, bool is_of_file, struct problem *problem)
{
    struct plan_file_samples entry = {.is_of_file = is_of_file};
    if (device_length == 0 || device_length >= sizeof entry.device || path[0] == '\0' ||
        strlen(path) >= sizeof entry.path) {
        char shown[PLAN_FILE_WORD_SIZE];
        text_printable(device, device_length, shown, sizeof shown);
        problem_set(problem, "\"%s\" is not DEVICE=FILE, as in h100=h100.txt", shown);
        return false;
    }
    memcpy(entry.device, device, device_length);
    memcpy(entry.path, path, strlen(path) + 1);
    size_t at = 0;
    while (at < file->sample_count && strcmp(file->samples[at].device, entry.device) != 0) {
        at++;
    }
    if (at < file->sample_count && !is_of_file && !file->samples[at].is_of_file) {
        return refuse_twice(entry.device, problem);
    }
    if (at == PLAN_FILE_SAMPLES) {
        problem_set(problem, "at most %d devices may have samples", PLAN_FILE_SAMPLES);
        return false;
    }
    file->sample_count += at == file->sample_count;
    file->samples[at] = entry;
    return true;
}

bool plan_file_samples(struct plan_file *file, const char *text, struct problem *ret_problem)
{
    const char *equals = strchr(text, '=');
    return put_samples(file, text, equals != NULL ? (size_t)(equals - text) : strlen(text),
                       equals != NULL ? equals + 1 : "", false, ret_problem);
}

/* ---------------------------------------------------------------- risks */

enum { RISK_FIELDS = 3, RISK_TEXT_MOST = 100 };
#define RISK_MOST_PER_HOUR 1000000

/* Reads "0.5/h", interruptions per hour, to a millionth. */
static bool read_rate(const char *text, double *ret_per_hour)
{
    char number[RISK_TEXT_MOST];
    int64_t millionths = 0;
    size_t length = strlen(text);
    if (length < 3 || length >= sizeof number || strcmp(text + length - 2, "/h") != 0) {
        return false;
    }
    (void)snprintf(number, sizeof number, "%.*s", (int)(length - 2), text);
    if (units_money(number, &millionths) != UNITS_OK || millionths < 0 ||
        millionths > RISK_MOST_PER_HOUR * INT64_C(1000000)) {
        return false;
    }
    *ret_per_hour = (double)millionths / 1e6;
    return true;
}

static bool read_risk(const char *text, struct plan_file_risk *ret_risk)
{
    char copy[RISK_TEXT_MOST];
    int64_t *const times[RISK_FIELDS - 1] = {&ret_risk->restart_ns, &ret_risk->checkpoint_ns};
    if (strlen(text) >= sizeof copy) {
        return false;
    }
    memcpy(copy, text, strlen(text) + 1);
    char *rest = strchr(copy, ',');
    if (rest != NULL) {
        *rest++ = '\0';
    }
    bool is_good = read_rate(copy, &ret_risk->per_hour);
    for (int i = 0; is_good && i < RISK_FIELDS - 1 && rest != NULL; i++) {
        char *at = rest;
        rest = strchr(at, ',');
        if (rest != NULL) {
            *rest++ = '\0';
        }
        is_good = units_duration(at, times[i]) == UNITS_OK && *times[i] >= 0 &&
                  *times[i] <= DEADLINE_MOST_NS;
    }
    return is_good && rest == NULL;
}

static bool put_risk(struct plan_file *file, const char *device, size_t device_length,
                     const char *text, unsigned line, struct problem *problem)
{
    struct plan_file_risk risk = {.line = line};
    if (device_length >= sizeof risk.device || !read_risk(text, &risk)) {
        problem_set(problem, "write how often devices are taken away as in 0.5/h, 0.5/h,2m or "
                             "l4=0.5/h,2m,30s: interruptions an hour, the time to begin again, and "
                             "the time of a checkpoint");
        return false;
    }
    memcpy(risk.device, device, device_length);
    size_t at = 0;
    while (at < file->risk_count && strcmp(file->risks[at].device, risk.device) != 0) {
        at++;
    }
    if (at < file->risk_count && line == 0 && file->risks[at].line == 0) {
        return refuse_twice(risk.device[0] == '\0' ? "all of them" : risk.device, problem);
    }
    if (at == PLAN_FILE_RISKS) {
        problem_set(problem, "at most %d devices may be interruptible", PLAN_FILE_RISKS);
        return false;
    }
    file->risk_count += at == file->risk_count;
    file->risks[at] = risk;
    return true;
}

bool plan_file_risk(struct plan_file *file, const char *text, struct problem *ret_problem)
{
    const char *equals = strchr(text, '=');
    if (equals == text) {
        problem_set(ret_problem,
                    "whose is it? the name of a device stands before =, as in l4=0.5/h; "
                    "0.5/h alone is of all");
        return false;
    }
    return put_risk(file, text, equals != NULL ? (size_t)(equals - text) : 0,
                    equals != NULL ? equals + 1 : text, 0, ret_problem);
}

/* ---------------------------------------------------------------- figures */

static const struct {
    const char *name;
    enum units_kind kind;
} figures[] = {{"memory", UNITS_BYTES},
               {"bandwidth", UNITS_BANDWIDTH},
               {"fp64", UNITS_FLOPS},
               {"fp32", UNITS_FLOPS},
               {"tf32", UNITS_FLOPS},
               {"fp16", UNITS_FLOPS},
               {"bf16", UNITS_FLOPS},
               {"fp8", UNITS_FLOPS},
               {"int8", UNITS_OPS},
               {"int4", UNITS_OPS},
               {"interconnect", UNITS_BANDWIDTH}};
enum { FIGURES = sizeof figures / sizeof figures[0], FIGURE_TEXT_MOST = 100 };

const char *plan_file_figure_name(size_t number)
{
    return number < FIGURES ? figures[number].name : NULL;
}

#define FIGURE_NAMES                                                                               \
    "memory, bandwidth, interconnect, fp64, fp32, tf32, fp16, bf16, fp8, int8, int4"

static bool is_rate(const char *text)
{
    const size_t length = strlen(text);
    return length > 2 && strcmp(text + length - 2, "/s") == 0;
}

static bool put_figure(struct plan_file *file, const char *device, const char *name,
                       const char *text, unsigned line, struct problem *problem)
{
    struct plan_file_figure entry = {.line = line};
    size_t kind = 0;
    while (kind < FIGURES && strcmp(figures[kind].name, name) != 0) {
        kind++;
    }
    if (device[0] == '\0' || strlen(device) >= sizeof entry.device) {
        problem_set(problem, "whose figures? the name of a device has 1 to %d characters, as l4",
                    PLAN_FILE_WORD_SIZE - 1);
        return false;
    }
    if (kind == FIGURES) {
        char shown[PLAN_FILE_WORD_SIZE];
        text_printable(name, strlen(name), shown, sizeof shown);
        problem_set(problem, "\"%s\" is no figure of a device; there are " FIGURE_NAMES, shown);
        return false;
    }
    if (figures[kind].kind == UNITS_BANDWIDTH && !is_rate(text)) {
        char shown[PLAN_FILE_FIGURE_SIZE];
        text_printable(text, strlen(text), shown, sizeof shown);
        problem_set(problem, "\"%s\" is no %s: write a rate by the second, as in 1.2TB/s", shown,
                    name);
        return false;
    }
    enum units_status status = units_read(figures[kind].kind, text, &entry.value);
    if (status != UNITS_OK) {
        units_explain(figures[kind].kind, status, text, problem->text, sizeof problem->text);
        return false;
    }
    if (entry.value < 1) {
        problem_set(problem, "%s is above 0; leave out what is not known", name);
        return false;
    }
    text_printable(text, strlen(text), entry.text, sizeof entry.text);
    entry.name = figures[kind].name;
    memcpy(entry.device, device, strlen(device) + 1);
    size_t at = 0;
    while (at < file->figure_count && (strcmp(file->figures[at].device, device) != 0 ||
                                       strcmp(file->figures[at].name, name) != 0)) {
        at++;
    }
    if (at < file->figure_count && line == 0 && file->figures[at].line == 0) {
        char said[2 * PLAN_FILE_WORD_SIZE];
        (void)snprintf(said, sizeof said, "%s=%s", device, name);
        return refuse_twice(said, problem);
    }
    if (at == PLAN_FILE_FIGURES) {
        problem_set(problem, "at most %d figures may be given", PLAN_FILE_FIGURES);
        return false;
    }
    file->figure_count += at == file->figure_count;
    file->figures[at] = entry;
    return true;
}

bool plan_file_figure(struct plan_file *file, const char *text, struct problem *ret_problem)
{
    char copy[PLAN_FILE_WORD_SIZE + FIGURE_TEXT_MOST];
    (void)snprintf(copy, sizeof copy, "%s", text);
    char *name = strchr(copy, '=');
    char *value = name != NULL ? strchr(name + 1, '=') : NULL;
    if (strlen(text) >= sizeof copy || value == NULL) {
        problem_set(ret_problem,
                    "a figure is DEVICE=NAME=VALUE, as in l4=memory=24GB; names are " FIGURE_NAMES);
        return false;
    }
    *name++ = '\0';
    *value++ = '\0';
    return put_figure(file, copy, name, value, 0, ret_problem);
}

/* ---------------------------------------------------------------- the file */

static void read_word(struct yaml_value value, char ret_word[PLAN_FILE_WORD_SIZE])
{
    const char *text = yaml_text(value, PLAN_FILE_WORD_SIZE - 1, "");
    (void)snprintf(ret_word, PLAN_FILE_WORD_SIZE, "%s", text);
}

static void read_pairs(struct yaml_value map, struct plan_file_pair *pairs, size_t most,
                       size_t *count)
{
    if (!yaml_present(map) || !yaml_is_map(map, most)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        struct problem problem = {.text = ""};
        const char *name = yaml_entry_key(map, i);
        const char *value = yaml_text(yaml_entry(map, i), PLAN_FILE_WORD_SIZE - 1, NULL);
        if (value != NULL && !put_pair(pairs, most, count, name, strlen(name), value,
                                       yaml_line(yaml_entry(map, i)), &problem)) {
            yaml_refuse(yaml_entry(map, i), "%s", problem.text);
        }
    }
}

static void read_devices_of(struct yaml_value value, struct plan_file *file)
{
    struct problem problem = {.text = ""};
    const char *text = yaml_text(value, DEVICES_TEXT_MOST, NULL);
    if (text != NULL && !plan_file_devices(file, text, &problem)) {
        yaml_refuse(value, "%s", problem.text);
    }
}

static void read_devices(struct yaml_value value, struct plan_file *file)
{
    if (!yaml_present(value)) {
        return;
    }
    if (yaml_kind(value) != YAML_KIND_LIST) {
        read_devices_of(value, file);
    } else if (yaml_is_list(value, DEVICE_LIST_PARTS)) {
        for (size_t i = 0; i < yaml_count(value); i++) {
            read_devices_of(yaml_item(value, i), file);
        }
    }
}

static void read_link(struct yaml_value value, struct plan_file_link *link)
{
    struct problem problem = {.text = ""};
    const char *text = yaml_text(value, LINK_TEXT_MOST, NULL);
    if (text != NULL && !plan_file_link(link, text, &problem)) {
        yaml_refuse(value, "%s", problem.text);
    }
}

static void read_samples(struct yaml_value map, struct plan_file *file)
{
    if (!yaml_present(map) || !yaml_is_map(map, PLAN_FILE_SAMPLES)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        struct problem problem = {.text = ""};
        const char *device = yaml_entry_key(map, i);
        const char *path = yaml_text(yaml_entry(map, i), PLAN_FILE_PATH_SIZE - 1, NULL);
        if (path != NULL && !put_samples(file, device, strlen(device), path, true, &problem)) {
            yaml_refuse(yaml_entry(map, i), "%s", problem.text);
        }
    }
}

static void read_risk_of(struct yaml_value value, const char *device, struct plan_file *file)
{
    struct problem problem = {.text = ""};
    const char *text = yaml_text(value, RISK_TEXT_MOST, NULL);
    if (text != NULL && !put_risk(file, device, strlen(device), text, yaml_line(value), &problem)) {
        yaml_refuse(value, "%s", problem.text);
    }
}

static void read_risks(struct yaml_value value, struct plan_file *file)
{
    if (!yaml_present(value)) {
        return;
    }
    if (yaml_kind(value) != YAML_KIND_MAP) {
        read_risk_of(value, "", file);
    } else if (yaml_is_map(value, PLAN_FILE_RISKS)) {
        for (size_t i = 0; i < yaml_count(value); i++) {
            read_risk_of(yaml_entry(value, i), yaml_entry_key(value, i), file);
        }
    }
}

static void read_figures_of(struct yaml_value map, const char *device, struct plan_file *file)
{
    if (!yaml_is_map(map, FIGURES)) {
        return;
    }
    if (device[0] == '\0') {
        yaml_refuse(map, "whose figures? the name of a device stands before them, as l4");
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        struct problem problem = {.text = ""};
        const char *text = yaml_text(yaml_entry(map, i), FIGURE_TEXT_MOST, NULL);
        if (text != NULL && !put_figure(file, device, yaml_entry_key(map, i), text,
                                        yaml_line(yaml_entry(map, i)), &problem)) {
            yaml_refuse(yaml_entry(map, i), "%s", problem.text);
        }
    }
}

static void read_figures(struct yaml_value map, struct plan_file *file)
{
    if (!yaml_present(map) || !yaml_is_map(map, PLAN_FILE_FIGURES)) {
        return;
    }
    for (size_t i = 0; i < yaml_count(map); i++) {
        read_figures_of(yaml_entry(map, i), yaml_entry_key(map, i), file);
    }
}

static int64_t read_storage(struct yaml_value value)
{
    struct plan_file_link link = {.is_given = false};
    read_link(value, &link);
    if (link.has_latency && link.link.latency_ns > 0) {
        yaml_refuse(value, "storage has no latency; write how fast it is, as in 7GB/s");
    }
    return link.link.bandwidth;
}

bool plan_file_parse(const char *bytes, size_t length, const char *file_name,
                     struct plan_file *ret_file, struct problem *ret_problem)
{
    static const char *const keys[] = {
        "template", "set",    "devices",   "pcie",          "fabric", "network",
        "storage",  "stream", "objective", "deadline",      "budget", "worth",
        "place",    "batch",  "samples",   "interruptible", "peer",   "figures"};
    CLEANUP(yaml_close) struct yaml_file *file = yaml_open(bytes, length, file_name, ret_problem);
    if (file == NULL) {
        return false;
    }
    struct yaml_value root = yaml_root(file);
    plan_file_begin(ret_file);
    yaml_known_keys(root, keys, sizeof keys / sizeof keys[0]);
    read_word(yaml_required(root, "template"), ret_file->template);
    read_pairs(yaml_key(root, "set"), ret_file->settings, PLAN_FILE_SETTINGS,
               &ret_file->setting_count);
    read_devices(yaml_key(root, "devices"), ret_file);
    read_link(yaml_key(root, "pcie"), &ret_file->pcie);
    read_link(yaml_key(root, "peer"), &ret_file->peer);
    read_link(yaml_key(root, "fabric"), &ret_file->fabric);
    read_link(yaml_key(root, "network"), &ret_file->network);
    ret_file->storage = read_storage(yaml_key(root, "storage"));
    ret_file->may_stream = yaml_boolean(yaml_key(root, "stream"), false);
    read_word(yaml_key(root, "objective"), ret_file->objective);
    ret_file->deadline_ns = yaml_duration_ns(yaml_key(root, "deadline"), 1, DEADLINE_MOST_NS, 0);
    ret_file->budget_micro = yaml_money(yaml_key(root, "budget"), 0, INT64_MAX, LIMIT_NONE);
    ret_file->worth_micro = yaml_money(yaml_key(root, "worth"), 1, INT64_MAX, 0);
    read_pairs(yaml_key(root, "place"), ret_file->places, PLAN_FILE_PLACES, &ret_file->place_count);
    ret_file->batch = yaml_integer(yaml_key(root, "batch"), 1, PLAN_FILE_BATCH_MOST, 0);
    read_samples(yaml_key(root, "samples"), ret_file);
    read_risks(yaml_key(root, "interruptible"), ret_file);
    read_figures(yaml_key(root, "figures"), ret_file);
    return yaml_finished(file, ret_problem);
}
