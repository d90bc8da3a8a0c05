/* This file runs quote and plan, and prints the plan and the price that submit and run show
 * first. */
#include "consumer/command/job/offer.h"
#include "consumer/command/market/challenged_show.h"
#include "consumer/command/model/stages_show.h"
#include "consumer/command/model/train_show.h"
#include "consumer/command/plan/job_choice.h"
#include "consumer/command/plan/plan_dag.h"
#include "consumer/command/plan/work.h"
#include "consumer/command/show.h"
#include "consumer/job/submit.h"

#include "base/cleanup.h"
#include "base/limit.h"
#include "base/text.h"
#include "planner/cost/estimate.h"

#include <stdlib.h>
#include <string.h>

/* ---------------------------------------------------------------- the plan and the quote */

static bool has_limit(const struct bourse_job_summary *job)
{
    return job->limit_ms != JOB_LIMIT_MS_NONE;
}

static void show_plan(FILE *to, const struct bourse_job_summary *job)
{
    (void)fprintf(to, "Plan for %s\n", cell_plain(job->name));
    if (job->continues[0] != '\0') {
        (void)fprintf(to, "  continues     job %s: only the subtasks that are left of that job\n",
                      cell_short_id(job->continues));
    }
    (void)fprintf(to, "  program       %s\n", cell_plain(job->program));
    (void)fprintf(to, "  subtasks      %llu", (unsigned long long)job->subtasks);
    if (job->parts == 1) {
        (void)fprintf(to, ", %u slot%s each", job->slots, text_plural(job->slots));
    }
    if (job->at_most > 0) {
        (void)fprintf(to, ", at most %u slot%s at a time", job->at_most, text_plural(job->at_most));
    }
    if (job->parts > 1) {
        (void)fprintf(to, "\n                in %u parts, for devices, slots or terms that differ",
                      job->parts);
    }
    if (job->checks > 0) {
        (void)fprintf(to, "\n  checks        %llu, each by a referee before its result is paid",
                      (unsigned long long)job->checks);
    }
    if (job->way_ms > 0) {
        (void)fprintf(to, "\n  longest path  %s, of tasks that wait for each other",
                      cell_duration(job->way_ms));
    }
    (void)fprintf(to, "\n  inputs        %llu file%s, %s", (unsigned long long)job->inputs,
                  job->inputs == 1 ? "" : "s", cell_bytes(job->input_bytes));
    if (job->skipped > 0) {
        (void)fprintf(to, " (%llu matches left out: folders and links)",
                      (unsigned long long)job->skipped);
    }
    (void)fprintf(to, "\n  one subtask   about %s%s, %s%s\n", cell_duration_ns(job->expect_ns),
                  job->expect_is_guess ? " (a guess; say the time with `expect:`)" : "",
                  has_limit(job) ? "at most " : "without a limit",
                  has_limit(job) ? cell_duration(job->limit_ms) : "");
    if (job->measured_subtasks > 0) {
        (void)fprintf(to, "  measured      %llu time%s", (unsigned long long)job->measured_samples,
                      text_plural(job->measured_samples > 1 ? 2 : 1));
        if (job->measured_subtasks < job->subtasks) {
            (void)fprintf(to, ", work of %llu of the subtasks",
                          (unsigned long long)job->measured_subtasks);
        }
        if (job->p90_ns < 0) {
            (void)fputs("; a p90 needs more measurements\n", to);
        } else {
            (void)fprintf(to, "; 90 %% of the subtasks of each size took at most %s\n",
                          cell_duration_ns(job->p90_ns));
        }
    }
}

