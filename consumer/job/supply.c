#include "consumer/job/supply.h"

#include "consumer/client/client.h"
#include "consumer/job/submit.h"
#include "consumer/market/challenged.h"
#include "consumer/market/isolation_counts.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "planner/cost/catalogue.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static_assert((int)ORDER_PARTS_MAX <= (int)LIST_SCHEDULE_PARTS, "each part has its bit");
enum {
    PLACES_MOST = ORDER_PARTS_MAX * (BOURSE_LEVELS_MAX + 1),
    CANDIDATES_MOST = LIST_SCHEDULE_DEVICES
};
static_assert((int)PLACES_MOST <= (int)LIMIT_PLACES, "a manifest keeps all of them");

/* ---------------------------------------------------------------- places */

static bool is_same_place(const struct supply_place *place, const struct bourse_level *level)
{
    return place->slots.price_micro == level->price_micro && place->providers == level->providers &&
           strcmp(place->instrument, level->instrument) == 0;
}

/* Parts of unlike width can use unlike numbers of slots; the largest number counts. */
static void add_level(struct supply *supply, size_t part, const struct bourse_level *level)
{
    const uint32_t bit = UINT32_C(1) << part;
    if (level->slots == 0 || (level->worth_micro >= 0 && level->worth_micro < level->price_micro)) {
        return; /* costs more than its worth */
    }
    for (size_t i = 0; i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        if (is_same_place(place, level) && (place->slots.parts & bit) == 0) {
            place->slots.parts |= bit;
            place->slots.slots =
                place->slots.slots > level->slots ? place->slots.slots : level->slots;
            return;
        }
    }
    struct supply_place *place = &supply->places[supply->count++];
    *place = (struct supply_place){
        .slots = {.slots = level->slots, .price_micro = level->price_micro, .parts = bit},
        .providers = level->providers};
    client_copy(place->instrument, sizeof place->instrument, level->instrument);
}

static void add_taken(struct supply *supply, size_t part, const struct bourse_quote *quote)
{
    if (quote->slots_taken > 0) {
        supply->places[supply->count++] =
            (struct supply_place){.slots = {.slots = quote->slots_taken,
                                            .price_micro = quote->taken_high_micro,
                                            .parts = UINT32_C(1) << part}};
    }
}

static int cheapest_first(const void *a, const void *b)
{
    const struct supply_place *left = a;
    const struct supply_place *right = b;
    if (left->slots.price_micro != right->slots.price_micro) {
        return left->slots.price_micro < right->slots.price_micro ? -1 : 1;
    }
    return strcmp(left->label, right->label);
}

struct supply *supply_create(const struct bourse_job *job, const struct bourse_quote *quotes)
{
    struct supply *supply = calloc(1, sizeof *supply);
    if (supply == NULL || (supply->places = calloc(PLACES_MOST, sizeof *supply->places)) == NULL) {
        supply_destroy(&supply);
        return NULL;
    }
    for (size_t i = 0; i < job->part_count; i++) {
        supply->is_busy = supply->is_busy || quotes[i].slots_now == 0;
        for (uint32_t k = 0; k < quotes[i].level_count; k++) {
            /* A part without free slots gets only the leases that it would take, if there are any.
             * The leased levels then do not count. */
            if (quotes[i].slots_now > 0 || quotes[i].slots_taken == 0) {
                add_level(supply, i, &quotes[i].levels[k]);
            }
        }
        add_taken(supply, i, &quotes[i]);
    }
    qsort(supply->places, supply->count, sizeof *supply->places, cheapest_first);
    return supply;
}

