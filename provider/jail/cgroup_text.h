/* provider/jail/cgroup_text.h reads the texts of the kernel's files about control groups. */
#ifndef BOURSE_PROVIDER_JAIL_CGROUP_TEXT_H
#define BOURSE_PROVIDER_JAIL_CGROUP_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns true when `word` is one of the words of `text`, separated by spaces, commas or
 * newlines. */
bool cgroup_text_has(const char *text, const char *word);

/* Returns the number after `key ` at the start of a line, or 0. */
uint64_t cgroup_text_value(const char *text, const char *key);

/* Finds the path of a process in the hierarchy of `controller`; "" names version 2. `table` is its
 * /proc/PID/cgroup. The path of the top group is "". Returns false when the table names no such
 * hierarchy, or when the path does not fit into `size` bytes. */
bool cgroup_text_path(const char *table, const char *controller, char *ret_path, size_t size);

#endif
