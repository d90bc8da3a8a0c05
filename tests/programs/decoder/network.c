#include "tests/programs/decoder/network.h"

#include "base/random.h"

#include <math.h>
#include <string.h>

enum { W = NETWORK_WIDTH, T = NETWORK_CONTEXT, H = NETWORK_HIDDEN, V = NETWORK_WORDS };

#define NORM_EPSILON 1e-5F
/* A matrix as one row of numbers. A pointer to its first row would end with that row. */
#define FLAT(matrix) ((float *)(matrix))
#define FLAT_READ(matrix) ((const float *)(matrix))

/* Values of one layer, which the way back needs again. */
struct layer_values {
    float x[T][W], normed1[T][W], inverse1[T], in1[T][W];
    float qkv[T][3 * W], weights[NETWORK_HEADS][T][T], mixed[T][W];
    float x2[T][W], normed2[T][W], inverse2[T], in2[T][W];
    float up[T][H], active[T][H];
};

struct values {
    struct layer_values layers[NETWORK_LAYERS];
    float x[T][W], normed[T][W], inverse[T], in[T][W];
    float chances[T][V];
};

/* ---------------------------------------------------------------- beginnings */

static float draw(struct random *random, float deviation)
{
    double sum = 0;
    for (int i = 0; i < 12; i++) {
        sum += (double)(random_u64(random) >> 11) / 9007199254740992.0;
    }
    return (float)(sum - 6) * deviation;
}

static void fill(struct random *random, float *at, size_t count, float deviation)
{
    for (size_t i = 0; i < count; i++) {
        at[i] = draw(random, deviation);
    }
}

static void fill_ones(float *at)
{
    for (int i = 0; i < W; i++) {
        at[i] = 1;
    }
}

void network_begin(struct network *network, uint64_t seed)
{
    struct random random = random_seeded(seed);
    memset(network, 0, sizeof *network);
    fill(&random, FLAT(network->words), (size_t)V * W, 0.05F);
    fill(&random, FLAT(network->places), (size_t)T * W, 0.02F);
    fill_ones(network->norm);
    for (int i = 0; i < NETWORK_LAYERS; i++) {
        struct network_layer *layer = &network->layers[i];
        fill_ones(layer->norm1);
        fill_ones(layer->norm2);
        fill(&random, FLAT(layer->qkv), (size_t)W * 3 * W, 0.08F);
        fill(&random, FLAT(layer->joined), (size_t)W * W, 0.04F);
        fill(&random, FLAT(layer->up), (size_t)W * H, 0.08F);
        fill(&random, FLAT(layer->down), (size_t)H * W, 0.03F);
    }
}

/* ---------------------------------------------------------------- products */

/* out[rows][outputs] = in[rows][inputs] * matrix + bias. */
static void product(const float *in, const float *matrix, const float *bias, float *out,
                    size_t rows, size_t inputs, size_t outputs)
{
    for (size_t r = 0; r < rows; r++) {
        float *to = out + r * outputs;
        for (size_t o = 0; o < outputs; o++) {
            to[o] = bias != NULL ? bias[o] : 0;
        }
        for (size_t i = 0; i < inputs; i++) {
            const float factor = in[r * inputs + i];
            const float *row = matrix + i * outputs;
            for (size_t o = 0; o < outputs; o++) {
                to[o] += factor * row[o];
            }
        }
    }
}

/* Adds the gradients of a product to those of its input, its matrix and its bias. */
static void product_back(const float *in, const float *matrix, const float *out_gradient,
                         float *in_gradient, float *matrix_gradient, float *bias_gradient,
                         size_t rows, size_t inputs, size_t outputs)
{
    for (size_t r = 0; r < rows; r++) {
        const float *from = out_gradient + r * outputs;
        for (size_t i = 0; i < inputs; i++) {
            const float *row = matrix + i * outputs;
            float *row_gradient = matrix_gradient + i * outputs;
            const float factor = in[r * inputs + i];
            float sum = 0;
            for (size_t o = 0; o < outputs; o++) {
                sum += from[o] * row[o];
                row_gradient[o] += factor * from[o];
            }
            in_gradient[r * inputs + i] += sum;
        }
        for (size_t o = 0; bias_gradient != NULL && o < outputs; o++) {
            bias_gradient[o] += from[o];
        }
    }
}

/* ---------------------------------------------------------------- norms */

static void norm(const float x[][W], const float *scale, const float *shift, float normed[][W],
                 float *inverse, float out[][W], size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        float mean = 0;
        float square = 0;
        for (int i = 0; i < W; i++) {
            mean += x[r][i] / W;
        }
        for (int i = 0; i < W; i++) {
            square += (x[r][i] - mean) * (x[r][i] - mean) / W;
        }
        inverse[r] = 1 / sqrtf(square + NORM_EPSILON);
        for (int i = 0; i < W; i++) {
            normed[r][i] = (x[r][i] - mean) * inverse[r];
            out[r][i] = normed[r][i] * scale[i] + shift[i];
        }
    }
}

