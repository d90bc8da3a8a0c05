#include "broker/core/queue.h"
#include "tests/support/suite.h"

#include <check.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>

struct number {
    struct queue_link link;
    int value;
};

static int pop_value(struct queue *queue, int64_t timeout_ns)
{
    struct queue_link *link = queue_pop(queue, timeout_ns);
    return link == NULL ? -1 : QUEUE_ELEMENT(link, struct number, link)->value;
}

static bool is_readable(const struct queue *queue)
{
    struct pollfd item = {.fd = queue_descriptor(queue), .events = POLLIN};
    return poll(&item, 1, 0) == 1;
}

START_TEST(first_in_is_first_out_and_a_full_queue_says_so)
{
    struct queue *queue = queue_create(2);
    struct number one = {.value = 1};
    struct number two = {.value = 2};
    struct number three = {.value = 3};

    ck_assert(queue_try_push(queue, &one.link));
    ck_assert(queue_try_push(queue, &two.link));
    ck_assert(!queue_try_push(queue, &three.link));
    ck_assert_uint_eq(queue_count(queue), 2);
    ck_assert_int_eq(pop_value(queue, 0), 1);
    ck_assert_ptr_eq(one.link.next, &two.link); /* whose turn is next */
    ck_assert_int_eq(pop_value(queue, 0), 2);
    ck_assert_ptr_null(two.link.next);
    ck_assert(queue_try_push(queue, &three.link));
    ck_assert_ptr_null(two.link.next);
    ck_assert_int_eq(pop_value(queue, 0), 3);
    ck_assert_int_eq(pop_value(queue, 0), -1);
    queue_destroy(&queue);
}
END_TEST

START_TEST(what_comes_out_says_which_three_are_next)
{
    enum { MANY = 5 };
    struct queue *queue = queue_create(MANY);
    struct number numbers[MANY];
    for (int i = 0; i < MANY; i++) {
        numbers[i].value = i;
        ck_assert(queue_try_push(queue, &numbers[i].link));
    }
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(pop_value(queue, 0), i);
        const struct queue_link *link = &numbers[i].link;
        ck_assert_ptr_eq(link->next, i + 1 < MANY ? &numbers[i + 1].link : NULL);
        ck_assert_ptr_eq(link->after, i + 2 < MANY ? &numbers[i + 2].link : NULL);
        ck_assert_ptr_eq(link->third, i + 3 < MANY ? &numbers[i + 3].link : NULL);
    }
    queue_destroy(&queue);
}
END_TEST

START_TEST(a_closed_queue_takes_nothing_and_gives_what_it_has)
{
    struct queue *queue = queue_create(2);
    struct number one = {.value = 1};
    struct number two = {.value = 2};

    ck_assert(queue_try_push(queue, &one.link));
    queue_close(queue);
    ck_assert(!queue_try_push(queue, &two.link));
    ck_assert(!queue_push(queue, &two.link));
    ck_assert(!queue_finished(queue));
    ck_assert_int_eq(pop_value(queue, QUEUE_FOREVER), 1);
    ck_assert_int_eq(pop_value(queue, QUEUE_FOREVER), -1);
    ck_assert(queue_finished(queue));
    queue_destroy(&queue);
}
END_TEST

START_TEST(the_descriptor_says_what_the_queue_says)
{
    struct queue *queue = queue_create(2);
    struct number one = {.value = 1};

    ck_assert(!is_readable(queue));
    ck_assert(queue_try_push(queue, &one.link));
    ck_assert(is_readable(queue));
    (void)pop_value(queue, 0);
    ck_assert(!is_readable(queue));
    queue_wake(queue);
    ck_assert(is_readable(queue));
    ck_assert_int_eq(pop_value(queue, QUEUE_FOREVER), -1); /* one wait ends */
    ck_assert(!is_readable(queue));
    queue_close(queue);
    ck_assert(is_readable(queue));
    queue_destroy(&queue);
}
END_TEST

enum { COUNT = 10000 };

static void *produce(void *argument)
{
    struct queue *queue = argument;
    for (int i = 0; i < COUNT; i++) {
        struct number *number = malloc(sizeof *number);
        ck_assert_ptr_nonnull(number);
        number->value = i;
        ck_assert(queue_push(queue, &number->link));
    }
    queue_close(queue);
    return NULL;
}

START_TEST(a_producer_that_waits_loses_nothing)
{
    struct queue *queue = queue_create(3);
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, produce, queue), 0);
    int expected = 0;
    while (!queue_finished(queue)) {
        struct queue_link *link = queue_pop(queue, QUEUE_FOREVER);
        if (link != NULL) {
            struct number *number = QUEUE_ELEMENT(link, struct number, link);
            ck_assert_int_eq(number->value, expected++);
            free(number);
        }
    }
    pthread_join(thread, NULL);
    ck_assert_int_eq(expected, COUNT);
    queue_destroy(&queue);
}
END_TEST

SUITE("queue", NULL, NULL, TEST(first_in_is_first_out_and_a_full_queue_says_so),
      TEST(what_comes_out_says_which_three_are_next),
      TEST(a_closed_queue_takes_nothing_and_gives_what_it_has),
      TEST(the_descriptor_says_what_the_queue_says), TEST(a_producer_that_waits_loses_nothing))
