#include "provider/onnx/generate/sample.h"

#include <math.h>

/* The likeliest tokens, the likeliest first. */
struct top {
    uint32_t tokens[SAMPLE_TOP_MOST];
    size_t count, most;
};

static bool find_best(const float *logits, size_t count, uint32_t *ret_token)
{
    bool is_found = false;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(logits[i]) && (!is_found || logits[i] > logits[*ret_token])) {
            *ret_token = (uint32_t)i;
            is_found = true;
        }
    }
    return is_found;
}

/* Adds a token unless all that are there are likelier. Of equals, the lower one comes first. */
static void add(struct top *top, const float *logits, uint32_t token)
{
    if (top->count == top->most && !(logits[token] > logits[top->tokens[top->count - 1]])) {
        return;
    }
    size_t at = top->count < top->most ? top->count++ : top->count - 1;
    for (; at > 0 && logits[token] > logits[top->tokens[at - 1]]; at--) {
        top->tokens[at] = top->tokens[at - 1];
    }
    top->tokens[at] = token;
}

static double weight_of(float logit, float best, double temperature)
{
    return isnan(logit) ? 0 : exp(((double)logit - (double)best) / temperature);
}

/* A number from 0 to below 1. */
static double draw(struct random *random)
{
    return (double)(random_u64(random) >> 11) * 0x1p-53;
}

/* Draws one of the tokens, which are all where `tokens` is NULL. */
static uint32_t draw_token(const float *logits, const uint32_t *tokens, size_t count, uint32_t best,
                           double temperature, double at)
{
    double sum = 0;
    uint32_t last = best;
    for (size_t i = 0; i < count; i++) {
        sum += weight_of(logits[tokens != NULL ? tokens[i] : i], logits[best], temperature);
    }
    double rest = at * sum;
    for (size_t i = 0; i < count; i++) {
        const uint32_t token = tokens != NULL ? tokens[i] : (uint32_t)i;
        const double weight = weight_of(logits[token], logits[best], temperature);
        last = weight > 0 ? token : last;
        rest -= weight;
        if (weight > 0 && rest < 0) {
            break;
        }
    }
    return last;
}

bool sample_next(const float *logits, size_t count, const struct sample_rule *rule,
                 struct random *random, uint32_t *ret_token)
{
    uint32_t best = 0;
    if (!find_best(logits, count, &best)) {
        return false;
    }
    *ret_token = best;
    if (rule->temperature_milli == 0 || isinf(logits[best])) {
        return true; /* nothing is as likely as an infinite logit */
    }
    const double temperature = rule->temperature_milli / 1000.0;
    if (rule->top == 0 || rule->top >= count) {
        *ret_token = draw_token(logits, NULL, count, best, temperature, draw(random));
        return true;
    }
    static struct top top;
    top.count = 0;
    top.most = rule->top;
    for (size_t i = 0; i < count; i++) {
        if (!isnan(logits[i])) {
            add(&top, logits, (uint32_t)i);
        }
    }
    *ret_token = draw_token(logits, top.tokens, top.count, best, temperature, draw(random));
    return true;
}
