#include "tests/support/etcd_model.h"

#include "broker/storage/etcd/proto.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- keys */

static void text_of(const struct proto_field *field, char ret_text[ETCD_MODEL_KEY])
{
    ck_assert_int_eq(field->kind, PROTO_BYTES);
    ck_assert_uint_lt(field->length, ETCD_MODEL_KEY);
    memset(ret_text, 0, ETCD_MODEL_KEY);
    memcpy(ret_text, field->bytes, field->length);
}

/* Returns the place of `key`, or the place where it belongs. */
static size_t place_of(const struct etcd_model *model, const char *key, bool *ret_found)
{
    size_t place = 0;
    while (place < model->count && strcmp(model->keys[place].key, key) < 0) {
        place++;
    }
    *ret_found = place < model->count && strcmp(model->keys[place].key, key) == 0;
    return place;
}

const struct etcd_model_key *etcd_model_find(const struct etcd_model *model, const char *key)
{
    bool found;
    const size_t place = place_of(model, key, &found);
    return found ? &model->keys[place] : NULL;
}

static void put(struct etcd_model *model, const char *key, const uint8_t *value, size_t length)
{
    bool found;
    const size_t place = place_of(model, key, &found);
    ck_assert_uint_le(length, ETCD_MODEL_VALUE);
    if (!found) {
        ck_assert_uint_lt(model->count, ETCD_MODEL_KEYS);
        memmove(&model->keys[place + 1], &model->keys[place],
                (model->count - place) * sizeof model->keys[0]);
        model->count++;
        model->keys[place] = (struct etcd_model_key){.version = 0};
        (void)snprintf(model->keys[place].key, ETCD_MODEL_KEY, "%s", key);
    }
    struct etcd_model_key *kept = &model->keys[place];
    if (length > 0) {
        memcpy(kept->value, value, length);
    }
    kept->length = length;
    kept->version++;
}

static bool is_in(const char *key, const char *from, const char *end)
{
    return end[0] == '\0' ? strcmp(key, from) == 0 : strcmp(key, from) >= 0 && strcmp(key, end) < 0;
}

static void delete_range(struct etcd_model *model, const char *from, const char *end)
{
    size_t kept = 0;
    for (size_t i = 0; i < model->count; i++) {
        if (!is_in(model->keys[i].key, from, end)) {
            model->keys[kept++] = model->keys[i];
        }
    }
    model->count = kept;
}

/* ---- transactions: compare = 1, success = 2, failure = 3 */

static bool holds(const struct etcd_model *model, const struct proto_field *compare)
{
    struct proto_reader in = proto_over(compare->bytes, compare->length);
    struct proto_field field;
    uint64_t result = 0;
    uint64_t target = 0;
    uint64_t version = 0;
    char key[ETCD_MODEL_KEY] = "";
    struct etcd_bytes value = {.length = 0};
    while (proto_next(&in, &field)) {
        switch (field.number) {
        case 1:
            result = field.value;
            break;
        case 2:
            target = field.value;
            break;
        case 3:
            text_of(&field, key);
            break;
        case 4:
            version = field.value;
            break;
        case 7:
            value = (struct etcd_bytes){field.bytes, field.length};
            break;
        default:
            ck_abort_msg("a comparison has field %u", field.number);
        }
    }
    ck_assert(!in.is_broken);
    const struct etcd_model_key *found = etcd_model_find(model, key);
    if (target == 3) {
        ck_assert_uint_eq(result, 0);
        return found != NULL && found->length == value.length &&
               memcmp(found->value, value.bytes, value.length) == 0;
    }
    ck_assert_uint_eq(target, 0);
    const uint64_t has = found == NULL ? 0 : found->version;
    return result == 0 ? has == version : has > version;
}

static void answer_range(const struct etcd_model *model, const char *from, const char *end,
                         uint64_t limit, struct proto_writer *out)
{
    const size_t response = proto_begin(out, 3);
    const size_t range = proto_begin(out, 1);
    uint64_t found = 0;
    for (size_t i = 0; i < model->count && (limit == 0 || found < limit); i++) {
        const struct etcd_model_key *key = &model->keys[i];
        if (is_in(key->key, from, end)) {
            const size_t pair = proto_begin(out, 2);
            proto_bytes(out, 1, key->key, strlen(key->key));
            proto_varint(out, 4, key->version);
            proto_bytes(out, 5, key->value, key->length);
            proto_end(out, pair);
            found++;
        }
    }
    proto_end(out, range);
    proto_end(out, response);
}

