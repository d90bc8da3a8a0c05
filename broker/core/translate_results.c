/* The message Results becomes a command here. */
#include "broker/core/translate_internal.h"

#include "base/sha256.h"
#include "protocol/results.h"

#include <assert.h>
#include <string.h>

static void result_from_wire(const Bourse__V1__Result *wire, ProtobufCBinaryData encoded,
                             struct exchange_result *ret_result)
{
    *ret_result = (struct exchange_result){
        .job = codec_id(wire->job),
        .index = wire->index,
        .attempt = wire->attempt,
        .lease = wire->lease,
        .device = codec_id(wire->device),
        .manifest = codec_hash(wire->manifest),
        .outcome = (uint8_t)wire->outcome,
        .is_simulated = wire->has_simulated && wire->simulated,
        .busy_ns = wire->busy_ns,
        .hash = sha256_of(encoded.data, encoded.len),
        .bytes = encoded.data,
        .length = (uint32_t)encoded.len,
        .lacks_factor = wire->has_lacks_factor && wire->lacks_factor,
        .verdict = (uint8_t)wire->verdict,
        .seed = wire->has_seed ? codec_hash(wire->seed) : (struct hash32){{0}},
    };
}

static uint64_t output_bytes(const Bourse__V1__Result *wire)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < wire->n_outputs; i++) {
        const uint64_t more = wire->outputs[i]->size;
        bytes = more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
    }
    return bytes;
}

/* Keeps the outputs for the subtasks that wait for this one, in the form that Work carries. */
static bool keep_given(struct translation *ret, const Bourse__V1__Result *wire,
                       struct exchange_result *result)
{
    Bourse__V1__Given given = BOURSE__V1__GIVEN__INIT;
    given.index = wire->index;
    given.n_outputs = wire->n_outputs;
    given.outputs = wire->outputs;
    size_t length = bourse__v1__given__get_packed_size(&given);
    assert(length <= UINT32_MAX); /* no longer than the result and an index */
    result->given_length = (uint32_t)length;
    result->output_bytes = output_bytes(wire);
    if (length > LIMIT_GIVEN_BYTES) {
        return true;
    }
    uint8_t *bytes = arena_take(&ret->arena, length, 1);
    if (bytes != NULL) {
        (void)bourse__v1__given__pack(&given, bytes); /* as long as measured */
    }
    result->given = bytes;
    return bytes != NULL;
}

/* Files have one order, so equal files give equal checkpoints. */
static bool is_saved_in_order(const Bourse__V1__Saved *saved)
{
    for (size_t i = 1; saved != NULL && i < saved->n_files; i++) {
        if (strcmp(saved->files[i - 1]->name, saved->files[i]->name) >= 0) {
            return false;
        }
    }
    return true;
}

/* Keeps the result's checkpoint as Work carries it, but not its attempt; drops a large one. */
static bool keep_saved(struct translation *ret, const Bourse__V1__Result *wire,
                       struct exchange_result *result)
{
    if (wire->saved == NULL || wire->saved->n_files == 0) {
        return true;
    }
    Bourse__V1__Saved saved = BOURSE__V1__SAVED__INIT;
    saved.n_files = wire->saved->n_files;
    saved.files = wire->saved->files;
    const size_t length = bourse__v1__saved__get_packed_size(&saved);
    if (length > LIMIT_CHECKPOINT_BYTES) {
        return true;
    }
    uint8_t *bytes = arena_take(&ret->arena, length, 1);
    if (bytes != NULL) {
        (void)bourse__v1__saved__pack(&saved, bytes); /* as long as measured */
    }
    result->saved = bytes;
    result->saved_length = (uint32_t)length;
    return bytes != NULL;
}

static bool make_room_for_wire(struct translation *ret, size_t count)
{
    if (!ret->keeps_wire) {
        return true;
    }
    ret->results_wire = arena_take(&ret->arena, count, sizeof(Bourse__V1__Result *));
    ret->results_count = ret->results_wire == NULL ? 0 : (uint32_t)count;
    return ret->results_wire != NULL;
}

/* Takes the result over; frees it where the caller does not keep wire results. */
static void keep_wire(struct translation *ret, size_t position, Bourse__V1__Result **result)
{
    if (ret->results_wire != NULL) {
        ret->results_wire[position] = *result;
        *result = NULL;
    }
    codec_result_free(result);
}

enum reject_code translate_results(const Bourse__V1__Results *wire, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *error)
{
    assert(wire->n_results <= LIMIT_RESULTS);
    if (wire->n_results == 0) {
        return translate_refuse(error, REJECT_MALFORMED, "results", 0, LIMIT_RESULTS);
    }
    struct exchange_result *results = arena_take(&ret->arena, wire->n_results, sizeof *results);
    struct hash32 *leaves = arena_take(&ret->arena, wire->n_results, sizeof *leaves);
    if (results == NULL || leaves == NULL || !make_room_for_wire(ret, wire->n_results)) {
        return REJECT_BUSY;
    }
    ret->can_store_again = wire->has_can_store_again && wire->can_store_again;
    for (size_t i = 0; i < wire->n_results; i++) {
        Bourse__V1__Result *result = NULL;
        switch (codec_decode_result(wire->results[i].data, wire->results[i].len, &result, error)) {
        case CODEC_OK:
            break;
        case CODEC_OUT_OF_MEMORY:
            return REJECT_BUSY;
        case CODEC_UNKNOWN_TYPE:
        case CODEC_TOO_LARGE:
        case CODEC_MALFORMED:
            return REJECT_MALFORMED;
        }
        bool ours = memcmp(result->cluster.data, cluster->bytes, sizeof cluster->bytes) == 0;
        struct key32 provider = codec_key(result->provider);
        if (i == 0) {
            ret->results_provider = provider;
        }
        bool same_provider = key32_equal(&provider, &ret->results_provider);
        result_from_wire(result, wire->results[i], &results[i]);
        const bool is_ordered = is_saved_in_order(result->saved);
        bool is_kept = keep_given(ret, result, &results[i]) && keep_saved(ret, result, &results[i]);
        keep_wire(ret, i, &result);
        if (!is_kept) {
            return REJECT_BUSY;
        }
        if (!ours) {
            return translate_refuse(error, REJECT_MALFORMED, "results.cluster", (int64_t)i, 0);
        }
        if (!same_provider) {
            return translate_refuse(error, REJECT_MALFORMED, "results.provider", (int64_t)i, 0);
        }
        if (!is_ordered) {
            return translate_refuse(error, REJECT_MALFORMED, "results.saved.files", (int64_t)i, 0);
        }
        leaves[i] = results_leaf(wire->results[i].data, wire->results[i].len);
    }
    ret->results_root = results_root(leaves, wire->n_results);
    ret->results_leaves = leaves;
    ret->results_count = (uint32_t)wire->n_results;
    memcpy(ret->results_signature.bytes, wire->signature.data, sizeof ret->results_signature.bytes);
    ret->command.type = EXCHANGE_RESULTS;
    ret->command.results = (struct exchange_results){.results = results, .count = wire->n_results};
    ret->results = results;
    return REJECT_NONE;
}
