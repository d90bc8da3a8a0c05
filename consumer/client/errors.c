/* The errors of libbourse are filled here, and texts that a caller gives are read. */
#include "consumer/client/client.h"

#include "base/text.h"
#include "formats/value.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *bourse_version(void)
{
    return BOURSE_VERSION;
}

void bourse_printable(const char *text, char *ret_text, size_t capacity)
{
    text_printable(text, strlen(text), ret_text, capacity);
}

bool client_fail(struct bourse_error *error, enum bourse_status status, const char *format, ...)
{
    if (error == NULL) {
        return false;
    }
    *error = (struct bourse_error){.status = status};
    client_copy(error->name, sizeof error->name, bourse_status_name(status));
    char text[sizeof error->text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments); /* cut, never overrun */
    va_end(arguments);
    text_printable(text, strlen(text), error->text, sizeof error->text);
    return false;
}

bool client_name_fits(const char *name, struct bourse_error *ret_error)
{
    if (name == NULL) {
        return true;
    }
    if (strlen(name) > LIMIT_NAME_BYTES) {
        return client_fail(ret_error, BOURSE_USAGE, "the name has %zu bytes; a name has at most %d",
                           strlen(name), LIMIT_NAME_BYTES);
    }
    return text_is_plain(name, strlen(name)) ||
           client_fail(ret_error, BOURSE_USAGE,
                       "a name has no control characters and no bidirectional marks");
}

bool client_refused(struct bourse_error *error, enum reject_code reject, const char *text)
{
    if (error == NULL) {
        return false;
    }
    const char *said = text != NULL && text[0] != '\0' ? text : reject_advice(reject);
    (void)client_fail(error, (enum bourse_status)reject_exit_status(reject), "%s", said);
    error->reject = (int)reject;
    client_copy(error->name, sizeof error->name, reject_name(reject));
    return false;
}

bool client_rejected(struct bourse_error *error, const struct consumer_event *event)
{
    (void)client_refused(error, event->reject, event->text);
    if (error != NULL) {
        client_copy(error->field, sizeof error->field, event->field);
        error->value = event->value;
        error->limit = event->limit;
    }
    return false;
}

bool client_blob_failed(struct bourse *client, struct bourse_error *error, enum reject_code reject,
                        const struct problem *problem)
{
    if (client_interrupted(client)) {
        return client_fail(error, BOURSE_INTERRUPTED, "interrupted");
    }
    if (reject != REJECT_NONE) {
        const char *name = reject_name(reject); /* the text begins with the name (flight_refused) */
        size_t length = strlen(name);
        bool named = strncmp(problem->text, name, length) == 0 && problem->text[length] == ':';
        return client_refused(error, reject, named ? problem->text + length + 2 : problem->text);
    }
    return client_fail(error, BOURSE_UNREACHABLE, "%s", problem->text);
}

bool client_blob_named(struct bourse_error *error, const struct hash32 *hash, const char *what)
{
    char hex[2 * sizeof hash->bytes + 1];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    if (error != NULL && error->reject == (int)REJECT_NOT_FOUND) {
        (void)snprintf(error->text, sizeof error->text,
                       "the broker has lost %s: submit the job again, or ask the operator to put "
                       "the blob %s back from a backup",
                       what, hex);
    } else if (error != NULL && error->reject == (int)REJECT_UNAVAILABLE) {
        (void)snprintf(error->text, sizeof error->text,
                       "the broker cannot read %s now: try again in a minute. If the broker still "
                       "cannot, ask the operator: the broker's log has the reason for blob %s",
                       what, hex);
    }
    return false;
}

void client_copy(char *ret_text, size_t capacity, const char *text)
{
    (void)snprintf(ret_text, capacity, "%s", text != NULL ? text : ""); /* cut, never overrun */
}

bool client_id_read(const char *text, struct id128 *ret_id, struct bourse_error *error)
{
    if (!text_unhex(text, ret_id->bytes, sizeof ret_id->bytes)) {
        return client_fail(error, BOURSE_USAGE, "'%s' is not an id of 32 hex digits", text);
    }
    return true;
}

bool client_value(const char *text, struct value *ret_value, struct bourse_error *error)
{
    struct problem problem;
    *ret_value = (struct value){0};
    return text == NULL || value_parse(text, ret_value, &problem)
               ? true
               : client_fail(error, BOURSE_USAGE, "%s", problem.text);
}

bool client_key_read(const char *text, struct key32 *ret_key, struct bourse_error *error)
{
    if (!text_unhex(text, ret_key->bytes, sizeof ret_key->bytes)) {
        return client_fail(error, BOURSE_USAGE, "'%s' is not an account key of 64 hex digits",
                           text);
    }
    return true;
}
