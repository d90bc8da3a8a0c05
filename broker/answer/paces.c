#include "broker/answer/paces.h"

#include "planner/cost/pace.h"

#include <stdlib.h>
#include <string.h>

struct paces {
    size_t count;
    struct paced items[]; /* sorted by order_of() */
};

/* ---------------------------------------------------------------- numbers for work and devices */

static int order_of(const char *left_class, const struct measured_device *left,
                    const char *right_class, const struct measured_device *right)
{
    const int of_class = strcmp(left_class, right_class);
    const int provider = memcmp(&left->provider, &right->provider, sizeof left->provider);
    return of_class != 0   ? of_class
           : provider != 0 ? provider
                           : memcmp(&left->device, &right->device, sizeof left->device);
}

struct numbered {
    const struct measured_row *row;
    struct pace_row pace_row;
};

static int order_of_work(const void *a, const void *b)
{
    const struct measured_row *left = ((const struct numbered *)a)->row;
    const struct measured_row *right = ((const struct numbered *)b)->row;
    const int name = memcmp(&left->work.name, &right->work.name, sizeof left->work.name);
    const int size = (left->work.size > right->work.size) - (left->work.size < right->work.size);
    return name != 0 ? name : size != 0 ? size : strcmp(left->device_class, right->device_class);
}

static int order_of_device(const void *a, const void *b)
{
    const struct measured_row *left = ((const struct numbered *)a)->row;
    const struct measured_row *right = ((const struct numbered *)b)->row;
    return order_of(left->device_class, &left->device, right->device_class, &right->device);
}

struct numbers {
    struct numbered *items;
    struct pace_row *rows;
    uint32_t *paces;
    size_t count, capacity;
};

static bool add_row(void *context, const struct measured_row *row)
{
    struct numbers *numbers = context;
    const struct history_summary took = history_summarise(&row->history);
    if (took.median > 0 && numbers->count < numbers->capacity) {
        numbers->items[numbers->count++] = (struct numbered){
            .row = row,
            .pace_row = {.samples = took.count, .median_ns = took.median, .at_ns = row->at_ns}};
    }
    return true;
}

/* Numbers equal work, then equal devices; the items stay in the order of the devices. */
static void number(struct numbers *numbers, uint32_t *ret_works, uint32_t *ret_devices)
{
    struct numbered *items = numbers->items;
    *ret_works = *ret_devices = 0;
    qsort(items, numbers->count, sizeof *items, order_of_work);
    for (size_t i = 0; i < numbers->count; i++) {
        *ret_works += i == 0 || order_of_work(&items[i - 1], &items[i]) != 0;
        items[i].pace_row.work = *ret_works - 1;
    }
    qsort(items, numbers->count, sizeof *items, order_of_device);
    for (size_t i = 0; i < numbers->count; i++) {
        *ret_devices += i == 0 || order_of_device(&items[i - 1], &items[i]) != 0;
        items[i].pace_row.device = *ret_devices - 1;
        numbers->rows[i] = items[i].pace_row;
    }
}

/* ---------------------------------------------------------------- paces */

static bool find(struct numbers *numbers, struct paces *paces)
{
    uint32_t works = 0;
    uint32_t devices = 0;
    number(numbers, &works, &devices);
    if (!pace_find(numbers->rows, numbers->count, works, devices, numbers->paces)) {
        return false;
    }
    for (size_t i = 0; i < numbers->count; i++) {
        const struct numbered *item = &numbers->items[i];
        const bool is_first =
            i == 0 || item->pace_row.device != numbers->items[i - 1].pace_row.device;
        const uint32_t pace = numbers->paces[item->pace_row.device];
        if (is_first && pace != PACE_ONE) {
            struct paced *paced = &paces->items[paces->count++];
            *paced = (struct paced){.device = item->row->device, .pace = pace};
            memcpy(paced->device_class, item->row->device_class, sizeof paced->device_class);
        }
    }
    return true;
}

