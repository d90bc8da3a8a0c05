/* formats/generate/word_split.h cuts a text into the words that a byte-level tokenizer looks at one
 * by one. The pattern is that of GPT-2:
 *
 *     's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
 *
 * The words together are the text again. A byte that is no UTF-8 counts as a character that is
 * neither letter, nor number, nor space. Pure. */
#ifndef BOURSE_FORMATS_GENERATE_WORD_SPLIT_H
#define BOURSE_FORMATS_GENERATE_WORD_SPLIT_H

#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of the first word of the text; 0 where the text is empty. */
size_t word_split_next(const uint8_t *text, size_t size);

/* Returns the bytes of the first character, at least 1, and the character; a byte that is no UTF-8
 * is 1 byte and the character UINT32_MAX. `size` is above 0. */
size_t word_split_character(const uint8_t *text, size_t size, uint32_t *ret_character);

#endif
