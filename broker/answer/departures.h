/* broker/answer/departures.h remembers providers that left or withdrew their devices, with the
 * devices that they had. So an explanation can name a provider whose devices would fit.
 *
 * The exchange forgets devices that are offered no more. Nothing of the memory here enters the log,
 * and nothing in the market depends on it. It is bounded: the provider that left first makes room.
 * Only the core's thread calls these functions. Time is an argument. */
#ifndef BOURSE_BROKER_ANSWER_DEPARTURES_H
#define BOURSE_BROKER_ANSWER_DEPARTURES_H

#include "exchange/exchange.h"

#include <stddef.h>
#include <stdint.h>

enum {
    DEPARTURES_PROVIDERS = 32,
    DEPARTURES_DEVICES = 16, /* of one provider; more are forgotten */
    DEPARTURES_TEXT_SIZE = 192,
};
/* Whoever left longer ago is not named any more. */
#define DEPARTURES_TERM_NS (3600 * INT64_C(1000000000))

struct departures;

/* Returns NULL when memory is short. */
struct departures *departures_create(void);
void departures_destroy(struct departures **self);

/* Notes the devices of an account that is about to withdraw them all, or to leave, at `log_ns` of
 * log time. An account without a device stays as it was noted before. A device for which memory is
 * short is left out. */
void departures_note(struct departures *departures, const struct exchange *exchange,
                     uint32_t account, int64_t log_ns);

/* Writes who left lately with devices that `slots` slots of work with these needs would fit, such
 * as `provider "lab" left at 14:03:22 UTC, 12m ago; its 4 slots would fit`. A provider that is
 * still connected "withdrew its offer". Writes "" when there is nobody. Devices of `owner` do not
 * count, and neither do those of a provider that offers devices again or is frozen. `departures`
 * may be NULL. */
void departures_text(const struct departures *departures, const struct exchange *exchange,
                     uint32_t owner, const struct requirement *needs, uint32_t slots,
                     int64_t log_ns, char ret_text[DEPARTURES_TEXT_SIZE]);

#endif
