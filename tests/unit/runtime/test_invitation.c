/* The tests follow an invitation as it travels, is damaged on the way, and is redeemed. */
#include "runtime/invitation.h"

#include "base/id.h"
#include "tests/support/sample_market.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct invitation invitation_example(void)
{
    return (struct invitation){
        .market = sample_market(), .token = {{9, 9}}, .expires_ms = 1800000000000};
}

START_TEST(an_invitation_travels_as_one_word)
{
    struct invitation out = invitation_example();
    char text[1024];
    struct problem problem;
    ck_assert(invitation_write(&out, text, sizeof text));
    ck_assert_int_eq(strncmp(text, "bourse-invite-1.", 16), 0);
    ck_assert_uint_eq(
        strspn(text + 16, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
        strlen(text) - 16);
    struct invitation in;
    ck_assert_msg(invitation_read(text, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in.market, &out.market);
    ck_assert(id128_equal(&in.token, &out.token));
    ck_assert_int_eq(in.expires_ms, out.expires_ms);
    ck_assert_int_eq(in.market.pid, 0);
}
END_TEST

START_TEST(an_invitation_may_name_several_brokers)
{
    struct invitation one = invitation_example();
    struct invitation out = invitation_example();
    out.market = sample_cluster();
    char text[INVITATION_TEXT_SIZE];
    char single[INVITATION_TEXT_SIZE];
    struct problem problem;
    ck_assert(invitation_write(&out, text, sizeof text));
    ck_assert_int_eq(strncmp(text, "bourse-invite-2.", 16), 0);
    struct invitation in;
    ck_assert_msg(invitation_read(text, &in, &problem), "%s", problem.text);
    sample_market_check_same(&in.market, &out.market);
    ck_assert(id128_equal(&in.token, &out.token));

    /* Each form has its prefix: neither can be read as the other. */
    ck_assert(invitation_write(&one, single, sizeof single));
    text[14] = '1';
    single[14] = '2';
    ck_assert(!invitation_read(text, &in, &problem));
    ck_assert(!invitation_read(single, &in, &problem));
    text[14] = '3';
    ck_assert(!invitation_read(text, &in, &problem));
    ck_assert_ptr_nonnull(strstr(problem.text, "bourse-invite-2."));

    strcpy(out.market.others[1].blobs, "ipc:///b");
    ck_assert(!invitation_write(&out, text, sizeof text));
    out.market = sample_cluster();
    memset(out.market.control, 'x', 255);
    memset(out.market.blobs, 'y', 255);
    out.market.other_count = CONTACTS_MAX - 1;
    for (size_t i = 0; i < out.market.other_count; i++) {
        struct contact *other = &out.market.others[i];
        (void)snprintf(other->control, sizeof other->control, "tcp://%0*zu:4770",
                       LIMIT_ENDPOINT_BYTES - 11, i);
        memcpy(other->blobs, other->control, sizeof other->blobs);
    }
    ck_assert(invitation_write(&out, text, sizeof text));
    ck_assert(invitation_read(text, &in, &problem));
    sample_market_check_same(&in.market, &out.market);
}
END_TEST

/* A Join sent again is the same Join; that of another key, or of another token, is another. */
START_TEST(an_invitation_is_redeemed_under_one_id)
{
    struct invitation invitation = invitation_example();
    const struct key32 account = {{7}};
    const struct key32 other = {{8}};
    const struct id128 id = invitation_join_id(&invitation, &account);
    struct id128 again = invitation_join_id(&invitation, &account);
    ck_assert(id128_equal(&id, &again));
    again = invitation_join_id(&invitation, &other);
    ck_assert(!id128_equal(&id, &again));
    invitation.token.bytes[15] ^= 1;
    again = invitation_join_id(&invitation, &account);
    ck_assert(!id128_equal(&id, &again));
    invitation.token.bytes[15] ^= 1;
    invitation.market.cluster.bytes[0] ^= 1;
    again = invitation_join_id(&invitation, &account);
    ck_assert(!id128_equal(&id, &again));
}
END_TEST

START_TEST(any_changed_character_is_noticed)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_+/=. \n";
    struct invitation out = invitation_example();
    char text[1024];
    ck_assert(invitation_write(&out, text, sizeof text));
    struct invitation in;
    for (size_t at = 0; text[at] != '\0'; at++) {
        char good = text[at];
        for (size_t i = 0; letters[i] != '\0'; i++) {
            text[at] = letters[i];
            struct problem problem;
            ck_assert_msg(letters[i] == good || !invitation_read(text, &in, &problem), "at %zu: %c",
                          at, letters[i]);
        }
        text[at] = '\0';
        ck_assert(!invitation_read(text, &in, NULL));
        text[at] = good;
    }
    strcat(text, "A");
    ck_assert(!invitation_read(text, &in, NULL));
}
END_TEST

START_TEST(what_cannot_be_read_is_not_written)
{
    char text[1024];
    struct invitation out = invitation_example();
    ck_assert(!invitation_write(&out, text, 100));
    strcpy(out.market.control, "ipc:///with space");
    ck_assert(invitation_write(&out, text, sizeof text));
    strcpy(out.market.control, "ipc:///with\nbreak");
    ck_assert(!invitation_write(&out, text, sizeof text));
    out = invitation_example();
    out.market.origin[0] = '\0';
    ck_assert(!invitation_write(&out, text, sizeof text));
    out = invitation_example();
    memset(out.market.control, 'x', 255);
    memset(out.market.blobs, 'y', 255);
    char longest[2048];
    struct invitation in;
    ck_assert(invitation_write(&out, longest, sizeof longest));
    ck_assert(invitation_read(longest, &in, NULL));
}
END_TEST

SUITE("invitation", NULL, NULL, TEST(an_invitation_travels_as_one_word),
      TEST(an_invitation_may_name_several_brokers), TEST(an_invitation_is_redeemed_under_one_id),
      TEST(any_changed_character_is_noticed), TEST(what_cannot_be_read_is_not_written))
