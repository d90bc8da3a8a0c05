/* The matmul template is a product of two matrices. It has one step with one operation. Rows of A
 * and C may be divided over devices; each device then needs all of B. */
#ifndef BOURSE_PLANNER_TEMPLATES_MATMUL_H
#define BOURSE_PLANNER_TEMPLATES_MATMUL_H

#include "planner/templates/template.h"

extern const struct template matmul_template;

#endif
