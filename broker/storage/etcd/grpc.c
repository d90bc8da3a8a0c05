#include "broker/storage/etcd/grpc.h"

#include <string.h>

/* Codes of gRPC that etcd uses. */
enum {
    CODE_OK = 0,
    CODE_INVALID_ARGUMENT = 3,
    CODE_PERMISSION_DENIED = 7,
    CODE_RESOURCE_EXHAUSTED = 8,
    CODE_FAILED_PRECONDITION = 9,
    CODE_OUT_OF_RANGE = 11,
    CODE_UNIMPLEMENTED = 12,
    CODE_UNAUTHENTICATED = 16,
    CODE_LAST = 16
};

void grpc_prefix_write(size_t length, uint8_t ret_prefix[GRPC_PREFIX_BYTES])
{
    ret_prefix[0] = 0;
    for (unsigned i = 0; i < 4; i++) {
        ret_prefix[1 + i] = (uint8_t)(length >> (24 - 8 * i));
    }
}

bool grpc_message_find(const uint8_t *bytes, size_t length, const uint8_t **ret_message,
                       size_t *ret_length)
{
    size_t said = 0;
    if (length < GRPC_PREFIX_BYTES || bytes[0] != 0) {
        return false;
    }
    for (unsigned i = 0; i < 4; i++) {
        said = said << 8 | bytes[1 + i];
    }
    if (said != length - GRPC_PREFIX_BYTES) {
        return false;
    }
    *ret_message = bytes + GRPC_PREFIX_BYTES;
    *ret_length = said;
    return true;
}

/* Returns the text after "NAME:" and its blanks, or NULL when the line has another name. */
static const char *value_of(const char *line, size_t length, const char *name, size_t *ret_length)
{
    const size_t name_length = strlen(name);
    if (length <= name_length || strncmp(line, name, name_length) != 0 ||
        line[name_length] != ':') {
        return NULL;
    }
    size_t from = name_length + 1;
    while (from < length && line[from] == ' ') {
        from++;
    }
    while (length > from && (line[length - 1] == '\n' || line[length - 1] == '\r')) {
        length--;
    }
    *ret_length = length - from;
    return line + from;
}

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    if (digit >= 'a' && digit <= 'f') {
        return digit - 'a' + 10;
    }
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* A text on the wire has bytes as %XX. Nothing unprintable gets into our log. */
static void note_text(struct grpc_status *status, const char *text, size_t length)
{
    size_t written = 0;
    for (size_t i = 0; i < length && written < sizeof status->text - 1; i++) {
        int byte = (unsigned char)text[i];
        if (byte == '%' && length - i > 2 && hex_digit(text[i + 1]) >= 0 &&
            hex_digit(text[i + 2]) >= 0) {
            byte = hex_digit(text[i + 1]) << 4 | hex_digit(text[i + 2]);
            i += 2;
        }
        status->text[written++] = byte >= ' ' && byte <= '~' ? (char)byte : '?';
    }
    status->text[written] = '\0';
}

void grpc_status_note(struct grpc_status *status, const char *line, size_t length)
{
    size_t value_length = 0;
    const char *value = value_of(line, length, "grpc-status", &value_length);
    if (value != NULL && value_length >= 1 && value_length <= 2) {
        unsigned code = 0;
        for (size_t i = 0; i < value_length; i++) {
            if (value[i] < '0' || value[i] > '9') {
                return;
            }
            code = code * 10 + (unsigned)(value[i] - '0');
        }
        status->is_known = code <= CODE_LAST;
        status->code = code;
        return;
    }
    value = value_of(line, length, "grpc-message", &value_length);
    if (value != NULL) {
        note_text(status, value, value_length);
    }
}

/* etcd says RESOURCE_EXHAUSTED for its quota, for messages that are too long, and for a queue that
 * is full; its texts tell them apart. */
static enum grpc_outcome outcome_of_exhausted(const char *text)
{
    if (strstr(text, "database space exceeded") != NULL) {
        return GRPC_NO_SPACE;
    }
    return strstr(text, "larger than max") != NULL ? GRPC_TOO_LARGE : GRPC_LOST;
}

enum grpc_outcome grpc_status_outcome(const struct grpc_status *status)
{
    if (!status->is_known) {
        return GRPC_LOST;
    }
    switch (status->code) {
    case CODE_OK:
        return GRPC_ANSWERED;
    case CODE_INVALID_ARGUMENT:
        return strstr(status->text, "request is too large") != NULL ? GRPC_TOO_LARGE : GRPC_REFUSED;
    case CODE_RESOURCE_EXHAUSTED:
        return outcome_of_exhausted(status->text);
    case CODE_PERMISSION_DENIED:
    case CODE_FAILED_PRECONDITION:
    case CODE_OUT_OF_RANGE:
    case CODE_UNIMPLEMENTED:
    case CODE_UNAUTHENTICATED:
        return GRPC_REFUSED;
    default:
        return GRPC_LOST; /* such as "request timed out", which may be executed all the same */
    }
}
