/* The tests play the name servers: getaddrinfo is wrapped. */
#include "runtime/link_explain.h"

#include "tests/support/suite.h"

#include <check.h>
#include <netdb.h>
#include <semaphore.h>
#include <string.h>

static sem_t answers, answered;

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret_found);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **ret_found)
{
    (void)host;
    (void)port;
    (void)hints;
    (void)ret_found;
    while (sem_wait(&answers) != 0) {
    }
    (void)sem_post(&answered);
    return EAI_AGAIN;
}

static void setup(void)
{
    ck_assert_int_eq(sem_init(&answers, 0, 0), 0);
    ck_assert_int_eq(sem_init(&answered, 0, 0), 0);
}

static void teardown(void)
{
    (void)sem_destroy(&answers);
    (void)sem_destroy(&answered);
}

START_TEST(a_name_server_that_says_nothing_is_not_waited_for)
{
    char text[512];
    link_explain("tcp://slow.test:7000", text, sizeof text);
    ck_assert_str_eq(text, "the name of the host slow.test is not resolved yet: no name server has "
                           "answered for 2 s");
    /* The answer that comes too late is the thread's to drop. */
    ck_assert_int_eq(sem_post(&answers), 0);
    while (sem_wait(&answered) != 0) {
    }
}
END_TEST

START_TEST(a_name_server_that_says_no_is_quoted)
{
    char text[512];
    ck_assert_int_eq(sem_post(&answers), 0);
    link_explain("tcp://[none.test]:7000", text, sizeof text);
    ck_assert_ptr_nonnull(strstr(text, "the name of the host none.test cannot be resolved: "));
    ck_assert_ptr_nonnull(strstr(text, gai_strerror(EAI_AGAIN)));
}
END_TEST

START_TEST(a_port_that_there_is_not_is_said)
{
    char text[512];
    link_explain("tcp://localhost:99999", text, sizeof text);
    ck_assert_str_eq(text, "there is no port 99999: the largest is 65535");
}
END_TEST

SUITE("why nobody answers", setup, teardown,
      TEST(a_name_server_that_says_nothing_is_not_waited_for),
      TEST(a_name_server_that_says_no_is_quoted), TEST(a_port_that_there_is_not_is_said))
