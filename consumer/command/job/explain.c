/* This file explains one order of this account, a bid of a job's part or an ask, and one
 * subtask. */
#include "consumer/command/job/jobs.h"
#include "consumer/command/show.h"

#include "base/cleanup.h"
#include "base/text.h"

#include <string.h>
#include <unistd.h>

struct search {
    const char *prefix;
    struct bourse_order found;
    size_t matches;
};

static bool match(void *context, const struct bourse_order *order)
{
    struct search *search = context;
    if (strncmp(order->id, search->prefix, strlen(search->prefix)) == 0) {
        search->found = *order;
        search->matches++;
    }
    return true;
}

/* Finds the answer about the ask's device, which must be advertised. Returns false when the market
 * knows no such device. */
static bool find_why(struct invocation *invocation, const struct bourse_order *ask,
                     struct bourse_why *ret_why, struct bourse_error *ret_error)
{
    uint32_t number = 0;
    do {
        if (!bourse_why(invocation->bourse, number, ret_why, ret_error)) {
            return false;
        }
    } while (strcmp(ret_why->device, ask->device) != 0 && ++number < ret_why->devices);
    return true;
}

static json_t *json_micro(int64_t micro)
{
    return micro < 0 ? json_null() : json_integer(micro);
}

static int explain_ask(struct invocation *invocation, const struct bourse_order *ask)
{
    static struct bourse_why why; /* too large for the stack */
    struct bourse_error error;
    if (!find_why(invocation, ask, &why, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        return json_print(
            json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "order", ask->id,
                      "device", ask->device, "text", why.text, "bids", (json_int_t)why.bids,
                      "fitting", (json_int_t)why.fitting, "lasting", (json_int_t)why.lasting,
                      "paying", (json_int_t)why.paying, "free", (json_int_t)why.free, "ahead",
                      json_micro(why.ahead), "price_micro", json_micro(why.price_micro),
                      "fills_at_micro", json_micro(why.fills_at_micro)),
            BOURSE_OK);
    }
    (void)printf("%s\n", cell_plain(why.text));
    (void)printf(
        "  %u waiting bid%s, %u fit%s, %u of those in its term, %u of those at its price\n",
        why.bids, text_plural(why.bids), why.fitting, text_verb_ending(why.fitting), why.lasting,
        why.paying);
    if (why.ahead >= 0) {
        (void)printf("  %lld ask%s before this ask\n", (long long)why.ahead,
                     why.ahead == 1 ? " comes" : "s come");
    }
    if (why.fills_at_micro >= 0) {
        (void)printf("  `bourse order replace %.8s --price %s` fills it now\n", ask->id,
                     cell_money(why.fills_at_micro));
    }
    return BOURSE_OK;
}

static int explain_bid(struct invocation *invocation, const struct bourse_order *bid)
{
    struct bourse_explanation explanation;
    struct bourse_error error;
    if (!bourse_explain_part(invocation->bourse, bid->job, bid->part, &explanation, &error)) {
        return complain_with(invocation, &error);
    }
    if (invocation->json) {
        json_t *value = json_explanation(&explanation);
        (void)json_object_set_new(value, "job", json_string(bid->job));
        (void)json_object_set_new(value, "order", json_string(bid->id));
        return json_print(value, BOURSE_OK);
    }
    jobs_print_explanation(stdout, &explanation);
    return BOURSE_OK;
}

/* Complains that this account has no such job. ROLE means that the account is no consumer and so
 * has no jobs. */
static int complain_of_job(struct invocation *invocation, const char *job,
                           struct bourse_error *error)
{
    if (strcmp(error->name, "ROLE") == 0) {
        error->status = BOURSE_NOT_FOUND;
        (void)snprintf(error->name, sizeof error->name, "NOT_FOUND");
        (void)snprintf(error->text, sizeof error->text,
                       "job: this account has no job that begins with %.40s, as it is no consumer: "
                       "give the key of one with --key",
                       job);
    }
    return complain_with(invocation, error);
}

/* Explains from the results how a subtask of an ended job ended. The market itself no longer tells
 * anything about such a subtask. */
static int explain_subtask_end(struct invocation *invocation, const char *id,
                               const struct bourse_tasks *tasks, uint32_t index)
{
    static struct subtask_end end; /* too large for the stack */
    struct bourse_error error;
    if (!failures_find_end(invocation, id, tasks, index, &end, &error)) {
        return complain_with(invocation, &error);
    }
    char text[sizeof end.text];
    char why[sizeof end.why];
    bourse_printable(end.text, text, sizeof text);
    bourse_printable(end.why, why, sizeof why);
    if (invocation->json) {
        return json_print(json_pack("{s:s, s:s, s:{s:I, s:s, s:I, s:s, s:s}}", "job", id, "text",
                                    text, "subtask", "index", (json_int_t)index, "state", end.state,
                                    "tries", (json_int_t)end.tries, "why", why, "subtask",
                                    cell_word(tasks, index)),
                          BOURSE_OK);
    }
    (void)printf("%s\n", text);
    return BOURSE_OK;
}

