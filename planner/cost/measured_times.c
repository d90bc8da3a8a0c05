#include "planner/cost/measured_times.h"

#include "base/array.h"
#include "base/checked.h"
#include "planner/cost/history.h"
#include "planner/cost/pace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct item {
    struct measured_row row;
    size_t of_class;
    size_t next; /* index + 1 of another row of the same work; 0: none */
};

struct class_of_devices {
    char name[MEASURED_CLASS_SIZE];
    uint32_t slowest; /* the largest pace of its devices, PACE_ONE at least */
};

struct measured_times {
    struct item *items;
    size_t count, capacity;
    size_t first[MEASURED_WORKS]; /* by work: index + 1 of its last row; 0: none */
    struct measured_pace *paces;
    size_t pace_count, pace_capacity;
    struct class_of_devices *classes;
    size_t class_count, class_capacity;
};

struct measured_times *measured_times_create(void)
{
    return calloc(1, sizeof(struct measured_times));
}

void measured_times_destroy(struct measured_times **self)
{
    struct measured_times *times = *self;
    if (times != NULL) {
        free(times->items);
        free(times->paces);
        free(times->classes);
        free(times);
        *self = NULL;
    }
}

/* ---------------------------------------------------------------- rows */

/* Returns the number of the class, or SIZE_MAX when memory is short. */
static size_t number_class(struct measured_times *times, const char *name)
{
    for (size_t i = 0; i < times->class_count; i++) {
        if (strcmp(times->classes[i].name, name) == 0) {
            return i;
        }
    }
    struct class_of_devices *classes = array_with_room(times->classes, times->class_count,
                                                       &times->class_capacity, sizeof *classes);
    if (classes == NULL) {
        return SIZE_MAX;
    }
    times->classes = classes;
    struct class_of_devices *added = &classes[times->class_count];
    *added = (struct class_of_devices){.slowest = PACE_ONE};
    memcpy(added->name, name, strnlen(name, sizeof added->name - 1));
    return times->class_count++;
}

bool measured_times_add(struct measured_times *times, const struct measured_row *row)
{
    assert(row->work < MEASURED_WORKS);
    assert(row->samples > 0 && row->median_ns > 0);
    const size_t of_class = number_class(times, row->place.device_class);
    struct item *items =
        array_with_room(times->items, times->count, &times->capacity, sizeof *times->items);
    times->items = items != NULL ? items : times->items;
    if (items == NULL || of_class == SIZE_MAX) {
        return false;
    }
    items[times->count] = (struct item){*row, of_class, times->first[row->work]};
    times->first[row->work] = ++times->count;
    return true;
}

static bool is_device(const struct measured_place *place, const char *account, const char *device)
{
    return strcmp(place->device, device) == 0 && strcmp(place->account, account) == 0;
}

bool measured_times_add_pace(struct measured_times *times, const struct measured_pace *pace)
{
    assert(pace->pace > 0);
    const size_t of_class = number_class(times, pace->place.device_class);
    if (of_class == SIZE_MAX) {
        return false;
    }
    size_t at = 0;
    while (at < times->pace_count &&
           !is_device(&times->paces[at].place, pace->place.account, pace->place.device)) {
        at++;
    }
    if (at == times->pace_count) {
        struct measured_pace *paces =
            array_with_room(times->paces, times->pace_count, &times->pace_capacity, sizeof *paces);
        if (paces == NULL) {
            return false;
        }
        times->paces = paces;
        times->pace_count++;
    }
    times->paces[at] = *pace;
    struct class_of_devices *its = &times->classes[of_class];
    its->slowest = pace->pace > its->slowest ? pace->pace : its->slowest;
    return true;
}

size_t measured_times_count(const struct measured_times *times)
{
    return times->count;
}

const struct measured_row *measured_times_row(const struct measured_times *times, size_t index)
{
    assert(index < times->count);
    return &times->items[index].row;
}

size_t measured_times_pace_count(const struct measured_times *times)
{
    return times->pace_count;
}

const struct measured_pace *measured_times_pace(const struct measured_times *times, size_t index)
{
    assert(index < times->pace_count);
    return &times->paces[index];
}

