/* The key `train` of a job file is read here, beside `model` and `inputs`, and made into the words
 * of train_words.h. The job's `run` holds these words. The consumer reads the model and makes the
 * job's tasks (consumer/train/train_job.h). */
#include "formats/job_internal.h"
#include "formats/job_keys.h"
#include "formats/limits.h"
#include "formats/train/train_words.h"

#include <stdint.h>

bool job_train_read(struct yaml_value root, struct job_file *job)
{
    static const struct {
        const char *key, *option;
    } options[] = {{"labels", "-y"}, {"steps", "-n"},  {"batch", "-b"},    {"parts", "-k"},
                   {"every", "-c"},  {"from", "-f"},   {"loss", "-l"},     {"optimizer", "-a"},
                   {"rate", "-r"},   {"decay", "-d"},  {"momentum", "-m"}, {"beta1", "-1"},
                   {"beta2", "-2"},  {"epsilon", "-x"}};
    enum { OPTIONS = sizeof options / sizeof options[0] };
    static const char *const others[] = {"outputs", "split", "parts", "stages", "generate"};
    const char *keys[OPTIONS];
    struct yaml_value map = yaml_key(root, "train");
    for (size_t i = 0; i < OPTIONS; i++) {
        keys[i] = options[i].key;
    }
    yaml_known_keys(map, keys, OPTIONS);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        if (yaml_present(yaml_key(root, others[i]))) {
            yaml_refuse(yaml_key(root, others[i]),
                        "does not go with train: its keys say what is cut and what comes back");
            return false;
        }
    }
    if (!yaml_present(yaml_key(map, "labels"))) {
        yaml_refuse(map, "has no labels; name their file, as in labels: y.npy");
        return false;
    }
    for (size_t i = 0; i < OPTIONS; i++) { /* the job's check reads the values */
        struct yaml_value value = yaml_key(map, options[i].key);
        const char *text = yaml_text(value, FORMAT_PATH_BYTES, NULL);
        if (yaml_present(value) &&
            (text == NULL || ((!job_strings_add(&job->run, TRAIN_WORDS_MOST, options[i].option) ||
                               !job_strings_add(&job->run, TRAIN_WORDS_MOST, text)) &&
                              !job_read_no_memory(value)))) {
            return false;
        }
    }
    return true;
}

bool job_train_check(const struct job_file *job, struct job_fault *fault)
{
    struct train_words words;
    fault->field = "train";
    fault->item = SIZE_MAX;
    if (job->source != TEMPLATE_ONE || job->stages > 0) {
        problem_set(&fault->what, "training has no each, array, lines, split and stages");
        return false;
    }
    return train_words_read((const char *const *)job->run.items, job->run.count, &words,
                            &fault->what);
}