/* Estimates how the subtasks spread over the levels on offer, which the quote sums up. */
static bool estimate_of(const struct bourse_job_summary *job, const struct bourse_quote *quote,
                        struct estimate_row rows[BOURSE_LEVELS_MAX], struct estimate *ret_estimate)
{
    struct estimate_level levels[BOURSE_LEVELS_MAX];
    if (job->value_micro >= 0) {
        return false; /* devices of unlike speed take unequal shares */
    }
    for (uint32_t i = 0; i < quote->level_count; i++) {
        levels[i] = (struct estimate_level){.price_micro = quote->levels[i].price_micro,
                                            .slots = quote->levels[i].slots};
    }
    const struct estimate_job asked = {.subtasks = job->subtasks,
                                       .width = job->slots,
                                       .at_most = job->at_most,
                                       .cap_micro = job->cap_micro,
                                       .expect_ns = job->expect_ns};
    return estimate_make(&asked, levels, quote->level_count, rows, ret_estimate) == ESTIMATE_OK;
}

static json_t *json_spread(const struct bourse_job_summary *job, const struct bourse_quote *quote)
{
    struct estimate_row rows[BOURSE_LEVELS_MAX];
    struct estimate estimate;
    if (job->parts > 1 || job->way_ms > 0 || quote->slots_taken > 0 ||
        !estimate_of(job, quote, rows, &estimate) ||
        estimate.makespan_ns != quote->makespan_ns) { /* the subtasks are not alike */
        return json_null();
    }
    json_t *levels = json_array();
    for (uint32_t i = 0; i < quote->level_count; i++) {
        (void)json_array_append_new(levels, json_pack("{s:I, s:i, s:I, s:I, s:I}", "price_micro",
                                                      (json_int_t)quote->levels[i].price_micro,
                                                      "lanes", (int)rows[i].lanes, "subtasks",
                                                      (json_int_t)rows[i].subtasks, "busy_ns",
                                                      (json_int_t)rows[i].busy_ns, "cost_micro",
                                                      (json_int_t)rows[i].cost_micro));
    }
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "lanes", (json_int_t)estimate.lanes,
                     "rounds", (json_int_t)estimate.rounds, "makespan_ns",
                     (json_int_t)estimate.makespan_ns, "lower_bound_ns",
                     (json_int_t)estimate.lower_bound_ns, "cost_micro",
                     (json_int_t)estimate.cost_micro, "levels", levels);
}

bool offer_is_too_dear(const struct bourse_quote *quote)
{
    const struct bourse_explanation *why = &quote->explanation;
    return quote->has_explanation && why->asking > 0 && why->affordable == 0 &&
           why->starts_at_micro < 0;
}

bool offer_is_given_away(const struct bourse_quote *quote)
{
    return submit_has_gift(quote) && quote->minimum_micro == 0 && quote->without_gift == 0;
}

void offer_name_part(const struct bourse_job *job, uint32_t part, char ret_text[PART_TEXT_SIZE])
{
    uint64_t first = 0;
    for (uint32_t i = 0; i + 1 < part; i++) {
        first += job->parts[i].subtasks;
    }
    ret_text[0] = '\0';
    if (job->part_count > 1 && job->checks > 0 && part == job->part_count) {
        (void)snprintf(ret_text, PART_TEXT_SIZE, "the checks");
    } else if (job->part_count > 1 && job->order != NULL) {
        const char *name = job->file->tasks[job->order[first]].name;
        const uint32_t more = job->parts[part - 1].subtasks - 1;
        const int used = snprintf(ret_text, PART_TEXT_SIZE, "task %.80s", cell_plain(name));
        if (more > 0) {
            (void)snprintf(ret_text + used, PART_TEXT_SIZE - (size_t)used, " and %u more", more);
        }
    } else if (job->part_count > 1) {
        (void)snprintf(ret_text, PART_TEXT_SIZE, "part %u of %zu", part, job->part_count);
    }
}

/* All slots that the job would get are donated. */
static bool is_donated(const struct bourse_quote *quote)
{
    return offer_is_given_away(quote) && quote->expected_micro == 0;
}

