/* An invitation holds all that a member needs to find a market and to join it.
 *
 * The text is "bourse-invite-1." and base64url (no padding) of the cursor bytes. The bytes are
 * server key 32, cluster 16, token 16, i64 expires_ms, u8+control endpoint, u8+blob endpoint,
 * u8+origin, log key 32. The first 4 bytes of the SHA-256 of all before follow.
 *
 * Of a market with several brokers the text begins with "bourse-invite-2.", and the other brokers
 * stand before the checksum: u8 count (1 to 7), and for each u8+control endpoint and u8+blob
 * endpoint, both tcp://HOST:PORT. */
#ifndef BOURSE_RUNTIME_INVITATION_H
#define BOURSE_RUNTIME_INVITATION_H

#include "base/id.h"
#include "base/problem.h"
#include "runtime/market.h"

#include <stdbool.h>

enum { INVITATION_TEXT_SIZE = 6144 }; /* of the longest text, with its NUL */

struct invitation {
    struct market market;
    struct id128 token;
    long long expires_ms;
};
bool invitation_read(const char *text, struct invitation *ret_invitation,
                     struct problem *ret_problem);
bool invitation_write(const struct invitation *invitation, char *ret_text, unsigned long capacity);
/* Returns the id under which `account` redeems the invitation. The id is always the same. So a Join
 * that is sent again, even by another process, is the same Join and gets the same answer
 * (docs/protocol.md section 5). */
struct id128 invitation_join_id(const struct invitation *invitation, const struct key32 *account);

#endif
