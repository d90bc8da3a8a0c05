#include "base/challenge_product.h"

#include <assert.h>
#include <string.h>

enum { LEFT_MOST = 511, RIGHT_MOST = 7, SIDE_STEP = 64 };
/* The factors; each has keys of its own. */
enum { LEFT = 1, RIGHT = 2, CHAIN_FIRST = 3, CHAIN_SPREAD = 4, CHAIN_COLUMN = 5, CHAIN_LAST = 6 };

static_assert((int64_t)LEFT_MOST * RIGHT_MOST * CHALLENGE_SIDE_MOST < 1 << 24,
              "float32 holds every sum exactly");
static_assert((1 << (CHAIN_FOLD_BITS - 1)) * RIGHT_MOST * CHALLENGE_CHAIN_SIDE_MOST < 1 << 24,
              "float32 holds every sum of a chain exactly");

static bool is_in_steps(uint32_t value, uint32_t most)
{
    return value >= SIDE_STEP && value <= most && value % SIDE_STEP == 0;
}

static bool is_valid_chain(const struct challenge_product *product)
{
    return product->side <= CHALLENGE_CHAIN_SIDE_MOST &&
           is_in_steps(product->rows, CHALLENGE_CHAIN_ROWS_MOST) && product->steps >= 1 &&
           product->steps <= CHALLENGE_CHAIN_STEPS_MOST &&
           challenge_product_answer_bytes(product) <= CHALLENGE_ANSWER_MOST;
}

bool challenge_product_is_valid(const struct challenge_product *product)
{
    const bool is_plain = product->rows == 0 && product->steps == 0;
    return is_in_steps(product->side, CHALLENGE_SIDE_MOST) && product->rounds >= 1 &&
           product->rounds <= CHALLENGE_ROUNDS_MOST && (is_plain || is_valid_chain(product));
}

bool challenge_product_is_chain(const struct challenge_product *product)
{
    return product->steps > 0;
}

uint32_t challenge_product_digests(const struct challenge_product *product)
{
    return product->rounds * (challenge_product_is_chain(product) ? product->rows : product->side);
}

uint32_t challenge_product_answer_bytes(const struct challenge_product *product)
{
    return challenge_product_digests(product) * (challenge_product_is_chain(product)
                                                     ? CHALLENGE_CHAIN_DIGEST_BYTES
                                                     : CHALLENGE_DIGEST_BYTES);
}

/* The finalizer of splitmix64: a number for each place, so that a row is made without the others.
 */
static uint64_t mixed(uint64_t value)
{
    value += UINT64_C(0x9e3779b97f4a7c15);
    value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
    return value ^ (value >> 31);
}

/* Returns the key of one row, from all bytes of the seed. */
static uint64_t key_of(const struct challenge_product *product, uint64_t factor, uint32_t round,
                       uint32_t row)
{
    uint64_t key = mixed(factor << 56 | (uint64_t)round << 32 | row);
    for (size_t i = 0; i < sizeof product->seed.bytes; i += 8) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8; k++) {
            word |= (uint64_t)product->seed.bytes[i + k] << (8 * k);
        }
        key = mixed(key ^ word);
    }
    return key;
}

/* Writes `count` entries of LEFT_MOST at most; `count` is a multiple of 4. */
static void fill_left(uint64_t key, uint32_t count, int16_t *ret_entries)
{
    for (uint32_t i = 0; i < count; i += 4) {
        const uint64_t word = mixed(key + i);
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t part = (uint32_t)(word >> (16 * k)) & 0xffff;
            ret_entries[i + k] = (int16_t)((int)(part % (2 * LEFT_MOST + 1)) - LEFT_MOST);
        }
    }
}

/* Writes `count` entries of RIGHT_MOST at most; `count` is a multiple of 8. */
static void fill_right(uint64_t key, uint32_t count, int16_t *ret_entries)
{
    for (uint32_t i = 0; i < count; i += 8) {
        const uint64_t word = mixed(key + i);
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t part = (uint32_t)(word >> (8 * k)) & 0xff;
            ret_entries[i + k] = (int16_t)((int)(part % (2 * RIGHT_MOST + 1)) - RIGHT_MOST);
        }
    }
}

void challenge_product_left(const struct challenge_product *product, uint32_t round, uint32_t row,
                            int16_t *ret_entries)
{
    fill_left(key_of(product, LEFT, round, row), product->side, ret_entries);
}

void challenge_product_right(const struct challenge_product *product, uint32_t round, uint32_t row,
                             int16_t *ret_entries)
{
    fill_right(key_of(product, RIGHT, round, row), product->side, ret_entries);
}

/* Each step mixes two entries into what came before, and no step is linear. So the digest of a row
 * does not follow from sums of rows or of products. */
void challenge_product_digest(const int32_t *entries, uint32_t side,
                              uint8_t ret_digest[CHALLENGE_DIGEST_BYTES])
{
    uint64_t digest = side;
    assert(side % SIDE_STEP == 0);
    for (uint32_t i = 0; i < side; i += 2) {
        digest = mixed(digest ^ ((uint64_t)(uint32_t)entries[i + 1] << 32 | (uint32_t)entries[i]));
    }
    for (uint32_t k = 0; k < CHALLENGE_DIGEST_BYTES; k++) {
        ret_digest[k] = (uint8_t)(digest >> (8 * k));
    }
}