static const char *budget_reason(const struct bourse_quote *quote)
{
    return quote->is_all_there_is                        ? " (all that the account has)"
           : quote->most_micro == quote->suggested_micro ? " (the most that one order may be worth)"
           : is_donated(quote)
               ? " (for other devices, if the donated ones go)"
               : " (1.5 times the expected cost, and leases in case that more slots come free)";
}

/* The market fills by price, and at one price by time. One faster device may therefore lose. */
static void show_alone(FILE *to, const struct bourse_job_summary *job,
                       const struct bourse_quote *quote, int64_t budget_micro)
{
    const struct bourse_alone *alone = &quote->alone;
    const bool is_given = limit_is_set(job->budget_micro) || budget_micro != quote->suggested_micro;
    if (alone->place[0] != '\0' && (!is_given || budget_micro >= alone->least_micro)) {
        (void)fprintf(to, "  sooner        on %s alone it takes %s and costs %s: `needs: %s`\n",
                      cell_plain(alone->place), cell_duration_ns(alone->makespan_ns),
                      cell_money(alone->cost_micro), alone->needs);
    }
}

/* A level that several parts could use is listed once, and no single part gets all levels. */
static uint32_t slots_listed(const struct bourse_job_summary *job, const struct bourse_quote *quote)
{
    uint32_t slots = 0;
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *level = &quote->levels[i];
        const bool is_dear = level->worth_micro >= 0 && level->worth_micro < level->price_micro;
        slots += is_dear ? 0 : level->slots;
    }
    return job->parts > 1 ? slots : quote->slots_now;
}

static void show_no_gift(FILE *to, const struct bourse_quote *quote)
{
    const bool fits = quote->explanation.fitting > 0;
    (void)fprintf(to, "  on offer now  nothing that %s%s\n", fits ? "is donated" : "fits",
                  quote->level_count > 0 ? " for all parts; for the others:" : "");
}

static void show_budget_of_nothing(FILE *to, const struct offer *offer)
{
    char part[PART_TEXT_SIZE] = "";
    if (offer->quote.without_gift > 0) {
        offer_name_part(offer->job, offer->quote.without_gift, part);
    }
    (void)fprintf(to, "  budget        none held: the job takes only donated slots%s%s%s\n",
                  part[0] != '\0' ? ", and none fits " : "", part, part[0] != '\0' ? " now" : "");
}

/* Shows what is on offer to the job now, level by level. */
static void show_levels(FILE *to, const struct bourse_job_summary *job,
                        const struct bourse_quote *quote)
{
    const bool is_dear = offer_is_too_dear(quote);
    if (quote->without_gift > 0) {
        show_no_gift(to, quote);
    } else if (quote->level_count == 0 && is_dear && job->value_micro < 0 &&
               !limit_is_set(job->cap_micro)) {
        (void)fprintf(to, "  on offer now  nothing within the market's price band, %s to %s\n",
                      cell_money(quote->band_least_micro), cell_money(quote->band_most_micro));
    } else if (quote->level_count == 0) {
        (void)fprintf(to, "  on offer now  nothing %s\n",
                      !is_dear                ? "that fits"
                      : job->value_micro >= 0 ? "that is worth its price"
                                              : "within the cap");
    } else if (quote->slots_now == 0) {
        const bool is_closed = quote->has_explanation && quote->explanation.asking == 0;
        (void)fprintf(to, "  on offer now  nothing%s:\n",
                      job->value_micro >= 0 && is_dear
                          ? " that is worth its price; the slots that fit"
                      : is_closed ? "; the slots that fit, at other hours or days"
                                  : " that is free; the slots that fit, when they are free again");
    } else {
        (void)fprintf(to, "  on offer now  %u slot%s, %s to %s credits per slot-hour%s\n",
                      slots_listed(job, quote), text_plural(slots_listed(job, quote)),
                      cell_money(quote->price_low_micro), cell_money(quote->price_high_micro),
                      limit_is_set(job->cap_micro) ? " (within the cap)"
                      : job->value_micro >= 0      ? " (worth it)"
                                                   : "");
    }
    for (uint32_t i = 0; i < quote->level_count; i++) {
        const struct bourse_level *level = &quote->levels[i];
        (void)fprintf(to, "                %s x %u slot%s of %u provider%s",
                      cell_money(level->price_micro), level->slots, text_plural(level->slots),
                      level->providers, text_plural(level->providers));
        if (level->worth_micro >= 0) {
            (void)fprintf(to, ", %s: worth %s%s", cell_plain(level->instrument),
                          cell_money(level->worth_micro),
                          level->worth_micro < level->price_micro ? ", too dear" : "");
        }
        (void)fputc('\n', to);
    }
    if (quote->slots_taken > 0) {
        (void)fprintf(
            to,
            "  to be taken   %u slot%s of leases from their holders, %s to %s credits per "
            "slot-hour\n",
            quote->slots_taken, text_plural(quote->slots_taken), cell_money(quote->taken_low_micro),
            cell_money(quote->taken_high_micro));
    }
}

