/* The rag template is an answer of a language model that has looked up passages first.
 *
 *  tokenise -> embed query -> search -> fetch -> tokenise passages -> rerank -> prompt -> embed ...
 *      |                                  |                             |         |
 *      +----------------------------------|-----------------------------+         |
 *                                         +---------------------------------------+
 *
 * The steps after `embed` are those of llm.h. An encoder makes a vector of the query. The search
 * multiplies it with the vectors of all passages, which are kept as weights, and fetches the
 * nearest. Another encoder reads the query with each fetched passage and rates the match. The best
 * passages go before the query, and the language model gets them as its prompt. docs/templates.md
 * has the arithmetic.
 *
 * The template does not cover indices that look at a part of the vectors, or prompts whose cache is
 * kept. */
#ifndef BOURSE_PLANNER_TEMPLATES_RAG_H
#define BOURSE_PLANNER_TEMPLATES_RAG_H

#include "planner/templates/template.h"

extern const struct template rag_template;

#endif