struct paces *paces_create(const struct measured *devices)
{
    const size_t capacity = measured_count(devices);
    struct numbers numbers = {.items = calloc(capacity + 1, sizeof *numbers.items),
                              .rows = calloc(capacity + 1, sizeof *numbers.rows),
                              .paces = calloc(capacity + 1, sizeof *numbers.paces),
                              .capacity = capacity};
    struct paces *paces = calloc(1, sizeof *paces + capacity * sizeof *paces->items);
    bool is_found = false;
    if (numbers.items != NULL && numbers.rows != NULL && numbers.paces != NULL && paces != NULL) {
        (void)measured_each(devices, NULL, add_row, &numbers);
        is_found = find(&numbers, paces);
    }
    free(numbers.items);
    free(numbers.rows);
    free(numbers.paces);
    if (!is_found) {
        paces_destroy(&paces);
    }
    return paces;
}

void paces_destroy(struct paces **self)
{
    free(*self);
    *self = NULL;
}

bool paces_each(const struct paces *paces, paces_on_device *visit, void *context)
{
    for (size_t i = 0; paces != NULL && i < paces->count; i++) {
        if (!visit(context, &paces->items[i])) {
            return false;
        }
    }
    return true;
}

static int order_in_paces(const void *key, const void *item)
{
    const struct measured_row *row = key;
    const struct paced *paced = item;
    return order_of(row->device_class, &row->device, paced->device_class, &paced->device);
}

uint32_t paces_of(const struct paces *paces, const struct measured_row *row)
{
    const struct paced *found = paces == NULL ? NULL
                                              : bsearch(row, paces->items, paces->count,
                                                        sizeof *paces->items, order_in_paces);
    return found == NULL ? PACE_ONE : found->pace;
}

/* ---------------------------------------------------------------- times of a class at pace 1 */

struct rebasing {
    const struct paces *paces;
    const struct measured_row *all;
    struct history history; /* times of the class, at pace 1 */
    bool is_done[HISTORY_SAMPLES];
    uint32_t done;
};

/* Brings those times of the class to pace 1 that came from the device of `row`. A time of the class
 * came from the device that has the same time, to the nanosecond. */
static bool rebase(void *context, const struct measured_row *row)
{
    struct rebasing *rebasing = context;
    const struct measured_row *all = rebasing->all;
    const uint32_t pace = paces_of(rebasing->paces, row);
    for (uint32_t i = 0; pace != PACE_ONE && i < row->history.count; i++) {
        uint32_t at = 0;
        while (at < all->history.count &&
               (rebasing->is_done[at] || all->history.samples[at] != row->history.samples[i])) {
            at++;
        }
        if (at < all->history.count) {
            rebasing->is_done[at] = true;
            rebasing->done++;
            rebasing->history.samples[at] = pace_base_ns(all->history.samples[at], pace);
        }
    }
    return rebasing->done < all->history.count;
}

struct history_summary paces_summarise(const struct paces *paces, const struct measured *devices,
                                       const struct measured_row *row)
{
    struct rebasing rebasing = {.paces = paces, .all = row, .history = row->history};
    if (paces != NULL && paces->count > 0 && id128_is_zero(&row->device.device)) {
        (void)measured_each_like(devices, row, rebase, &rebasing);
    }
    return history_summarise(&rebasing.history);
}

struct telling {
    const struct paces *paces;
    const struct measured *devices;
    struct history_summary of_class;
    paces_on_told *visit;
    void *context;
    bool is_class;
};

static bool tell_device(void *context, const struct measured_row *row)
{
    const struct telling *telling = context;
    if (row->history.count < MEASURED_TOLD) {
        return true;
    }
    const struct history_summary took = history_summarise(&row->history);
    return !measured_is_unlike(&telling->of_class, paces_of(telling->paces, row), &took) ||
           telling->visit(telling->context, row, &took);
}

static bool tell_class(void *context, const struct measured_row *row)
{
    struct telling *telling = context;
    telling->of_class = paces_summarise(telling->paces, telling->devices, row);
    return telling->is_class ? telling->visit(telling->context, row, &telling->of_class)
                             : measured_each_like(telling->devices, row, tell_device, telling);
}

bool paces_tell(const struct paces *paces, const struct measured *classes,
                const struct measured *devices, const struct hash32 *name, paces_on_told *visit,
                void *context)
{
    struct telling telling = {
        .paces = paces, .devices = devices, .visit = visit, .context = context, .is_class = true};
    const bool goes_on = measured_each(classes, name, tell_class, &telling);
    telling.is_class = false;
    return goes_on && measured_each(classes, name, tell_class, &telling);
}
