/* The program train-decoder trains a small language model and writes it as people's exports have
 * it: decoder.onnx, with a past, and tokenizer.json.
 *
 *     train-decoder FOLDER [STEPS [SEED]]
 *
 * The status is 0 when the text held out is foretold better than at first.
 *
 * The model of tests/golden/decoder comes from here, after 800 steps. The texts are licences that
 * Debian has in /usr/share/common-licenses. The one held out is no text of the training. AdamW and
 * a learning rate along a cosine; everything is drawn from the seed. */
#include "tests/programs/decoder/export.h"
#include "tests/programs/decoder/network.h"
#include "tests/programs/decoder/vocabulary.h"

#include "base/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS = 8,
    STEPS = 800,
    WARM_STEPS = 50,
    TEXT_MOST = 1 << 20,
    PATH_SIZE = 4096,
    NO_TEXTS = 77 /* a test is skipped */
};

#define TEXTS "/usr/share/common-licenses/"
#define HELD_OUT "Apache-2.0"
#define RATE 3e-3
#define DECAY 0.1

static const char *const names[] = {"GPL-3",    "GPL-2",   "GPL-1",   "LGPL-3",   "LGPL-2.1",
                                    "LGPL-2",   "MPL-2.0", "MPL-1.1", "GFDL-1.3", "GFDL-1.2",
                                    "Artistic", "CC0-1.0", "BSD"};
enum { NAMES = sizeof names / sizeof names[0] };

struct corpus {
    uint16_t *train, *held;
    size_t train_count, held_count;
};

static size_t read_text(const char *name, uint8_t *to, size_t capacity)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, TEXTS "%s", name);
    FILE *file = fopen(path, "rb");
    const size_t size = file != NULL ? fread(to, 1, capacity, file) : 0;
    if (size == 0) {
        (void)fprintf(stderr, "%s cannot be read\n", path);
        exit(NO_TEXTS);
    }
    (void)fclose(file);
    return size;
}

/* Each text ends with the special token. */
static struct corpus read_corpus(struct vocabulary *vocabulary)
{
    static uint8_t text[TEXT_MOST];
    size_t ends[NAMES];
    size_t size = 0;
    struct corpus corpus = {.train = calloc(TEXT_MOST, sizeof(uint16_t))};
    for (size_t i = 0; i < NAMES; i++) {
        size += read_text(names[i], text + size, sizeof text - size);
        ends[i] = size;
    }
    size_t ignored = 0;
    free(vocabulary_learn(vocabulary, text, size, &ignored));
    for (size_t i = 0; corpus.train != NULL && i < NAMES; i++) {
        const size_t first = i > 0 ? ends[i - 1] : 0;
        size_t count = 0;
        uint16_t *tokens = vocabulary_encode(vocabulary, text + first, ends[i] - first, &count);
        memcpy(corpus.train + corpus.train_count, tokens, count * sizeof *tokens);
        corpus.train_count += count;
        corpus.train[corpus.train_count++] = VOCABULARY_END;
        free(tokens);
    }
    size = read_text(HELD_OUT, text, sizeof text);
    corpus.held = vocabulary_encode(vocabulary, text, size, &corpus.held_count);
    return corpus;
}

/* The loss of the held text, in nats a token, when each token is guessed by how often it is in the
 * training. */
static double unigram_loss(const struct corpus *corpus)
{
    double counts[VOCABULARY_TOKENS];
    double loss = 0;
    for (size_t i = 0; i < VOCABULARY_TOKENS; i++) {
        counts[i] = 1;
    }
    for (size_t i = 0; i < corpus->train_count; i++) {
        counts[corpus->train[i]]++;
    }
    for (size_t i = 0; i < corpus->held_count; i++) {
        loss -= log(counts[corpus->held[i]] / (double)(corpus->train_count + VOCABULARY_TOKENS));
    }
    return loss / (double)corpus->held_count;
}

static double held_loss(const struct network *network, const struct corpus *corpus)
{
    double loss = 0;
    size_t windows = 0;
    for (size_t i = 0; i + NETWORK_CONTEXT < corpus->held_count; i += NETWORK_CONTEXT) {
        loss += network_loss(network, corpus->held + i, NETWORK_CONTEXT, NULL, 0);
        windows++;
    }
    return loss / (double)windows;
}

