/* The list of requests that wait for groups, and the sentence of a journal without a quorum. */
#include "broker/core/outage/unanswered.h"

#include "base/checked.h"
#include "broker/core/outage/quorum_note.h"
#include "tests/support/suite.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static uint8_t told[16];
static size_t told_count;

static void tell(void *context, uint64_t session, const struct id128 *id)
{
    ck_assert_ptr_null(context);
    ck_assert_uint_eq(session, 7);
    told[told_count++] = id->bytes[0];
}

/* A group with one command of a member, one of the broker itself, and one answer to a read. */
static struct group *make_group(uint8_t first_id)
{
    struct group *group = group_create();
    ck_assert_ptr_nonnull(group);
    struct request *request = request_create();
    ck_assert_ptr_nonnull(request);
    request->session = 7;
    request->envelope.id.bytes[0] = first_id;
    group->commands[0].request = request;
    group->commands[1].request = NULL;
    group->command_count = 2;
    struct outgoing *reply = outgoing_create(OUTGOING_REPLY);
    struct outgoing *event = outgoing_create(OUTGOING_EVENT);
    ck_assert(reply != NULL && event != NULL);
    reply->session = event->session = 7;
    reply->id.bytes[0] = first_id + 1;
    group->replies[0] = reply;
    group->replies[1] = event;
    group->reply_count = 2;
    return group;
}

START_TEST(everybody_who_waits_is_told_once)
{
    struct unanswered *unanswered = unanswered_create();
    struct group *first = make_group(1);
    struct group *second = make_group(3);
    struct group *open = make_group(5);
    told_count = 0;
    unanswered_keep(unanswered, first);
    unanswered_keep(unanswered, second);
    unanswered_forget(unanswered, first); /* it came back */
    unanswered_tell(unanswered, open, tell, NULL);
    ck_assert_uint_eq(told_count, 4);
    ck_assert_mem_eq(told, ((const uint8_t[]){3, 4, 5, 6}), 4);
    group_clear(open);
    unanswered_tell(unanswered, open, tell, NULL);
    ck_assert_uint_eq(told_count, 4);
    group_destroy(&first);
    group_destroy(&second);
    group_destroy(&open);
    unanswered_destroy(&unanswered);
}
END_TEST

START_TEST(the_sentence_says_since_when_and_who)
{
    struct quorum_note note;
    char text[256];
    quorum_note_init(&note);
    ck_assert_int_eq(quorum_note_age_ms(&note, 5 * NS_PER_S), 0); /* nothing was taken yet */
    atomic_store(&note.taken_ns, 2 * NS_PER_S);
    quorum_note_say(&note, "https://10.0.0.2:2379 does not answer");
    ck_assert_int_eq(quorum_note_text(&note, 5 * NS_PER_S + 250 * NS_PER_MS, text, sizeof text),
                     3250);
    ck_assert_str_eq(text, "the broker's journal has taken nothing for 3.2 s: "
                           "https://10.0.0.2:2379 does not answer. Try again in a while, or ask "
                           "the operator to mend it.");
    quorum_note_fini(&note);
}
END_TEST

SUITE("unanswered", NULL, NULL, TEST(everybody_who_waits_is_told_once),
      TEST(the_sentence_says_since_when_and_who))