/* Executes one operation: range = 1, put = 2, delete = 3. */
static void operate(struct etcd_model *model, const struct proto_field *operation,
                    struct proto_writer *out, bool *has_changed)
{
    struct proto_reader in = proto_over(operation->bytes, operation->length);
    struct proto_field kind;
    struct proto_field field;
    char key[ETCD_MODEL_KEY] = "";
    char end[ETCD_MODEL_KEY] = "";
    struct etcd_bytes value = {.length = 0};
    uint64_t limit = 0;
    ck_assert(proto_next(&in, &kind));
    struct proto_reader inner = proto_over(kind.bytes, kind.length);
    while (proto_next(&inner, &field)) {
        if (field.number == 1) {
            text_of(&field, key);
        } else if (field.number == 2 && kind.number == 2) {
            value = (struct etcd_bytes){field.bytes, field.length};
        } else if (field.number == 2) {
            text_of(&field, end);
        } else if (field.number == 3 && kind.number == 1) {
            limit = field.value;
        } else {
            ck_abort_msg("an operation has field %u", field.number);
        }
    }
    ck_assert(!inner.is_broken);
    if (kind.number == 1) {
        answer_range(model, key, end, limit, out);
        return;
    }
    *has_changed = true;
    if (kind.number == 2) {
        put(model, key, value.bytes, value.length);
    } else {
        ck_assert_uint_eq(kind.number, 3);
        delete_range(model, key, end);
    }
    proto_end(out, proto_begin(out, 3)); /* a response without content */
}

bool etcd_model_puts(enum etcd_method method, const uint8_t *request, size_t length)
{
    struct proto_reader in = proto_over(request, length);
    struct proto_field field;
    struct proto_field kind;
    if (method != ETCD_TXN) {
        return true;
    }
    while (proto_next(&in, &field)) {
        struct proto_reader inner = proto_over(field.bytes, field.length);
        if (field.number != 1 && proto_next(&inner, &kind) && kind.number != 1) {
            return true;
        }
    }
    return false;
}

static bool has_put(const uint8_t *request, size_t length)
{
    struct proto_reader in = proto_over(request, length);
    struct proto_field field;
    struct proto_field kind;
    while (proto_next(&in, &field)) {
        struct proto_reader inner = proto_over(field.bytes, field.length);
        if (field.number != 1 && proto_next(&inner, &kind) && kind.number == 2) {
            return true;
        }
    }
    return false;
}

static void transact(struct etcd_model *model, const uint8_t *request, size_t length,
                     struct proto_writer *out)
{
    struct proto_reader in = proto_over(request, length);
    struct proto_field field;
    bool succeeded = true;
    bool has_changed = false;
    while (proto_next(&in, &field)) {
        succeeded = succeeded && (field.number != 1 || holds(model, &field));
    }
    ck_assert(!in.is_broken);
    if (succeeded) {
        proto_varint(out, 2, 1);
    }
    in = proto_over(request, length);
    while (proto_next(&in, &field)) {
        if (field.number == (succeeded ? 2U : 3U)) {
            operate(model, &field, out, &has_changed);
        }
    }
    model->revision += has_changed;
}

void etcd_model_execute(struct etcd_model *model, enum etcd_method method, const uint8_t *request,
                        size_t length, struct etcd_model_answer *ret_answer)
{
    struct proto_writer out = {.bytes = ret_answer->bytes, .capacity = sizeof ret_answer->bytes};
    struct proto_writer body = {.bytes = ret_answer->bytes + 64,
                                .capacity = sizeof ret_answer->bytes - 64};
    ret_answer->outcome = GRPC_ANSWERED;
    ret_answer->has_put = method == ETCD_TXN && has_put(request, length);
    if (model->is_full && ret_answer->has_put) {
        ret_answer->outcome = GRPC_NO_SPACE;
        return;
    }
    if (method == ETCD_TXN) {
        transact(model, request, length, &body);
    } else {
        struct proto_reader in = proto_over(request, length);
        struct proto_field field;
        ck_assert_int_eq(method, ETCD_COMPACT);
        ck_assert(proto_next(&in, &field) && field.number == 1);
        ck_assert_uint_le(field.value, model->revision);
        if (field.value <= model->compacted) {
            ret_answer->outcome = GRPC_REFUSED;
            return;
        }
        model->compacted = field.value;
    }
    const size_t header = proto_begin(&out, 1);
    proto_varint(&out, 1, 77);
    proto_varint(&out, 2, 5);
    proto_varint(&out, 3, model->revision);
    proto_end(&out, header);
    ck_assert(!out.is_full && !body.is_full && out.length <= 64);
    memmove(ret_answer->bytes + out.length, ret_answer->bytes + 64, body.length);
    ret_answer->length = out.length + body.length;
}
