/* formats/requirement.h - what a job needs, as people write it, to and from base/requirement.h.
 *
 *     requirement = "any" | or
 *     or          = and { "or" and }
 *     and         = unary { "and" unary }
 *     unary       = "not" unary | "(" or ")" | predicate
 *     predicate   = field ( "=" | "!=" | "<" | "<=" | ">" | ">=" ) value
 *                 | field [ "not" ] "in" "(" value { "," value } ")"
 *     value       = word | '"' text '"'              \" and \\ inside quotes, no other \
 *     word        = letters, digits and . _ - + / :
 *
 *     kind = cpu and memory >= 2GiB and not region = "eu west"
 *
 * Each field has a type (requirement_fields): values are read with its units, and an ordering of
 * texts is refused. `f not in (...)` is `not f in (...)`. What is refused is named with its column,
 * and where another spelling is known (==, &&, AND, 40gib) with the right one. In a job file the
 * same may stand as a map, whose entries all hold:
 *
 *     needs: {kind: cpu, memory: 2GiB, region: [fr, de], cores: "< 64"}
 *
 * There a bare number or size means "at least", a bare text or flag "equal to", a list "one of",
 * and an operator may lead the value, `in (...)` and `not in (...)` too. Nested `and`s and `or`s of
 * one kind become one node, so that the same need is the same tree. Depth and nodes are capped.
 * Pure. */
#ifndef BOURSE_FORMATS_REQUIREMENT_H
#define BOURSE_FORMATS_REQUIREMENT_H

#include "base/problem.h"
#include "base/requirement.h"
#include "formats/units.h"
#include "formats/yaml.h"

#include <stdbool.h>
#include <stddef.h>

enum field_type {
    FIELD_TEXT,      /* = != in */
    FIELD_NUMBER,    /* a count */
    FIELD_BYTES,     /* a size: 2GiB */
    FIELD_BANDWIDTH, /* bytes per second: 100GB/s */
    FIELD_FLOPS,     /* operations per second: 300TFLOPS */
    FIELD_OPS,       /* the same of whole numbers: 400TOPS */
    FIELD_DURATION,  /* 30s */
    FIELD_FLAG,      /* true or false, held as 1 or 0 */
};

struct requirement_field {
    const char *name;
    enum field_type type;
    const char *meaning; /* one line for the manual */
};

/* The table of all fields, in the order of the manual. */
const struct requirement_field *requirement_fields(size_t *ret_count);
const struct requirement_field *requirement_field(const char *name); /* NULL: there is none */
/* How its figures are written; UNITS_COUNT for a text or a flag. */
enum units_kind requirement_field_units(const struct requirement_field *field);
/* Whether it is a figure of the device, which is declared or measured: memory, bandwidth, a
 * rate. */
bool requirement_is_figure(const char *name);
/* A figure of that field as people read it: 1.5 GiB, 989.4 TFLOPS. A plain number of an unknown
 * one. */
void requirement_figure(const char *name, int64_t value, char ret_text[UNITS_TEXT_SIZE]);

/* False with a problem, and *ret_requirement untouched. */
bool requirement_parse(const char *text, struct requirement *ret_requirement,
                       struct problem *ret_problem);

/* The value of `needs:`, text or map; an absent one needs nothing. What is wrong is refused there
 * (yaml_refuse), and *ret_requirement is empty then. */
void requirement_read(struct yaml_value value, struct requirement *ret_requirement);

/* The canonical text: reading it gives an equal tree. "any" for no nodes. False when the tree is
 * malformed, as one from a peer may be, or the text does not fit. */
bool requirement_text(const struct requirement *requirement, char *ret_text, size_t capacity);
/* One predicate, as in `memory >= 2GiB`, for reports that count which one fails. */
bool requirement_node_text(const struct requirement_node *predicate, char *ret_text,
                           size_t capacity);

#endif
