#include "provider/work/last_outputs.h"

#include <stdlib.h>
#include <string.h>

void last_outputs_clear(struct last_outputs *last)
{
    for (size_t i = 0; i < last->count; i++) {
        free((char *)(uintptr_t)last->items[i].name);
    }
    last->count = 0;
}

void last_outputs_note(struct last_outputs *last, const struct outcome *outcome)
{
    last_outputs_clear(last);
    for (size_t i = 0;
         outcome->result == OUTCOME_OK && i < outcome->output_count && last->count < JAIL_MADE_MAX;
         i++) {
        const struct kept *output = &outcome->outputs[i];
        char *name = output->name != NULL ? strdup(output->name) : NULL;
        if (name != NULL) { /* without memory, the resident holds one output less */
            last->items[last->count++] = (struct jail_made){.name = name, .hash = output->hash};
        }
    }
}