/* Shows the expected cost, the least cost and the budget. */
static void show_cost(FILE *to, const struct offer *offer)
{
    const struct bourse_quote *quote = &offer->quote;
    if (quote->suggested_micro > 0 || (quote->is_of_gifts && offer_is_given_away(quote))) {
        (void)fprintf(to, "  expected      %s credits, %s\n", cell_money(quote->expected_micro),
                      cell_duration_ns(quote->makespan_ns));
    }
    if (quote->suggested_micro > 0) {
        (void)fprintf(to,
                      "  least         %s credits, for a lease of %s; less cannot start the job\n",
                      cell_money(quote->minimum_micro), cell_duration(offer->summary.term_ms));
    }
    if (offer->budget_micro > 0) {
        const bool is_suggested = offer->budget_micro == quote->suggested_micro &&
                                  !limit_is_set(offer->summary.budget_micro);
        (void)fprintf(to, "  budget        %s credits held; the unused part comes back%s\n",
                      cell_money(offer->budget_micro), is_suggested ? budget_reason(quote) : "");
    } else if (quote->is_of_gifts) {
        show_budget_of_nothing(to, offer);
    }
}

static void show_quote(FILE *to, const struct offer *offer)
{
    const struct bourse_job_summary *job = &offer->summary;
    const struct bourse_quote *quote = &offer->quote;
    (void)fputs("Quote\n", to);
    show_levels(to, job, quote);
    show_cost(to, offer);
    offer_show_terms(to, quote, "terms         ", true);
    offer_show_limit(to, job, quote);
    show_alone(to, job, quote, offer->budget_micro);
    if (quote->suggested_cap_micro >= 0 && !quote->is_of_gifts) {
        (void)fprintf(
            to,
            "  lately        three of four slots went for %s credits or less (%u trade%s): a cap "
            "to begin with\n",
            cell_money(quote->suggested_cap_micro), quote->suggested_cap_trades,
            quote->suggested_cap_trades == 1 ? "" : "s");
    }
    if (quote->has_explanation && quote->explanation.starts_at_micro < 0) {
        jobs_print_explanation(to, &quote->explanation);
    }
    if (quote->checks_problem[0] != '\0') {
        (void)fprintf(to, "  checks        none can be made: %s\n", quote->checks_problem);
    }
}

/* A job is small when neither its parts nor the kind of its bid give a reason for a longer text. */
static bool is_small(const struct bourse_job_summary *job, const struct bourse_quote *quote)
{
    return job->parts == 1 && job->checks == 0 && job->way_ms == 0 && job->value_micro < 0 &&
           quote->without_gift == 0 && !quote->is_of_gifts && quote->checks_problem[0] == '\0';
}

