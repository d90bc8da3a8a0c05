/* provider/onnx/own/own_parallel.h spreads a loop over threads. */
#ifndef BOURSE_PROVIDER_ONNX_OWN_OWN_PARALLEL_H
#define BOURSE_PROVIDER_ONNX_OWN_OWN_PARALLEL_H

#include <stdint.h>

enum { OWN_THREADS_MOST = 64 };

/* Calls `work` for pieces of 0 to `count`, each at least `least` long, on at most `threads` threads
 * at once. The calling thread is one of them, and does what no thread could be had for. */
void own_parallel(unsigned threads, int64_t count, int64_t least,
                  void (*work)(void *context, int64_t first, int64_t last), void *context);

/* Returns how many rounds a thread should have at least, when each costs so many operations. */
int64_t own_parallel_least(int64_t operations);

#endif
