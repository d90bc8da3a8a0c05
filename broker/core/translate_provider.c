/* Messages of a provider, other than results, become commands here. */
#include "broker/core/translate_internal.h"

#include "protocol/message.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum reject_code translate_advertise(const Bourse__V1__Advertise *wire, struct translation *ret)
{
    struct exchange_device *devices = arena_take(&ret->arena, wire->n_devices, sizeof *devices);
    if (devices == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_devices; i++) {
        const Bourse__V1__Device *from = wire->devices[i];
        /* The instrument is one attribute more, so a requirement may name it like any other. */
        struct attribute *attributes =
            arena_take(&ret->arena, from->n_attributes + 1, sizeof *attributes);
        if (attributes == NULL) {
            return REJECT_BUSY;
        }
        size_t count = 0;
        bool names_instrument = false;
        for (size_t k = 0; k < from->n_attributes; k++) {
            codec_attribute_from_wire(from->attributes[k], &attributes[count]);
            names_instrument =
                names_instrument || strcmp(attributes[count].name, "instrument") == 0;
            count++;
        }
        if (!names_instrument) {
            struct attribute *instrument = &attributes[count++];
            (void)snprintf(instrument->name, sizeof instrument->name, "instrument");
            instrument->is_text = true;
            /* The codec has checked the length. */
            (void)snprintf(instrument->text, sizeof instrument->text, "%s", from->instrument);
        }
        devices[i].device = codec_id(from->device);
        devices[i].slots = from->slots;
        devices[i].attributes = attributes;
        devices[i].attribute_count = count;
        translate_copy_name(devices[i].label, from->label);
    }
    ret->command.type = EXCHANGE_ADVERTISE;
    ret->command.advertise =
        (struct exchange_advertise){.devices = devices, .count = wire->n_devices};
    return REJECT_NONE;
}

/* Refuses numbers that do not fit the exchange's types; the exchange checks the hours. */
static enum reject_code hours_from_wire(const Bourse__V1__AskPlace *wire, struct hours *ret_hours,
                                        struct codec_error *error)
{
    if (wire->n_hours > HOURS_WINDOWS_MOST) {
        return translate_refuse(error, REJECT_LIMIT, "hours", (int64_t)wire->n_hours,
                                HOURS_WINDOWS_MOST);
    }
    ret_hours->count = (uint32_t)wire->n_hours;
    ret_hours->offset_min = wire->has_offset_min ? wire->offset_min : 0;
    for (size_t i = 0; i < wire->n_hours; i++) {
        const Bourse__V1__AskHours *from = wire->hours[i];
        if (from->days > UINT8_MAX || from->from_min > UINT16_MAX || from->till_min > UINT16_MAX) {
            return translate_refuse(error, REJECT_HOURS, "hours", (int64_t)i, HOURS_DAY_MIN);
        }
        ret_hours->windows[i] = (struct hours_window){.days = (uint8_t)from->days,
                                                      .from_min = (uint16_t)from->from_min,
                                                      .till_min = (uint16_t)from->till_min};
    }
    return REJECT_NONE;
}

enum reject_code translate_ask(const Bourse__V1__AskPlace *wire, struct translation *ret,
                               struct codec_error *error)
{
    struct exchange_command *command = &ret->command;
    struct exchange_ask_account *to = arena_take(&ret->arena, wire->n_to, sizeof *to);
    if (to == NULL) {
        return REJECT_BUSY;
    }
    for (size_t i = 0; i < wire->n_to; i++) {
        to[i].has_key = wire->to[i]->has_account;
        if (to[i].has_key) {
            to[i].key = codec_key(wire->to[i]->account);
        }
        translate_copy_name(to[i].name, wire->to[i]->name);
    }
    command->type = EXCHANGE_ASK;
    command->ask.device = codec_id(wire->device);
    command->ask.slots = wire->slots;
    command->ask.price_micro = wire->price_micro;
    if (wire->has_good_till_ms &&
        !translate_ms_to_ns(wire->good_till_ms, &command->ask.good_till_ns)) {
        return translate_bad_time(error, "good_till_ms", wire->good_till_ms);
    }
    if (wire->has_max_term_ms &&
        !translate_ms_to_ns(wire->max_term_ms, &command->ask.max_term_ns)) {
        return translate_bad_time(error, "max_term_ms", wire->max_term_ms);
    }
    struct exchange_terms *terms = &command->ask.terms;
    terms->is_interruptible = wire->has_interruptible && wire->interruptible;
    if (wire->has_notice_ms && !translate_ms_to_ns(wire->notice_ms, &terms->notice_ns)) {
        return translate_bad_time(error, "notice_ms", wire->notice_ms);
    }
    if (wire->has_minimum_run_ms &&
        !translate_ms_to_ns(wire->minimum_run_ms, &terms->minimum_run_ns)) {
        return translate_bad_time(error, "minimum_run_ms", wire->minimum_run_ms);
    }
    if (wire->has_daily_ms && !translate_ms_to_ns(wire->daily_ms, &command->ask.daily_ns)) {
        return translate_bad_time(error, "daily_ms", wire->daily_ms);
    }
    command->ask.type =
        wire->has_order_type ? (enum exchange_order_type)wire->order_type : EXCHANGE_LIMIT;
    command->ask.to = to;
    command->ask.to_count = wire->n_to;
    return hours_from_wire(wire, &command->ask.hours, error);
}

enum reject_code translate_statement(const Bourse__V1__Statement *wire, struct translation *ret)
{
    size_t count = 0;
    for (size_t i = 0; i < wire->n_leases; i++) {
        count += wire->leases[i]->n_work == 0 ? 1 : wire->leases[i]->n_work;
    }
    struct exchange_held *held = arena_take(&ret->arena, count, sizeof *held);
    if (held == NULL) {
        return REJECT_BUSY;
    }
    size_t at = 0;
    for (size_t i = 0; i < wire->n_leases; i++) {
        const Bourse__V1__HeldLease *lease = wire->leases[i];
        if (lease->n_work == 0) {
            held[at++] = (struct exchange_held){.lease = lease->lease};
        }
        for (size_t k = 0; k < lease->n_work; k++) {
            held[at++] = (struct exchange_held){.lease = lease->lease,
                                                .index = lease->work[k]->index,
                                                .attempt = lease->work[k]->attempt};
        }
    }
    assert(at == count);
    ret->command.type = EXCHANGE_STATEMENT;
    ret->command.statement = (struct exchange_statement){
        .held = held, .count = count, .as_of_ns = wire->has_as_of_ns ? wire->as_of_ns : 0};
    return REJECT_NONE;
}
