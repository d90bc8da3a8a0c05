/* tests/support/first_thread.h starts one thread and waits for its end.
 *
 * ThreadSanitizer starts a thread of its own with the first thread of a process. A test that counts
 * threads, or finds them by name, calls begin_threads() before it looks. */
#ifndef BOURSE_TESTS_SUPPORT_FIRST_THREAD_H
#define BOURSE_TESTS_SUPPORT_FIRST_THREAD_H

#include <check.h>
#include <pthread.h>
#include <stddef.h>

static inline void *end_at_once(void *argument)
{
    return argument;
}

static inline void begin_threads(void)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

#endif
