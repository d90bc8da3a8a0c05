/* tests/support/assertions.h makes an assertion that holds cost nothing. The build includes it
 * before each test (cmake/tests.cmake).
 *
 * Check itself notes the place of every assertion in a file, so that its report of a crash can name
 * the last one. Those notes took five sixths of the time of prop_exchange. A failed assertion names
 * its place as before, and a crash is told by the sanitizers, with its stack. */
#ifndef BOURSE_TESTS_SUPPORT_ASSERTIONS_H
#define BOURSE_TESTS_SUPPORT_ASSERTIONS_H
#pragma GCC system_header /* warnings of the macro's form would come at each use */

#include <check.h>

#undef ck_assert_msg
#define ck_assert_msg(expr, ...)                                                                   \
    ((expr)                                                                                        \
         ? (void)0                                                                                 \
         : _ck_assert_failed(__FILE__, __LINE__, "Assertion '" #expr "' failed", ##__VA_ARGS__))

#endif