bool measured_times_are_unlike(const struct measured_times *times, const char *account,
                               const char *device, uint32_t *ret_pace)
{
    bool has_rows = false;
    *ret_pace = 0;
    for (size_t i = 0; device[0] != '\0' && i < times->pace_count; i++) {
        if (is_device(&times->paces[i].place, account, device)) {
            *ret_pace = times->paces[i].pace;
        }
    }
    for (size_t i = 0; device[0] != '\0' && !has_rows && i < times->count; i++) {
        has_rows = is_device(&times->items[i].row.place, account, device);
    }
    return has_rows || *ret_pace > 0;
}

/* ---------------------------------------------------------------- the time of one work */

struct sum {
    uint64_t samples;
    int128 median_ns; /* sum over the samples */
    int64_t p90_ns;   /* the largest */
    bool has_no_p90;  /* some row has too few samples */
};

static void add(struct sum *sum, const struct measured_row *row, uint32_t pace)
{
    const int64_t p90_ns = row->p90_ns >= 0 ? pace_takes_ns(row->p90_ns, pace) : 0;
    sum->has_no_p90 = sum->has_no_p90 || row->p90_ns < 0;
    sum->p90_ns = p90_ns > sum->p90_ns ? p90_ns : sum->p90_ns;
    sum->samples += row->samples;
    sum->median_ns += (int128)row->median_ns * row->samples;
}

static bool read_sum(const struct sum *sum, uint32_t pace, struct measured_time *ret_time)
{
    if (sum->samples == 0) {
        return false;
    }
    const int64_t p90_ns = sum->p90_ns > 0 ? pace_takes_ns(sum->p90_ns, pace) : 1;
    *ret_time = (struct measured_time){
        .median_ns = pace_takes_ns((int64_t)(sum->median_ns / sum->samples), pace),
        .p90_ns = sum->has_no_p90 ? -1 : p90_ns,
        .samples = sum->samples,
        .is_at_pace = pace != PACE_ONE};
    return true;
}

/* Returns the next row of the work with inputs of this size, or NULL. */
static const struct item *next_row(const struct measured_times *times, size_t *at, uint32_t size)
{
    while (*at > 0) {
        const struct item *item = &times->items[*at - 1];
        *at = item->next;
        if (item->row.size == size) {
            return item;
        }
    }
    return NULL;
}

static bool is_of_model(const struct measured_place *place)
{
    return strncmp(place->device_class, "sim.", 4) == 0;
}

bool measured_times_of_all(const struct measured_times *times, uint32_t work, uint32_t size,
                           bool is_simulated, struct measured_time *ret_time)
{
    assert(work < MEASURED_WORKS);
    struct sum sum = {.samples = 0};
    size_t at = times->first[work];
    for (const struct item *item = next_row(times, &at, size); item != NULL;
         item = next_row(times, &at, size)) {
        /* The row of its class counts the samples of a device, too. */
        if (item->row.place.device[0] == '\0' && is_of_model(&item->row.place) == is_simulated) {
            add(&sum, &item->row, times->classes[item->of_class].slowest);
        }
    }
    return read_sum(&sum, PACE_ONE, ret_time);
}

static struct sum sum_of(const struct measured_times *times, uint32_t work, uint32_t size,
                         const char *device_class, const char *account, const char *device)
{
    struct sum sum = {.samples = 0};
    size_t at = times->first[work];
    for (const struct item *item = next_row(times, &at, size); item != NULL;
         item = next_row(times, &at, size)) {
        if (is_device(&item->row.place, account, device) &&
            strcmp(item->row.place.device_class, device_class) == 0) {
            add(&sum, &item->row, PACE_ONE);
        }
    }
    return sum;
}

bool measured_times_of_kind(const struct measured_times *times, uint32_t work, uint32_t size,
                            const struct measured_kind *kind, struct measured_time *ret_time)
{
    assert(work < MEASURED_WORKS);
    const struct sum own =
        sum_of(times, work, size, kind->device_class, kind->account, kind->device);
    if (own.samples > 0) {
        return read_sum(&own, PACE_ONE, ret_time);
    }
    const struct sum of_class = sum_of(times, work, size, kind->device_class, "", "");
    return read_sum(&of_class, kind->pace == 0 ? PACE_ONE : kind->pace, ret_time);
}

int64_t measured_time_blend(const struct measured_time *time, int64_t said_ns)
{
    const struct history_summary summary = {
        .count = time->samples < UINT32_MAX ? (uint32_t)time->samples : UINT32_MAX,
        .median = time->median_ns};
    return history_blend(&summary, said_ns);
}