/* The broker knows a subtask by its index alone. The text gets the name that the user knows. */
static void name_subtask(const struct bourse_tasks *tasks, uint32_t index,
                         struct bourse_explanation *explanation)
{
    char before[32];
    char text[sizeof explanation->text];
    (void)snprintf(before, sizeof before, "subtask %u ", index);
    if (strncmp(explanation->text, before, strlen(before)) == 0) {
        (void)snprintf(text, sizeof text, "%.*s %s", BOURSE_TEXT_SIZE / 2,
                       cell_subtask(tasks, index), explanation->text + strlen(before));
        memcpy(explanation->text, text, sizeof text);
    }
}

static int explain_index(struct invocation *invocation, const char *id,
                         const struct bourse_tasks *tasks, uint32_t index)
{
    struct bourse_explanation explanation;
    struct bourse_error error;
    if (!bourse_explain_subtask(invocation->bourse, id, index, &explanation, &error)) {
        return complain_with(invocation, &error);
    }
    const bool is_open = explanation.subtask_state[0] != '\0';
    if (!is_open) {
        return explain_subtask_end(invocation, id, tasks, index);
    }
    name_subtask(tasks, index, &explanation);
    if (invocation->json) {
        json_t *value = json_explanation(&explanation);
        (void)json_object_set_new(value, "job", json_string(id));
        (void)json_object_set_new(
            value, "subtask",
            json_pack("{s:I, s:s, s:I, s:I, s:I, s:s, s:s, s:I, s:s}", "index", (json_int_t)index,
                      "state", explanation.subtask_state, "part", (json_int_t)explanation.part,
                      "tries", (json_int_t)explanation.tries, "waits_on",
                      (json_int_t)explanation.waits_on, "provider", explanation.provider, "device",
                      explanation.device, "behind", (json_int_t)explanation.behind, "subtask",
                      cell_word(tasks, index)));
        return json_print(value, BOURSE_OK);
    }
    if (strcmp(explanation.subtask_state, "waiting") == 0 && explanation.waits_on == 0) {
        jobs_print_explanation(stdout, &explanation);
    } else {
        char text[sizeof explanation.text];
        bourse_printable(explanation.text, text, sizeof text);
        (void)printf("%s\n", text);
    }
    return BOURSE_OK;
}

bool explain_is_unanswered(const struct bourse_error *error)
{
    return error->reject == 0 &&
           (error->status == BOURSE_UNREACHABLE || error->status == BOURSE_TIMED_OUT ||
            error->status == BOURSE_INTERRUPTED);
}

bool explain_subtask(struct invocation *invocation, const char *word, int *ret_status)
{
    char job[BOURSE_ID_SIZE];
    char id[BOURSE_ID_SIZE];
    uint32_t index = 0;
    struct bourse_error error;
    const size_t length = strcspn(word, "/");
    const char *subtask = word + length + 1;
    if (length == 0 || length >= sizeof job || word[length] == '\0' || subtask[0] == '\0' ||
        access(word, F_OK) == 0) {
        return false;
    }
    memcpy(job, word, length);
    job[length] = '\0';
    if (!bourse_find_job(invocation->bourse, job, id, &error)) {
        if (explain_is_unanswered(&error)) {
            *ret_status = complain_with(invocation, &error);
            return true;
        }
        const bool is_number = subtask[strspn(subtask, "0123456789")] == '\0';
        *ret_status = is_number ? complain_of_job(invocation, job, &error) : 0;
        return is_number; /* any other word is the path of an absent file */
    }
    CLEANUP(bourse_tasks_destroy) struct bourse_tasks *tasks = tasks_load(invocation, id);
    if (tasks_resolve(invocation, id, tasks, subtask, &index, ret_status)) {
        *ret_status = explain_index(invocation, id, tasks, index);
    }
    return true;
}

bool explain_order(struct invocation *invocation, const char *prefix, int *ret_status)
{
    struct search search = {.prefix = prefix};
    struct bourse_error error;
    if (prefix[0] == '\0') {
        return false;
    }
    if (!bourse_orders(invocation->bourse, match, &search, &error)) {
        const bool is_over = explain_is_unanswered(&error);
        *ret_status = is_over ? complain_with(invocation, &error) : 0;
        return is_over;
    }
    if (search.matches != 1 || strcmp(search.found.id, search.found.job) == 0) {
        return false;
    }
    *ret_status = search.found.is_bid ? explain_bid(invocation, &search.found)
                                      : explain_ask(invocation, &search.found);
    return true;
}
