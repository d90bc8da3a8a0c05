#include "exchange/state/terms.h"

#include <string.h>

static const char *const term_names[TERMS_ATTRIBUTES] = {"firm", "notice", "minimum_run"};

void terms_attributes(const struct exchange_terms *terms, struct attribute *ret_attributes)
{
    const bool is_firm = !terms->is_interruptible;
    const int64_t values[TERMS_ATTRIBUTES] = {
        is_firm,
        is_firm ? EXCHANGE_RUN_MOST_NS : terms->notice_ns,
        is_firm ? EXCHANGE_RUN_MOST_NS : terms->minimum_run_ns,
    };
    for (size_t i = 0; i < TERMS_ATTRIBUTES; i++) {
        memset(&ret_attributes[i], 0, sizeof ret_attributes[i]);
        memcpy(ret_attributes[i].name, term_names[i], strlen(term_names[i]));
        ret_attributes[i].number = values[i];
    }
}

bool terms_is_attribute(const struct attribute *attribute)
{
    for (size_t i = 0; i < TERMS_ATTRIBUTES; i++) {
        if (strcmp(attribute->name, term_names[i]) == 0) {
            return true;
        }
    }
    return false;
}

struct exchange_terms terms_read(const struct exchange *exchange, uint32_t cell)
{
    size_t count;
    const struct attribute *attributes = book_cell_attributes(exchange->book, cell, &count);
    struct exchange_terms terms = {0};
    int64_t *const values[TERMS_ATTRIBUTES] = {NULL, &terms.notice_ns, &terms.minimum_run_ns};
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 1; k < TERMS_ATTRIBUTES; k++) {
            if (strcmp(attributes[i].name, term_names[k]) == 0) {
                *values[k] = attributes[i].number;
            }
        }
        if (strcmp(attributes[i].name, term_names[0]) == 0) {
            terms.is_interruptible = attributes[i].number == 0;
        }
    }
    return terms.is_interruptible ? terms : (struct exchange_terms){0};
}
