/* provider/plugin/plugin_product.h lets a plug-in compute products of matrices.
 *
 * The matrices go through files in the folder of the plug-in, float32 row by row in this machine's
 * byte order. So a plug-in needs no more than to read two files and to write one. */
#ifndef BOURSE_PROVIDER_PLUGIN_PLUGIN_PRODUCT_H
#define BOURSE_PROVIDER_PLUGIN_PLUGIN_PRODUCT_H

#include "provider/plugin/session.h"
#include "provider/tensor/operation.h"

struct plugin_product {
    struct session *session;
    int limit_ms; /* of one product, or TALK_NO_LIMIT */
};

/* The multiplier of a challenge (struct operation_multiplier), for square matrices alone. `context`
 * is a plugin_product. The files are removed at the end. */
enum operation_status plugin_product_multiply(void *context, const struct gemm *gemm,
                                              const struct operation_places *places,
                                              struct problem *ret_problem);

/* Lets the plug-in multiply two small matrices, and compares every sum. Returns false with the
 * problem when there is no product, or a wrong one. */
bool plugin_product_try(struct session *session, struct problem *ret_problem);

#endif
