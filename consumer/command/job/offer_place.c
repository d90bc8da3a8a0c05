/* This file shows an offer to the user, asks whether they agree, and places the job. */
#include "consumer/command/job/offer.h"
#include "consumer/command/market/challenged_show.h"
#include "consumer/command/show.h"
#include "consumer/job/submit.h"

#include "base/text.h"
#include "protocol/reject.h"

#include <stdlib.h>
#include <string.h>

enum { DEADLINE_TIME_SIZE = 64 };

/* The job holds no credits, and no slot is donated. */
static void complain_of_no_gift(struct invocation *invocation, const struct offer *offer,
                                bool can_wait, int *ret_status)
{
    const struct bourse_quote *quote = &offer->quote;
    char part[PART_TEXT_SIZE] = "";
    offer_name_part(offer->job, quote->without_gift, part);
    *ret_status =
        complain(invocation, BOURSE_REFUSED,
                 "a budget of 0 holds nothing, and nothing that fits%s%s is donated now%s%s%s%s",
                 part[0] != '\0' ? " " : "", part, quote->minimum_micro > 0 ? ": it takes " : "",
                 quote->minimum_micro > 0 ? cell_money(quote->minimum_micro) : "",
                 quote->minimum_micro > 0 ? " credits to start" : "",
                 can_wait ? "; with --anyway the job waits for a donated slot" : "");
}

/* Returns true when no device on the market can ever run the job. */
static bool has_no_device(const struct bourse_quote *quote)
{
    return quote->slots_now == 0 && quote->slots_taken == 0 && quote->has_explanation &&
           quote->explanation.fitting == 0;
}

/* Says what helps a program that is named by a path of the provider's machine, where no device has
 * it; "" for any other. */
static void path_hint(const struct bourse_job *job, char *ret_text, size_t size)
{
    const struct job_file *file = job->file;
    const char *word = file->run.count > 0 && file->image == NULL ? file->run.items[0] : "";
    const char *slash = strrchr(word, '/');
    ret_text[0] = '\0';
    if (word[0] == '/' && slash[1] != '\0') {
        (void)snprintf(ret_text, size,
                       "; providers offer programs by name: write %.64s, or copy the program here "
                       "and send it as ./%.64s",
                       cell_plain(slash + 1), cell_plain(slash + 1));
    }
}

void offer_deadline_text(const struct bourse_quote *quote, char ret_text[OFFER_DEADLINE_SIZE])
{
    char left[DEADLINE_TIME_SIZE];
    char planned[DEADLINE_TIME_SIZE];
    char apart[DEADLINE_TIME_SIZE];
    const bool is_late = quote->late_ns > 0;
    const int64_t apart_ns = is_late ? quote->late_ns : quote->deadline_ns - quote->makespan_ns;
    ret_text[0] = '\0';
    if (quote->deadline_ns <= 0 || quote->makespan_ns <= 0) {
        return;
    }
    /* The text of a cell lives only until a few more cells are made. */
    (void)snprintf(left, sizeof left, "%s", cell_duration_ns(quote->deadline_ns));
    (void)snprintf(planned, sizeof planned, "%s%s", cell_duration_ns(quote->makespan_ns),
                   quote->deadline_is_guess ? " (a guess; say the time with `expect`)" : "");
    (void)snprintf(apart, sizeof apart, "%s", cell_duration_ns(apart_ns));
    (void)snprintf(ret_text, OFFER_DEADLINE_SIZE,
                   is_late
                       ? "the plan takes %s and misses the deadline, in %s, by %s%s%s"
                       : "the plan takes %s and keeps the deadline, in %s, with %s to spare%s%s",
                   planned, left, apart, quote->deadline_help[0] != '\0' ? "; " : "",
                   quote->deadline_help[0] != '\0' ? cell_plain(quote->deadline_help)
                   : is_late ? "; no other cap or number of slots within the budget helps now"
                             : "");
}

