/* The market as its members see it: one request a page, row by row to a visitor. */
#include "consumer/client.h"

#include "base/cleanup.h"
#include "base/text.h"
#include "formats/requirement.h"

#include <string.h>

static void requirement_free(Bourse__V1__Requirement **self)
{
    if (*self != NULL) {
        codec_requirement_free(self);
    }
}

/* ---------------------------------------------------------------- devices */

/* `attributes` has room for LIMIT_ATTRIBUTES and is what the device points to. */
static void device_from_wire(const Bourse__V1__DeviceRow *row, struct bourse_attribute *attributes,
                             struct bourse_device *ret_device)
{
    *ret_device =
        (struct bourse_device){.slots = row->slots,
                               .leased = row->leased,
                               .free = row->free,
                               .price_micro = row->has_price_micro ? row->price_micro : -1,
                               .max_term_ms = row->has_max_term_ms ? row->max_term_ms : 0,
                               .attribute_count = row->n_attributes,
                               .attributes = attributes};
    text_hex(row->account.data, 32, ret_device->account);
    text_hex(row->device.data, 16, ret_device->id);
    client_copy(ret_device->provider, sizeof ret_device->provider, row->provider);
    client_copy(ret_device->state, sizeof ret_device->state, row->state);
    client_copy(ret_device->label, sizeof ret_device->label, row->label);
    client_copy(ret_device->instrument, sizeof ret_device->instrument, row->instrument);
    for (size_t i = 0; i < row->n_attributes; i++) {
        const Bourse__V1__Attribute *from = row->attributes[i];
        attributes[i] = (struct bourse_attribute){.name = from->name,
                                                  .text = from->text,
                                                  .number = from->text == NULL ? from->number : 0};
        if (from->text != NULL && strcmp(from->name, "kind") == 0) {
            /* Its variants stand beside it, as in cpu and cpu-x86. */
            size_t length = strlen(ret_device->kind);
            if (length == 0 || strlen(from->text) < length) {
                client_copy(ret_device->kind, sizeof ret_device->kind, from->text);
            }
        } else if (strcmp(from->name, "simulated") == 0) {
            ret_device->simulated = from->text != NULL || from->number != 0;
        }
    }
}

static bool list_devices(struct bourse *bourse, Bourse__V1__Requirement *needs,
                         bourse_device_visitor *visitor, void *context, struct bourse_error *error)
{
    Bourse__V1__DevicePlace from = BOURSE__V1__DEVICE_PLACE__INIT;
    bool is_first = true;
    for (;;) {
        Bourse__V1__DevicesRequest body = BOURSE__V1__DEVICES_REQUEST__INIT;
        body.needs = needs;
        body.from = is_first ? NULL : &from;
        CLEANUP(codec_free) ProtobufCMessage *answer = NULL;
        if (!client_call(bourse, MESSAGE_DEVICES_REQUEST, &body.base, MESSAGE_DEVICES_REPLY,
                         &answer, error)) {
            return false;
        }
        const Bourse__V1__DevicesReply *reply = (const void *)answer;
        for (size_t i = 0; i < reply->n_rows; i++) {
            struct bourse_attribute attributes[LIMIT_ATTRIBUTES];
            struct bourse_device device;
            device_from_wire(reply->rows[i], attributes, &device);
            if (!visitor(context, &device)) {
                return true;
            }
        }
        const Bourse__V1__DevicePlace *next = reply->next;
        bool goes_on = next != NULL &&
                       (is_first || next->provider != from.provider || next->device > from.device);
        if (!goes_on) {
            return true;
        }
        from.provider = next->provider;
        from.device = next->device;
        is_first = false;
    }
}

bool bourse_devices(struct bourse *bourse, bourse_device_visitor *visitor, void *context,
                    struct bourse_error *ret_error)
{
    return list_devices(bourse, NULL, visitor, context, ret_error);
}

bool bourse_devices_fitting(struct bourse *bourse, const char *needs,
                            bourse_device_visitor *visitor, void *context,
                            struct bourse_error *ret_error)
{
    struct requirement requirement;
    struct problem problem = {.text = ""};
    if (!requirement_parse(needs, &requirement, &problem)) {
        return client_fail(ret_error, BOURSE_USAGE, "%s", problem.text);
    }
    CLEANUP(requirement_free)
    Bourse__V1__Requirement *wire = codec_requirement_to_wire(&requirement);
    if (wire == NULL) {
        return client_fail(ret_error, BOURSE_LOCAL, "out of memory");
    }
    return list_devices(bourse, wire, visitor, context, ret_error);
}
