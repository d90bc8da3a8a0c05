/* Dice: results come with them, made of a secret that is committed to before and shown after,
 * whoever leads. */
#include "tests/sim/oracle_models.h"

#include "base/sha256.h"
#include "broker/storage/epoch.h"

#include <inttypes.h>

static void check_shown(const struct hash32 *secret)
{
    const struct epoch epoch = {.secrets = {.now = *secret}, .has_begun = true};
    for (uint32_t i = 0; i < oracle.thrown.count; i++) {
        const struct seen_dice *seen = &oracle.thrown.items[i];
        struct hash32 dice = epoch_dice(&epoch, seen->command);
        if (!hash32_equal(&dice, &seen->dice)) {
            sim_fail("command %" PRIu64 " came with dice of another secret", seen->command);
        }
    }
}

void oracle_check_dice(const struct exchange_command *command)
{
    static const struct hash32 lost;
    if (command->type == EXCHANGE_RESULTS) {
        uint32_t place = PUT(oracle.thrown);
        oracle.thrown.items[place] =
            (struct seen_dice){.command = command->index, .dice = command->results.dice};
    }
    if (command->type == EXCHANGE_EPOCH) {
        const struct exchange_epoch *next = &command->epoch;
        struct hash32 hash = sha256_of(next->secret.bytes, sizeof next->secret.bytes);
        if (!hash32_equal(&next->secret, &lost)) {
            if (!hash32_equal(&hash, &oracle.commitment)) {
                sim_fail("command %" PRIu64 " shows a secret that nobody committed to",
                         command->index);
            }
            check_shown(&next->secret);
            oracle.counts.epochs_shown++;
        }
        oracle.commitment = next->commitment;
        oracle.thrown.count = 0;
    }
}
