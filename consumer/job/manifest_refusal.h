/* A refusal says which text of a manifest cannot be sent, which byte of the text, and what to do.
 * The codec names only the field. */
#ifndef BOURSE_CONSUMER_MANIFEST_REFUSAL_H
#define BOURSE_CONSUMER_MANIFEST_REFUSAL_H

#include "protocol/codec.h"

#include <stddef.h>

/* Writes the message for a manifest that the codec refused with `refused`. */
void manifest_refusal_text(const Bourse__V1__Manifest *manifest, const struct codec_error *refused,
                           char *ret_text, size_t capacity);

#endif
