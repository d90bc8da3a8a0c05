/* Requirements: a text that is taken prints as a text that reads back as the same tree; and any
 * bytes at all as a tree are printed or refused. */
#include "formats/requirement.h"

#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char printed[1 << 16];

static void check_text(const char *text)
{
    struct requirement requirement;
    struct requirement again;
    struct problem problem = {{0}};
    if (!requirement_parse(text, &requirement, &problem)) {
        assert(problem.text[0] != '\0');
        return;
    }
    assert(requirement_text(&requirement, printed, sizeof printed));
    assert(requirement_parse(printed, &again, &problem));
    assert(memcmp(&requirement, &again, sizeof again) == 0);
}

/* Each byte an operation, so that the fuzzer builds trees of any shape, mostly broken ones. */
static void check_tree(const uint8_t *data, size_t size)
{
    struct requirement requirement = {0};
    for (size_t i = 0; i < size && i < REQUIREMENT_NODES_MAX; i++) {
        struct requirement_node *node = &requirement.nodes[requirement.count++];
        node->op = (enum requirement_op)(data[i] & 15);
        node->arity = data[i] >> 4;
        memcpy(node->attribute.name, "memory", 7);
        node->attribute.number = (int64_t)data[i] << 30;
    }
    struct requirement again;
    struct problem problem;
    if (requirement_text(&requirement, printed, sizeof printed)) {
        (void)requirement_parse(printed, &again, &problem); /* nested `and`s come back flat */
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size + 1);
    if (text == NULL) {
        return 0;
    }
    if (size > 0) {
        memcpy(text, data, size);
    }
    text[size] = '\0';
    check_text(text);
    check_tree(data, size);
    free(text);
    return 0;
}
