#include "provider/control_request.h"

#include <assert.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static const char *const names[] = {[CONTROL_STATUS] = "status",
                                    [CONTROL_PAUSE] = "pause",
                                    [CONTROL_RESUME] = "resume",
                                    [CONTROL_DRAIN] = "drain"};
enum { COMMANDS = sizeof names / sizeof names[0] };

static bool read_command(const json_t *value, enum control_command *ret_command)
{
    const char *text = json_string_value(value);
    for (unsigned i = 0; text != NULL && i < COMMANDS; i++) {
        if (strcmp(text, names[i]) == 0) {
            *ret_command = (enum control_command)i;
            return true;
        }
    }
    return false;
}

static bool read_member(const char *name, const json_t *value, struct control_request *request,
                        struct problem *problem)
{
    if (strcmp(name, "command") == 0) {
        problem_set(problem, "\"command\" is status, pause, resume or drain");
        return read_command(value, &request->command);
    }
    if (strcmp(name, "now") == 0) {
        problem_set(problem, "\"now\" is true or false");
        request->now = json_is_true(value);
        return json_is_boolean(value);
    }
    if (strcmp(name, "save") == 0) {
        problem_set(problem, "\"save\" is true or false");
        request->save = json_is_true(value);
        return json_is_boolean(value);
    }
    if (strcmp(name, "device") == 0) {
        const char *text = json_string_value(value);
        problem_set(problem, "\"device\" is the name of a device");
        if (text == NULL || text[0] == '\0' || strlen(text) >= sizeof request->device) {
            return false;
        }
        (void)snprintf(request->device, sizeof request->device, "%s", text);
        return true;
    }
    if (strcmp(name, "for_ms") == 0) {
        problem_set(problem, "\"for_ms\" is a number from 1 to %lld",
                    (long long)CONTROL_PAUSE_LONGEST_MS);
        request->for_ms = json_integer_value(value);
        return json_is_integer(value) && request->for_ms >= 1 &&
               request->for_ms <= CONTROL_PAUSE_LONGEST_MS;
    }
    problem_set(
        problem,
        "a request has \"command\", and for a pause \"now\", \"save\", \"device\" and \"for_ms\"");
    return false;
}

static bool read_object(json_t *root, struct control_request *request, struct problem *problem)
{
    const char *name;
    json_t *value;
    json_object_foreach(root, name, value)
    {
        if (!read_member(name, value, request, problem)) {
            return false;
        }
    }
    if (json_object_get(root, "command") == NULL) {
        problem_set(problem, "the request has no \"command\"");
        return false;
    }
    const bool has_device = request->device[0] != '\0';
    const size_t others = json_object_size(root) - (has_device ? 2 : 1);
    if (request->command != CONTROL_PAUSE && others > 0) {
        problem_set(problem, "\"now\", \"save\" and \"for_ms\" are of a pause");
        return false;
    }
    if (has_device && request->command != CONTROL_PAUSE && request->command != CONTROL_RESUME) {
        problem_set(problem, "\"device\" is of a pause or of resume");
        return false;
    }
    if (request->now && request->save) {
        problem_set(problem, "a pause has \"now\" or \"save\", not both");
        return false;
    }
    return true;
}

bool control_request_read(const char *line, size_t length, struct control_request *ret_request,
                          struct problem *ret_problem)
{
    struct control_request request = {.command = CONTROL_STATUS};
    if (length > CONTROL_LINE_MAX) {
        problem_set(ret_problem, "the line is longer than %d bytes", CONTROL_LINE_MAX);
        return false;
    }
    json_t *root = json_loadb(line, length, JSON_REJECT_DUPLICATES, NULL);
    bool good = json_is_object(root);
    if (!good) {
        problem_set(ret_problem, "the line is no JSON object");
    }
    good = good && read_object(root, &request, ret_problem);
    json_decref(root);
    if (good) {
        *ret_request = request;
    }
    return good;
}

bool control_request_write(const struct control_request *request, char *ret_line, size_t capacity)
{
    assert((unsigned)request->command < COMMANDS);
    json_t *root = json_pack("{s:s}", "command", names[request->command]);
    int failed = root == NULL;
    if (request->now) {
        failed |= json_object_set_new(root, "now", json_true());
    }
    if (request->save) {
        failed |= json_object_set_new(root, "save", json_true());
    }
    if (request->for_ms > 0) {
        failed |= json_object_set_new(root, "for_ms", json_integer(request->for_ms));
    }
    if (request->device[0] != '\0') {
        failed |= json_object_set_new(root, "device", json_string(request->device));
    }
    const size_t length = failed != 0 ? 0 : json_dumpb(root, ret_line, capacity, JSON_COMPACT);
    json_decref(root);
    if (length == 0 || length + 2 > capacity) {
        return false;
    }
    ret_line[length] = '\n';
    ret_line[length + 1] = '\0';
    return true;
}