/* Adds to the gradient of x. */
static void norm_back(const float normed[][W], const float *inverse, const float *scale,
                      const float out_gradient[][W], float x_gradient[][W], float *scale_gradient,
                      float *shift_gradient, size_t rows)
{
    for (size_t r = 0; r < rows; r++) {
        float mean = 0;
        float along = 0;
        for (int i = 0; i < W; i++) {
            const float part = out_gradient[r][i] * scale[i];
            mean += part / W;
            along += part * normed[r][i] / W;
            scale_gradient[i] += out_gradient[r][i] * normed[r][i];
            shift_gradient[i] += out_gradient[r][i];
        }
        for (int i = 0; i < W; i++) {
            x_gradient[r][i] +=
                (out_gradient[r][i] * scale[i] - mean - normed[r][i] * along) * inverse[r];
        }
    }
}

/* ---------------------------------------------------------------- attention */

static void softmax(float *row, size_t count)
{
    float most = row[0];
    float sum = 0;
    for (size_t i = 1; i < count; i++) {
        most = row[i] > most ? row[i] : most;
    }
    for (size_t i = 0; i < count; i++) {
        row[i] = expf(row[i] - most);
        sum += row[i];
    }
    for (size_t i = 0; i < count; i++) {
        row[i] /= sum;
    }
}

