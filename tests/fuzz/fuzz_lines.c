/* The file of a job's `lines:`: subtasks, or a line that says what is wrong. */
#include "consumer/job/job_build.h"

#include "tests/fuzz/as_file.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char text[] = "{lines: lines.txt, run: [cat, \"{line}\"]}";
    struct problem problem = {.text = ""};
    struct bourse_error error = {.text = ""};
    struct bourse_job *job = NULL;
    struct job_file *file = job_file_parse(text, strlen(text), "job.yaml", &problem);
    assert(file != NULL);
    (void)as_file("lines.txt", data, size);
    if (!job_build(file, as_file_folder(), NULL, &job, &error)) {
        assert(error.text[0] != '\0');
        return 0;
    }
    bourse_job_destroy(&job);
    return 0;
}
