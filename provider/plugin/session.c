#include "provider/plugin/session.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Asks one of the requests without arguments. The answer stays in *ret_line until the next. */
static bool ask(struct session *session, const char *what, int limit_ms, const char **ret_line,
                size_t *ret_length, struct problem *problem)
{
    static char request[PLUGIN_LINE_BYTES];
    static char line[PLUGIN_LINE_BYTES];
    struct problem why = {""};
    *ret_line = line;
    const size_t length = plugin_write_request(what, request);
    if (!talk_ask(&session->talk, request, length, limit_ms, line, ret_length, &why)) {
        problem_set(problem, "%s (asked to %s)", why.text, what);
        return false;
    }
    return true;
}

/* Starts the plug-in and learns what it is. */
static bool open_plugin(struct session *session, const char **ret_line, size_t *ret_length,
                        struct problem *problem)
{
    if (!talk_start(session->program, &session->talk, problem) ||
        !ask(session, "describe", TALK_DESCRIBE_MS, ret_line, ret_length, problem)) {
        return false;
    }
    if (!plugin_read_description(*ret_line, *ret_length, &session->description, problem)) {
        talk_end(&session->talk);
        return false;
    }
    return true;
}

static bool print(FILE *out, const char *line, size_t length)
{
    return fwrite(line, 1, length, out) == length && fputc('\n', out) != EOF;
}

bool session_look(struct session *session, FILE *out, struct problem *ret_problem)
{
    const char *line;
    size_t length;
    struct plugin_probe probe;
    struct plugin_figures figures;
    session_end(session);
    const bool good =
        open_plugin(session, &line, &length, ret_problem) && print(out, line, length) &&
        ask(session, "probe", TALK_PROBE_MS, &line, &length, ret_problem) &&
        plugin_read_probe(line, length, &probe, ret_problem) && print(out, line, length) &&
        ask(session, "figures", TALK_FIGURES_MS, &line, &length, ret_problem) &&
        plugin_read_figures(line, length, &figures, ret_problem) && print(out, line, length);
    return good;
}

static void tell_unknown(const struct plugin_description *description, const char *operation,
                         struct problem *problem)
{
    char names[300] = "";
    char shown[48];
    size_t used = 0;
    for (size_t i = 0; i < description->operation_count && used < sizeof names; i++) {
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 description->operations[i]);
    }
    text_printable(operation, strlen(operation), shown, sizeof shown);
    problem_set(problem, "the plug-in has no operation \"%s\"; it has %s", shown, names);
}

static bool make_ready(struct session *session, struct problem *problem)
{
    const char *line;
    size_t length;
    return talk_is_ready(&session->talk) || open_plugin(session, &line, &length, problem);
}

/* Sends a request that takes its time, and reads its result. `what` names it for the problem. */
static enum session_status carry_out(struct session *session, const char *request, size_t size,
                                     int limit_ms, const char *what,
                                     struct plugin_result *ret_result, struct problem *problem)
{
    static char answer[PLUGIN_LINE_BYTES];
    static char stop[PLUGIN_LINE_BYTES];
    size_t length;
    struct talk_cancel cancel = {.fd = session->cancels > 0 ? session->cancels : -1};
    if (session->description.cancels) {
        cancel.line = stop;
        cancel.length = plugin_write_request(PLUGIN_CANCEL, stop);
    }
    if (!talk_ask_or_cancel(&session->talk, request, size, limit_ms, &cancel, answer, &length,
                            problem)) {
        return SESSION_BROKEN;
    }
    if (!plugin_read_result(answer, length, ret_result, problem)) {
        session_end(session);
        return SESSION_BROKEN;
    }
    if (ret_result->status != 0) {
        problem_set(problem, "%.32s: %s", what,
                    ret_result->text[0] != '\0' ? ret_result->text
                                                : "it failed, and the plug-in says no reason");
        return SESSION_FAILED;
    }
    return SESSION_DONE;
}

enum session_status session_multiply(struct session *session, uint32_t side, int limit_ms,
                                     struct problem *ret_problem)
{
    static char request[PLUGIN_LINE_BYTES];
    struct plugin_result result;
    const size_t size = plugin_write_multiply(side, request);
    if (!make_ready(session, ret_problem)) {
        return SESSION_BROKEN;
    }
    if (!session->description.multiplies) {
        problem_set(ret_problem, "the plug-in has no challenge \"%s\" any more", PLUGIN_CHALLENGED);
        return SESSION_FAILED;
    }
    return carry_out(session, request, size, limit_ms, "multiply", &result, ret_problem);
}

enum session_status session_run(struct session *session, const char *operation,
                                const char *const *arguments, size_t count,
                                struct plugin_result *ret_result, struct problem *ret_problem)
{
    static char request[PLUGIN_LINE_BYTES];
    const size_t size = plugin_write_run(operation, arguments, count, request, ret_problem);
    uint8_t stale[1024]; /* of an operation that ended as it was cancelled */
    while (session->cancels > 0 && read(session->cancels, stale, sizeof stale) > 0) {
        /* again */
    }
    if (size == 0) {
        return SESSION_FAILED;
    }
    if (!make_ready(session, ret_problem)) {
        return SESSION_BROKEN;
    }
    if (!plugin_takes(&session->description, operation)) {
        tell_unknown(&session->description, operation, ret_problem);
        return SESSION_FAILED;
    }
    return carry_out(session, request, size, TALK_NO_LIMIT, operation, ret_result, ret_problem);
}

uint64_t session_peak_bytes(const struct session *session)
{
    char path[64];
    char text[256];
    uint64_t bytes = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)session->talk.pid);
    FILE *file = session->talk.pid > 0 ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(text, sizeof text, file) != NULL) {
        if (strncmp(text, "VmHWM:", 6) == 0) {
            bytes = strtoull(text + 6, NULL, 10) * 1024;
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return bytes;
}

void session_end(struct session *session)
{
    talk_end(&session->talk);
}
