/* planner/templates/template_list.h lists every template that bourse knows.
 *
 * A new template is one more row of the list in template_list.c. */
#ifndef BOURSE_PLANNER_TEMPLATES_TEMPLATE_LIST_H
#define BOURSE_PLANNER_TEMPLATES_TEMPLATE_LIST_H

#include "planner/templates/template.h"

size_t template_count(void);
/* Returns the template at `index`, which is below template_count(). The template lives for ever. */
const struct template *template_at(size_t index);
/* Returns the template called `name`, or NULL when no template is called so. */
const struct template *template_named(const char *name);

#endif
