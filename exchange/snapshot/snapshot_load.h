/* This internal header holds what the files that load a snapshot share. A snapshot comes from a
 * file that may be damaged, so a misfit is an answer, never an assert. Records come in the order
 * written: a record refers only to earlier ones. */
#ifndef BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_LOAD_H
#define BOURSE_EXCHANGE_SNAPSHOT_SNAPSHOT_LOAD_H

#include "exchange/state/records.h"

#include "base/cursor.h"

#include <string.h>

#define GET_ID(in, id) reader_bytes((in), (id).bytes, sizeof(id).bytes)

static inline bool get_bool(struct reader *in)
{
    uint8_t value = reader_u8(in);
    in->failed = in->failed || value > 1;
    return value == 1;
}

static inline void get_name(struct reader *in, char *ret_text, size_t size)
{
    reader_bytes(in, ret_text, size);
    in->failed = in->failed || memchr(ret_text, '\0', size) == NULL;
}

static inline uint8_t get_small(struct reader *in, uint8_t most)
{
    uint8_t value = reader_u8(in);
    in->failed = in->failed || value > most;
    return in->failed ? 0 : value;
}

/* Reads a time to which days may be added; INT64_MAX means never. */
static inline int64_t get_ns(struct reader *in)
{
    int64_t value = reader_i64(in);
    in->failed = in->failed || value < 0 || (value > INT64_MAX / 2 && value != INT64_MAX);
    return in->failed ? 0 : value;
}

/* The calls read one record each, of jobs and their leases. Return false when the record does not
 * fit or memory is short. */
bool snapshot_load_job(struct exchange *exchange, struct reader *in);
bool snapshot_load_graph(struct exchange *exchange, struct reader *in);
bool snapshot_load_given(struct exchange *exchange, struct reader *in);
bool snapshot_load_saved(struct exchange *exchange, struct reader *in);
bool snapshot_load_accusation(struct exchange *exchange, struct reader *in);
bool snapshot_load_jury(struct exchange *exchange, struct reader *in);
bool snapshot_load_held(struct exchange *exchange, struct reader *in);
bool snapshot_load_page(struct exchange *exchange, struct reader *in);
bool snapshot_load_lease(struct exchange *exchange, struct reader *in);

#endif
