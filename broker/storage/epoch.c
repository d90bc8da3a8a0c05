#include "broker/storage/epoch.h"

#include "base/cursor.h"
#include "base/sha256.h"
#include "runtime/entropy.h"

#include <assert.h>
#include <sodium.h>

#define PUT_OFF_NS (60 * NS_PER_S)

static bool fits(const struct hash32 *secret, const struct hash32 *commitment)
{
    struct hash32 hash = sha256_of(secret->bytes, sizeof secret->bytes);
    return hash32_equal(&hash, commitment);
}

bool epoch_prepare(struct epoch *epoch, const struct hash32 *commitment,
                   struct exchange_epoch *ret_command)
{
    struct epoch_secrets secrets = {.now = {{0}}};
    const struct hash32 *known[] = {&epoch->secrets.now, &epoch->secrets.next};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (fits(known[i], commitment)) {
            secrets.now = *known[i];
        }
    }
    entropy_bytes(secrets.next.bytes, sizeof secrets.next.bytes);
    if (!epoch->keep(epoch->context, &secrets)) {
        return false;
    }
    epoch->secrets = secrets;
    ret_command->commitment = sha256_of(secrets.next.bytes, sizeof secrets.next.bytes);
    ret_command->secret = secrets.now;
    return true;
}

static int64_t after(int64_t log_ns, int64_t length_ns)
{
    int64_t end_ns;
    return checked_add(log_ns, length_ns, &end_ns) ? end_ns : INT64_MAX;
}

void epoch_start(struct epoch *epoch, uint64_t epochs, int64_t log_ns)
{
    epoch->has_begun = false;
    epoch->ends_ns = epochs > 0 ? after(log_ns, epoch->length_ns) : INT64_MAX;
}

/* The kept secrets stay unchanged: the journal says which of the two is the present one. */
void epoch_begin(struct epoch *epoch, int64_t log_ns)
{
    epoch->secrets.now = epoch->secrets.next;
    epoch->has_begun = true;
    epoch->ends_ns = after(log_ns, epoch->length_ns);
}

void epoch_put_off(struct epoch *epoch, int64_t log_ns)
{
    epoch->ends_ns = after(log_ns, PUT_OFF_NS);
}

struct hash32 epoch_dice(const struct epoch *epoch, uint64_t index)
{
    static_assert(crypto_auth_hmacsha256_KEYBYTES == sizeof epoch->secrets.now.bytes &&
                      crypto_auth_hmacsha256_BYTES == sizeof epoch->secrets.now.bytes,
                  "secrets and dice are of its sizes");
    assert(epoch->has_begun);
    struct hash32 dice;
    uint8_t message[sizeof index];
    struct writer out = writer_over(message, sizeof message);
    writer_u64(&out, index);
    /* The call always returns 0. */
    (void)crypto_auth_hmacsha256(dice.bytes, message, sizeof message, epoch->secrets.now.bytes);
    return dice;
}
