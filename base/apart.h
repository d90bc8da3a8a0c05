/* base/apart.h keeps a function from being inlined into its callers.
 *
 * A rarely called function that is inlined into a hot one costs the hot one registers. APART is
 * the third compiler extension that the code uses; cleanup.h names the others. */
#ifndef BOURSE_BASE_APART_H
#define BOURSE_BASE_APART_H

#define APART __attribute__((noinline))

#endif
