#include "broker/challenge/challenge_facts.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEAD "bourse challenges 1\n"
enum { LINE_BYTES = 512, NUMBERS = 12, DEVICE_HEX = 33 };

/* Sorted by account and device. */
struct challenge_facts {
    struct challenge_fact *facts;
    size_t count, capacity;
};

struct challenge_facts *challenge_facts_create(void)
{
    return calloc(1, sizeof(struct challenge_facts));
}

void challenge_facts_destroy(struct challenge_facts **self)
{
    if (*self != NULL) {
        free((*self)->facts);
        free(*self);
        *self = NULL;
    }
}

static int compare(const struct challenge_fact *fact, uint32_t account, const struct id128 *device)
{
    if (fact->account != account) {
        return fact->account < account ? -1 : 1;
    }
    return memcmp(fact->device.bytes, device->bytes, sizeof device->bytes);
}

/* Returns the first place whose fact is not before the device. */
static size_t place_of(const struct challenge_facts *facts, uint32_t account,
                       const struct id128 *device)
{
    size_t low = 0;
    size_t high = facts->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (compare(&facts->facts[middle], account, device) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

const struct challenge_fact *challenge_facts_find(const struct challenge_facts *facts,
                                                  uint32_t account, const struct id128 *device)
{
    const size_t place = place_of(facts, account, device);
    return place < facts->count && compare(&facts->facts[place], account, device) == 0
               ? &facts->facts[place]
               : NULL;
}

static bool make_room(struct challenge_facts *facts)
{
    if (facts->count < facts->capacity) {
        return true;
    }
    const size_t capacity = facts->capacity == 0 ? 64 : facts->capacity * 2;
    struct challenge_fact *grown = realloc(facts->facts, capacity * sizeof *grown);
    if (grown == NULL) {
        return false;
    }
    facts->facts = grown;
    facts->capacity = capacity;
    return true;
}

struct challenge_fact *challenge_facts_of(struct challenge_facts *facts, uint32_t account,
                                          const struct id128 *device)
{
    const size_t place = place_of(facts, account, device);
    if (place < facts->count && compare(&facts->facts[place], account, device) == 0) {
        return &facts->facts[place];
    }
    if (facts->count == CHALLENGE_FACTS_MOST || !make_room(facts)) {
        return NULL;
    }
    struct challenge_fact *fact = &facts->facts[place];
    memmove(fact + 1, fact, (facts->count - place) * sizeof *fact);
    facts->count++;
    *fact = (struct challenge_fact){.account = account, .device = *device};
    return fact;
}

/* ---------------------------------------------------------------- text */

/* A device without an outcome is not written: a start draws the time of its challenge anew. */
static bool is_known(const struct challenge_fact *fact)
{
    return fact->outcome != CHALLENGE_NONE || fact->slow > 0;
}

char *challenge_facts_text(const struct challenge_facts *facts)
{
    const size_t capacity = sizeof HEAD + facts->count * LINE_BYTES;
    char *text = malloc(capacity);
    if (text == NULL) {
        return NULL;
    }
    size_t used = (size_t)snprintf(text, capacity, "%s", HEAD);
    for (size_t i = 0; i < facts->count; i++) {
        const struct challenge_fact *fact = &facts->facts[i];
        char device[DEVICE_HEX];
        if (!is_known(fact)) {
            continue;
        }
        text_hex(fact->device.bytes, sizeof fact->device.bytes, device);
        used += (size_t)snprintf(
            text + used, capacity - used,
            "%s %" PRIu32 " %d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRIu32
            " %" PRIu32 " %" PRId64 " %" PRId64 " %" PRId64 "\n",
            device, fact->account, (int)fact->outcome, fact->at_ns, fact->claimed_mflops,
            fact->shown_mflops, fact->limit_mflops, fact->limit_until_ns, fact->slow, fact->failed,
            fact->best_mflops, fact->closed_until_ns, fact->due_ns);
    }
    return text;
}

/* Reads the numbers of a line; each is 0 or more. */
static bool read_numbers(const char *at, int64_t ret_numbers[NUMBERS])
{
    for (size_t i = 0; i < NUMBERS; i++) {
        char *end = NULL;
        ret_numbers[i] = strtoll(at, &end, 10);
        if (end == at || ret_numbers[i] < 0 || ret_numbers[i] == INT64_MAX) {
            return false;
        }
        at = end;
    }
    return *at == '\n';
}

static bool read_line(struct challenge_facts *facts, const char *line)
{
    char hex[DEVICE_HEX];
    struct id128 device;
    int64_t numbers[NUMBERS];
    (void)snprintf(hex, sizeof hex, "%.32s", line);
    if (!text_unhex(hex, device.bytes, sizeof device.bytes) ||
        !read_numbers(line + DEVICE_HEX - 1, numbers) || numbers[0] >= UINT32_MAX ||
        numbers[1] > CHALLENGE_UNANSWERED || numbers[7] > CHALLENGE_TRIES ||
        numbers[8] > UINT32_MAX) {
        return false;
    }
    struct challenge_fact *fact = challenge_facts_of(facts, (uint32_t)numbers[0], &device);
    if (fact == NULL) {
        return false;
    }
    fact->outcome = (enum challenge_outcome)numbers[1];
    fact->at_ns = numbers[2];
    fact->claimed_mflops = numbers[3];
    fact->shown_mflops = numbers[4];
    fact->limit_mflops = numbers[5];
    fact->limit_until_ns = numbers[6];
    fact->slow = (uint32_t)numbers[7];
    fact->failed = (uint32_t)numbers[8];
    fact->best_mflops = numbers[9];
    fact->closed_until_ns = numbers[10];
    fact->due_ns = numbers[11];
    return true;
}

bool challenge_facts_read(struct challenge_facts *facts, const char *text)
{
    facts->count = 0;
    bool good = strncmp(text, HEAD, sizeof HEAD - 1) == 0;
    const char *line = good ? text + sizeof HEAD - 1 : "";
    while (good && *line != '\0') {
        const char *end = strchr(line, '\n');
        good = end != NULL && end - line >= DEVICE_HEX && read_line(facts, line);
        line = good ? end + 1 : line;
    }
    facts->count = good ? facts->count : 0;
    return good;
}
