#include "consumer/market/measured_load.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/client/client.h"
#include "protocol/codec.h"
#include "protocol/limits.h"

#include <assert.h>
#include <string.h>

static_assert((int)MEASURED_CLASS_SIZE == (int)BOURSE_NAME_SIZE, "a class is an instrument's name");
static_assert((int)MEASURED_ACCOUNT_SIZE == (int)BOURSE_HEX32_SIZE, "an account is a key");
static_assert((int)MEASURED_DEVICE_SIZE == (int)BOURSE_ID_SIZE, "a device has an id");

void measured_works_add(struct measured_works *works, const struct hash32 *name, uint32_t index)
{
    if (measured_works_find(works, name) == works->count && works->count < MEASURED_WORKS) {
        works->names[works->count] = *name;
        works->first[works->count++] = index;
    }
}

size_t measured_works_find(const struct measured_works *works, const struct hash32 *name)
{
    /* Neighbours are often alike, so the search goes backwards. */
    for (size_t i = works->count; i-- > 0;) {
        if (hash32_equal(&works->names[i], name)) {
            return i;
        }
    }
    return works->count;
}

static struct measured_place place_of(const Bourse__V1__HistoryRow *row)
{
    struct measured_place place = {.device_class = ""};
    client_copy(place.device_class, sizeof place.device_class, row->device_class);
    if (row->has_provider && row->has_device) {
        text_hex(row->provider.data, row->provider.len, place.account);
        text_hex(row->device.data, row->device.len, place.device);
    }
    return place;
}

/* Rows of other works than those asked for, and rows without a time, are left out. */
static bool take_row(const struct measured_works *works, const Bourse__V1__HistoryRow *wire,
                     struct measured_times *times)
{
    struct hash32 name;
    memcpy(name.bytes, wire->work.data, sizeof name.bytes);
    const size_t work = measured_works_find(works, &name);
    if (wire->has_pace) {
        const struct measured_pace pace = {place_of(wire), wire->pace};
        return wire->pace == 0 || measured_times_add_pace(times, &pace);
    }
    if (work == works->count || wire->samples == 0 || wire->median_ns <= 0) {
        return true;
    }
    const struct measured_row row = {.work = (uint32_t)work,
                                     .size = wire->size,
                                     .place = place_of(wire),
                                     .samples = wire->samples,
                                     .outliers = wire->outliers,
                                     .median_ns = wire->median_ns,
                                     .p90_ns = wire->has_p90_ns ? wire->p90_ns : -1,
                                     .at_ms = wire->at_ms};
    return measured_times_add(times, &row);
}

/* Asks for `count` works from `first` on, at most LIMIT_WORKS. */
static bool ask(struct bourse *bourse, const struct measured_works *works, size_t first,
                size_t count, struct measured_times *times, struct bourse_error *error)
{
    ProtobufCBinaryData names[LIMIT_WORKS];
    Bourse__V1__HistoryRequest body = BOURSE__V1__HISTORY_REQUEST__INIT;
    for (size_t i = 0; i < count; i++) {
        names[i] = (ProtobufCBinaryData){
            .data = (uint8_t *)(uintptr_t)works->names[first + i].bytes, .len = 32};
    }
    body.n_works = count;
    body.works = names;
    body.has_skip = 1;
    bool more = true;
    while (more) {
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_HISTORY_REQUEST, &body.base, MESSAGE_HISTORY_REPLY,
                         &answer, error)) {
            return false;
        }
        const Bourse__V1__HistoryReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            if (!take_row(works, reply->rows[i], times)) {
                return client_fail(error, BOURSE_LOCAL, "out of memory");
            }
        }
        more = reply->has_more && reply->more && reply->n_rows > 0;
        body.skip += (uint32_t)reply->n_rows;
    }
    return true;
}

bool measured_load(struct bourse *bourse, const struct measured_works *works,
                   struct measured_times **ret_times, struct bourse_error *error)
{
    CLEANUP(measured_times_destroy) struct measured_times *times = measured_times_create();
    if (times == NULL) {
        return client_fail(error, BOURSE_LOCAL, "out of memory");
    }
    for (size_t first = 0; first < works->count; first += LIMIT_WORKS) {
        const size_t left = works->count - first;
        if (!ask(bourse, works, first, left < LIMIT_WORKS ? left : LIMIT_WORKS, times, error)) {
            return false;
        }
    }
    *ret_times = times;
    times = NULL;
    return true;
}
