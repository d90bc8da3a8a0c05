#include "broker/answer/standing.h"

#include "base/checked.h"

Bourse__V1__Standing *standing_to_wire(const struct exchange *exchange, uint32_t account,
                                       struct standing_wire *ret_standing)
{
    struct exchange_standing *row = &ret_standing->row;
    Bourse__V1__Standing *wire = &ret_standing->wire;
    *row = exchange_standing(exchange, account);
    bourse__v1__standing__init(wire);
    wire->has_refuted = row->refuted > 0;
    wire->refuted = row->refuted;
    wire->has_refuted_ever = row->refuted_ever > 0;
    wire->refuted_ever = row->refuted_ever;
    wire->has_overruled = row->overruled > 0;
    wire->overruled = row->overruled;
    wire->has_withdrawn_ms = row->withdrawn_ns > 0;
    wire->withdrawn_ms = (row->withdrawn_ns + NS_PER_MS - 1) / NS_PER_MS;
    wire->owner = row->owner[0] != '\0' ? row->owner : NULL;
    const bool is_known = row->refuted_ever > 0 || row->overruled > 0 || wire->owner != NULL;
    return is_known ? wire : NULL;
}
