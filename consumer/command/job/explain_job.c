/* This file runs explain, which tells what holds a job back or how the job ended. */
#include "base/cleanup.h"
#include "base/text.h"
#include "consumer/command/forecast.h"
#include "consumer/command/job/jobs.h"
#include "consumer/command/job/offer.h"
#include "consumer/command/plan/job_choice.h"
#include "consumer/command/show.h"
#include "consumer/command/state.h"
#include "formats/requirement.h"
#include "formats/units.h"

#include <stdlib.h>
#include <string.h>

static const char *best_text(const struct bourse_predicate *predicate)
{
    static char text[UNITS_TEXT_SIZE];
    char name[ATTRIBUTE_NAME_SIZE];
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(predicate->text, " "), predicate->text);
    requirement_figure(name, predicate->best, text);
    return text;
}

/* Returns true when the changed order gets only some of the slots that it wants. */
static bool is_partial(const struct bourse_explanation *explanation)
{
    return explanation->changed_slots > 0 &&
           explanation->changed_slots < explanation->changed_wanted;
}

static void print_changes(FILE *to, const struct bourse_explanation *explanation)
{
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        (void)fprintf(to, "  %-14s%s\n", i == 0 ? "it fills now" : "  and",
                      cell_sentence(explanation->changes[i].text));
    }
    if (explanation->change_count > 0) {
        (void)fprintf(to, "                at %s credits per slot-hour",
                      cell_money(explanation->changed_price_micro));
        if (is_partial(explanation)) {
            (void)fprintf(to, ", %u of the %u slots that it wants", explanation->changed_slots,
                          explanation->changed_wanted);
        }
        (void)fputc('\n', to);
    }
    if (explanation->changed_needs[0] != '\0') {
        (void)fprintf(to, "  needs         %s\n", explanation->changed_needs);
    }
}

void jobs_print_explanation(FILE *to, const struct bourse_explanation *explanation)
{
    char text[BOURSE_TEXT_SIZE];
    bourse_printable(explanation->text, text, sizeof text);
    (void)fprintf(to, "%s\n", text);
    (void)fprintf(to,
                  "  %u device%s on the market, %u fit%s, %u of those on offer, %u within the "
                  "limit, %u free\n",
                  explanation->devices, text_plural(explanation->devices), explanation->fitting,
                  text_verb_ending(explanation->fitting), explanation->asking,
                  explanation->affordable, explanation->free);
    for (uint32_t i = 0; i < explanation->predicate_count; i++) {
        const struct bourse_predicate *predicate = &explanation->predicates[i];
        if (predicate->failing == 0) {
            continue;
        }
        (void)fprintf(to, "  %u fail%s on %s", predicate->failing,
                      text_verb_ending(predicate->failing), cell_sentence(predicate->text));
        if (predicate->has_best) {
            (void)fprintf(to, " (best on the market: %s)", best_text(predicate));
        }
        (void)fputc('\n', to);
    }
    if (explanation->ahead >= 0) {
        (void)fprintf(to, "  %s%lld waiting bid%s before this bid\n",
                      explanation->ahead_partial ? "at least " : "", (long long)explanation->ahead,
                      explanation->ahead == 1 ? " comes" : "s come");
    }
    if (explanation->has_fills_at && explanation->starts_at_micro < 0 &&
        explanation->change_count == 0) {
        bool is_by_value = explanation->rate != NULL && explanation->rate[0] != '\0';
        (void)fprintf(to, "  the bid would be filled now with a %s of %s%s\n",
                      is_by_value ? "value" : "limit",
                      cell_limit(explanation->fills_at_micro, explanation->rate),
                      is_by_value ? "" : " credits per slot-hour");
    }
    print_changes(to, explanation);
}

static int explain_file(struct invocation *invocation, const char *path)
{
    CLEANUP(bourse_job_destroy) struct bourse_job *job = NULL;
    struct bourse_error error;
    struct bourse_quote quote;
    int failed = BOURSE_OK;
    if (!job_choice_load(invocation, path, NULL, NULL, &job, &failed)) {
        return failed;
    }
    if (!bourse_quote(invocation->bourse, job, &quote, &error)) {
        return complain_with(invocation, &error);
    }
    bool fits = quote.explanation.starts_at_micro >= 0;
    const bool is_late = offer_misses_deadline(&quote);
    int status = fits && !is_late ? BOURSE_OK : BOURSE_NO_MATCH;
    if (invocation->json) {
        return json_print(quote.has_explanation
                              ? json_explanation(&quote.explanation)
                              : json_pack("{s:s}", "text", fits ? "the job would start now" : ""),
                          status);
    }
    if (is_late) { /* what is said of its start matters less */
        (void)printf("the job would start and not end by its deadline\n");
    } else if (quote.has_explanation) {
        jobs_print_explanation(stdout, &quote.explanation);
    } else {
        (void)printf("%s\n", fits ? "the job would start now" : "nothing on the market fits now");
    }
    offer_show_terms(stdout, &quote, "", true);
    return status;
}

