/* formats/yaml.h is a small typed walker over a YAML file (JSON is a subset). Job files, configs
 * and market.yaml are read with it.
 *
 * Callers read straight through and check once, at the end. The first failure is kept with its
 * line, and from then on getters yield their fallback.
 *
 *     CLEANUP(yaml_close) struct yaml_file *file = yaml_open(text, length, "broker.yaml", problem);
 *     if (file == NULL) return false;
 *     static const char *const keys[] = {"listen", "heartbeat", "fee"};
 *     struct yaml_value root = yaml_root(file);
 *     yaml_known_keys(root, keys, 3);
 *     const char *listen = yaml_text(yaml_required(root, "listen"), 255, NULL);
 *     int64_t beat_ms = yaml_duration_ms(yaml_key(root, "heartbeat"), 100, 60000, 1000);
 *     ...copy what is kept...
 *     return yaml_finished(file, problem);
 *
 * A typical answer is `broker.yaml:4: unknown key "lisen"; did you mean "listen"?`.
 *
 * Opening refuses anchors, aliases, tags, directives and a second document. Opening also refuses a
 * key given twice or not plain text, a NUL inside a text, and bytes that are not UTF-8. A file over
 * the caps of formats/limits.h is refused, too. The caller's getter gives a plain `true` or `12`
 * its type; yaml_text gives the characters as written. A plain `null`, `~` or an empty value has no
 * value: every getter but yaml_kind refuses it. */
#ifndef BOURSE_FORMATS_YAML_H
#define BOURSE_FORMATS_YAML_H

#include "base/problem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct yaml_file;

/* A value is a place in the file, or none (an absent key). It is valid until yaml_close. Pass it by
 * value. */
struct yaml_value {
    struct yaml_file *file;
    int node; /* 0: absent */
};

enum yaml_kind { YAML_KIND_ABSENT, YAML_KIND_NULL, YAML_KIND_TEXT, YAML_KIND_LIST, YAML_KIND_MAP };

/* Opens a text. Returns NULL with a problem. `file_name` stands in messages; it is borrowed. An
 * empty file is an empty map. */
struct yaml_file *yaml_open(const char *text, size_t length, const char *file_name,
                            struct problem *ret_problem);
void yaml_close(struct yaml_file **self);

/* Returns true when nothing was refused; else false with the first refusal. */
bool yaml_finished(const struct yaml_file *file, struct problem *ret_problem);
/* Records "FILE:LINE: what", unless something was refused before. */
__attribute__((format(printf, 2, 3))) void yaml_refuse(struct yaml_value value, const char *format,
                                                       ...);

struct yaml_value yaml_root(struct yaml_file *file);
bool yaml_present(struct yaml_value value);
enum yaml_kind yaml_kind(struct yaml_value value);
unsigned yaml_line(struct yaml_value value); /* from 1; 0 for an absent value */

/* Refuses any value but a map with these keys only. An absent value is an empty map. */
void yaml_known_keys(struct yaml_value map, const char *const *keys, size_t count);
struct yaml_value yaml_key(struct yaml_value map, const char *key);      /* may be absent */
struct yaml_value yaml_required(struct yaml_value map, const char *key); /* must not be absent */

/* The functions return entries of a map or items of a list, in the order of the file; `index` is
 * below yaml_count. A value of the other kind, or an index beyond, is refused: its item is
 * absent, its key is "". */
size_t yaml_count(struct yaml_value value); /* 0 for texts and absent values */
struct yaml_value yaml_item(struct yaml_value list, size_t index);
const char *yaml_entry_key(struct yaml_value map, size_t index);
struct yaml_value yaml_entry(struct yaml_value map, size_t index);
/* Refuses any value but a list, or a map, of at most `most`. Returns true when the caller may
 * walk it. */
bool yaml_is_list(struct yaml_value value, size_t most);
bool yaml_is_map(struct yaml_value value, size_t most);

/* The typed getters follow. An absent value gives the fallback; a wrong one is refused and gives
 * the fallback too. Bounds are inclusive. A value outside is refused with the bound, as people
 * would write it. Texts are borrowed until yaml_close. */
const char *yaml_text(struct yaml_value value, size_t most_bytes, const char *fallback);
bool yaml_boolean(struct yaml_value value, bool fallback); /* true or false */
int64_t yaml_integer(struct yaml_value value, int64_t least, int64_t most, int64_t fallback);
int64_t yaml_duration_ns(struct yaml_value value, int64_t least, int64_t most, int64_t fallback);
int64_t yaml_duration_ms(struct yaml_value value, int64_t least, int64_t most, int64_t fallback);
int64_t yaml_bytes(struct yaml_value value, int64_t least, int64_t most, int64_t fallback);
/* The amounts are in micro-credits. */
int64_t yaml_money(struct yaml_value value, int64_t least, int64_t most, int64_t fallback);
/* Returns the index of the text among `names`, e.g. of an enum. An unknown text is refused with
 * the nearest name. */
size_t yaml_choice(struct yaml_value value, const char *const *names, size_t count,
                   size_t fallback);
/* Reads exactly `length` bytes as hex. Returns false, with ret_bytes unchanged, when the value
 * is absent or refused. */
bool yaml_hex(struct yaml_value value, void *ret_bytes, size_t length);

/* Writes `text` as a YAML (and JSON) text in double quotes, with a NUL, for files that programs
 * write. Returns false when it does not fit or is not UTF-8. */
bool yaml_quote(const char *text, char *ret_text, size_t capacity);

#endif
