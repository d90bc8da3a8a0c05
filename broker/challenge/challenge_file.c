#include "broker/challenge/challenge_file.h"

#include "runtime/files.h"
#include "runtime/log.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void challenge_file_read(struct challenge_facts *facts, const char *path)
{
    struct problem problem = {""};
    uint8_t *text = NULL;
    size_t length = 0;
    if (path == NULL || access(path, F_OK) != 0) {
        return;
    }
    if (!file_read(path, CHALLENGE_FACTS_BYTES, &text, &length, &problem)) {
        log_warning("%s; devices are challenged anew", problem.text);
    } else if (!challenge_facts_read(facts, (const char *)text)) { /* a NUL follows the text */
        log_warning("%s is damaged; devices are challenged anew", path);
    }
    free(text);
}

void challenge_file_write(const struct challenge_facts *facts, const char *path)
{
    struct problem problem = {""};
    char *text = path == NULL ? NULL : challenge_facts_text(facts);
    if (text != NULL && !file_write(path, text, strlen(text), 0600, &problem)) {
        log_warning("what challenges found is not kept: %s", problem.text);
    }
    free(text);
}