/* The word names no standing order and no job of this account, which may be no consumer. */
static int explain_nothing(struct invocation *invocation, const char *word,
                           struct bourse_error *error)
{
    if (strcmp(error->name, "ROLE") == 0) {
        error->status = BOURSE_NOT_FOUND;
        (void)snprintf(error->name, sizeof error->name, "NOT_FOUND");
        (void)snprintf(
            error->text, sizeof error->text,
            "order: no standing order of this account begins with %.40s. The order has ended, or "
            "never was: `bourse order list` shows the standing orders",
            word);
    }
    return complain_with(invocation, error);
}

/* Explains how an ended job ended, and what its owner can do. */
static int explain_end(struct invocation *invocation, const char *id)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        return complain_with(invocation, &error);
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    const bool is_done = row->state == BOURSE_DONE;
    char text[BOURSE_TEXT_SIZE];
    const bool has_reason =
        !is_done && row->reason_text[0] != '\0' && strcmp(row->reason_text, row->state_text) != 0;
    (void)snprintf(text, sizeof text, "the job has ended: %s%s%s; %u of %u subtask%s accepted",
                   row->state_text, has_reason ? ", " : "", has_reason ? row->reason_text : "",
                   row->accepted, row->subtasks, text_plural(row->subtasks));
    if (invocation->json) {
        json_t *value = json_pack("{s:s, s:s, s:s, s:s}", "job", id, "state", row->state_text,
                                  "reason", row->reason_text, "text", text);
        return json_print(value, BOURSE_OK);
    }
    (void)printf("%s\n", text);
    if (row->accepted > 0) {
        (void)printf("  `bourse fetch %.8s` brings what was accepted\n", id);
    }
    if (!is_done && failures_are_of_image(invocation, row)) {
        (void)printf("  `bourse ps %.8s` says what is wrong with the image; a resumed job has the "
                     "same image, and\n  no try would use it: mend the image and submit the job "
                     "anew\n",
                     id);
    } else if (!is_done) {
        (void)printf(
            "  `bourse ps %.8s` shows why subtasks were not accepted; `bourse resume %.8s` "
            "runs what is left\n",
            id, id);
    }
    return BOURSE_OK;
}

/* Writes what the command does: it fills all slots that the job wants, or some of them. */
static void replaced_text(const struct bourse_explanation *explanation, char *ret_text,
                          size_t capacity)
{
    if (is_partial(explanation)) {
        (void)snprintf(ret_text, capacity, "fills %u of the %u slots that it wants",
                       explanation->changed_slots, explanation->changed_wanted);
    } else {
        (void)snprintf(ret_text, capacity, "fills it");
    }
}

bool jobs_print_replace(struct invocation *invocation, FILE *to, const char *id,
                        const struct bourse_explanation *explanation)
{
    struct bourse_balance balance = {.available_micro = 0};
    struct bourse_error error; /* the command is printed without a balance too */
    int64_t more_micro = 0;
    char options[2 * CELL_SIZE] = "";
    char does[CELL_SIZE];
    size_t used = 0;
    const bool is_by_value = explanation->rate != NULL && explanation->rate[0] != '\0';
    for (uint32_t i = 0; i < explanation->change_count; i++) {
        const struct bourse_change *change = &explanation->changes[i];
        const bool is_money =
            strcmp(change->field, "budget") == 0 || strcmp(change->field, "cap") == 0;
        if (!is_money || !change->has_figures || is_by_value || used >= CELL_SIZE) {
            return false;
        }
        used += (size_t)snprintf(options + used, sizeof options - used, " --%s %s", change->field,
                                 cell_money(change->to));
        more_micro = strcmp(change->field, "budget") == 0 ? change->to - change->from : more_micro;
    }
    if (used == 0) {
        return false;
    }
    replaced_text(explanation, does, sizeof does);
    const bool is_short = more_micro > 0 && bourse_balance(invocation->bourse, &balance, &error) &&
                          balance.available_micro < more_micro;
    (void)fprintf(to, "  `bourse order replace %.8s%s` %s", id, options, does);
    if (is_short) {
        (void)fprintf(to, ", once the account has %s credits more: it has %s",
                      cell_money(more_micro - balance.available_micro),
                      cell_money(balance.available_micro));
    }
    (void)fputc('\n', to);
    return true;
}

