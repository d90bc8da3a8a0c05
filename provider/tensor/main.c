/* The program bourse-tensor computes with matrices inside a jail, for one job, subtask after
 * subtask (ask.h).
 *
 * The program runs beside the job's files and parses them there, never in the agent. Nothing of one
 * subtask is kept for the next; between two the program only has its libraries loaded. */
#include "base/cursor.h"
#include "provider/tensor/ask.h"
#include "provider/tensor/gemm.h"
#include "provider/tensor/operation.h"
#include "provider/worker/packet.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { SIDE = 512, LEAST_ROUNDS = 2, MOST_ROUNDS = 40 };
#define MEASURE_NS INT64_C(100000000)

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* The best of several products counts: other load slows the rest, and the first also generates
 * code. */
static enum operation_status measure(struct problem *problem)
{
    size_t cells = (size_t)SIDE * SIDE;
    float *values = calloc(3 * cells, sizeof *values);
    if (values == NULL) {
        problem_set(problem, "no memory to measure with");
        return OPERATION_MEMORY;
    }
    for (size_t i = 0; i < 2 * cells; i++) {
        values[i] = (float)(i % 251) / 251.0F;
    }
    struct gemm gemm = {.rows = SIDE,
                        .inner = SIDE,
                        .columns = SIDE,
                        .alpha = 1,
                        .a = values,
                        .b = values + cells,
                        .c = values + 2 * cells};
    int64_t began_ns = now_ns();
    int64_t best_ns = INT64_MAX;
    bool good = true;
    for (int round = 0;
         good && round < MOST_ROUNDS && (round < LEAST_ROUNDS || now_ns() - began_ns < MEASURE_NS);
         round++) {
        int64_t before_ns = now_ns();
        good = gemm_run(&gemm) == GEMM_OK;
        int64_t took_ns = now_ns() - before_ns;
        best_ns = took_ns > 0 && took_ns < best_ns ? took_ns : best_ns;
    }
    free(values);
    if (!good) {
        problem_set(problem, "%s refuses a product", gemm_engine());
        return OPERATION_FAILED;
    }
    double flops = 2.0 * SIDE * SIDE * SIDE;
    (void)printf("{\"engine\":\"%s\",\"mflops\":%.0f}\n", gemm_engine(),
                 flops * 1e3 / (double)best_ns);
    return OPERATION_OK;
}

struct ask {
    uint64_t memory_bytes;
    const char *arguments[ASK_ARGUMENTS];
    size_t count;
    struct operation_files files;
};

static enum operation_status carry_out(const struct ask *ask, enum result_verdict *ret_verdict,
                                       struct problem *problem)
{
    struct operation_answer answer;
    if (ask->count == 1 && strcmp(ask->arguments[0], TENSOR_MEASURE) == 0) {
        return measure(problem);
    }
    enum operation_status status =
        operation_run(&ask->files, ask->arguments, ask->count, ask->memory_bytes, &answer, problem);
    (void)fputs(answer.line, stdout);
    *ret_verdict = answer.verdict;
    return status;
}

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

/* Returns false when the message does not decode. */
static bool read_ask(const uint8_t *bytes, size_t length, const int *files, size_t file_count,
                     struct ask *ret_ask)
{
    struct reader in = reader_over(bytes, length);
    *ret_ask = (struct ask){.memory_bytes = reader_u64(&in), .files = {.folder = AT_FDCWD}};
    ret_ask->count = reader_u32(&in);
    in.failed = in.failed || ret_ask->count > ASK_ARGUMENTS;
    for (size_t i = 0; i < ret_ask->count && !in.failed; i++) {
        ret_ask->arguments[i] = read_text(&in);
    }
    ret_ask->files.given_count = reader_u32(&in);
    in.failed = in.failed || ret_ask->files.given_count != file_count;
    for (size_t i = 0; i < file_count && !in.failed; i++) {
        ret_ask->files.given[i] =
            (struct operation_given){.name = read_text(&in), .file = files[i]};
    }
    return reader_finished(&in);
}

static bool answer(enum operation_status status, enum result_verdict verdict,
                   const struct problem *problem)
{
    uint8_t bytes[ANSWER_BYTES];
    struct writer out = writer_over(bytes, sizeof bytes);
    struct rusage usage = {.ru_maxrss = 0};
    (void)getrusage(RUSAGE_SELF, &usage);
    size_t length = strlen(problem->text);
    writer_u32(&out, (uint32_t)status);
    writer_u32(&out, (uint32_t)verdict);
    writer_u64(&out, (uint64_t)usage.ru_maxrss * 1024);
    writer_u32(&out, (uint32_t)length);
    writer_bytes(&out, problem->text, length);
    return !out.failed && packet_send(STDIN_FILENO, bytes, out.position, NULL, 0);
}

int main(void)
{
    static uint8_t bytes[ASK_BYTES];
    (void)signal(SIGXFSZ, SIG_IGN); /* a file beyond the limit is an ordinary error */
    (void)signal(SIGPIPE, SIG_IGN);
    for (;;) {
        int files[OPERATION_GIVEN_MOST];
        size_t file_count;
        struct ask ask;
        struct problem problem = {""};
        enum result_verdict verdict = VERDICT_NONE;
        ssize_t length = packet_receive(STDIN_FILENO, bytes, sizeof bytes, files,
                                        OPERATION_GIVEN_MOST, &file_count);
        if (length <= 0) {
            return 0;
        }
        if (!read_ask(bytes, (size_t)length, files, file_count, &ask)) {
            return 1;
        }
        enum operation_status status = carry_out(&ask, &verdict, &problem);
        if (status != OPERATION_OK) {
            (void)fprintf(stderr, "%s\n", problem.text);
        }
        if (fflush(NULL) != 0 || !answer(status, verdict, &problem)) {
            return 1;
        }
    }
}
