/* The units translate*.c share these functions; each translates one message of the wire. */
#ifndef BOURSE_BROKER_CORE_TRANSLATE_INTERNAL_H
#define BOURSE_BROKER_CORE_TRANSLATE_INTERNAL_H

#include "broker/core/translate.h"

#include "base/checked.h"

#include <stdbool.h>
#include <stdint.h>

/* Each function below fills `command`. It returns REJECT_NONE, or the reason with *error. */
enum reject_code translate_join(const Bourse__V1__Join *wire, struct exchange_command *command);
enum reject_code translate_mint(const Bourse__V1__Mint *wire, struct exchange_command *command);
enum reject_code translate_invite(const Bourse__V1__InviteCreate *wire,
                                  struct exchange_command *command, struct codec_error *error);
enum reject_code translate_freeze(const Bourse__V1__Freeze *wire, struct exchange_command *command);
enum reject_code translate_bands(const Bourse__V1__SetBands *wire,
                                 struct exchange_command *command);
enum reject_code translate_owner(const Bourse__V1__SetOwner *wire, struct translation *ret);
enum reject_code translate_judge(const Bourse__V1__JudgeResult *wire,
                                 struct exchange_command *command);
enum reject_code translate_advertise(const Bourse__V1__Advertise *wire, struct translation *ret);
enum reject_code translate_ask(const Bourse__V1__AskPlace *wire, struct translation *ret,
                               struct codec_error *error);
enum reject_code translate_statement(const Bourse__V1__Statement *wire, struct translation *ret);
enum reject_code translate_results(const Bourse__V1__Results *wire, const struct id128 *cluster,
                                   struct translation *ret, struct codec_error *error);
enum reject_code translate_submit(const Bourse__V1__SubmitJob *wire, struct translation *ret,
                                  struct codec_error *error);
enum reject_code translate_replace(const Bourse__V1__OrderReplace *wire,
                                   struct exchange_command *ret_command, struct codec_error *error);

/* Fills *error and returns `code`. */
enum reject_code translate_refuse(struct codec_error *error, enum reject_code code,
                                  const char *field, int64_t value, int64_t limit);
/* Fills *error for a time that does not fit. */
enum reject_code translate_bad_time(struct codec_error *error, const char *field, int64_t ms);
/* Copies a name. Names of the exchange are shorter than those of the wire; the cut is between
 * characters. `wire` may be NULL. */
void translate_copy_name(char ret_name[EXCHANGE_NAME_SIZE], const char *wire);
/* Returns false for a negative time, and for one that does not fit. */
static inline bool translate_ms_to_ns(int64_t ms, int64_t *ret_ns)
{
    return ms >= 0 && checked_mul(ms, NS_PER_MS, ret_ns);
}

#endif
