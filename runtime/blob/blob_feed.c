#include "runtime/blob/blob_feed.h"

#include "runtime/blob/flight.h"

bool blob_feed_ask(struct blob_client *client, const Bourse__V1__BlobFeed *feed,
                   Bourse__V1__BlobChanges **ret_changes, struct problem *ret_problem)
{
    struct flights flights = {.count = 0};
    enum reject_code code = REJECT_NONE;
    for (unsigned i = 0; i < FLIGHT_TRIES;) {
        struct flight_answer answer;
        (void)flight_send(client, &flights, &(struct flight){0}, MESSAGE_BLOB_FEED, &feed->base);
        switch (flight_await(client, &flights, MESSAGE_BLOB_CHANGES, &answer, ret_problem)) {
        case FLIGHT_ROOM:
            i++;
            continue;
        case FLIGHT_LOST:
            problem_set(ret_problem, "the connection to the broker that leads was lost");
            return false;
        case FLIGHT_ENDED:
            return false;
        case FLIGHT_ANSWERED:
            break;
        }
        if (answer.type == MESSAGE_BLOB_CHANGES) {
            *ret_changes = (void *)answer.body;
            return true;
        }
        (void)flight_refused((const void *)answer.body, &code, ret_problem);
        codec_free(&answer.body);
        return false;
    }
    problem_set(ret_problem, "the broker that leads takes no message");
    return false;
}