bool offer_misses_deadline(const struct bourse_quote *quote)
{
    return quote->late_ns > 0 && !quote->deadline_is_guess;
}

/* Writes which slots were chosen for the energy, and what is not known. */
static void show_energy(FILE *to, const struct bourse_quote *quote, const char *title)
{
    const bool has_unknown = quote->energy_unknown > 0;
    if (quote->energy_unknown >= quote->energy_of) {
        (void)fprintf(to,
                      "  %sthe power of all %u slot%s is unknown, so the plan is for the time\n",
                      title, quote->energy_unknown, text_plural(quote->energy_unknown));
        return;
    }
    (void)fprintf(to, "  %son the %u of %u slot%s that take%s least energy%s%s", title,
                  quote->energy_slots, quote->energy_of, text_plural(quote->energy_of),
                  quote->energy_slots == 1 ? "s" : "", quote->energy_uj < 0 ? "" : ", about ",
                  quote->energy_uj < 0 ? "" : cell_energy(quote->energy_uj, false));
    if (has_unknown) {
        (void)fprintf(to, "; the power of %u slot%s is unknown, so %s last", quote->energy_unknown,
                      text_plural(quote->energy_unknown),
                      quote->energy_unknown == 1 ? "it comes" : "they come");
    }
    (void)fputc('\n', to);
}

void offer_show_limit(FILE *to, const struct bourse_job_summary *job,
                      const struct bourse_quote *quote)
{
    if (job->value_micro >= 0) {
        (void)fprintf(to, "  value         at most %s\n",
                      cell_limit(job->value_micro, job->value_rate));
    }
    if (limit_is_set(quote->limit_micro)) {
        (void)fprintf(to, "  price         at most %s credits per slot-hour\n",
                      cell_money(quote->limit_micro));
    } else if (quote->rests_at_micro >= 0) {
        (void)fprintf(to,
                      "  price         the lowest that gets the slots, at most %s credits per "
                      "slot-hour (%s; `cap` sets another limit)\n",
                      cell_money(quote->rests_at_micro),
                      quote->rests_at_micro == quote->band_most_micro ? "the market's price band"
                                                                      : "what the budget allows");
    }
}

void offer_show_terms(FILE *to, const struct bourse_quote *quote, const char *title,
                      bool with_challenges)
{
    char text[OFFER_DEADLINE_SIZE];
    if (quote->chosen_slots > 0) {
        (void)fprintf(to, "  %sat most %u of %u slot%s at a time, for the price\n", title,
                      quote->chosen_slots, quote->chosen_of, text_plural(quote->chosen_of));
    }
    if (quote->energy_slots > 0) {
        show_energy(to, quote, title);
    }
    offer_deadline_text(quote, text);
    if (text[0] != '\0') {
        (void)fprintf(to, "  %s%s\n", title, text);
    }
    if (cell_isolation(&quote->isolation)[0] != '\0') {
        (void)fprintf(to, "  %sisolation of devices on offer: %s\n", title,
                      cell_isolation(&quote->isolation));
    }
    if (with_challenges && challenged_is_any(&quote->challenged)) {
        (void)fprintf(to, "  %sspeeds that devices on offer claim, by the broker's challenge: %s\n",
                      title, challenged_counts_cell(&quote->challenged));
    }
}

/* A job that cannot start now would wait without a word. A deadline that only a guess misses is no
 * reason to refuse; the offer says so. Returns false after a message. */
