#include "tests/sim/cluster/store.h"

#include "tests/sim/world.h"

#include <assert.h>
#include <string.h>

/* The numbers of fields, from etcd's rpc.proto. */
enum { TXN_COMPARE = 1, TXN_SUCCESS = 2, TXN_FAILURE = 3 };
enum { OPERATION_RANGE = 1, OPERATION_PUT = 2, OPERATION_DELETE = 3 };
enum { TARGET_VERSION = 0, TARGET_VALUE = 3 };

struct bytes {
    const uint8_t *at;
    size_t length;
};

/* ---------------------------------------------------------------- keys */

static void text_of(const struct proto_field *field, char ret_text[STORE_KEY_SIZE])
{
    if (field->kind != PROTO_BYTES || field->length >= STORE_KEY_SIZE) {
        sim_fail("a request to etcd has a key that is none");
    }
    memset(ret_text, 0, STORE_KEY_SIZE);
    memcpy(ret_text, field->bytes, field->length);
}

/* Returns the place of `key`, or the one where it belongs. */
static size_t place_of(const struct store *store, const char *key, bool *ret_found)
{
    size_t least = 0;
    size_t most = store->count;
    while (least < most) {
        const size_t middle = (least + most) / 2;
        if (strcmp(store->keys[middle].key, key) < 0) {
            least = middle + 1;
        } else {
            most = middle;
        }
    }
    *ret_found = least < store->count && strcmp(store->keys[least].key, key) == 0;
    return least;
}

const struct store_key *store_find(const struct store *store, const char *key)
{
    bool found;
    const size_t place = place_of(store, key, &found);
    return found ? &store->keys[place] : NULL;
}

void store_clear(struct store *store)
{
    sim_free(store->keys);
    *store = (struct store){.keys = NULL};
}

static bool put(struct store *store, const char *key, struct bytes value)
{
    bool found;
    const size_t place = place_of(store, key, &found);
    if (!found) {
        if (store->count == store->capacity) {
            store->capacity = store->capacity == 0 ? 64 : 2 * store->capacity;
            store->keys = sim_grow(store->keys, store->capacity * sizeof *store->keys);
        }
        memmove(&store->keys[place + 1], &store->keys[place],
                (store->count - place) * sizeof *store->keys);
        store->count++;
        store->keys[place] = (struct store_key){.version = 0};
        memcpy(store->keys[place].key, key, STORE_KEY_SIZE);
    }
    store->keys[place].value = value.at;
    store->keys[place].length = value.length;
    store->keys[place].version++;
    return found;
}

static bool is_in(const char *key, const char *from, const char *end)
{
    return end[0] == '\0' ? strcmp(key, from) == 0 : strcmp(key, from) >= 0 && strcmp(key, end) < 0;
}

/* ---------------------------------------------------------------- a transaction */

static bool holds(const struct store *store, const struct proto_field *compare)
{
    struct proto_reader in = proto_over(compare->bytes, compare->length);
    struct proto_field field;
    uint64_t result = 0; /* 0: equal, 1: greater */
    uint64_t target = TARGET_VERSION;
    uint64_t version = 0;
    struct bytes value = {.length = 0};
    char key[STORE_KEY_SIZE] = "";
    while (proto_next(&in, &field)) {
        result = field.number == 1 ? field.value : result;
        target = field.number == 2 ? field.value : target;
        version = field.number == 4 ? field.value : version;
        if (field.number == 3) {
            text_of(&field, key);
        } else if (field.number == 7) {
            value = (struct bytes){field.bytes, field.length};
        }
    }
    const struct store_key *found = store_find(store, key);
    if (target == TARGET_VALUE && result == 0) {
        return found != NULL && found->length == value.length &&
               (value.length == 0 || memcmp(found->value, value.at, value.length) == 0);
    }
    if (target != TARGET_VERSION || result > 1) {
        sim_fail("a request to etcd compares what this model does not know");
    }
    const uint64_t has = found == NULL ? 0 : found->version;
    return result == 0 ? has == version : has > version;
}

