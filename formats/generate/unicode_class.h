/* formats/generate/unicode_class.h tells letters, numbers and white space apart.
 *
 * The classes are those that the patterns of tokenizers mean: \p{L}, \p{N} and \s of Unicode 14.0.
 * Pure. */
#ifndef BOURSE_FORMATS_GENERATE_UNICODE_CLASS_H
#define BOURSE_FORMATS_GENERATE_UNICODE_CLASS_H

#include <stdint.h>

enum unicode_class { UNICODE_OTHER, UNICODE_LETTER, UNICODE_NUMBER, UNICODE_SPACE };

/* Returns the class of a character. What is above the last character of Unicode is OTHER. */
enum unicode_class unicode_class(uint32_t character);

#endif
