/* provider/report.h - what `bourse-provider probe` shows: the offer, and what this host can
 * enforce. */
#ifndef BOURSE_PROVIDER_REPORT_H
#define BOURSE_PROVIDER_REPORT_H

#include "provider/setup.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* `offers` is NULL when nothing can be offered, for the reason in `refusal`. */
void report_text(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal);
/* One JSON object, version 1. False: out of memory. */
bool report_json(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal);

/* `to`, `hours`, `daily_ms` and `utc_offset`, into a JSON object. False: out of memory. */
bool report_conditions(const struct agent_conditions *conditions, json_t *object);

#endif