static void show_job_line(FILE *to, const struct bourse_job_summary *job)
{
    (void)fprintf(to, "%s: %llu subtask%s of %s, about %s%s%s%s%s", cell_plain(job->name),
                  (unsigned long long)job->subtasks, job->subtasks == 1 ? "" : "s",
                  cell_plain(job->program), cell_duration_ns(job->expect_ns),
                  job->subtasks == 1 ? "" : " each", job->expect_is_guess ? " (a guess)" : "",
                  has_limit(job) ? ", at most " : "",
                  has_limit(job) ? cell_duration(job->limit_ms) : "");
    if (job->inputs > 0) {
        (void)fprintf(to, "; %llu file%s of %s", (unsigned long long)job->inputs,
                      job->inputs == 1 ? "" : "s", cell_bytes(job->input_bytes));
    }
    if (job->continues[0] != '\0') {
        (void)fprintf(to, "; the rest of job %s", cell_short_id(job->continues));
    }
    if (job->skipped > 0) {
        (void)fprintf(to, "; %llu match%s left out: folders and links",
                      (unsigned long long)job->skipped, job->skipped == 1 ? "" : "es");
    }
    (void)fputc('\n', to);
}

static bool starts_now(const struct bourse_quote *quote)
{
    return quote->slots_now > 0 &&
           !(quote->has_explanation && quote->explanation.starts_at_micro < 0);
}

/* Shows in one line what is on offer, or why the job does not start now. */
static void show_offer_line(FILE *to, const struct offer *offer)
{
    const struct bourse_quote *quote = &offer->quote;
    if (!starts_now(quote)) {
        const bool is_taken = quote->has_explanation && quote->explanation.starts_at_micro >= 0;
        (void)fprintf(to, "  offer  none %s: %s (--verbose says more)\n", is_taken ? "free" : "now",
                      quote->has_explanation ? cell_sentence(quote->explanation.text)
                                             : "nothing that fits");
        return;
    }
    const uint32_t slots = slots_listed(&offer->summary, quote);
    (void)fprintf(to, "  offer  %u slot%s at %s", slots, text_plural(slots),
                  cell_money(quote->price_low_micro));
    if (quote->price_high_micro > quote->price_low_micro) {
        (void)fprintf(to, " to %s", cell_money(quote->price_high_micro));
    }
    (void)fputs(" credits per slot-hour", to);
    if (limit_is_set(quote->limit_micro)) {
        (void)fprintf(to, ", within the cap of %s", cell_money(quote->limit_micro));
    }
    if (challenged_is_any(&quote->challenged)) {
        (void)fprintf(to, "; claimed speeds, by the broker's challenge: %s",
                      challenged_counts_cell(&quote->challenged));
    }
    if (quote->isolation.devices[0] > 0) {
        (void)fprintf(to, "; isolation: %s", cell_isolation(&quote->isolation));
    }
    (void)fputs(" (--verbose says more)\n", to);
}

bool offer_show_short(FILE *to, const struct offer *offer, bool with_job)
{
    const struct bourse_quote *quote = &offer->quote;
    if (!is_small(&offer->summary, quote)) {
        return false;
    }
    if (with_job) {
        show_job_line(to, &offer->summary);
    }
    if (quote->suggested_micro > 0) {
        (void)fprintf(to, "  cost   about %s credits in %s, never more than %s\n",
                      cell_money(quote->expected_micro), cell_duration_ns(quote->makespan_ns),
                      cell_money(offer->budget_micro));
    }
    if (offer->budget_micro > 0) {
        (void)fprintf(to,
                      "  held   %s credits until the job ends%s; at least %s, for a lease of %s\n",
                      cell_money(offer->budget_micro),
                      quote->is_all_there_is ? ", all that the account has" : "",
                      cell_money(quote->minimum_micro), cell_duration(offer->summary.term_ms));
    }
    offer_show_terms(to, quote, "terms  ", false);
    show_offer_line(to, offer);
    if (quote->slots_taken > 0) {
        (void)fprintf(to,
                      "  taken  %u slot%s of leases from their holders, %s to %s credits per "
                      "slot-hour\n",
                      quote->slots_taken, text_plural(quote->slots_taken),
                      cell_money(quote->taken_low_micro), cell_money(quote->taken_high_micro));
    }
    return true;
}

