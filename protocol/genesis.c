#include "protocol/genesis.h"

#include <string.h>

#include "base/cursor.h"

static const uint8_t magic[4] = {'B', 'J', 'G', '1'};

static bool origin_valid(const char *origin)
{
    size_t length = strnlen(origin, GENESIS_ORIGIN_SIZE);
    for (size_t i = 0; i < length; i++) {
        if (origin[i] <= ' ' || origin[i] > '~' || origin[i] == '+') {
            return false;
        }
    }
    return length > 0 && length < GENESIS_ORIGIN_SIZE;
}

static bool account_valid(const struct genesis *genesis, uint16_t number)
{
    const struct genesis_account *account = &genesis->accounts[number];
    for (uint16_t i = 0; i < number; i++) {
        if (key32_equal(&account->key, &genesis->accounts[i].key)) {
            return false;
        }
    }
    return account->credits_micro >= 0 &&
           strnlen(account->name, GENESIS_NAME_SIZE) < GENESIS_NAME_SIZE;
}

bool genesis_valid(const struct genesis *genesis)
{
    if (!origin_valid(genesis->origin) || genesis->fee_ppm > GENESIS_FEE_PPM_MAX ||
        genesis->price_band_micro <= 0 || genesis->account_count > GENESIS_ACCOUNTS_MAX) {
        return false;
    }
    for (uint16_t i = 0; i < genesis->account_count; i++) {
        if (!account_valid(genesis, i)) {
            return false;
        }
    }
    return true;
}

static void write_text(struct writer *out, const char *text)
{
    size_t length = strlen(text);
    writer_u8(out, (uint8_t)length);
    writer_bytes(out, text, length);
}

size_t genesis_write(const struct genesis *genesis, uint8_t *ret_bytes, size_t capacity)
{
    if (!genesis_valid(genesis)) {
        return 0;
    }
    struct writer out = writer_over(ret_bytes, capacity);
    writer_bytes(&out, magic, sizeof magic);
    writer_bytes(&out, genesis->cluster.bytes, sizeof genesis->cluster.bytes);
    write_text(&out, genesis->origin);
    writer_bytes(&out, genesis->log_key.bytes, sizeof genesis->log_key.bytes);
    writer_bytes(&out, genesis->transport_key.bytes, sizeof genesis->transport_key.bytes);
    writer_u32(&out, genesis->fee_ppm);
    writer_i64(&out, genesis->price_band_micro);
    writer_u16(&out, genesis->account_count);
    for (uint16_t i = 0; i < genesis->account_count; i++) {
        const struct genesis_account *account = &genesis->accounts[i];
        writer_bytes(&out, account->key.bytes, sizeof account->key.bytes);
        writer_u32(&out, account->roles);
        writer_i64(&out, account->credits_micro);
        write_text(&out, account->name);
    }
    return out.failed ? 0 : out.position;
}

/* Returns false for a text with a NUL inside or a text too long: each would change on the way. */
static bool read_text(struct reader *in, char *ret_text, size_t capacity)
{
    size_t length = reader_u8(in);
    const uint8_t *text = reader_view(in, length);
    if (text == NULL || length >= capacity || memchr(text, 0, length) != NULL) {
        return false;
    }
    memcpy(ret_text, text, length);
    ret_text[length] = '\0';
    return true;
}

static bool read_accounts(struct reader *in, struct genesis *genesis)
{
    genesis->account_count = reader_u16(in);
    if (genesis->account_count > GENESIS_ACCOUNTS_MAX) {
        return false;
    }
    for (uint16_t i = 0; i < genesis->account_count; i++) {
        struct genesis_account *account = &genesis->accounts[i];
        reader_bytes(in, account->key.bytes, sizeof account->key.bytes);
        account->roles = reader_u32(in);
        account->credits_micro = reader_i64(in);
        if (!read_text(in, account->name, sizeof account->name)) {
            return false;
        }
    }
    return reader_finished(in);
}

bool genesis_read(const void *bytes, size_t length, struct genesis *ret_genesis)
{
    struct reader in = reader_over(bytes, length);
    struct genesis genesis = {.account_count = 0};
    const uint8_t *begin = reader_view(&in, sizeof magic);
    if (begin == NULL || memcmp(begin, magic, sizeof magic) != 0) {
        return false;
    }
    reader_bytes(&in, genesis.cluster.bytes, sizeof genesis.cluster.bytes);
    if (!read_text(&in, genesis.origin, sizeof genesis.origin)) {
        return false;
    }
    reader_bytes(&in, genesis.log_key.bytes, sizeof genesis.log_key.bytes);
    reader_bytes(&in, genesis.transport_key.bytes, sizeof genesis.transport_key.bytes);
    genesis.fee_ppm = reader_u32(&in);
    genesis.price_band_micro = reader_i64(&in);
    if (!read_accounts(&in, &genesis) || !genesis_valid(&genesis)) {
        return false;
    }
    *ret_genesis = genesis;
    return true;
}
