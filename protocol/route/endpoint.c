#include "protocol/route/endpoint.h"

#include "protocol/limits.h"

#include <string.h>

#define SCHEME "tcp://"

enum { SCHEME_BYTES = sizeof SCHEME - 1, PORT_MOST = 65535, PORT_DIGITS = 5 };

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

static bool is_alphanumeric(char letter)
{
    return is_digit(letter) || (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z');
}

/* Returns true for a port without leading zeros, so that each port has one text. */
static bool is_port(const char *text, size_t length)
{
    unsigned port = 0;
    if (length == 0 || length > PORT_DIGITS || text[0] == '0') {
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        if (!is_digit(text[i])) {
            return false;
        }
        port = 10 * port + (unsigned)(text[i] - '0');
    }
    return port <= PORT_MOST;
}

/* An IPv6 address may name its interface after '%'. */
static bool is_host(const char *text, size_t length)
{
    const bool is_bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
    const char *marks = is_bracketed ? ":.%-_" : ".-_";
    const size_t edge = is_bracketed ? 1 : 0;
    for (size_t i = edge; i + edge < length; i++) {
        if (!is_alphanumeric(text[i]) && (text[i] == '\0' || strchr(marks, text[i]) == NULL)) {
            return false;
        }
    }
    return length > 0;
}

bool endpoint_is_tcp(const char *text, size_t length)
{
    if (length <= SCHEME_BYTES || length > LIMIT_ENDPOINT_BYTES ||
        memcmp(text, SCHEME, SCHEME_BYTES) != 0) {
        return false;
    }
    size_t colon = length;
    while (colon > SCHEME_BYTES && text[colon - 1] != ':') {
        colon--;
    }
    return colon > SCHEME_BYTES + 1 && is_port(text + colon, length - colon) &&
           is_host(text + SCHEME_BYTES, colon - 1 - SCHEME_BYTES);
}
