#include "base/challenge_product.h"

#include <assert.h>
#include <string.h>

enum { LEFT = 1, RIGHT = 2, LEFT_MOST = 511, RIGHT_MOST = 7, SIDE_STEP = 64 };

static_assert((int64_t)LEFT_MOST * RIGHT_MOST * CHALLENGE_SIDE_MOST < 1 << 24,
              "float32 holds every sum exactly");

bool challenge_product_is_valid(const struct challenge_product *product)
{
    return product->side >= CHALLENGE_SIDE_LEAST && product->side <= CHALLENGE_SIDE_MOST &&
           product->side % SIDE_STEP == 0 && product->rounds >= 1 &&
           product->rounds <= CHALLENGE_ROUNDS_MOST;
}

uint32_t challenge_product_answer_bytes(const struct challenge_product *product)
{
    return product->rounds * product->side * CHALLENGE_DIGEST_BYTES;
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

void challenge_product_left(const struct challenge_product *product, uint32_t round, uint32_t row,
                            int16_t *ret_entries)
{
    const uint64_t key = key_of(product, LEFT, round, row);
    for (uint32_t i = 0; i < product->side; i += 4) {
        const uint64_t word = mixed(key + i);
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t part = (uint32_t)(word >> (16 * k)) & 0xffff;
            ret_entries[i + k] = (int16_t)((int)(part % (2 * LEFT_MOST + 1)) - LEFT_MOST);
        }
    }
}

void challenge_product_right(const struct challenge_product *product, uint32_t round, uint32_t row,
                             int16_t *ret_entries)
{
    const uint64_t key = key_of(product, RIGHT, round, row);
    for (uint32_t i = 0; i < product->side; i += 8) {
        const uint64_t word = mixed(key + i);
        for (uint32_t k = 0; k < 8; k++) {
            const uint32_t part = (uint32_t)(word >> (8 * k)) & 0xff;
            ret_entries[i + k] = (int16_t)((int)(part % (2 * RIGHT_MOST + 1)) - RIGHT_MOST);
        }
    }
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
