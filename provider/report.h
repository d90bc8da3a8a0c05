/* provider/report.h prints what `bourse-provider probe` shows, which is the offer and what this
 * host can enforce. */
#ifndef BOURSE_PROVIDER_REPORT_H
#define BOURSE_PROVIDER_REPORT_H

#include "provider/setup.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Writes the report as text. `offers` is NULL when nothing can be offered, for the reason in
 * `refusal`. */
void report_text(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal);
/* Writes one JSON object, version 1. Returns false when memory is short. */
bool report_json(FILE *out, const struct setup *setup, const struct offers *offers,
                 const char *refusal);

/* Adds `to`, `hours`, `daily_ms` and `utc_offset` to a JSON object. Returns false when memory is
 * short. */
bool report_conditions(const struct agent_conditions *conditions, json_t *object);

#endif
