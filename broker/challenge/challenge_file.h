/* broker/challenge/challenge_file.h reads and writes the file of what challenges found. */
#ifndef BOURSE_BROKER_CHALLENGE_CHALLENGE_FILE_H
#define BOURSE_BROKER_CHALLENGE_CHALLENGE_FILE_H

#include "broker/challenge/challenge_facts.h"

/* A file that is missing or damaged makes no facts. NULL: there is no file. */
void challenge_file_read(struct challenge_facts *facts, const char *path);
/* A file that cannot be written is a line in the log. */
void challenge_file_write(const struct challenge_facts *facts, const char *path);

#endif
