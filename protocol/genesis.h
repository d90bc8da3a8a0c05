/* protocol/genesis.h describes the first command of every journal, which names the market and its
 * founders.
 *
 * Payload of an ENTRY_GENESIS command (little endian, written by the cursor):
 *
 *   4 magic "BJG1"
 *   16 cluster id
 *   u8 length, then the origin (name of the Merkle log, ASCII without space and '+')
 *   32 log key, Ed25519: signs checkpoints
 *   32 the broker's transport key, X25519
 *   u32 fee, ppm of each capture, rounded down
 *   i64 price band: the highest price of any order, micro-credits per slot-hour
 *   u16 number of accounts, each: 32 key, u32 roles, i64 credits minted, u8 length and name
 *
 * Accounts are numbered from 3 in this order (0 mint, 1 fees, 2 residue). The header is in
 * protocol/ because the broker and the auditor read the command. */
#ifndef BOURSE_PROTOCOL_GENESIS_H
#define BOURSE_PROTOCOL_GENESIS_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GENESIS_ACCOUNTS_MAX = 64,
    GENESIS_NAME_SIZE = 64,   /* with the NUL */
    GENESIS_ORIGIN_SIZE = 64, /* with the NUL */
    GENESIS_FEE_PPM_MAX = 1000000,
    GENESIS_BYTES_MAX = 4 + 16 + GENESIS_ORIGIN_SIZE + 32 + 32 + 4 + 8 + 2 +
                        GENESIS_ACCOUNTS_MAX * (32 + 4 + 8 + GENESIS_NAME_SIZE),
};

struct genesis_account {
    struct key32 key;
    uint32_t roles;
    int64_t credits_micro; /* >= 0 */
    char name[GENESIS_NAME_SIZE];
};

struct genesis {
    struct id128 cluster;
    char origin[GENESIS_ORIGIN_SIZE];
    struct key32 log_key;
    struct key32 transport_key;
    uint32_t fee_ppm;
    int64_t price_band_micro; /* > 0 */
    uint16_t account_count;
    struct genesis_account accounts[GENESIS_ACCOUNTS_MAX];
};

/* Returns true when every field is in its range and no key occurs twice. An invalid genesis is
 * never written or read. */
bool genesis_valid(const struct genesis *genesis);
/* Returns the length, or 0 when the genesis does not fit (GENESIS_BYTES_MAX always suffices) or is
 * not valid. */
size_t genesis_write(const struct genesis *genesis, uint8_t *ret_bytes, size_t capacity);
bool genesis_read(const void *bytes, size_t length, struct genesis *ret_genesis);

#endif