void offer_show_job(FILE *to, const struct offer *offer)
{
    show_plan(to, &offer->summary);
    stages_show(to, offer->job);
    train_show(to, offer->job);
}

void offer_show_quote(FILE *to, const struct offer *offer)
{
    show_quote(to, offer);
}

void offer_show(FILE *to, const struct offer *offer)
{
    offer_show_job(to, offer);
    offer_show_quote(to, offer);
}

static json_t *json_summary(const struct bourse_job_summary *job)
{
    json_t *value =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:I, s:b, s:s}", "name",
                  job->name, "program", job->program, "subtasks", (json_int_t)job->subtasks,
                  "inputs", (json_int_t)job->inputs, "input_bytes", (json_int_t)job->input_bytes,
                  "skipped", (json_int_t)job->skipped, "slots", (int)job->slots, "at_most",
                  (int)job->at_most, "limit_ms", (json_int_t)job->limit_ms, "term_ms",
                  (json_int_t)job->term_ms, "expect_ns", (json_int_t)job->expect_ns,
                  "expect_is_guess", job->expect_is_guess, "manifest", job->manifest);
    (void)json_object_set_new(value, "parts", json_integer((json_int_t)job->parts));
    if (job->checks > 0) {
        (void)json_object_set_new(value, "checks", json_integer((json_int_t)job->checks));
    }
    if (job->way_ms > 0) {
        (void)json_object_set_new(value, "way_ms", json_integer((json_int_t)job->way_ms));
    }
    (void)json_object_set_new(value, "source",
                              json_string(job->measured_subtasks > 0 ? "measured"
                                          : job->expect_is_guess     ? "guess"
                                                                     : "declared"));
    if (job->measured_subtasks > 0) {
        (void)json_object_set_new(value, "measured_subtasks",
                                  json_integer((json_int_t)job->measured_subtasks));
        (void)json_object_set_new(value, "measured_samples",
                                  json_integer((json_int_t)job->measured_samples));
        (void)json_object_set_new(
            value, "p90_ns", job->p90_ns < 0 ? json_null() : json_integer((json_int_t)job->p90_ns));
    }
    if (job->continues[0] != '\0') {
        (void)json_object_set_new(value, "continues", json_string(job->continues));
    }
    if (limit_is_set(job->cap_micro)) {
        (void)json_object_set_new(value, "cap_micro", json_integer((json_int_t)job->cap_micro));
    }
    if (job->value_micro >= 0) {
        (void)json_object_set_new(value, "value_micro", json_integer((json_int_t)job->value_micro));
        json_add_rate(value, job->value_rate);
    }
    return value;
}

bool offer_make(struct invocation *invocation, struct offer *offer, int *ret_status)
{
    struct bourse_error error;
    int64_t budget_micro = LIMIT_NONE;
    if (!option_money(invocation, "budget", &budget_micro)) {
        *ret_status = BOURSE_USAGE;
        return false;
    }
    if (limit_is_set(budget_micro)) {
        offer->job->file->budget_micro = budget_micro;
    }
    const bool is_quoted =
        offer->parts != NULL
            ? submit_quote_parts(invocation->bourse, offer->job, offer->parts, &offer->quote,
                                 offer->limits, &error)
            : submit_quote(invocation->bourse, offer->job, &offer->quote, offer->limits, &error);
    if (!is_quoted) {
        *ret_status = complain_with(invocation, &error);
        return false;
    }
    bourse_job_summary(offer->job, &offer->summary); /* with the market's knowledge of the work */
    offer->budget_micro = limit_is_set(offer->summary.budget_micro) ? offer->summary.budget_micro
                                                                    : offer->quote.suggested_micro;
    return true;
}

