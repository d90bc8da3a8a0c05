/* The tests print offers, and look for what a user has to read. */
#include "consumer/command/job/offer.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A busy market explains in more bytes than a cell of a table has. */
static const char reason[] =
    "1 of 1 device fits; the one on offer asks more; with a cap of 0.10 instead of 0.00003 and "
    "with a budget of 0.003334 instead of 0.000001 it fills now at 0.10, 1 of the 3 slots that "
    "the job wants";

START_TEST(a_long_reason_is_shown_to_its_end)
{
    static struct offer offer;
    char *text = NULL;
    size_t size = 0;
    offer.summary.parts = 1;
    offer.summary.value_micro = -1;
    offer.quote.has_explanation = true;
    offer.quote.explanation.starts_at_micro = -1;
    (void)snprintf(offer.quote.explanation.text, sizeof offer.quote.explanation.text, "%s", reason);
    FILE *to = open_memstream(&text, &size);
    ck_assert_ptr_nonnull(to);
    ck_assert(offer_show_short(to, &offer, false));
    ck_assert_int_eq(fclose(to), 0);
    ck_assert_msg(strstr(text, reason) != NULL, "%s", text);
    free(text);
}
END_TEST

SUITE("offer", NULL, NULL, TEST(a_long_reason_is_shown_to_its_end))
