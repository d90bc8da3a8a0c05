#include "broker/core/translation.h"

void translation_drop_wire(struct translation *translation)
{
    for (uint32_t i = 0; translation->results_wire != NULL && i < translation->results_count; i++) {
        codec_result_free(&translation->results_wire[i]);
    }
    translation->results_wire = NULL; /* the arena owns the array */
}

void translation_fini(struct translation *translation)
{
    translation_drop_wire(translation);
    arena_fini(&translation->arena);
    codec_free(&translation->body);
}
