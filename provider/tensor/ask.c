#include "provider/tensor/ask.h"

#include "base/cursor.h"
#include "provider/worker/packet.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const char *read_text(struct reader *in)
{
    uint32_t size = reader_u32(in);
    const uint8_t *text = reader_view(in, size);
    if (text == NULL || size == 0 || text[size - 1] != '\0') {
        in->failed = true;
        return NULL;
    }
    return (const char *)text;
}

/* Reads names with their hashes. Returns their count. */
static size_t read_contents(struct reader *in, struct operation_content *ret_items, size_t most)
{
    const size_t count = reader_u32(in);
    in->failed = in->failed || count > most;
    for (size_t i = 0; i < count && !in->failed; i++) {
        ret_items[i].name = read_text(in);
        reader_bytes(in, ret_items[i].hash.bytes, sizeof ret_items[i].hash.bytes);
    }
    return count;
}

/* Returns false when the message does not decode. */
static bool read_ask(const uint8_t *bytes, size_t length, const int *files, size_t file_count,
                     struct ask *ret_ask)
{
    struct reader in = reader_over(bytes, length);
    *ret_ask = (struct ask){.memory_bytes = reader_u64(&in)};
    ret_ask->count = reader_u32(&in);
    in.failed = in.failed || ret_ask->count > ASK_ARGUMENTS;
    for (size_t i = 0; i < ret_ask->count && !in.failed; i++) {
        ret_ask->words[i] = read_text(&in);
    }
    ret_ask->given_count = reader_u32(&in);
    in.failed = in.failed || ret_ask->given_count > file_count ||
                ret_ask->given_count > OPERATION_GIVEN_MOST;
    for (size_t i = 0; i < ret_ask->given_count && !in.failed; i++) {
        ret_ask->given[i] = (struct operation_given){.name = read_text(&in), .file = files[i]};
    }
    ret_ask->content_count = read_contents(&in, ret_ask->contents, ASK_CONTENTS);
    ret_ask->made_count = read_contents(&in, ret_ask->made, ASK_MADE);
    const size_t further = reader_u8(&in) != 0 ? 1 : 0;
    in.failed = in.failed || ret_ask->given_count + further != file_count;
    ret_ask->ahead = further > 0 && !in.failed ? files[file_count - 1] : -1;
    return reader_finished(&in);
}

static bool answer(enum operation_status status, const struct ask_result *result,
                   const struct problem *problem)
{
    uint8_t bytes[ANSWER_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    struct rusage usage = {.ru_maxrss = 0};
    (void)getrusage(RUSAGE_SELF, &usage);
    size_t length = strlen(problem->text);
    writer_u32(&out, (uint32_t)status);
    writer_u32(&out, (uint32_t)result->verdict);
    writer_u32(&out, (uint32_t)result->exit_code);
    writer_u32(&out, (uint32_t)result->fault);
    writer_u32(&out, (uint32_t)result->companion);
    writer_u64(&out, (uint64_t)usage.ru_maxrss * 1024 + result->companion_bytes);
    writer_u64(&out, result->held.hits);
    writer_u64(&out, result->held.saved_bytes);
    writer_u64(&out, result->held.copies);
    writer_u64(&out, result->held.copied_bytes);
    writer_u64(&out, result->held.held_bytes);
    writer_u64(&out, result->held.aheads);
    writer_u64(&out, result->held.ahead_bytes);
    writer_u32(&out, (uint32_t)length);
    writer_bytes(&out, problem->text, length);
    return !out.failed && packet_send(STDIN_FILENO, bytes, out.position, NULL, 0);
}

int ask_serve(ask_carry_out *carry_out, void *context, const bool *is_spent)
{
    static uint8_t bytes[ASK_BYTES];
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an ordinary error */
    (void)signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int files[OPERATION_GIVEN_MOST + 1];
        size_t file_count;
        struct ask ask;
        struct problem problem = {""};
        struct ask_result result = {.verdict = VERDICT_NONE, .exit_code = 1};
        ssize_t length = packet_receive(STDIN_FILENO, bytes, sizeof bytes, files,
                                        OPERATION_GIVEN_MOST + 1, &file_count);
        if (length <= 0) {
            return 0;
        }
        if (!read_ask(bytes, (size_t)length, files, file_count, &ask)) {
            return 1;
        }
        enum operation_status status = carry_out(context, &ask, &result, &problem);
        if (ask.ahead >= 0 && !result.has_taken_ahead) {
            (void)close(ask.ahead);
        }
        if (status != OPERATION_OK) {
            (void)fprintf(stderr, "%s\n", problem.text);
        }
        if (fflush(NULL) != 0 || !answer(status, &result, &problem)) {
            return 1;
        }
        if (is_spent != NULL && *is_spent) {
            return 0;
        }
    }
}
