#include "planner/templates/template_list.h"

#include "planner/templates/diffusion.h"
#include "planner/templates/llm.h"
#include "planner/templates/matmul.h"
#include "planner/templates/rag.h"
#include "planner/templates/train.h"
#include "planner/templates/video.h"

#include <assert.h>
#include <string.h>

static const struct template *const all[] = {&matmul_template,    &train_template,
                                             &llm_template,       &rag_template,
                                             &diffusion_template, &video_template};

size_t template_count(void)
{
    return sizeof all / sizeof all[0];
}

const struct template *template_at(size_t index)
{
    assert(index < template_count());
    return all[index];
}

const struct template *template_named(const char *name)
{
    for (size_t i = 0; i < template_count(); i++) {
        if (strcmp(all[i]->name, name) == 0) {
            return all[i];
        }
    }
    return NULL;
}