static bool can_start(struct invocation *invocation, const struct offer *offer, int *ret_status)
{
    const struct bourse_quote *quote = &offer->quote;
    bool waits = option_given(invocation, "anyway");
    bool can_wait = command_takes(invocation->command, "anyway");
    const bool is_said = offer->summary.budget_micro == 0 || option_given(invocation, "budget");
    const bool is_unpaid =
        offer->budget_micro == 0 && !offer_is_given_away(quote) && !(is_said && waits);
    if (quote->checks_problem[0] != '\0' && !waits) {
        *ret_status = complain(invocation, BOURSE_NO_MATCH, "%s%s", quote->checks_problem,
                               can_wait ? "; with --anyway the job waits for that" : "");
    } else if (has_no_device(quote) && !waits) {
        const bool has_budget = is_said || offer->budget_micro > 0;
        char hint[256];
        path_hint(offer->job, hint, sizeof hint);
        *ret_status = complain(invocation, BOURSE_NO_MATCH, "%s%s%s", quote->explanation.text, hint,
                               !can_wait    ? ""
                               : has_budget ? "; with --anyway the job waits for a device that fits"
                                            : "; with --anyway and --budget CREDITS the job waits "
                                              "for a device that fits");
    } else if (is_unpaid && quote->without_gift > 0) {
        complain_of_no_gift(invocation, offer, can_wait, ret_status);
    } else if (is_unpaid && quote->suggested_micro == 0 && offer_is_too_dear(quote)) {
        *ret_status = complain(
            invocation, BOURSE_USAGE,
            "every ask for what fits is above what the job would pay, so no budget can be "
            "suggested; raise its cap or value, or say with --budget how many credits to hold");
    } else if (is_unpaid && quote->suggested_micro == 0 && !waits && quote->has_explanation) {
        *ret_status = complain(invocation, BOURSE_NO_MATCH, "%s%s", quote->explanation.text,
                               can_wait ? "; with --anyway and --budget CREDITS the job waits for "
                                          "a device that fits"
                                        : "");
    } else if (is_unpaid && quote->suggested_micro == 0) {
        *ret_status =
            complain(invocation, BOURSE_USAGE,
                     "nobody asks a price for what fits, so no budget can be suggested; say "
                     "with --budget how many credits to hold");
    } else if (offer->budget_micro < quote->minimum_micro && !waits) {
        *ret_status = complain(invocation, BOURSE_REFUSED,
                               "the budget of %s credits is below %s, which one lease takes: give "
                               "that or more with --budget%s",
                               cell_money(offer->budget_micro), cell_money(quote->minimum_micro),
                               can_wait ? "; with --anyway the job waits for a lower price" : "");
    } else if (offer_misses_deadline(quote) && !waits) {
        char text[OFFER_DEADLINE_SIZE];
        offer_deadline_text(quote, text);
        *ret_status =
            complain(invocation, BOURSE_NO_MATCH, "%s%s", text,
                     can_wait ? "; with --anyway the job does what it can do by its deadline" : "");
    } else {
        return true;
    }
    return false;
}

/* The market takes no job of a frozen account, whatever its price. */
static bool is_frozen(struct invocation *invocation, const struct bourse_quote *quote,
                      int *ret_status)
{
    struct bourse_error error = {.status = BOURSE_REFUSED, .reject = REJECT_FROZEN};
    const char *name = reject_name(REJECT_FROZEN);
    if (!quote->has_explanation || strcmp(quote->explanation.refusal, name) != 0) {
        return false;
    }
    (void)snprintf(error.name, sizeof error.name, "%s", name);
    (void)snprintf(error.text, sizeof error.text, "%s", quote->explanation.text);
    *ret_status = complain_with(invocation, &error);
    return true;
}

bool offer_agree(struct invocation *invocation, const struct offer *offer, int *ret_status)
{
    if (is_frozen(invocation, &offer->quote, ret_status)) {
        return false;
    }
    /* The refusal below says all that the offer could say. */
    const bool is_refused = has_no_device(&offer->quote) && !option_given(invocation, "anyway") &&
                            !option_given(invocation, "verbose");
    if (!invocation->quiet && !invocation->json && !is_refused &&
        (option_given(invocation, "verbose") || !offer_show_short(stderr, offer, true))) {
        offer_show(stderr, offer);
    }
    if (!can_start(invocation, offer, ret_status)) {
        return false;
    }
    if (option_given(invocation, "yes")) {
        return true;
    }
    char question[128];
    (void)snprintf(question, sizeof question, "Hold %s credits and start?",
                   cell_money(offer->budget_micro));
    int answer = invocation->json ? -1 : screen_ask_yes_no(question);
    if (answer < 0) {
        *ret_status = complain(
            invocation, BOURSE_USAGE,
            "%s credits would be held, and there is no terminal to ask on; say -y to agree",
            cell_money(offer->budget_micro));
        return false;
    }
    if (answer == 0) {
        *ret_status = complain(invocation, BOURSE_CANCELLED, "nothing was submitted");
    }
    return answer == 1;
}

