/* tests/support/template_steps.h makes the steps of a template by name and text, and adds up what
 * they need. */
#ifndef BOURSE_TESTS_SUPPORT_TEMPLATE_STEPS_H
#define BOURSE_TESTS_SUPPORT_TEMPLATE_STEPS_H

#include "planner/templates/template.h"

/* Makes steps of a template with "name=value" settings, in order, NULL at the end. The test fails
 * where they are refused. */
struct steps *template_steps(const char *name, const char *const *settings);
/* The same for the template's line. When `ways` is above 1, the steps are those of one of so many
 * devices that share each layer. */
struct steps *template_chain(const char *name, const char *const *settings, int64_t ways);
/* The same for settings that are refused. *ret_problem gets the text of the refusal. */
enum steps_status template_refusal(const char *name, const char *const *settings,
                                   struct problem *ret_problem);
/* The test fails where there is none. */
const struct step *template_step(const struct steps *steps, const char *name);

/* The sums over a step (NULL: over all steps), each operation as often as it is done. The first is
 * operations, the second bytes that are read and written; both are of one kind of operation
 * (OPERATION_KINDS: of all kinds). */
double template_flops(const struct steps *steps, const struct step *step, enum operation_kind kind);
double template_bytes(const struct steps *steps, const struct step *step, enum operation_kind kind);

/* Returns the bytes of the edge between two steps; -1: there is none. */
int64_t template_flow(const struct steps *steps, const char *from, const char *to);
/* Return the number of edges that come to the step, and that go from it. */
size_t template_edges_to(const struct steps *steps, const char *name);
size_t template_edges_from(const struct steps *steps, const char *name);

#endif