json_t *offer_json(const struct offer *offer)
{
    json_t *value = json_pack("{s:o, s:I}", "quote", json_quote(&offer->quote), "budget_micro",
                              (json_int_t)offer->budget_micro);
    json_t *plan = json_summary(&offer->summary);
    job_choice_add_json(plan, offer->job->file);
    stages_add_json(plan, offer->job);
    train_add_json(plan, offer->job);
    (void)json_object_set_new(value, "plan", plan);
    (void)json_object_set_new(value, "spread", json_spread(&offer->summary, &offer->quote));
    return value;
}

int offer_status(const struct offer *offer)
{
    const bool starts = offer->quote.explanation.starts_at_micro >= 0 &&
                        offer->quote.checks_problem[0] == '\0' &&
                        !offer_misses_deadline(&offer->quote);
    return starts ? BOURSE_OK : BOURSE_NO_MATCH;
}

int command_quote(struct invocation *invocation)
{
    int status = 0;
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    if (!job_choice_load(invocation, invocation->words[0], NULL, NULL, &job, &status)) {
        return status;
    }
    struct offer *offer = calloc(1, sizeof *offer);
    if (offer == NULL) {
        return complain(invocation, BOURSE_LOCAL, "out of memory");
    }
    offer->job = job;
    if (command_connect(invocation, &status) && offer_make(invocation, offer, &status)) {
        status = offer_status(offer);
        if (invocation->json) {
            status = json_print(offer_json(offer), status);
        } else if (invocation->quiet) {
            (void)printf("%s\n", cell_money(offer->quote.expected_micro));
        } else if (option_given(invocation, "verbose") || !offer_show_short(stdout, offer, false)) {
            offer_show_quote(stdout, offer);
        }
    }
    free(offer);
    return status;
}

/* Some options do not fit the thing that is planned; a job file takes none of these. */
static bool plan_options_fit(struct invocation *invocation, bool has_graph)
{
    static const char *const of_graphs[] = {"scheduler", "contended"};
    static const char *const of_work[] = {
        "set",       "devices",  "pcie",   "fabric",        "network", "storage", "stream",
        "objective", "deadline", "budget", "samples",       "worth",   "place",   "fall-back",
        "templates", "file",     "batch",  "interruptible", "figure",  "peer",    "dim"};
    bool has_work = !has_graph && work_is_requested(invocation);
    for (size_t i = 0; !has_graph && i < sizeof of_graphs / sizeof of_graphs[0]; i++) {
        if (option_given(invocation, of_graphs[i])) {
            (void)complain(invocation, BOURSE_USAGE,
                           "--scheduler and --contended are for --dag; see `bourse help plan`");
            return false;
        }
    }
    for (size_t i = 0; !has_work && i < sizeof of_work / sizeof of_work[0]; i++) {
        if (option_given(invocation, of_work[i])) {
            (void)complain(invocation, BOURSE_USAGE,
                           "--%s is for a template or a model: `bourse plan llm --devices h100`; "
                           "`bourse plan --templates` lists them",
                           of_work[i]);
            return false;
        }
    }
    return true;
}

int command_plan(struct invocation *invocation)
{
    bool has_graph = option_given(invocation, "dag");
    if (has_graph && invocation->word_count > 0) {
        return complain(invocation, BOURSE_USAGE,
                        "plan takes a job's FILE or --dag FILE, not both; see `bourse help plan`");
    }
    if (!plan_options_fit(invocation, has_graph)) {
        return BOURSE_USAGE;
    }
    if (has_graph) {
        return plan_dag(invocation);
    }
    if (work_is_requested(invocation)) {
        return plan_work(invocation);
    }
    if (invocation->word_count == 0) {
        return complain(invocation, BOURSE_USAGE, "plan needs FILE; see `bourse help plan`");
    }
    return plan_job(invocation);
}