static float dot(const float *a, const float *b)
{
    float sum = 0;
    for (int i = 0; i < NETWORK_HEAD; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

static void attend(struct layer_values *values, size_t count)
{
    const float scale = 1 / sqrtf((float)NETWORK_HEAD);
    memset(values->mixed, 0, sizeof values->mixed);
    for (size_t head = 0; head < NETWORK_HEADS; head++) {
        const size_t at = head * NETWORK_HEAD;
        for (size_t t = 0; t < count; t++) {
            float *row = values->weights[head][t];
            for (size_t s = 0; s <= t; s++) {
                row[s] = scale * dot(values->qkv[t] + at, values->qkv[s] + W + at);
            }
            softmax(row, t + 1);
            for (size_t s = 0; s <= t; s++) {
                for (size_t i = 0; i < NETWORK_HEAD; i++) {
                    values->mixed[t][at + i] += row[s] * values->qkv[s][2 * W + at + i];
                }
            }
        }
    }
}

static void attend_back(const struct layer_values *values, const float mixed[][W],
                        float qkv[][3 * W], size_t count)
{
    const float scale = 1 / sqrtf((float)NETWORK_HEAD);
    for (size_t head = 0; head < NETWORK_HEADS; head++) {
        const size_t at = head * NETWORK_HEAD;
        for (size_t t = 0; t < count; t++) {
            const float *row = values->weights[head][t];
            float back[T];
            float sum = 0;
            for (size_t s = 0; s <= t; s++) {
                back[s] = dot(mixed[t] + at, values->qkv[s] + 2 * W + at);
                sum += back[s] * row[s];
            }
            for (size_t s = 0; s <= t; s++) {
                const float score = row[s] * (back[s] - sum) * scale;
                for (size_t i = 0; i < NETWORK_HEAD; i++) {
                    qkv[s][2 * W + at + i] += row[s] * mixed[t][at + i];
                    qkv[t][at + i] += score * values->qkv[s][W + at + i];
                    qkv[s][W + at + i] += score * values->qkv[t][at + i];
                }
            }
        }
    }
}

/* ---------------------------------------------------------------- layers */

static void layer_run(const struct network_layer *layer, struct layer_values *values,
                      float out[][W], size_t count)
{
    norm(values->x, layer->norm1, layer->shift1, values->normed1, values->inverse1, values->in1,
         count);
    product(FLAT_READ(values->in1), FLAT_READ(layer->qkv), layer->qkv_bias, FLAT(values->qkv),
            count, W, (size_t)3 * W);
    attend(values, count);
    product(FLAT_READ(values->mixed), FLAT_READ(layer->joined), layer->joined_bias,
            FLAT(values->x2), count, W, W);
    for (size_t i = 0; i < count * W; i++) {
        FLAT(values->x2)[i] += FLAT_READ(values->x)[i];
    }
    norm(values->x2, layer->norm2, layer->shift2, values->normed2, values->inverse2, values->in2,
         count);
    product(FLAT_READ(values->in2), FLAT_READ(layer->up), layer->up_bias, FLAT(values->up), count,
            W, H);
    for (size_t i = 0; i < count * H; i++) {
        const float x = FLAT_READ(values->up)[i];
        FLAT(values->active)[i] = 0.5F * x * (1 + erff(x * 0.70710678F));
    }
    product(FLAT_READ(values->active), FLAT_READ(layer->down), layer->down_bias, FLAT(out), count,
            H, W);
    for (size_t i = 0; i < count * W; i++) {
        FLAT(out)[i] += FLAT_READ(values->x2)[i];
    }
}

/* `x` holds the gradient of the layer's output, and then that of its input. */
static void layer_back(const struct network_layer *layer, const struct layer_values *values,
                       float x[][W], struct network_layer *gradient, size_t count)
{
    static float hidden[T][H];
    static float wide[T][3 * W];
    static float narrow[T][W];
    memset(hidden, 0, sizeof hidden);
    memset(wide, 0, sizeof wide);
    memset(narrow, 0, sizeof narrow);
    product_back(FLAT_READ(values->active), FLAT_READ(layer->down), FLAT(x), FLAT(hidden),
                 FLAT(gradient->down), gradient->down_bias, count, H, W);
    for (size_t i = 0; i < count * H; i++) {
        const float u = FLAT_READ(values->up)[i];
        const float slope = 0.5F * (1 + erff(u * 0.70710678F)) + u * 0.39894228F * expf(-u * u / 2);
        FLAT(hidden)[i] *= slope;
    }
    product_back(FLAT_READ(values->in2), FLAT_READ(layer->up), FLAT(hidden), FLAT(narrow),
                 FLAT(gradient->up), gradient->up_bias, count, W, H);
    norm_back(values->normed2, values->inverse2, layer->norm2, narrow, x, gradient->norm2,
              gradient->shift2, count);
    memset(narrow, 0, sizeof narrow);
    product_back(FLAT_READ(values->mixed), FLAT_READ(layer->joined), FLAT(x), FLAT(narrow),
                 FLAT(gradient->joined), gradient->joined_bias, count, W, W);
    attend_back(values, narrow, wide, count);
    memset(narrow, 0, sizeof narrow);
    product_back(FLAT_READ(values->in1), FLAT_READ(layer->qkv), FLAT(wide), FLAT(narrow),
                 FLAT(gradient->qkv), gradient->qkv_bias, count, W, (size_t)3 * W);
    norm_back(values->normed1, values->inverse1, layer->norm1, narrow, x, gradient->norm1,
              gradient->shift1, count);
}

/* ---------------------------------------------------------------- the whole */

static double run(const struct network *network, struct values *values, const uint16_t *tokens,
                  size_t count)
{
    double loss = 0;
    for (size_t t = 0; t < count; t++) {
        for (int i = 0; i < W; i++) {
            values->layers[0].x[t][i] = network->words[tokens[t]][i] + network->places[t][i];
        }
    }
    for (int i = 0; i < NETWORK_LAYERS; i++) {
        layer_run(&network->layers[i], &values->layers[i],
                  i + 1 < NETWORK_LAYERS ? values->layers[i + 1].x : values->x, count);
    }
    norm(values->x, network->norm, network->shift, values->normed, values->inverse, values->in,
         count);
    for (size_t t = 0; t < count; t++) {
        float *chances = values->chances[t];
        for (size_t v = 0; v < V; v++) {
            float sum = 0;
            for (int i = 0; i < W; i++) {
                sum += values->in[t][i] * network->words[v][i];
            }
            chances[v] = sum;
        }
        softmax(chances, V);
        loss -= log((double)chances[tokens[t + 1]] + 1e-30);
    }
    return loss / (double)count;
}

static void run_back(const struct network *network, struct values *values, const uint16_t *tokens,
                     size_t count, struct network *gradient, float scale)
{
    static float x[T][W];
    static float in[T][W];
    memset(x, 0, sizeof x);
    memset(in, 0, sizeof in);
    for (size_t t = 0; t < count; t++) {
        values->chances[t][tokens[t + 1]] -= 1;
        for (size_t v = 0; v < V; v++) {
            const float back = values->chances[t][v] * scale / (float)count;
            for (int i = 0; i < W; i++) {
                in[t][i] += back * network->words[v][i];
                gradient->words[v][i] += back * values->in[t][i];
            }
        }
    }
    norm_back(values->normed, values->inverse, network->norm, in, x, gradient->norm,
              gradient->shift, count);
    for (int i = NETWORK_LAYERS; i-- > 0;) {
        layer_back(&network->layers[i], &values->layers[i], x, &gradient->layers[i], count);
    }
    for (size_t t = 0; t < count; t++) {
        for (int i = 0; i < W; i++) {
            gradient->words[tokens[t]][i] += x[t][i];
            gradient->places[t][i] += x[t][i];
        }
    }
}

double network_loss(const struct network *network, const uint16_t *tokens, size_t count,
                    struct network *gradient, float scale)
{
    static struct values values;
    const double loss = run(network, &values, tokens, count);
    if (gradient != NULL) {
        run_back(network, &values, tokens, count, gradient, scale);
    }
    return loss;
}
