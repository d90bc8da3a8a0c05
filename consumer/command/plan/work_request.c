#include "consumer/command/plan/work_request.h"

#include "consumer/command/show.h"
#include "runtime/files.h"

#include <stdlib.h>
#include <string.h>

/* Reads the file of --file, if the option is given. Returns BOURSE_OK, or the exit status after a
 * message, like all functions below that return int. */
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

/* Takes one option into the request. Options of the command line add to the file or override it.
 * Options that this function does not know are read elsewhere. */
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
    /* Devices of the command line replace all devices of the file. */
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
                        "objective \"%s\" is unknown; choose time, price, energy or value",
                        cell_plain(text));
    }
    if (work->objective == PLAN_VALUE && work->request.worth_micro < 1) {
        return complain(
            work->invocation, BOURSE_USAGE,
            "--objective value needs --worth CREDITS, the worth of ending an hour sooner");
    }
    if (work->objective != PLAN_VALUE && work->request.worth_micro > 0) {
        return complain(work->invocation, BOURSE_USAGE,
                        "--worth needs --objective value, and the objective is %s",
                        plan_objective_name(work->objective));
    }
    return BOURSE_OK;
}

int work_request_read(struct work *work)
{
    int status = read_file(work);
    status = status == BOURSE_OK ? read_options(work) : status;
    return status == BOURSE_OK ? read_objective(work) : status;
}
