/* formats/plugin/plugin_word.h says which words name a plug-in's device and its operations. */
#ifndef BOURSE_FORMATS_PLUGIN_PLUGIN_WORD_H
#define BOURSE_FORMATS_PLUGIN_PLUGIN_WORD_H

#include <stdbool.h>

enum { PLUGIN_WORD_SIZE = 33 }; /* kind, vendor, model or operation, with its NUL */

/* Returns true for 1 to 32 of a-z, 0-9 and dash, of which the first is a letter or digit. */
bool plugin_word_fits(const char *text);
/* Returns true for the name of an operation, which may have dots and underscores, too. */
bool plugin_word_is_operation(const char *text);

#endif
