/* provider/command/shell_word.h writes names for command lines that people copy. */
#ifndef BOURSE_PROVIDER_COMMAND_SHELL_WORD_H
#define BOURSE_PROVIDER_COMMAND_SHELL_WORD_H

/* Returns the name of a device as a shell takes it. The next call overwrites the text. */
const char *shell_word(const char *name);

#endif
