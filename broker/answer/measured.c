#include "broker/answer/measured.h"

#include "base/list.h"
#include "planner/cost/pace.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* The names of work are hashes, so their first bytes spread them evenly over the heads of
 * chains. */
enum { HEADS = MEASURED_ROWS };

struct entry {
    struct list_link age; /* member of measured->age, whose first entry is the oldest */
    /* Entries whose names begin alike, in order of arrival. */
    struct list_link chain;
    /* Entries whose work and class hash alike, in order of arrival. */
    struct list_link like;
    struct measured_row row;
};

struct measured {
    struct list_link age;
    struct list_link heads[HEADS], likes[HEADS];
    size_t count;
};

struct measured *measured_create(void)
{
    struct measured *measured = malloc(sizeof *measured);
    if (measured == NULL) {
        return NULL;
    }
    measured->count = 0;
    list_init(&measured->age);
    for (size_t i = 0; i < HEADS; i++) {
        list_init(&measured->heads[i]);
        list_init(&measured->likes[i]);
    }
    return measured;
}

static void forget(struct measured *measured, struct entry *entry)
{
    list_remove(&entry->age);
    list_remove(&entry->chain);
    list_remove(&entry->like);
    measured->count--;
    free(entry);
}

void measured_destroy(struct measured **self)
{
    struct measured *measured = *self;
    if (measured != NULL) {
        while (!list_empty(&measured->age)) {
            forget(measured, LIST_ELEMENT(measured->age.next, struct entry, age));
        }
        free(measured);
        *self = NULL;
    }
}

static size_t head_of(const struct hash32 *name)
{
    uint32_t begin;
    memcpy(&begin, name->bytes, sizeof begin);
    return begin % HEADS;
}

static const struct measured_device all_devices;

static size_t like_of(const struct work *work, const char *device_class)
{
    uint32_t hash = (uint32_t)head_of(&work->name) * 31 + work->size;
    for (const char *at = device_class; *at != '\0'; at++) {
        hash = hash * 31 + (unsigned char)*at;
    }
    return hash % HEADS;
}

static bool is_like(const struct measured_row *row, const struct work *work,
                    const char *device_class)
{
    return hash32_equal(&row->work.name, &work->name) && row->work.size == work->size &&
           strcmp(row->device_class, device_class) == 0;
}

/* Returns the entry for these times, and makes it the newest. Creates the entry when there is none.
 * Returns NULL when memory is short. */
static struct entry *entry_of(struct measured *measured, const struct work *work,
                              const char *device_class, const struct measured_device *device)
{
    struct list_link *head = &measured->likes[like_of(work, device_class)];
    assert(strlen(device_class) < MEASURED_CLASS_SIZE);
    for (struct list_link *at = head->next; at != head; at = at->next) {
        struct entry *entry = LIST_ELEMENT(at, struct entry, like);
        if (is_like(&entry->row, work, device_class) &&
            key32_equal(&entry->row.device.provider, &device->provider) &&
            id128_equal(&entry->row.device.device, &device->device)) {
            list_remove(&entry->age);
            list_append(&measured->age, &entry->age);
            return entry;
        }
    }
    struct entry *entry = calloc(1, sizeof *entry);
    if (entry == NULL) {
        return NULL;
    }
    if (measured->count == MEASURED_ROWS) {
        forget(measured, LIST_ELEMENT(measured->age.next, struct entry, age));
    }
    entry->row.work = *work;
    entry->row.device = *device;
    memcpy(entry->row.device_class, device_class, strlen(device_class));
    list_append(&measured->age, &entry->age);
    list_append(&measured->heads[head_of(&work->name)], &entry->chain);
    list_append(head, &entry->like);
    measured->count++;
    return entry;
}

bool measured_add(struct measured *measured, const struct work *work, const char *device_class,
                  const struct measured_device *device, int64_t took_ns, int64_t at_ns)
{
    if (took_ns <= 0) {
        return false;
    }
    struct entry *entry =
        entry_of(measured, work, device_class, device == NULL ? &all_devices : device);
    if (entry == NULL) {
        return true; /* only advice is lost when memory is short */
    }
    entry->row.at_ns = at_ns;
    return history_add(&entry->row.history, took_ns);
}

void measured_put(struct measured *measured, const struct measured_row *row)
{
    struct entry *entry = entry_of(measured, &row->work, row->device_class, &row->device);
    if (entry != NULL) {
        entry->row = *row;
    }
}

size_t measured_count(const struct measured *measured)
{
    return measured->count;
}

bool measured_each(const struct measured *measured, const struct hash32 *name,
                   measured_on_row *visit, void *context)
{
    const struct list_link *head = name == NULL ? &measured->age : &measured->heads[head_of(name)];
    for (const struct list_link *at = head->next; at != head; at = at->next) {
        const struct entry *entry = name == NULL ? LIST_ELEMENT(at, struct entry, age)
                                                 : LIST_ELEMENT(at, struct entry, chain);
        if ((name == NULL || hash32_equal(&entry->row.work.name, name)) &&
            !visit(context, &entry->row)) {
            return false;
        }
    }
    return true;
}

bool measured_each_like(const struct measured *measured, const struct measured_row *row,
                        measured_on_row *visit, void *context)
{
    const struct list_link *head = &measured->likes[like_of(&row->work, row->device_class)];
    for (const struct list_link *at = head->next; at != head; at = at->next) {
        const struct entry *entry = LIST_ELEMENT(at, struct entry, like);
        if (is_like(&entry->row, &row->work, row->device_class) && !visit(context, &entry->row)) {
            return false;
        }
    }
    return true;
}

bool measured_is_unlike(const struct history_summary *class_took, uint32_t pace,
                        const struct history_summary *took)
{
    const int64_t off = took->median > class_took->median ? took->median - class_took->median
                                                          : class_took->median - took->median;
    return took->count >= MEASURED_TOLD &&
           (pace != PACE_ONE || off > class_took->median / 100 * MEASURED_OFF_PERCENT);
}