static void on_put(void *context, uint64_t done_bytes, uint64_t total_bytes)
{
    progress_text(context, false, "sending inputs: %s of %s", cell_bytes(done_bytes),
                  cell_bytes(total_bytes));
}

bool offer_place(struct invocation *invocation, struct offer *offer, char ret_id[BOURSE_ID_SIZE],
                 int *ret_status)
{
    struct progress progress = progress_start(invocation);
    struct bourse_error error;
    bool ok = submit_job(invocation->bourse, offer->job, offer->budget_micro, offer->limits, on_put,
                         &progress, ret_id, &error);
    progress_end(&progress);
    if (!ok) {
        *ret_status = complain_with(invocation, &error);
    }
    return ok;
}

/* A job whose cap is below every ask may wait for ever. The user learns this, and how to end it. */
static void say_what_it_waits_for(struct invocation *invocation, const struct offer *offer,
                                  const char *id)
{
    const struct bourse_explanation *why = &offer->quote.explanation;
    const enum job_order order = offer->job->file->order;
    const bool rests =
        order == JOB_ORDER_MARKET || order == JOB_ORDER_LIMIT || order == JOB_ORDER_ALL_OR_NONE;
    static struct bourse_explanation now; /* too large for the stack */
    struct bourse_error error;
    if (invocation->json || !rests || !limit_is_set(offer->summary.cap_micro) ||
        offer->budget_micro == 0 || !offer_is_too_dear(&offer->quote)) {
        return;
    }
    if (!invocation->quiet) { /* the offer has said the prices */
        (void)fprintf(stderr,
                      "bourse: the job waits for a lower price; `bourse order replace %.8s --cap "
                      "CREDITS --budget CREDITS` raises the cap and what the job may cost, `bourse "
                      "cancel %.8s` ends it\n",
                      id, id);
        return;
    }
    (void)fprintf(stderr, "bourse: no ask is at or below the cap of %s credits per slot-hour",
                  cell_money(offer->summary.cap_micro));
    if (why->has_fills_at) {
        (void)fprintf(stderr, ", the lowest ask that would do is at %s",
                      cell_money(why->fills_at_micro));
    }
    (void)fputs("; the job waits for one.\n", stderr);
    /* The placed order has a budget, which a higher cap may exceed. */
    if (offer->summary.parts != 1 || !bourse_explain(invocation->bourse, id, &now, &error) ||
        !jobs_print_replace(invocation, stderr, id, &now)) {
        (void)fprintf(stderr, "  `bourse explain %.8s` says what would fill it\n", id);
    }
    (void)fprintf(stderr, "  `bourse cancel %.8s` ends it\n", id);
}

bool offer_and_place(struct invocation *invocation, struct bourse_job *job,
                     char ret_id[BOURSE_ID_SIZE], int *ret_status)
{
    struct offer *offer = calloc(1, sizeof *offer);
    if (offer == NULL) {
        *ret_status = complain(invocation, BOURSE_LOCAL, "out of memory");
        return false;
    }
    offer->job = job;
    bool ok = offer_make(invocation, offer, ret_status) &&
              offer_agree(invocation, offer, ret_status) &&
              offer_place(invocation, offer, ret_id, ret_status);
    if (ok) {
        say_what_it_waits_for(invocation, offer, ret_id);
    }
    free(offer);
    return ok;
}
