/* A watermark is a number that only rises, and that threads wait for.
 *
 * One thread raises the number; others wait until it has reached their value. The reader waits here
 * until the tables have what was acknowledged (D2). */
#ifndef BOURSE_BROKER_CORE_WATERMARK_H
#define BOURSE_BROKER_CORE_WATERMARK_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct watermark {
    pthread_mutex_t mutex;
    pthread_cond_t raised;
    uint64_t value;
};

void watermark_init(struct watermark *watermark, uint64_t value);
/* Frees the watermark; no thread may wait for it any more. */
void watermark_fini(struct watermark *watermark);
/* Raises the value; a lower value changes nothing. */
void watermark_raise(struct watermark *watermark, uint64_t value);
uint64_t watermark_value(struct watermark *watermark);
/* Returns once the watermark is at `value` or above it. */
void watermark_wait(struct watermark *watermark, uint64_t value);
/* Waits likewise, for at most `timeout_ns`. Returns true when the watermark is there. */
bool watermark_wait_for(struct watermark *watermark, uint64_t value, int64_t timeout_ns);

#endif
