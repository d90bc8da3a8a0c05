/* provider/pjrt/pjrt_measure.h measures how fast the client's device runs two small programs. One
 * multiplies float32 matrices, the other adds float32 vectors. */
#ifndef BOURSE_PROVIDER_PJRT_PJRT_MEASURE_H
#define BOURSE_PROVIDER_PJRT_PJRT_MEASURE_H

#include "provider/pjrt/pjrt_client.h"

struct pjrt_speed {
    double fp32;      /* multiplications and additions of a product, a second */
    double bandwidth; /* bytes read and written by a sum, a second */
};

/* Measures for 2 s at most, beside what the library's compiler takes. Checks one number of each
 * result. Returns false with the failure. */
bool pjrt_measure(const struct pjrt_client *client, struct pjrt_speed *ret_speed,
                  struct pjrt_failure *ret_failure);

#endif
