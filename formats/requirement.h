/* formats/requirement.h converts requirements between the text that people write and
 * base/requirement.h.
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
 * Each field has a type (requirement_fields). Values are read with the field's units, and an
 * ordering of texts is refused. `f not in (...)` is `not f in (...)`. A refusal names the column,
 * and the right spelling where one is known (for ==, &&, AND, 40gib). In a job file the
 * requirement may be a map, whose entries must all hold:
 *
 *     needs: {kind: cpu, memory: 2GiB, region: [fr, de], cores: "< 64"}
 *
 * In a map a bare number or size means "at least", a bare text or flag "equal to", a list
 * "one of". An operator may lead the value, also `in (...)` and `not in (...)`. Nested `and`s and
 * `or`s of one kind become one node, so that equal requirements give equal trees. Depth and nodes
 * are capped. */
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
    FIELD_OPS,       /* operations on integers per second: 400TOPS */
    FIELD_DURATION,  /* 30s */
    FIELD_FLAG,      /* true or false, held as 1 or 0 */
};

struct requirement_field {
    const char *name;
    enum field_type type;
    const char *meaning; /* one line for the manual */
};

/* Returns the table of all fields, in the order of the manual. */
const struct requirement_field *requirement_fields(size_t *ret_count);
const struct requirement_field *requirement_field(const char *name); /* NULL: no such field */
/* Returns the units of the field's figures, or UNITS_COUNT for a text or a flag. */
enum units_kind requirement_field_units(const struct requirement_field *field);
/* Returns the names of all ways in which a device starts work: the values of `executor`. */
const char *const *requirement_executors(size_t *ret_count);

/* Returns true when the field is a declared or measured figure of the device: memory, bandwidth,
 * a rate. */
bool requirement_is_figure(const char *name);
/* Writes a figure of the field as people read it: 1.5 GiB, 989.4 TFLOPS. A figure of an unknown
 * field is a plain number. */
void requirement_figure(const char *name, int64_t value, char ret_text[UNITS_TEXT_SIZE]);

/* Parses the text form. Returns false with a problem; *ret_requirement is then unchanged. */
bool requirement_parse(const char *text, struct requirement *ret_requirement,
                       struct problem *ret_problem);

/* Reads the value of `needs:`, text or map. An absent value gives the empty requirement. A fault
 * is refused at its place (yaml_refuse); *ret_requirement is empty then. */
void requirement_read(struct yaml_value value, struct requirement *ret_requirement);

/* Writes the canonical text: reading it gives an equal tree. A tree without nodes gives "any".
 * Returns false when the tree is malformed, as a peer's may be, or the text does not fit. */
bool requirement_text(const struct requirement *requirement, char *ret_text, size_t capacity);
/* Writes one predicate, as in `memory >= 2GiB`, for reports that count the failing predicates. */
bool requirement_node_text(const struct requirement_node *predicate, char *ret_text,
                           size_t capacity);

#endif
