/* This program is an agent that signs false results. Tests use it to see who pays. The signed
 * messages are well formed.
 *
 * BOURSE_TEST_LIE names the lie about a subtask that succeeded:
 *
 *     left-out     The result lacks a declared output.
 *     renamed      The result has the output under another name.
 *     never-sent   The output has a hash that nobody stored.
 *     of-another   The output has the hash BOURSE_TEST_HASH, which another account stored.
 *     huge         The output has a size of 2^50 bytes.
 *     no-log       The standard output has a hash that nobody stored.
 *     checkpoint   A file of the checkpoint has a hash that nobody stored.
 *     no-input     The result says that an input is missing, which the broker has.
 *     no-image     The result says that the image is missing, which the broker has.
 *     held-back    There is no lie: the result waits until the file BOURSE_TEST_HOLD is gone.
 *     stalling     As never-sent, and the agent says that it can store the output again.
 *     mute         There is no lie: challenges of the broker are never answered.
 *     guessing     The answers to challenges are guessed.
 *
 * In all lies but held-back and stalling, the agent does not say that it can store outputs again.
 *
 * The program is linked with --wrap=agent_session_finished, and likewise with the other functions
 * below. So its code stands between the agent, which has stored the outputs, and the session, which
 * signs the result. */
#include "base/text.h"
#include "provider/session/agent_session.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HOLD_STEP_US = 20000 };

enum agent_status __real_agent_session_finished(struct agent_session *session, int64_t now_ns,
                                                const struct agent_work *work,
                                                const Bourse__V1__Result *facts);
enum agent_status __wrap_agent_session_finished(struct agent_session *session, int64_t now_ns,
                                                const struct agent_work *work,
                                                const Bourse__V1__Result *facts);

struct agent_session *__real_agent_session_create(const struct agent_session_config *config);
struct agent_session *__wrap_agent_session_create(const struct agent_session_config *config);

static bool tells(const char *lie)
{
    const char *told = getenv("BOURSE_TEST_LIE");
    return told != NULL && strcmp(told, lie) == 0;
}

static uint8_t hash[32];

static void invent_hash(Bourse__V1__Output *output)
{
    memcpy(hash, output->hash.data, sizeof hash);
    hash[0] ^= 1;
    output->hash.data = hash;
}

static void say_missing(Bourse__V1__Result *told, uint32_t outcome, char *detail)
{
    told->outcome = outcome;
    told->detail = detail;
    told->n_outputs = 0;
    told->standard_output = told->standard_error = NULL;
    told->has_exit_code = false;
}

static void hold_back(void)
{
    const char *path = getenv("BOURSE_TEST_HOLD");
    int file = path == NULL ? -1 : open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        (void)close(file);
        while (access(path, F_OK) == 0) {
            (void)usleep(HOLD_STEP_US); /* between two looks at a file; its end is the event */
        }
    }
}

static void lie_of_output(Bourse__V1__Output *output)
{
    static char other_name[] = "another";
    if (tells("renamed")) {
        output->name = other_name;
    } else if (tells("never-sent") || tells("stalling")) {
        invent_hash(output);
    } else if (tells("of-another") && getenv("BOURSE_TEST_HASH") != NULL &&
               text_unhex(getenv("BOURSE_TEST_HASH"), hash, sizeof hash)) {
        output->hash.data = hash;
    } else if (tells("huge")) {
        output->size = UINT64_C(1) << 50;
    }
}

enum agent_status __wrap_agent_session_finished(struct agent_session *session, int64_t now_ns,
                                                const struct agent_work *work,
                                                const Bourse__V1__Result *facts)
{
    Bourse__V1__Result told = *facts;
    if (told.outcome == OUTCOME_OK && told.n_outputs > 0) {
        if (tells("left-out")) {
            told.n_outputs--;
        } else {
            lie_of_output(told.outputs[0]); /* the caller's own copy */
        }
    }
    if (told.outcome == OUTCOME_OK && told.standard_output != NULL && tells("no-log")) {
        invent_hash(told.standard_output);
    }
    if (told.saved != NULL && told.saved->n_files > 0 && tells("checkpoint")) {
        invent_hash(told.saved->files[0]);
    }
    static char no_input[] = "input of-ada: the broker does not have it";
    static char no_image[] = "the broker does not have the image";
    if (told.outcome == OUTCOME_OK && tells("no-input")) {
        say_missing(&told, OUTCOME_INPUT_MISSING, no_input);
    } else if (told.outcome == OUTCOME_OK && tells("no-image")) {
        say_missing(&told, OUTCOME_IMAGE_MISSING, no_image);
    }
    if (tells("held-back")) {
        hold_back();
    }
    return __real_agent_session_finished(session, now_ns, work, &told);
}

struct agent_session *__wrap_agent_session_create(const struct agent_session_config *config)
{
    struct agent_session_config told = *config;
    told.can_store_again = tells("held-back") || tells("stalling");
    return __real_agent_session_create(&told);
}

enum agent_status __real_agent_session_challenged(struct agent_session *session, int64_t now_ns,
                                                  const struct agent_challenge *challenge,
                                                  const void *digests, size_t length);
enum agent_status __wrap_agent_session_challenged(struct agent_session *session, int64_t now_ns,
                                                  const struct agent_challenge *challenge,
                                                  const void *digests, size_t length);

enum agent_status __wrap_agent_session_challenged(struct agent_session *session, int64_t now_ns,
                                                  const struct agent_challenge *challenge,
                                                  const void *digests, size_t length)
{
    uint8_t *guess = length == 0 ? NULL : calloc(1, length);
    enum agent_status status = AGENT_OK;
    if (!tells("mute")) {
        status = __real_agent_session_challenged(
            session, now_ns, challenge, tells("guessing") && guess != NULL ? guess : digests,
            length);
    }
    free(guess);
    return status;
}
