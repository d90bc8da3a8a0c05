/* broker/core/watermark.h - a number that only rises, and threads that wait for it.
 *
 * One thread raises it, others wait until it has reached what they need: the reader, which sees
 * rows as soon as SQLite has them, waits here until HEAD holds them too (D2). */
#ifndef BOURSE_BROKER_CORE_WATERMARK_H
#define BOURSE_BROKER_CORE_WATERMARK_H

#include <pthread.h>
#include <stdint.h>

struct watermark {
    pthread_mutex_t mutex;
    pthread_cond_t raised;
    uint64_t value;
};

void watermark_init(struct watermark *watermark, uint64_t value);
void watermark_fini(struct watermark *watermark); /* nobody waits any more */
/* A lower value changes nothing. */
void watermark_raise(struct watermark *watermark, uint64_t value);
/* Returns once the watermark is at `value` or above it. */
void watermark_wait(struct watermark *watermark, uint64_t value);

#endif