void jobs_print_forecast(struct invocation *invocation, FILE *to, const struct bourse_job_row *row,
                         const struct bourse_explanation *explanation)
{
    char text[FORECAST_TEXT_SIZE];
    const struct forecast forecast = forecast_of(row);
    if (!forecast.is_known) {
        return;
    }
    forecast_text(row, &forecast, text);
    (void)fprintf(to, "  %s\n", text);
    if (forecast.late_ms == 0) {
        return;
    }
    if (explanation != NULL && explanation->changed_slots > 0 &&
        jobs_print_replace(invocation, to, row->id, explanation)) {
        const struct forecast sooner = forecast_with(row, explanation->changed_slots);
        if (sooner.is_known) {
            forecast_end_text(row, &sooner, text);
            (void)fprintf(to, "    with these slots it would be done %s\n", text);
        }
    }
    forecast_remedy(row, &forecast, text);
    (void)fprintf(to, "  %s\n", text);
}

/* Prints the forecast of the job, or without one the command that fills its bid. */
static void print_outlook(struct invocation *invocation, const char *id,
                          const struct bourse_explanation *explanation)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    const bool is_told = bourse_jobs(invocation->bourse, id, &jobs, &error);
    const struct bourse_job_row *row = is_told ? bourse_jobs_row(jobs, 0) : NULL;
    const struct forecast forecast =
        is_told ? forecast_of(row) : (struct forecast){.is_known = false};
    if (!forecast.is_known || forecast.late_ms == 0) {
        (void)jobs_print_replace(invocation, stdout, id, explanation);
    }
    if (is_told) {
        jobs_print_forecast(invocation, stdout, row, explanation);
    }
}

/* Adds the forecast, and the one with the slots that the changed bid would get. */
static void json_add_forecast(struct invocation *invocation, const char *id,
                              const struct bourse_explanation *explanation, json_t *value)
{
    CLEANUP(bourse_jobs_destroy) struct bourse_jobs *jobs = NULL;
    struct bourse_error error;
    if (!bourse_jobs(invocation->bourse, id, &jobs, &error)) {
        return;
    }
    const struct bourse_job_row *row = bourse_jobs_row(jobs, 0);
    json_t *forecast = forecast_json(row);
    if (forecast == NULL) {
        return;
    }
    const struct forecast sooner = forecast_with(row, explanation->changed_slots);
    if (explanation->changed_slots > 0 && sooner.is_known) {
        (void)json_object_set_new(forecast, "changed_slots", json_integer(sooner.slots));
        (void)json_object_set_new(forecast, "changed_ends_ms",
                                  json_integer((json_int_t)sooner.ends_ms));
        (void)json_object_set_new(forecast, "changed_late_ms",
                                  json_integer((json_int_t)sooner.late_ms));
    }
    (void)json_object_set_new(value, "forecast", forecast);
}

int command_explain(struct invocation *invocation)
{
    int status = 0;
    char id[BOURSE_ID_SIZE];
    const char *word = invocation->words[0];
    bool is_file = strchr(word, '/') != NULL || strchr(word, '.') != NULL;
    if (!command_connect(invocation, &status)) {
        return status;
    }
    if (is_file && explain_subtask(invocation, word, &status)) {
        return status;
    }
    if (is_file) {
        return explain_file(invocation, word);
    }
    struct bourse_explanation explanation;
    struct bourse_error error;
    const bool is_job = bourse_find_job(invocation->bourse, word, id, &error);
    if (!is_job && explain_is_unanswered(&error)) {
        return complain_with(invocation, &error); /* another call would wait as long again */
    }
    const bool is_sure = is_job && strlen(word) < BOURSE_ID_SIZE - 1; /* a full id: unchecked */
    if (!is_sure && explain_order(invocation, word, &status)) {
        return status;
    }
    if (!is_job || !bourse_explain(invocation->bourse, id, &explanation, &error)) {
        return explain_nothing(invocation, word, &error);
    }
    bool is_open = strcmp(explanation.state, "open") == 0;
    CLEANUP(bourse_tasks_destroy)
    struct bourse_tasks *tasks = is_open ? tasks_load(invocation, id) : NULL;
    if (is_open && (explanation.parts > 1 || (tasks != NULL && tasks_are_named(tasks)))) {
        return tasks_explain_parts(invocation, id, tasks, &explanation);
    }
    if (!is_open) {
        return explain_end(invocation, id);
    }
    if (invocation->json) {
        json_t *value = json_explanation(&explanation);
        (void)json_object_set_new(value, "job", json_string(id));
        json_add_forecast(invocation, id, &explanation, value);
        return json_print(value, BOURSE_OK);
    }
    jobs_print_explanation(stdout, &explanation);
    print_outlook(invocation, id, &explanation);
    state_say_of_market(invocation);
    state_say_behind(invocation);
    return BOURSE_OK;
}
