/* provider/pjrt/pjrt_serve.h answers the requests of docs/plugins.md with what a PJRT library says
 * and does. The one operation is `mlir`:
 *
 *     mlir PROGRAM INPUT... to OUTPUT...
 *
 * PROGRAM is a file of MLIR, the others are .npy files. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_SERVE_H
#define BOURSE_PROVIDER_PJRT_PJRT_SERVE_H

#include "provider/pjrt/pjrt_client.h"

#include <stdio.h>

/* Opens the client and answers one line after the other until `in` ends. Writes to standard error
 * why the device cannot be used, or failed, and every error of the library at full length. Returns
 * the exit status of the program: 0 at the end of `in`, 1 when the device or its library failed. */
int pjrt_serve(const struct pjrt_options *options, FILE *in, FILE *out);

/* Prints one line for each device of the library that can be used, for its owner: its place, its
 * model, its memory and the platform. Returns the exit status likewise. */
int pjrt_serve_list(const struct pjrt_options *options, FILE *out);

#endif
