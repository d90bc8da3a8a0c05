#include "consumer/command/complain.h"

#include "consumer/command/json.h"
#include "runtime/link.h"
#include "runtime/link_explain.h"

#include <stdarg.h>
#include <string.h>

int complain_with(struct invocation *invocation, const struct bourse_error *error)
{
    return complain_about_job(invocation, NULL, error);
}

int complain_about_job(struct invocation *invocation, const char *id,
                       const struct bourse_error *error)
{
    int status = bourse_exit_status(error->status);
    if (!invocation->json) {
        (void)fflush(stdout);
        /* docs/errors.md lists the names of refusals. Names of other failures are for programs. */
        bool refused =
            error->reject != 0 ||
            (error->name[0] != '\0' && strcmp(error->name, bourse_status_name(error->status)) != 0);
        (void)fprintf(stderr, "bourse: %s%s%s\n", refused ? error->name : "", refused ? ": " : "",
                      error->text);
        return status;
    }
    json_t *value =
        json_pack("{s:s, s:s, s:i}", "name", error->name, "text", error->text, "exit", status);
    if (error->reject != 0) {
        (void)json_object_set_new(value, "code", json_integer(error->reject));
    }
    if (error->field[0] != '\0') {
        (void)json_object_set_new(value, "field", json_string(error->field));
    }
    if (error->value != 0 || error->limit != 0) {
        (void)json_object_set_new(value, "value", json_integer((json_int_t)error->value));
        (void)json_object_set_new(value, "limit", json_integer((json_int_t)error->limit));
    }
    json_t *document = json_pack("{s:o}", "error", value);
    if (id != NULL) {
        (void)json_object_set_new(document, "job", json_string(id));
    }
    return json_print(document, status);
}

static void complain_of_reason(const char *endpoint)
{
    char why[512];
    link_explain(endpoint, why, sizeof why);
    if (why[0] != '\0') {
        char shown[sizeof why];
        bourse_printable(why, shown, sizeof shown);
        (void)fprintf(stderr, "bourse: %s\n", shown);
    }
}

void complain_of_silence(void *context, const char *endpoint, int left_ms)
{
    const struct invocation *invocation = context;
    if (!invocation->quiet) {
        (void)fprintf(stderr,
                      "bourse: %s has not answered for %d s; trying for up to %d s more (%s)\n",
                      endpoint, BOURSE_SILENCE_MS / 1000, (left_ms + 999) / 1000,
                      invocation->calls_most_ms > 0 ? "--timeout and --wait-at-most" : "--timeout");
        complain_of_reason(endpoint);
    }
}

void complain_of_move(void *context, const char *endpoint, const char *what, int left_ms)
{
    const struct invocation *invocation = context;
    if (!invocation->quiet) {
        (void)fprintf(
            stderr, "bourse: %s: %s; trying the market's other brokers for up to %d s more (%s)\n",
            endpoint, what, (left_ms + 999) / 1000,
            invocation->calls_most_ms > 0 ? "--timeout and --wait-at-most" : "--timeout");
        complain_of_reason(endpoint);
    }
}

void complain_of_stall(void *context, const char *endpoint, const char *what, int left_ms)
{
    const struct invocation *invocation = context;
    if (!invocation->quiet) {
        (void)fprintf(stderr, "bourse: %s: %s Sending it again for up to %d s more (%s)\n",
                      endpoint, what, (left_ms + 999) / 1000,
                      invocation->calls_most_ms > 0 ? "--timeout and --wait-at-most" : "--timeout");
    }
}

int complain(struct invocation *invocation, enum bourse_status status, const char *format, ...)
{
    struct bourse_error error = {.status = status};
    (void)snprintf(error.name, sizeof error.name, "%s", bourse_status_name(status));
    char text[sizeof error.text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    bourse_printable(text, error.text, sizeof error.text);
    return complain_with(invocation, &error);
}
