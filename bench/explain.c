/* bench/explain.c measures how long the exchange takes to say why a job waits. The program prints
 * one JSON object.
 *
 *     explain [--asks N] [--jobs N] [--cells N] [--leased PERCENT] [--json]
 *
 * 20 providers place N asks [10000], for devices of --cells kinds [as many as asks]. --leased
 * percent of them [50] are leased, the cheaper ones. N jobs [1000] wait, each with a requirement of
 * its own. The program has each job explained, and each ask from the other side. Then it asks about
 * the jobs as if nobody had submitted them, with a quote and an explanation each. It asks so, too,
 * about a job that fits every device and has work for all of them. The times are processor time. */
#include "bench/full_market.h"
#include "exchange/view/why.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The broker answers a QuoteRequest in the same way. */
static int64_t time_quote(const struct requirement *needs, int64_t cap_micro, uint32_t subtasks)
{
    static struct exchange_explanation explanation;
    static struct exchange_quote answer;
    const struct exchange_need need = {.needs = needs,
                                       .account = CONSUMER,
                                       .subtasks = subtasks,
                                       .slots = 1,
                                       .cap_micro = cap_micro,
                                       .limit_ns = 60 * NS_PER_S,
                                       .term_ns = 3600 * NS_PER_S,
                                       .expect_ns = 60 * NS_PER_S};
    int64_t before_ns = now_ns();
    if (!exchange_quote(exchange, &need, &answer)) {
        die("out of memory");
    }
    exchange_explain(exchange, &need, &explanation);
    return now_ns() - before_ns;
}

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left;
    int64_t b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

static double us(const int64_t *each_ns, size_t at)
{
    return (double)each_ns[at] / 1e3;
}

static json_t *figures(int64_t *each_ns, size_t count)
{
    qsort(each_ns, count, sizeof *each_ns, compare);
    return json_pack("{s:f, s:f, s:f}", "p50_us", us(each_ns, count / 2), "p99_us",
                     us(each_ns, count * 99 / 100), "max_us", us(each_ns, count - 1));
}

static json_t *time_jobs(const struct waiting *waiting, uint32_t jobs, int64_t *each_ns,
                         uint64_t *ret_remedies)
{
    static struct exchange_explanation explanation;
    *ret_remedies = 0;
    for (uint32_t i = 0; i < jobs; i++) {
        int64_t before_ns = now_ns();
        if (!exchange_explain_job(exchange, &waiting[i].id, EXCHANGE_ANY_PART, &explanation)) {
            die("a job is gone");
        }
        each_ns[i] = now_ns() - before_ns;
        *ret_remedies += explanation.smallest_change.count > 0;
    }
    return figures(each_ns, jobs);
}

static json_t *time_asks(uint32_t asks, uint32_t jobs, int64_t *each_ns)
{
    static struct exchange_why why;
    for (uint32_t i = 0; i < jobs; i++) {
        int64_t before_ns = now_ns();
        if (exchange_explain_ask(exchange, FIRST_PROVIDER + i % PROVIDERS,
                                 i / PROVIDERS % (asks / PROVIDERS), &why) != WHY_OK) {
            die("an ask is gone");
        }
        each_ns[i] = now_ns() - before_ns;
    }
    return figures(each_ns, jobs);
}

static json_t *time_quotes(const struct waiting *waiting, uint32_t jobs, int64_t *each_ns)
{
    for (uint32_t i = 0; i < jobs; i++) {
        struct requirement needs;
        needs_of(waiting[i].number, &needs);
        each_ns[i] = time_quote(&needs, cap_of(waiting[i].number), 1);
    }
    return figures(each_ns, jobs);
}

static json_t *time_wide_quotes(uint32_t rounds, int64_t *each_ns)
{
    struct requirement any;
    parse("any", &any);
    for (uint32_t i = 0; i < rounds; i++) {
        each_ns[i] = time_quote(&any, -1, UINT32_MAX);
    }
    return figures(each_ns, rounds);
}

int main(int argc, char **argv)
{
    uint32_t asks = number_after(argc, argv, "--asks", 10000) / PROVIDERS * PROVIDERS;
    uint32_t jobs = number_after(argc, argv, "--jobs", 1000);
    uint32_t cells = number_after(argc, argv, "--cells", asks);
    uint32_t leased = number_after(argc, argv, "--leased", 50);
    if (asks == 0 || jobs < 100 || cells == 0 || leased > 100) {
        die("--asks is 20 at least, --jobs 100, --cells 1, --leased 0 to 100");
    }
    fill_market(asks, jobs, cells, leased);
    struct waiting *waiting = memory(jobs, sizeof *waiting);
    int64_t *each_ns = memory(jobs, sizeof *each_ns);
    wait_for_asks(waiting, jobs);
    uint64_t remedies;
    json_t *of_jobs = time_jobs(waiting, jobs, each_ns, &remedies);
    json_t *of_asks = time_asks(asks, jobs, each_ns);
    json_t *quotes = time_quotes(waiting, jobs, each_ns);
    json_t *value =
        json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "asks", (json_int_t)asks,
                  "cells", (json_int_t)cells, "leased", (json_int_t)leased, "jobs",
                  (json_int_t)jobs, "remedies", (json_int_t)remedies, "job", of_jobs, "ask",
                  of_asks, "quote", quotes, "quote_any", time_wide_quotes(jobs / 10, each_ns));
    (void)json_dumpf(value, stdout, JSON_COMPACT);
    (void)putchar('\n');
    json_decref(value);
    free(each_ns);
    free(waiting);
    exchange_effects_fini(&effects);
    exchange_destroy(&exchange);
    return 0;
}
