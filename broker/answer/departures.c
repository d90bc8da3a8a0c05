#include "broker/answer/departures.h"

#include "base/checked.h"
#include "base/text.h"
#include "exchange/lifecycle.h"
#include "exchange/view/listings.h"
#include "formats/units.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct departed_device {
    uint32_t slots;
    struct attribute *attributes; /* owned, sorted by name */
    size_t attribute_count;
};

struct departure {
    uint32_t account;
    int64_t left_ns; /* log time */
    struct departed_device devices[DEPARTURES_DEVICES];
    size_t device_count;
};

struct departures {
    struct departure items[DEPARTURES_PROVIDERS]; /* by time, the first to leave first */
    size_t count;
};

struct departures *departures_create(void)
{
    return calloc(1, sizeof(struct departures));
}

static void drop(struct departures *departures, size_t place)
{
    struct departure *departure = &departures->items[place];
    for (size_t i = 0; i < departure->device_count; i++) {
        free(departure->devices[i].attributes);
    }
    departures->count--;
    memmove(departure, departure + 1, (departures->count - place) * sizeof *departure);
}

void departures_destroy(struct departures **self)
{
    if (*self != NULL) {
        while ((*self)->count > 0) {
            drop(*self, (*self)->count - 1);
        }
        free(*self);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- leaving */

static bool take_device(void *context, const struct exchange_device_row *row)
{
    struct departure *departure = context;
    struct attribute *attributes = calloc(row->attribute_count + 1, sizeof *attributes);
    if (attributes == NULL) {
        return false;
    }
    memcpy(attributes, row->attributes, row->attribute_count * sizeof *attributes);
    departure->devices[departure->device_count++] = (struct departed_device){
        .slots = row->slots, .attributes = attributes, .attribute_count = row->attribute_count};
    return departure->device_count < DEPARTURES_DEVICES;
}

void departures_note(struct departures *departures, const struct exchange *exchange,
                     uint32_t account, int64_t log_ns)
{
    struct departure departure = {.account = account, .left_ns = log_ns};
    exchange_visit_devices(exchange, account, take_device, &departure);
    if (departure.device_count == 0) {
        return;
    }
    for (size_t i = departures->count; i-- > 0;) {
        if (departures->items[i].account == account ||
            log_ns - departures->items[i].left_ns > DEPARTURES_TERM_NS) {
            drop(departures, i);
        }
    }
    if (departures->count == DEPARTURES_PROVIDERS) {
        drop(departures, 0);
    }
    departures->items[departures->count++] = departure;
}

/* ---------------------------------------------------------------- naming */

static bool note_any(void *context, const struct exchange_device_row *row)
{
    bool *is_back = context;
    (void)row;
    *is_back = true;
    return false;
}

/* Returns true for a provider that offers nothing, and whose devices the owner's jobs could use. */
static bool is_missed(const struct departure *departure, const struct exchange *exchange,
                      uint32_t owner, int64_t log_ns, struct exchange_account_row *ret_account)
{
    bool is_back = false;
    if (departure->account == owner || log_ns - departure->left_ns > DEPARTURES_TERM_NS ||
        !exchange_account(exchange, departure->account, ret_account) || ret_account->frozen) {
        return false;
    }
    exchange_visit_devices(exchange, departure->account, note_any, &is_back);
    return !is_back;
}

static bool note_state(void *context, const struct exchange_provider_row *row)
{
    bool *is_away = context;
    *is_away = row->state == PROVIDER_AWAY;
    return false;
}

/* Returns true when the provider has left, and false when it is still connected. */
static bool has_left(const struct exchange *exchange, uint32_t account)
{
    bool is_away = false;
    uint32_t next = 0;
    (void)exchange_list_providers(exchange, account, note_state, &is_away, &next);
    return is_away;
}

/* Returns the slots of the devices that fit. */
static uint64_t fitting_slots(const struct departure *departure, const struct requirement *needs,
                              uint32_t slots)
{
    uint64_t fitting = 0;
    for (size_t i = 0; i < departure->device_count; i++) {
        const struct departed_device *device = &departure->devices[i];
        const bool fits = device->slots >= slots &&
                          requirement_satisfied(needs, device->attributes, device->attribute_count);
        fitting += fits ? device->slots : 0;
    }
    return fitting;
}

/* Writes the time of day in UTC. */
static void time_text(int64_t log_ns, char ret_text[16])
{
    const int64_t second = log_ns / NS_PER_S % (24 * 3600);
    (void)snprintf(ret_text, 16, "%02d:%02d:%02d", (int)(second / 3600), (int)(second / 60 % 60),
                   (int)(second % 60));
}

void departures_text(const struct departures *departures, const struct exchange *exchange,
                     uint32_t owner, const struct requirement *needs, uint32_t slots,
                     int64_t log_ns, char ret_text[DEPARTURES_TEXT_SIZE])
{
    struct exchange_account_row named = {.name = ""};
    int64_t left_ns = 0;
    uint64_t fitting = 0;
    unsigned count = 0;
    ret_text[0] = '\0';
    if (!requirement_well_formed(needs)) {
        return;
    }
    for (size_t i = departures == NULL ? 0 : departures->count; i-- > 0;) {
        const struct departure *departure = &departures->items[i];
        struct exchange_account_row account;
        const uint64_t more = fitting_slots(departure, needs, slots);
        if (more == 0 || !is_missed(departure, exchange, owner, log_ns, &account)) {
            continue;
        }
        if (count++ == 0) { /* the last to leave is named */
            named = account;
            left_ns = departure->left_ns;
        }
        fitting += more;
    }
    if (count == 0) {
        return;
    }
    char since[16];
    char ago[UNITS_TEXT_SIZE];
    char others[32] = "";
    time_text(left_ns, since);
    units_duration_short(log_ns - left_ns, ago);
    if (count > 1) {
        (void)snprintf(others, sizeof others, ", and %u more", count - 1);
    }
    (void)snprintf(ret_text, DEPARTURES_TEXT_SIZE,
                   "provider \"%.40s\" %s at %s UTC, %s ago%s; %s %llu slot%s would fit",
                   named.name, has_left(exchange, named.number) ? "left" : "withdrew its offer",
                   since, ago, others, count == 1 ? "its" : "their", (unsigned long long)fitting,
                   text_plural(fitting == 1 ? 1 : 2));
}
