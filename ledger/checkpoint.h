/* ledger/checkpoint.h writes and reads signed tree heads. The format is C2SP tlog-checkpoint in a
 * C2SP signed note, Ed25519.
 *
 *     <origin>\n<size>\n<base64 root>\n\n— <origin> <base64(key id 4 || signature 64)>\n
 *
 * key id = first 4 bytes of SHA-256(name || "\n" || 0x01 || public key). Parsing is strict: it
 * accepts exactly the text that checkpoint_write makes, byte for byte, with one signature line:
 * ours. */
#ifndef BOURSE_LEDGER_CHECKPOINT_H
#define BOURSE_LEDGER_CHECKPOINT_H

#include "base/id.h"

#include <stdbool.h>
#include <stddef.h>

enum { CHECKPOINT_ORIGIN_SIZE = 64, CHECKPOINT_TEXT_SIZE = 512 };

struct checkpoint {
    char origin[CHECKPOINT_ORIGIN_SIZE];
    uint64_t size;
    struct hash32 root;
};

/* Returns true when the origin can name a log: 1 .. CHECKPOINT_ORIGIN_SIZE - 1 printable ASCII
 * characters, no space, no '+'. */
bool checkpoint_origin_valid(const char *origin);

/* A checkpoint_sign gets the note's text and returns its signature. The broker's log key stays with
 * the caller. */
typedef struct signature64 checkpoint_sign(void *context, const void *text, size_t length);
/* Writes the whole note with a NUL and returns its length. The origin must be valid. */
size_t checkpoint_write(const struct checkpoint *checkpoint, const struct key32 *key,
                        checkpoint_sign *sign, void *context, char ret_text[CHECKPOINT_TEXT_SIZE]);
/* Parses a note and verifies it with libsodium. Returns false for any other text. */
bool checkpoint_read(const char *text, size_t length, const struct key32 *key,
                     struct checkpoint *ret_checkpoint);
/* The two functions write and read the verifier key in the note format: <origin>+<key id
 * hex>+<base64(0x01 || key)>. Reading is as strict as for notes. */
void checkpoint_verifier(const char *origin, const struct key32 *key,
                         char ret_text[CHECKPOINT_TEXT_SIZE]);
bool checkpoint_verifier_read(const char *text, char ret_origin[CHECKPOINT_ORIGIN_SIZE],
                              struct key32 *ret_key);

#endif
