#include "formats/device_list.h"

#include "base/text.h"
#include "formats/units.h"

#include <inttypes.h>
#include <string.h>

enum { PRINTED_SIZE = 80 };

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

/* User input as a message may show it. */
struct printed {
    char text[PRINTED_SIZE];
};

static struct printed printed(const char *text, size_t length)
{
    struct printed shown;
    text_printable(text, length, shown.text, sizeof shown.text);
    return shown;
}

static bool read_count(const char *text, struct device_list_part *part, struct problem *problem)
{
    int64_t count = 0;
    if (units_count(text, &count) != UNITS_OK || count < 1 || count > DEVICE_LIST_DEVICES) {
        problem_set(problem, "%s:%s: so many are a number from 1 to %d, as in %s:2", part->name,
                    printed(text, strlen(text)).text, DEVICE_LIST_DEVICES, part->name);
        return false;
    }
    part->count = (uint32_t)count;
    return true;
}

static bool read_price(const char *text, struct device_list_part *part, struct problem *problem)
{
    int64_t price = 0;
    enum units_status status = units_money(text, &price);
    if (status != UNITS_OK || price < 0) {
        problem_set(problem,
                    "%s@%s: a price is credits for an hour of one device, 0 or more, as in "
                    "%s@2.50",
                    part->name, printed(text, strlen(text)).text, part->name);
        return false;
    }
    part->price_micro = price;
    return true;
}

/* Reads NAME[:COUNT][@PRICE], `length` characters. */
static bool read_part(const char *text, size_t length, struct device_list_part *ret_part,
                      struct problem *problem)
{
    char copy[DEVICE_LIST_TEXT_SIZE];
    struct device_list_part part = {.count = 1, .price_micro = -1};
    size_t name = 0;
    while (name < length && is_name(text[name])) {
        name++;
    }
    bool is_named = name > 0 && name < sizeof part.name && length < sizeof copy;
    if (!is_named || (name < length && text[name] != ':' && text[name] != '@')) {
        problem_set(
            problem,
            "\"%s\" is no device: write a name of `bourse devices --catalogue`, how many and "
            "a price, as in h100:2@2.50; a comma between machines, + within one",
            printed(text, length).text);
        return false;
    }
    memcpy(part.name, text, name);
    memcpy(copy, text, length);
    copy[length] = '\0';
    char *rest = copy + name;
    char *price = strchr(rest, '@');
    if (price != NULL) {
        *price++ = '\0';
    }
    if ((*rest == ':' && !read_count(rest + 1, &part, problem)) ||
        (price != NULL && !read_price(price, &part, problem))) {
        return false;
    }
    *ret_part = part;
    return true;
}

static bool add_part(struct device_list *list, const struct device_list_part *part,
                     struct problem *problem)
{
    if (list->part_count == DEVICE_LIST_PARTS ||
        list->device_count + part->count > DEVICE_LIST_DEVICES) {
        problem_set(problem, "%s:%" PRIu32 ": with those before it these are more than %d devices",
                    part->name, part->count, DEVICE_LIST_DEVICES);
        return false;
    }
    list->parts[list->part_count++] = *part;
    list->device_count += part->count;
    return true;
}

bool device_list_add(struct device_list *list, const char *text, struct problem *ret_problem)
{
    struct device_list longer = *list;
    const char *at = text;
    for (;;) {
        at += strspn(at, " ");
        size_t length = strcspn(at, ",+");
        size_t trimmed = length;
        while (trimmed > 0 && at[trimmed - 1] == ' ') {
            trimmed--;
        }
        struct device_list_part part;
        if (!read_part(at, trimmed, &part, ret_problem)) {
            return false;
        }
        part.host = longer.host_count;
        if (!add_part(&longer, &part, ret_problem)) {
            return false;
        }
        longer.host_count += at[length] != '+';
        if (at[length] == '\0') {
            break;
        }
        at += length + 1;
    }
    *list = longer;
    return true;
}

/* ---------------------------------------------------------------- links */

static bool ends_in(const char *text, const char *ending)
{
    size_t length = strlen(text);
    return length >= strlen(ending) && strcmp(text + length - strlen(ending), ending) == 0;
}

/* Reads 25GB/s, or bits such as 100Gbit/s; the result is at least a byte per second. A number
 * without a unit is refused, because it might be either. */
static bool read_rate(const char *text, int64_t *ret_bandwidth)
{
    static const char bits[] = "bit/s";
    char bytes[DEVICE_LIST_TEXT_SIZE];
    int64_t rate = 0;
    bool is_bits = ends_in(text, bits);
    if (!ends_in(text, "/s") || strlen(text) >= sizeof bytes) {
        return false;
    }
    size_t front = is_bits ? strlen(text) - (sizeof bits - 1) : strlen(text);
    (void)snprintf(bytes, sizeof bytes, "%.*s%s", (int)front, text, is_bits ? "B/s" : "");
    if (units_read(UNITS_BANDWIDTH, bytes, &rate) != UNITS_OK || rate < (is_bits ? 8 : 1)) {
        return false;
    }
    *ret_bandwidth = is_bits ? rate / 8 : rate;
    return true;
}

bool device_link_read(const char *text, struct device_link *ret_link, struct problem *ret_problem)
{
    char rate[DEVICE_LIST_TEXT_SIZE];
    struct device_link link = {.latency_ns = ret_link->latency_ns};
    if (strcmp(text, "none") == 0) {
        *ret_link = (struct device_link){.is_none = true};
        return true;
    }
    size_t length = strcspn(text, ",");
    const char *latency =
        text[length] == ',' ? text + length + 1 + strspn(text + length + 1, " ") : NULL;
    bool is_good = length < sizeof rate;
    if (is_good) {
        memcpy(rate, text, length);
        rate[length] = '\0';
        is_good = read_rate(rate, &link.bandwidth);
    }
    if (is_good && latency != NULL) {
        is_good = units_duration(latency, &link.latency_ns) == UNITS_OK && link.latency_ns >= 0;
    }
    if (!is_good) {
        problem_set(
            ret_problem,
            "\"%s\" is no link: write its rate by the second, 1B/s at least, and its latency if "
            "you know it, as in 25GB/s or 100Gbit/s,10us; or write none",
            printed(text, strlen(text)).text);
        return false;
    }
    *ret_link = link;
    return true;
}