void supply_destroy(struct supply **self)
{
    if (*self != NULL) {
        free((*self)->places);
        free((*self)->figures);
        free(*self);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- whose they are */

struct candidate { /* a device that fits some part */
    char id[BOURSE_ID_SIZE];
    struct supply_place place;
    bool is_used;
};

struct finding {
    const struct supply *supply;
    const struct order_part *part;
    char own[BOURSE_HEX32_SIZE];
    size_t number; /* number of the part */
    struct candidate *items;
    size_t count;
    struct bourse_challenged challenged;
    struct bourse_isolation isolation;
};

static int64_t power_said_mw(const struct bourse_device *device)
{
    for (size_t i = 0; i < device->attribute_count; i++) {
        const struct bourse_attribute *attribute = &device->attributes[i];
        if (attribute->text == NULL && strcmp(attribute->name, "power_mw") == 0) {
            return attribute->number;
        }
    }
    return 0;
}

static void identify(struct supply_place *place, const struct bourse_device *device)
{
    place->power_mw = power_said_mw(device);
    client_copy(place->account, sizeof place->account, device->account);
    client_copy(place->device, sizeof place->device, device->id);
    place->claim_mflops = challenged_claim(device);
    place->challenge = device->challenge;
}

static bool take_candidate(void *context, const struct bourse_device *device)
{
    struct finding *finding = context;
    const uint32_t slots = finding->supply->is_busy ? device->slots : device->free;
    if (device->price_micro < 0 || slots < finding->part->slots ||
        strcmp(device->account, finding->own) == 0 ||
        (device->max_term_ms > 0 && device->max_term_ms < finding->part->term_ms)) {
        return true;
    }
    size_t at = 0;
    while (at < finding->count && strcmp(finding->items[at].id, device->id) != 0) {
        at++;
    }
    if (at == CANDIDATES_MOST) {
        return false;
    }
    struct candidate *candidate = &finding->items[at];
    if (at == finding->count) {
        finding->count++;
        challenged_add(&finding->challenged, device);
        isolation_counts_add(&finding->isolation, device);
        candidate->place =
            (struct supply_place){.slots = {.slots = slots, .price_micro = device->price_micro},
                                  .providers = 1,
                                  .is_simulated = device->simulated};
        client_copy(candidate->id, sizeof candidate->id, device->id);
        identify(&candidate->place, device);
        candidate->place.device_slots = device->slots;
        client_copy(candidate->place.instrument, sizeof candidate->place.instrument,
                    device->instrument);
        (void)snprintf(candidate->place.label, sizeof candidate->place.label, "%s/%s",
                       device->provider, device->label);
    }
    candidate->place.slots.parts |= UINT32_C(1) << finding->number;
    return true;
}

static bool could_be(const struct candidate *candidate, const struct supply_place *place)
{
    return !candidate->is_used && candidate->place.slots.price_micro == place->slots.price_micro &&
           candidate->place.slots.parts == place->slots.parts && place->providers > 0 &&
           (place->instrument[0] == '\0' ||
            strcmp(candidate->place.instrument, place->instrument) == 0);
}

/* Returns how many slots of a device the parts can use, by their width. */
static uint32_t usable(const struct candidate *candidate, const struct bourse_job *job)
{
    uint32_t most = 0;
    for (size_t i = 0; i < job->part_count; i++) {
        if ((candidate->place.slots.parts >> i & 1) != 0) {
            const uint32_t slots = candidate->place.slots.slots;
            const uint32_t used = slots - slots % job->parts[i].slots;
            most = used > most ? used : most;
        }
    }
    return most;
}

/* Replaces a place by its devices when they account for all its slots. Otherwise the place stays
 * without a name. */
static void name_place(const struct bourse_job *job, struct finding *finding,
                       const struct supply_place *place, struct supply *named)
{
    uint64_t slots = 0;
    for (size_t i = 0; i < finding->count; i++) {
        slots += could_be(&finding->items[i], place) ? usable(&finding->items[i], job) : 0;
    }
    if (slots != place->slots.slots) {
        named->places[named->count++] = *place;
        return;
    }
    for (size_t i = 0; i < finding->count; i++) {
        struct candidate *candidate = &finding->items[i];
        if (could_be(candidate, place)) {
            candidate->is_used = true;
            named->places[named->count] = candidate->place;
            named->places[named->count++].slots.slots = usable(candidate, job);
        }
    }
}

static bool find_devices(struct bourse *bourse, const struct bourse_job *job,
                         struct finding *finding, struct bourse_error *error)
{
    struct bourse_account account;
    if (!bourse_whoami(bourse, &account, error)) {
        return false;
    }
    client_copy(finding->own, sizeof finding->own, account.key);
    for (size_t i = 0; i < job->part_count; i++) {
        CLEANUP(codec_requirement_free)
        Bourse__V1__Requirement *needs = submit_needs(job, i, error);
        finding->part = &job->parts[i];
        finding->number = i;
        if (needs == NULL || !client_devices(bourse, needs, take_candidate, finding, error)) {
            return false;
        }
    }
    return true;
}

/* `places` has room for all. */
static void name_places(const struct bourse_job *job, struct finding *finding,
                        struct supply_place *places, struct supply *supply)
{
    struct supply named = {.places = places};
    for (size_t i = 0; i < supply->count; i++) {
        name_place(job, finding, &supply->places[i], &named);
    }
    qsort(named.places, named.count, sizeof *named.places, cheapest_first);
    free(supply->places);
    supply->places = named.places;
    supply->count = named.count;
}

bool supply_name(struct bourse *bourse, const struct bourse_job *job, struct supply *supply,
                 struct bourse_error *error)
{
    struct finding finding = {.supply = supply,
                              .items = calloc(CANDIDATES_MOST, sizeof *finding.items)};
    struct supply_place *places = calloc(PLACES_MOST + CANDIDATES_MOST, sizeof *places);
    const bool has_room = finding.items != NULL && places != NULL;
    const bool good = has_room ? find_devices(bourse, job, &finding, error)
                               : client_fail(error, BOURSE_LOCAL, "out of memory");
    if (has_room && good) {
        name_places(job, &finding, places, supply);
        supply->challenged = finding.challenged;
        supply->isolation = finding.isolation;
        places = NULL;
    }
    free(finding.items);
    free(places);
    return good;
}

/* ---------------------------------------------------------------- of what make */

static bool take_instrument(void *context, const struct bourse_device *device)
{
    struct supply *supply = context;
    char label[sizeof supply->places->label];
    (void)snprintf(label, sizeof label, "%s/%s", device->provider, device->label);
    for (size_t i = 0; i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        if (strcmp(place->label, label) == 0) {
            client_copy(place->instrument, sizeof place->instrument, device->instrument);
            place->device_slots = device->slots;
            identify(place, device);
        }
    }
    return true;
}

bool supply_find_instruments(struct bourse *bourse, const struct bourse_job *job,
                             struct supply *supply, struct bourse_error *error)
{
    for (size_t i = 0; i < job->part_count; i++) {
        CLEANUP(codec_requirement_free)
        Bourse__V1__Requirement *needs = submit_needs(job, i, error);
        if (needs == NULL || !client_devices(bourse, needs, take_instrument, supply, error)) {
            return false;
        }
    }
    return true;
}

/* Returns the device's own entry, or the entry that a simulated device imitates. */
static const struct catalogue_device *device_of(const struct supply_place *place)
{
    static const char simulated[] = "sim.";
    const size_t skip =
        strncmp(place->instrument, simulated, sizeof simulated - 1) == 0 ? sizeof simulated - 1 : 0;
    return catalogue_by_instrument(place->instrument + skip);
}

struct figure supply_power(const struct supply_place *place)
{
    const struct catalogue_device *device = device_of(place);
    struct figure power = {.source = FIGURE_UNKNOWN};
    if (device != NULL && place->device_slots > 0) {
        power = device->profile.figures[FIGURE_POWER];
        power.value /= place->device_slots;
    }
    if (power.source == FIGURE_UNKNOWN && place->power_mw > 0) {
        power = (struct figure){
            .value = (double)place->power_mw / 1e3, .source = FIGURE_DECLARED, .unverified = true};
    }
    return power;
}

static int64_t power_uw(const struct supply_place *place)
{
    const struct figure power = supply_power(place);
    return power.source == FIGURE_UNKNOWN ? 0 : llround(power.value * 1e6);
}

void supply_set_power(struct supply *supply, const struct supply *named)
{
    for (size_t i = 0; i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        int64_t least_uw = INT64_MAX;
        int64_t most_uw = 0;
        for (size_t k = 0; k < named->count; k++) {
            const struct supply_place *other = &named->places[k];
            if (other->slots.price_micro == place->slots.price_micro &&
                other->slots.parts == place->slots.parts) {
                const int64_t takes_uw = power_uw(other);
                least_uw = takes_uw < least_uw ? takes_uw : least_uw;
                most_uw = takes_uw > most_uw ? takes_uw : most_uw;
            }
        }
        place->slot_uw = least_uw == most_uw ? most_uw : 0;
    }
}

/* Returns true when a place without a name may stand for the device. */
static bool is_of(const struct supply_place *device, const struct supply_place *place)
{
    return device->label[0] != '\0' && device->slots.price_micro == place->slots.price_micro &&
           device->slots.parts == place->slots.parts &&
           (place->instrument[0] == '\0' || strcmp(device->instrument, place->instrument) == 0);
}

void supply_set_widest(struct supply *supply, const struct supply *named)
{
    for (size_t i = 0; i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        for (size_t k = 0; place->providers > 0 && k < named->count; k++) {
            const uint32_t slots = named->places[k].slots.slots;
            if (is_of(&named->places[k], place) && slots > place->widest) {
                place->widest = slots < place->slots.slots ? slots : place->slots.slots;
            }
        }
    }
}

void supply_know(struct supply *named)
{
    for (size_t i = 0; i < named->count; i++) {
        struct supply_place *place = &named->places[i];
        if (place->label[0] != '\0') {
            place->slot_uw = power_uw(place);
            place->widest = place->slots.slots;
        }
    }
}

/* Marks the places whose devices are unlike their class. */
static void find_unlike(const struct measured_times *times, struct supply *supply)
{
    for (size_t i = 0; times != NULL && i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        place->is_unlike =
            measured_times_are_unlike(times, place->account, place->device, &place->pace);
    }
}

/* Returns the number of the kind, new or known, or `count` when there are too many. */
static size_t number_kind(struct measured_kind kinds[LIST_SCHEDULE_CLASSES], size_t *count,
                          const struct measured_kind *kind)
{
    size_t at = 1;
    while (at < *count && (strcmp(kinds[at].device_class, kind->device_class) != 0 ||
                           strcmp(kinds[at].account, kind->account) != 0 ||
                           strcmp(kinds[at].device, kind->device) != 0)) {
        at++;
    }
    if (at == *count && *count < LIST_SCHEDULE_CLASSES) {
        kinds[(*count)++] = *kind;
    }
    return at;
}

/* Returns the kind of the device of the same instrument with the nearest pace, or the instrument's
 * kind. */
static uint32_t nearest_kind(const struct supply *supply, const struct supply_place *place)
{
    uint32_t nearest = place->slots.of_class;
    uint32_t least = UINT32_MAX;
    for (size_t i = 0; i < supply->count; i++) {
        const struct supply_place *other = &supply->places[i];
        const uint32_t off =
            other->pace > place->pace ? other->pace - place->pace : place->pace - other->pace;
        if (other->has_kind && off < least && strcmp(other->instrument, place->instrument) == 0) {
            least = off;
            nearest = other->slots.of_class;
        }
    }
    return nearest;
}

size_t supply_number_kinds(struct supply *supply,
                           struct measured_kind ret_kinds[LIST_SCHEDULE_CLASSES])
{
    size_t count = 1;
    for (int of_device = 0; of_device < 2; of_device++) {
        for (size_t i = 0; i < supply->count; i++) {
            struct supply_place *place = &supply->places[i];
            const struct measured_kind kind = {.device_class = place->instrument,
                                               .account = of_device ? place->account : "",
                                               .device = of_device ? place->device : "",
                                               .pace = of_device ? place->pace : 0};
            if (place->instrument[0] == '\0' || (of_device && !place->is_unlike)) {
                continue;
            }
            const size_t at = number_kind(ret_kinds, &count, &kind);
            place->slots.of_class = at < count ? (uint32_t)at : place->slots.of_class;
            place->has_kind = of_device == 1 && at < count;
        }
    }
    for (size_t i = 0; i < supply->count; i++) {
        struct supply_place *place = &supply->places[i];
        if (place->is_unlike && place->pace > 0 && !place->has_kind) {
            place->slots.of_class = nearest_kind(supply, place);
        }
    }
    return count;
}

/* Sets the job's expected time for all classes. */
static void expect_alike(const struct bourse_job *job, struct supply *supply)
{
    const size_t units = history_units(job);
    const bool by_subtask = history_is_by_subtask(job);
    uint32_t index = 0;
    for (size_t part = 0; part < job->part_count; part++) {
        for (uint32_t k = 0; k < (by_subtask ? job->parts[part].subtasks : 1); k++) {
            const size_t unit = by_subtask ? index + k : part;
            for (size_t c = 0; c < supply->class_count; c++) {
                supply->figures[c * units + unit] = (struct history_figure){
                    .takes_ns = supply_takes_ns(job, part, index + k), .p90_ns = -1};
            }
        }
        index += job->parts[part].subtasks;
    }
}

bool supply_learn(const struct bourse_job *job, struct supply *supply, struct bourse_error *error)
{
    struct measured_kind kinds[LIST_SCHEDULE_CLASSES] = {{"", "", "", 0}};
    find_unlike(job->learned.subtasks > 0 ? job->learned.times : NULL, supply);
    const size_t count = supply_number_kinds(supply, kinds);
    supply->figures = calloc(count * history_units(job), sizeof *supply->figures);
    if (supply->figures == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    supply->class_count = (uint32_t)count;
    expect_alike(job, supply);
    return history_by_kind(job, kinds, count, supply->figures, error);
}

/* ---------------------------------------------------------------- how it would run */

int64_t supply_takes_ns(const struct bourse_job *job, size_t part, uint32_t index)
{
    const struct job_file *file = job->file;
    if (job->expect_ns != NULL && index < job->subtasks - job->checks) {
        return job->expect_ns[index];
    }
    if (job->order != NULL && index < file->task_count) {
        const struct job_task *task = &file->tasks[job->order[index]];
        return order_expect_ns(task->expect_ms, task->limit_ms);
    }
    return job->parts[part].expect_ns;
}

struct history_figure supply_figure(const struct bourse_job *job, const struct supply *supply,
                                    uint32_t of_class, size_t part, uint32_t index)
{
    return supply->figures == NULL
               ? (struct history_figure){.takes_ns = supply_takes_ns(job, part, index),
                                         .p90_ns = -1}
               : supply->figures[of_class * history_units(job) +
                                 (history_is_by_subtask(job) ? index : part)];
}

static bool is_unlike_on(const struct bourse_job *job, const struct supply *supply,
                         uint32_t of_class)
{
    const bool by_subtask = history_is_by_subtask(job);
    uint32_t first = 0;
    bool is_unlike = false;
    for (size_t part = 0; part < job->part_count; part++) {
        for (uint32_t k = 0; k < (by_subtask ? job->parts[part].subtasks : 1); k++) {
            is_unlike =
                is_unlike || supply_figure(job, supply, of_class, part, first + k).takes_ns !=
                                 supply_takes_ns(job, part, first + k);
        }
        first += job->parts[part].subtasks;
    }
    return is_unlike;
}

bool supply_is_unlike(const struct bourse_job *job, const struct supply *supply)
{
    bool is_seen[LIST_SCHEDULE_CLASSES] = {false};
    bool is_unlike = false;
    for (size_t i = 0; supply->figures != NULL && i < supply->count; i++) {
        const uint32_t of_class = supply->places[i].slots.of_class;
        is_unlike = is_unlike || (!is_seen[of_class] && is_unlike_on(job, supply, of_class));
        is_seen[of_class] = true;
    }
    return is_unlike;
}