/* AdamW. Vectors are decayed like matrices, which does no harm here. */
static void update(float *weights, const float *gradient, float *mean, float *square, long step,
                   double rate)
{
    const double mean_part = 1 - pow(0.9, (double)step + 1);
    const double square_part = 1 - pow(0.98, (double)step + 1);
    double norm = 0;
    for (size_t i = 0; i < NETWORK_WEIGHTS; i++) {
        norm += (double)gradient[i] * (double)gradient[i];
    }
    const float clip = norm > 1 ? (float)(1 / sqrt(norm)) : 1;
    for (size_t i = 0; i < NETWORK_WEIGHTS; i++) {
        const float slope = gradient[i] * clip;
        mean[i] = 0.9F * mean[i] + 0.1F * slope;
        square[i] = 0.98F * square[i] + 0.02F * slope * slope;
        const double by =
            (double)mean[i] / mean_part / (sqrt((double)square[i] / square_part) + 1e-8);
        weights[i] -= (float)(rate * (by + DECAY * (double)weights[i] * 0.1));
    }
}

static void train(struct network *network, const struct corpus *corpus, long steps, uint64_t seed)
{
    static struct network gradient;
    static float mean[NETWORK_WEIGHTS];
    static float square[NETWORK_WEIGHTS];
    struct random random = random_seeded(seed + 1);
    double shown = 0;
    for (long step = 0; step < steps; step++) {
        const double warm = step < WARM_STEPS ? (double)(step + 1) / WARM_STEPS : 1;
        const double turn = 0.5 * (1 + cos(3.14159265 * (double)step / (double)steps));
        memset(&gradient, 0, sizeof gradient);
        for (int row = 0; row < ROWS; row++) {
            const size_t first = random_below(&random, corpus->train_count - NETWORK_CONTEXT - 1);
            shown += network_loss(network, corpus->train + first, NETWORK_CONTEXT, &gradient,
                                  1.0F / ROWS) /
                     ROWS;
        }
        update((float *)network, (const float *)&gradient, mean, square, step,
               RATE * warm * (0.05 + 0.95 * turn));
        if (step % 100 == 99) {
            (void)printf("step %ld: loss %.3f, held out %.3f\n", step + 1, shown / 100,
                         held_loss(network, corpus));
            (void)fflush(stdout);
            shown = 0;
        }
    }
}

static FILE *open_in(const char *folder, const char *name)
{
    char path[PATH_SIZE];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    return file;
}

static bool write_all(const char *folder, const struct network *network,
                      const struct vocabulary *vocabulary)
{
    struct onnx_bytes model = export_network(network);
    FILE *file = open_in(folder, "decoder.onnx");
    bool good = fwrite(model.at, 1, model.size, file) == model.size;
    good = fclose(file) == 0 && good;
    onnx_bytes_fini(&model);
    file = open_in(folder, "tokenizer.json");
    good = vocabulary_write(vocabulary, file) && good;
    good = fclose(file) == 0 && good;
    file = open_in(folder, "config.json");
    (void)fprintf(file, "{\"n_positions\": %d, \"eos_token_id\": %d, \"vocab_size\": %d}\n",
                  NETWORK_CONTEXT, VOCABULARY_END, NETWORK_WORDS);
    return fclose(file) == 0 && good;
}

int main(int argc, char **argv)
{
    static struct network network;
    static struct vocabulary vocabulary;
    if (argc < 2 || argc > 4) {
        (void)fprintf(stderr, "train-decoder FOLDER [STEPS [SEED]]\n");
        return 2;
    }
    const long steps = argc > 2 ? strtol(argv[2], NULL, 10) : STEPS;
    const uint64_t seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    struct corpus corpus = read_corpus(&vocabulary);
    network_begin(&network, seed);
    const double first = held_loss(&network, &corpus);
    (void)printf("%d weights, %zu tokens, held out %zu: unigrams %.3f, at first %.3f\n",
                 (int)NETWORK_WEIGHTS, corpus.train_count, corpus.held_count, unigram_loss(&corpus),
                 first);
    (void)fflush(stdout);
    train(&network, &corpus, steps, seed);
    const bool good = write_all(argv[1], &network, &vocabulary);
    const double last = held_loss(&network, &corpus);
    (void)printf("held out: %.3f\n", last);
    free(corpus.train);
    free(corpus.held);
    return good && last < first ? 0 : 1;
}