static void answer_range(const struct store *store, const char *from, const char *end,
                         uint64_t limit, struct proto_writer *out)
{
    const size_t response = proto_begin(out, 1); /* of the response: a range */
    bool found;
    size_t place = place_of(store, from, &found);
    for (uint64_t given = 0; place < store->count && (limit == 0 || given < limit); place++) {
        const struct store_key *key = &store->keys[place];
        if (!is_in(key->key, from, end)) {
            break;
        }
        const size_t pair = proto_begin(out, 2);
        proto_bytes(out, 1, key->key, strlen(key->key));
        proto_varint(out, 4, key->version);
        proto_bytes(out, 5, key->value, key->length);
        proto_end(out, pair);
        given++;
    }
    proto_end(out, response);
}

static void delete_range(struct store *store, const char *from, const char *end, store_seen *seen,
                         void *context)
{
    size_t kept = 0;
    for (size_t i = 0; i < store->count; i++) {
        if (!is_in(store->keys[i].key, from, end)) {
            store->keys[kept++] = store->keys[i];
        } else if (seen != NULL) {
            seen(context, store->keys[i].key, NULL, 0, true);
        }
    }
    store->count = kept;
}

/* Executes one operation. Returns true when the store has changed. */
static bool operate(struct store *store, const struct proto_field *operation,
                    struct proto_writer *out, store_seen *seen, void *context)
{
    struct proto_reader in = proto_over(operation->bytes, operation->length);
    struct proto_field kind;
    struct proto_field field;
    char key[STORE_KEY_SIZE] = "";
    char end[STORE_KEY_SIZE] = "";
    struct bytes value = {.length = 0};
    uint64_t limit = 0;
    if (!proto_next(&in, &kind)) {
        sim_fail("a request to etcd has an operation without a kind");
    }
    struct proto_reader inner = proto_over(kind.bytes, kind.length);
    while (proto_next(&inner, &field)) {
        if (field.number == 1) {
            text_of(&field, key);
        } else if (field.number == 2 && kind.number == OPERATION_PUT) {
            value = (struct bytes){field.bytes, field.length};
        } else if (field.number == 2) {
            text_of(&field, end);
        } else if (field.number == 3 && kind.number == OPERATION_RANGE) {
            limit = field.value;
        }
    }
    const size_t response = proto_begin(out, 3);
    if (kind.number == OPERATION_RANGE) {
        answer_range(store, key, end, limit, out);
    } else if (kind.number == OPERATION_PUT) {
        const bool was_there = put(store, key, value);
        if (seen != NULL) {
            seen(context, key, value.at, value.length, was_there);
        }
    } else if (kind.number == OPERATION_DELETE) {
        delete_range(store, key, end, seen, context);
    } else {
        sim_fail("a request to etcd has an operation of kind %u", kind.number);
    }
    proto_end(out, response);
    return kind.number != OPERATION_RANGE;
}

void store_transact(struct store *store, const uint8_t *request, size_t length,
                    struct proto_writer *out, store_seen *seen, void *context)
{
    struct proto_reader in = proto_over(request, length);
    struct proto_field field;
    bool succeeded = true;
    bool has_changed = false;
    while (proto_next(&in, &field)) {
        succeeded = succeeded && (field.number != TXN_COMPARE || holds(store, &field));
    }
    if (in.is_broken) {
        sim_fail("a request to etcd cannot be read");
    }
    if (succeeded) {
        proto_varint(out, 2, 1);
    }
    in = proto_over(request, length);
    while (proto_next(&in, &field)) {
        if (field.number == (succeeded ? (unsigned)TXN_SUCCESS : (unsigned)TXN_FAILURE) &&
            operate(store, &field, out, seen, context)) {
            has_changed = true;
        }
    }
    store->revision += has_changed;
}

bool store_changes(const uint8_t *request, size_t length)
{
    struct proto_reader in = proto_over(request, length);
    struct proto_field field;
    struct proto_field kind;
    while (proto_next(&in, &field)) {
        struct proto_reader inner = proto_over(field.bytes, field.length);
        if (field.number != TXN_COMPARE && proto_next(&inner, &kind) &&
            kind.number != OPERATION_RANGE) {
            return true;
        }
    }
    return false;
}
