/* broker/challenge/challenge_facts.h keeps what challenges found, by device, and writes it as text.
 *
 * The facts are no part of the exchange: they decide which asks the broker takes, and what listings
 * say. A lost file costs the market its challenges of the past, and nothing else. Pure. */
#ifndef BOURSE_BROKER_CHALLENGE_CHALLENGE_FACTS_H
#define BOURSE_BROKER_CHALLENGE_CHALLENGE_FACTS_H

#include "broker/challenge/challenge_rules.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHALLENGE_FACTS_MOST = 16384, CHALLENGE_FACTS_BYTES = 8 << 20 };

struct challenge_facts;

/* Returns NULL when memory is short. */
struct challenge_facts *challenge_facts_create(void);
void challenge_facts_destroy(struct challenge_facts **self);

/* Returns the fact of the device, or NULL; borrowed until the next challenge_facts_of. */
const struct challenge_fact *challenge_facts_find(const struct challenge_facts *facts,
                                                  uint32_t account, const struct id128 *device);
/* Returns the fact of the device to be changed, and adds one without an outcome when there is none.
 * Returns NULL when there are too many facts, or memory is short. */
struct challenge_fact *challenge_facts_of(struct challenge_facts *facts, uint32_t account,
                                          const struct id128 *device);

/* Returns the facts as text, or NULL when memory is short. The caller frees the text. */
char *challenge_facts_text(const struct challenge_facts *facts);
/* Reads such a text, and replaces all facts. Returns false when the text is none; then there are
 * no facts. */
bool challenge_facts_read(struct challenge_facts *facts, const char *text);

#endif
