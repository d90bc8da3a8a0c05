/* planner/templates/rag.h - answers of a language model that has looked up passages first.
 *
 *     tokenise -> embed query -> search -> fetch -> tokenise passages -> rerank -> prompt -> embed -> prefill ... (llm.h)
 *         |                                  |                             |         |
 *         +----------------------------------|-----------------------------+         |
 *                                            +---------------------------------------+
 *
 * An encoder makes a vector of the query; it is multiplied with those of all passages, which are
 * kept as weights, and the nearest are fetched. Another encoder reads the query with each of them
 * and says how well they go together; the best are put before the query, and that is what the
 * language model is asked. docs/templates.md has the arithmetic.
 *
 * Not for: indices that look at a part of the vectors only, prompts whose cache is kept. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_RAG_H
#define BOURSE_PLANNER_TEMPLATES_RAG_H

#include "planner/templates/template.h"

extern const struct template rag_template;

#endif