bool challenge_product_holds(const struct challenge_product *product, uint32_t round, uint32_t row,
                             const uint8_t digest[CHALLENGE_DIGEST_BYTES])
{
    int32_t sums[CHALLENGE_SIDE_MOST];
    int16_t left[CHALLENGE_SIDE_MOST];
    int16_t right[CHALLENGE_SIDE_MOST];
    uint8_t own[CHALLENGE_DIGEST_BYTES];
    assert(challenge_product_is_valid(product));
    assert(round < product->rounds);
    assert(row < product->side);
    memset(sums, 0, sizeof sums);
    challenge_product_left(product, round, row, left);
    for (uint32_t k = 0; k < product->side; k++) {
        challenge_product_right(product, round, k, right);
        for (uint32_t j = 0; j < product->side; j++) {
            sums[j] += left[k] * right[j];
        }
    }
    challenge_product_digest(sums, product->side, own);
    return memcmp(own, digest, sizeof own) == 0;
}

/* ---------------------------------------------------------------- chains */

void challenge_chain_first(const struct challenge_product *product, uint32_t round, uint32_t row,
                           int16_t ret_entries[CHALLENGE_CHAIN_INNER])
{
    fill_left(key_of(product, CHAIN_FIRST, round, row), CHALLENGE_CHAIN_INNER, ret_entries);
}

void challenge_chain_spread(const struct challenge_product *product, uint32_t row,
                            int16_t *ret_entries)
{
    fill_right(key_of(product, CHAIN_SPREAD, 0, row), product->side, ret_entries);
}

void challenge_chain_column(const struct challenge_product *product, uint32_t column,
                            int16_t *ret_entries)
{
    fill_right(key_of(product, CHAIN_COLUMN, 0, column), product->side, ret_entries);
}

void challenge_chain_last(const struct challenge_product *product, uint32_t row,
                          int16_t ret_entries[CHALLENGE_CHAIN_COLUMNS])
{
    fill_right(key_of(product, CHAIN_LAST, 0, row), CHALLENGE_CHAIN_COLUMNS, ret_entries);
}

int16_t challenge_chain_fold(int32_t sum)
{
    /* An offset that is a multiple of the range makes the sum positive, so that the shift is
     * defined. A device shifts the sign along, which gives the same bits. */
    const uint32_t positive = (uint32_t)(sum + (1 << 30));
    const uint32_t kept = positive >> CHAIN_FOLD_SHIFT & ((1U << CHAIN_FOLD_BITS) - 1);
    return (int16_t)((int)kept - (1 << (CHAIN_FOLD_BITS - 1)));
}

void challenge_chain_digest(const int32_t entries[CHALLENGE_CHAIN_COLUMNS],
                            uint8_t ret_digest[CHALLENGE_CHAIN_DIGEST_BYTES])
{
    uint64_t digest = CHALLENGE_CHAIN_COLUMNS;
    for (uint32_t i = 0; i < CHALLENGE_CHAIN_COLUMNS; i += 2) {
        digest = mixed(digest ^ ((uint64_t)(uint32_t)entries[i + 1] << 32 | (uint32_t)entries[i]));
    }
    for (uint32_t k = 0; k < CHALLENGE_CHAIN_DIGEST_BYTES; k++) {
        ret_digest[k] = (uint8_t)(digest >> (8 * k));
    }
}

void challenge_chain_factor(const struct challenge_product *product, int16_t *ret_factor)
{
    for (uint32_t j = 0; j < product->side; j++) {
        challenge_chain_column(product, j, ret_factor + (size_t)j * product->side);
    }
}

static int32_t dot(const int16_t *a, const int16_t *b, uint32_t count)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void fold_all(const int32_t *sums, uint32_t count, int16_t *ret_entries)
{
    for (uint32_t i = 0; i < count; i++) {
        ret_entries[i] = challenge_chain_fold(sums[i]);
    }
}

void challenge_chain_row(const struct challenge_product *product, const int16_t *factor,
                         uint32_t round, uint32_t row,
                         uint8_t ret_digest[CHALLENGE_CHAIN_DIGEST_BYTES])
{
    int32_t sums[CHALLENGE_CHAIN_SIDE_MOST] = {0};
    int32_t last[CHALLENGE_CHAIN_COLUMNS] = {0};
    int16_t left[CHALLENGE_CHAIN_SIDE_MOST];
    int16_t right[CHALLENGE_CHAIN_SIDE_MOST];
    int16_t first[CHALLENGE_CHAIN_INNER];
    assert(challenge_product_is_valid(product) && challenge_product_is_chain(product));
    assert(round < product->rounds);
    assert(row < product->rows);
    challenge_chain_first(product, round, row, first);
    for (uint32_t k = 0; k < CHALLENGE_CHAIN_INNER; k++) {
        challenge_chain_spread(product, k, right);
        for (uint32_t j = 0; j < product->side; j++) {
            sums[j] += first[k] * right[j];
        }
    }
    for (uint32_t step = 0; step < product->steps; step++) {
        fold_all(sums, product->side, left);
        for (uint32_t j = 0; j < product->side; j++) {
            sums[j] = dot(left, factor + (size_t)j * product->side, product->side);
        }
    }
    fold_all(sums, product->side, left);
    for (uint32_t k = 0; k < product->side; k++) {
        challenge_chain_last(product, k, right);
        for (uint32_t j = 0; j < CHALLENGE_CHAIN_COLUMNS; j++) {
            last[j] += left[k] * right[j];
        }
    }
    challenge_chain_digest(last, ret_digest);
}
