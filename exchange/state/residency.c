#include "exchange/state/residency.h"

#include "exchange/state/memory.h"
#include "exchange/state/parts.h"
#include "exchange/state/tracking.h"

#include <stdlib.h>
#include <string.h>

uint64_t residency_size(const struct exchange *exchange, uint64_t bytes)
{
    return exchange->rules >= RULES_OF_RESIDENCE && bytes >= RESIDENT_LEAST_BYTES ? bytes : 0;
}

static bool is_named(const struct attribute *attribute, const char *name)
{
    return strncmp(attribute->name, name, sizeof attribute->name) == 0;
}

/* Returns how many bytes a lane of the lease may hold: what an agent keeps when its owner says
 * nothing else. Returns 0 for a device without an interface to memory of its own. */
static uint64_t cap_bytes(const struct exchange *exchange, const struct lease *lease)
{
    size_t count = 0;
    const struct attribute *attributes =
        book_cell_attributes(exchange->book, lease->device->cell, &count);
    int64_t memory_bytes = 0;
    bool has_memory = false;
    for (size_t i = 0; i < count; i++) {
        has_memory = has_memory || is_named(&attributes[i], "api");
        if (is_named(&attributes[i], "memory") && attributes[i].number > 0) {
            memory_bytes = attributes[i].number;
        }
    }
    const uint64_t slot_bytes = (uint64_t)memory_bytes / RESIDENT_MEMORY_SHARE;
    const uint64_t width = lease->part->width;
    const uint64_t lane_bytes = slot_bytes > UINT64_MAX / width ? UINT64_MAX : slot_bytes * width;
    return has_memory ? lane_bytes : 0;
}

static uint32_t find(const struct residents *residents, uint32_t index)
{
    uint32_t place = 0;
    while (place < residents->count && residents->items[place].index != index) {
        place++;
    }
    return place;
}

bool residency_has(const struct residents *residents, uint32_t index)
{
    return find(residents, index) < residents->count;
}

/* Puts an entry first. One that is there moves; else the last one makes room when all are used. */
static void put_first(struct residents *residents, uint32_t index, uint64_t bytes)
{
    uint32_t place = find(residents, index);
    if (place == residents->count) {
        residents->count += residents->count < RESIDENTS_MOST;
        place = residents->count - 1;
    }
    memmove(&residents->items[1], &residents->items[0], place * sizeof residents->items[0]);
    residents->items[0] = (struct resident){.index = index, .bytes = bytes};
}

/* Lets the last ones go until the rest has at most `most` bytes. The first one fits. */
static void cut(struct residents *residents, uint64_t most)
{
    uint64_t bytes = 0;
    uint32_t kept = 0;
    while (kept < residents->count && residents->items[kept].bytes <= most - bytes) {
        bytes += residents->items[kept].bytes;
        kept++;
    }
    residents->count = kept;
}

void residency_note(struct exchange *exchange, struct lease *lease, uint32_t lane, uint32_t index,
                    uint64_t bytes)
{
    if (bytes == 0 || lease->device == NULL || part_is_checks(lease->part)) {
        return;
    }
    const uint64_t most = cap_bytes(exchange, lease);
    struct residents **residents = &lease->lanes[lane].residents;
    if (*residents == NULL && bytes <= most) {
        *residents = memory_allocate(exchange, sizeof **residents);
    }
    if (*residents != NULL && bytes <= most) {
        put_first(*residents, index, bytes);
        cut(*residents, most);
        tracking_touch(exchange, &lease->tracked);
    }
}

void residency_note_inputs(struct exchange *exchange, struct lease *lease, uint32_t lane,
                           uint32_t index)
{
    const struct graph *graph = lease->job->graph;
    if (graph == NULL) {
        return;
    }
    const uint32_t first = graph->first_after[index];
    const uint32_t count = graph->first_after[index + 1] - first;
    for (uint32_t i = 0; i < count && i < RESIDENT_INPUTS_MOST; i++) {
        const struct given *given = graph->given[graph->after[first + i]];
        if (given != NULL) {
            residency_note(exchange, lease, lane, given->index, given->file_bytes);
        }
    }
}

uint64_t residency_bytes(const struct residents *residents, const struct graph *graph,
                         uint32_t index)
{
    uint64_t bytes = 0;
    if (residents == NULL || graph == NULL) {
        return 0;
    }
    const uint32_t first = graph->first_after[index];
    const uint32_t count = graph->first_after[index + 1] - first;
    for (uint32_t i = 0; i < count && i < RESIDENT_INPUTS_MOST; i++) {
        const uint32_t place = find(residents, graph->after[first + i]);
        const uint64_t more = place < residents->count ? residents->items[place].bytes : 0;
        bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
    }
    return bytes;
}

int64_t residency_saves_ns(uint64_t bytes)
{
    const uint64_t most = LEASE_AGE_MOST_NS / RESIDENT_NS_PER_BYTE;
    return (int64_t)((bytes < most ? bytes : most) * RESIDENT_NS_PER_BYTE);
}

void residency_forget(struct lease *lease)
{
    for (uint32_t i = 0; lease->lanes != NULL && i < lease->lane_count; i++) {
        free(lease->lanes[i].residents);
        lease->lanes[i].residents = NULL;
    }
}
