#include "planner/templates/diffusion.h"

#include "planner/templates/transformer.h"

#include <inttypes.h>

enum {
    LAYERS,
    WIDTH,
    HEADS,
    FEED_FORWARD,
    PATCH,
    MODULATION,
    TEXT,
    TEXT_LAYERS,
    TEXT_WIDTH,
    TEXT_HEADS,
    TEXT_HEAD_SIZE,
    TEXT_FEED_FORWARD,
    TEXT_VOCABULARY,
    IMAGE_HEIGHT,
    IMAGE_WIDTH,
    STEPS,
    GUIDANCE,
    DTYPE,
    BATCH,
};

enum {
    SHRINK = 8, /* image pixels for one latent pixel, each way */
    LATENT = 4, /* channels of the latent image */
    COLOURS = 3,
    TIME_WIDTH = 256,   /* sines and cosines of a step */
    MODULATIONS = 6,    /* shift, scale and gate of both halves of a layer */
    VAE_CHANNELS = 128, /* channels of the decoder at full size */
    VAE_BLOCKS = 3,     /* blocks at each size */
};
#define IMAGE_MOST (INT64_C(1) << 16)

static const char *const modulations[] = {"layer", "shared"};

static const struct template_parameter parameters[] = {
    [LAYERS] = TRANSFORMER_FIGURE("layers", "layers of the denoiser", 28),
    [WIDTH] =
        TRANSFORMER_FIGURE("width", "elements of its hidden state; a multiple of heads", 1152),
    [HEADS] = TRANSFORMER_FIGURE("heads", "its attention heads", 16),
    [FEED_FORWARD] = TRANSFORMER_FIGURE("feed-forward", "width of its feed-forward part", 4608),
    [PATCH] = MAKING_NUMBER("patch", "side of a patch, in elements of the latent image", 2, 1, 64),
    [MODULATION] = MAKING_CHOICE(
        "modulation", "each layer makes its shifts and scales of the step, or all share them", 1,
        modulations),
    [TEXT] = MAKING_NUMBER("text", "tokens of each text; 0: there is none", 120, 0,
                           TRANSFORMER_FIGURE_MOST),
    [TEXT_LAYERS] = TRANSFORMER_FIGURE("text-layers", "layers of the text encoder", 24),
    [TEXT_WIDTH] = TRANSFORMER_FIGURE("text-width", "elements of its hidden state", 4096),
    [TEXT_HEADS] = TRANSFORMER_FIGURE("text-heads", "its attention heads", 64),
    [TEXT_HEAD_SIZE] = TRANSFORMER_FIGURE("text-head-size", "elements of a head; even", 64),
    [TEXT_FEED_FORWARD] =
        TRANSFORMER_FIGURE("text-feed-forward", "width of its feed-forward part, gated", 10240),
    [TEXT_VOCABULARY] = TRANSFORMER_FIGURE("text-vocabulary", "tokens that there are", 32128),
    [IMAGE_HEIGHT] =
        MAKING_NUMBER("image-height", "pixels; a multiple of 8 x patch", 1024, SHRINK, IMAGE_MOST),
    [IMAGE_WIDTH] =
        MAKING_NUMBER("image-width", "pixels; a multiple of 8 x patch", 1024, SHRINK, IMAGE_MOST),
    [STEPS] = TRANSFORMER_FIGURE("steps", "of denoising", 20),
    [GUIDANCE] = MAKING_CHOICE("guidance", "each step is done with and without the text",
                               MAKING_YES, making_answers),
    [DTYPE] =
        MAKING_CHOICE("dtype", "type of weights and of what flows", MAKING_BF16, making_floats),
    [BATCH] = MAKING_BATCH("batch", "images at once", 1, TRANSFORMER_FIGURE_MOST),
    MAKING_END,
};

struct diffusion {
    struct making *making;
    const int64_t *values;
    enum dtype dtype;
    int64_t width;
    int64_t latents;   /* pixels of a latent image */
    int64_t patches;   /* patches of an image */
    int64_t goes;      /* images that the denoiser makes at once, twice with guidance */
    int64_t text_rows; /* tokens of all these images */
    uint128 parameters;
};

/* ---------------------------------------------------------------- text */

static struct transformer encoder_of(const struct diffusion *d)
{
    return (struct transformer){.layers = d->values[TEXT_LAYERS],
                                .width = d->values[TEXT_WIDTH],
                                .heads = d->values[TEXT_HEADS],
                                .kv = d->values[TEXT_HEADS],
                                .head_size = d->values[TEXT_HEAD_SIZE],
                                .feed_forward = d->values[TEXT_FEED_FORWARD],
                                .vocabulary = d->values[TEXT_VOCABULARY],
                                .is_gated = true,
                                .is_tied = true,
                                .dtype = d->dtype};
}

/* Encodes the texts of all images, and with guidance as many empty texts. */
static struct step *add_text(struct diffusion *d)
{
    struct making *making = d->making;
    const struct transformer encoder = encoder_of(d);
    const struct transformer_span span = {
        .batch = d->goes, .positions = d->values[TEXT], .context = d->values[TEXT]};
    struct operation text = transformer_tokenising(d->text_rows);
    struct step *tokenise = making_step(making, "tokenise");
    making_part(making, tokenise, &text, 1, 0, 0);
    making_outside(making, tokenise, (uint128)text.shape.tokenise.bytes, 0);
    struct step *encode = making_step(making, "encode text");
    transformer_encode(making, encode, &encoder, &span);
    making_own(making, encode, (uint32_t)making->steps->set_count, 0);
    making_edge(making, tokenise, encode, making_times((uint128)d->text_rows, TOKEN_BYTES));
    making_count(making, transformer_parameters(&encoder));
    return encode;
}

/* ---------------------------------------------------------------- denoiser */

/* Adds a product with weights, of which there are `copies`, in each denoising step. */
static void add_product(struct diffusion *d, struct step *step, int64_t rows, int64_t out,
                        int64_t in, int64_t copies)
{
    struct operation product = making_product(d->dtype, rows, out, in);
    making_part(d->making, step, &product, making_count_of(copies, d->values[STEPS]), copies, 0);
    d->parameters += making_times(making_times((uint128)out, in), copies);
}

static void add_each(struct diffusion *d, struct step *step, enum operation_kind kind,
                     int64_t elements_each, int64_t times)
{
    struct operation operation = making_each(kind, d->dtype, d->goes * d->patches, elements_each);
    making_part(d->making, step, &operation, making_count_of(times, d->values[STEPS]), 0, 0);
}

static void add_attention(struct diffusion *d, struct step *step, int64_t keys)
{
    struct operation attention = operation_of(OPERATION_ATTENTION, d->dtype);
    attention.shape.attention = (struct attention_shape){.batch = d->goes,
                                                         .heads = d->values[HEADS],
                                                         .query = d->patches,
                                                         .keys = keys,
                                                         .size = d->width / d->values[HEADS]};
    making_part(d->making, step, &attention, making_count_of(d->values[LAYERS], d->values[STEPS]),
                0, 0);
}

/* Norms have no weights of their own. Shift and scale, two operations for each element, follow from
 * the denoising step. So does the gate, one more before the sum. */
static void add_layers(struct diffusion *d, struct step *step)
{
    int64_t layers = d->values[LAYERS];
    int64_t rows = d->goes * d->patches;
    int64_t width = d->width;
    struct operation norm = making_rows(OPERATION_LAYERNORM, d->dtype, rows, width);
    making_part(d->making, step, &norm, making_count_of(2 * layers, d->values[STEPS]), 0, 0);
    add_each(d, step, OPERATION_ADD, width, (2 * 2 + 2 * 2) * layers);
    add_product(d, step, rows, 3 * width, width, layers);
    add_attention(d, step, d->patches);
    add_product(d, step, rows, width, width, layers);
    if (d->text_rows > 0) {
        add_product(d, step, rows, width, width, layers);
        add_product(d, step, d->text_rows, 2 * width, width, layers);
        add_attention(d, step, d->values[TEXT]);
        add_product(d, step, rows, width, width, layers);
        add_each(d, step, OPERATION_ADD, width, layers);
    }
    add_product(d, step, rows, d->values[FEED_FORWARD], width, layers);
    add_each(d, step, OPERATION_GELU, d->values[FEED_FORWARD], layers);
    add_product(d, step, rows, width, d->values[FEED_FORWARD], layers);
    add_product(d, step, d->goes, MODULATIONS * width, width,
                d->values[MODULATION] == 0 ? layers : 1);
}

static struct step *add_denoiser(struct diffusion *d)
{
    struct making *making = d->making;
    struct step *step = making_step(making, "denoise");
    int64_t rows = d->goes * d->patches;
    int64_t patch = d->values[PATCH] * d->values[PATCH] * LATENT;
    struct operation norm = making_rows(OPERATION_LAYERNORM, d->dtype, rows, d->width);
    add_product(d, step, rows, d->width, patch, 1);
    add_product(d, step, d->goes, d->width, TIME_WIDTH, 1);
    add_product(d, step, d->goes, d->width, d->width, 1);
    if (d->text_rows > 0) {
        add_product(d, step, d->text_rows, d->width, d->values[TEXT_WIDTH], 1);
        add_product(d, step, d->text_rows, d->width, d->width, 1);
    }
    add_layers(d, step);
    making_part(making, step, &norm, d->values[STEPS], 0, 0);
    /* The last norm makes its shift and scale; shared modulation uses a table of two rows
     * instead. */
    if (d->values[MODULATION] == 0) {
        add_product(d, step, d->goes, 2 * d->width, d->width, 1);
    }
    add_product(d, step, rows, 2 * patch, d->width, 1); /* noise and its variance */
    /* Guidance combines both results, then the denoising step follows: two sums of the latent
     * image. */
    add_each(d, step, OPERATION_ADD, patch, 2);
    step->passes = d->values[STEPS];
    making_own(making, step, (uint32_t)making->steps->set_count, 0);
    making_count(making, d->parameters);
    return step;
}

/* ---------------------------------------------------------------- decoder */

struct image {
    int64_t height, width;
};

static void add_conv(struct diffusion *d, struct step *step, const struct image *image,
                     int64_t channels, int64_t filters, int64_t kernel)
{
    struct operation conv = operation_of(OPERATION_CONV, d->dtype);
    conv.shape.conv = (struct conv_shape){.batch = d->values[BATCH],
                                          .height = image->height,
                                          .width = image->width,
                                          .channels = channels,
                                          .filters = filters,
                                          .kernel_height = kernel,
                                          .kernel_width = kernel,
                                          .stride = 1,
                                          .padding = kernel / 2,
                                          .dilation = 1,
                                          .groups = 1};
    making_part(d->making, step, &conv, 1, 1, 0);
    d->parameters += making_times((uint128)(channels * filters), kernel * kernel);
}

/* Adds a norm and silu. The norm costs as much as one along rows of channels. */
static void add_bend(struct diffusion *d, struct step *step, const struct image *image,
                     int64_t channels)
{
    int64_t rows = d->values[BATCH] * image->height * image->width;
    struct operation norm = making_rows(OPERATION_LAYERNORM, d->dtype, rows, channels);
    struct operation silu = making_each(OPERATION_SILU, d->dtype, rows, channels);
    making_part(d->making, step, &norm, 1, 1, 0);
    making_part(d->making, step, &silu, 1, 0, 0);
    d->parameters += making_times(2, channels);
}

/* Adds norm, silu and convolution twice, and a sum with the block's input. */
static void add_block(struct diffusion *d, struct step *step, const struct image *image,
                      int64_t channels, int64_t filters)
{
    int64_t rows = d->values[BATCH] * image->height * image->width;
    struct operation sum = making_each(OPERATION_ADD, d->dtype, rows, filters);
    add_bend(d, step, image, channels);
    add_conv(d, step, image, channels, filters, 3);
    add_bend(d, step, image, filters);
    add_conv(d, step, image, filters, filters, 3);
    if (channels != filters) {
        add_conv(d, step, image, channels, filters, 1);
    }
    making_part(d->making, step, &sum, 1, 0, 0);
}

static void add_middle(struct diffusion *d, struct step *step, const struct image *image,
                       int64_t channels)
{
    struct operation attention = operation_of(OPERATION_ATTENTION, d->dtype);
    attention.shape.attention = (struct attention_shape){.batch = d->values[BATCH],
                                                         .heads = 1,
                                                         .query = image->height * image->width,
                                                         .keys = image->height * image->width,
                                                         .size = channels};
    add_block(d, step, image, channels, channels);
    for (int i = 0; i < 4; i++) { /* queries, keys, values, output */
        add_conv(d, step, image, channels, channels, 1);
    }
    making_part(d->making, step, &attention, 1, 0, 0);
    add_block(d, step, image, channels, channels);
}

static struct step *add_decoder(struct diffusion *d)
{
    static const int64_t sizes[] = {4, 4, 2, 1}; /* channels, from the smallest image on */
    struct step *step = making_step(d->making, "decode");
    struct image image = {.height = d->values[IMAGE_HEIGHT] / SHRINK,
                          .width = d->values[IMAGE_WIDTH] / SHRINK};
    int64_t channels = sizes[0] * VAE_CHANNELS;
    d->parameters = 0;
    add_conv(d, step, &image, LATENT, LATENT, 1);
    add_conv(d, step, &image, LATENT, channels, 3);
    add_middle(d, step, &image, channels);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        int64_t filters = sizes[i] * VAE_CHANNELS;
        for (int block = 0; block < VAE_BLOCKS; block++) {
            add_block(d, step, &image, channels, filters);
            channels = filters;
        }
        if (i + 1 < sizeof sizes / sizeof sizes[0]) {
            image.height *= 2;
            image.width *= 2;
            add_conv(d, step, &image, channels, channels, 3);
        }
    }
    add_bend(d, step, &image, channels);
    add_conv(d, step, &image, channels, COLOURS, 3);
    making_own(d->making, step, (uint32_t)d->making->steps->set_count, 0);
    making_count(d->making, d->parameters);
    return step;
}

/* ---------------------------------------------------------------- the graph */

static void make(struct diffusion *d)
{
    struct making *making = d->making;
    const int64_t *values = d->values;
    int64_t pixels = values[IMAGE_HEIGHT] * values[IMAGE_WIDTH];
    struct step *text = values[TEXT] > 0 ? add_text(d) : NULL;
    struct step *denoise = add_denoiser(d);
    struct step *decode = add_decoder(d);
    struct step *convert = making_step(making, "convert");
    /* The conversion to bytes costs as much as normalisation from bytes. */
    struct operation bytes = operation_of(OPERATION_NORMALISE, d->dtype);
    bytes.shape.image = (struct image_shape){.batch = values[BATCH],
                                             .height = values[IMAGE_HEIGHT],
                                             .width = values[IMAGE_WIDTH],
                                             .channels = COLOURS};
    making_part(making, convert, &bytes, 1, 0, 0);
    making_outside(making, convert, 0, making_times((uint128)(pixels * COLOURS), values[BATCH]));
    if (text != NULL) {
        making_edge(
            making, text, denoise,
            making_bytes(making_times((uint128)d->text_rows, values[TEXT_WIDTH]), d->dtype));
    }
    making_edge(
        making, denoise, decode,
        making_bytes(making_times((uint128)(d->latents * LATENT), values[BATCH]), d->dtype));
    making_edge(making, decode, convert,
                making_bytes(making_times((uint128)(pixels * COLOURS), values[BATCH]), d->dtype));
}

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    struct making making;
    int64_t side = SHRINK * values[PATCH];
    int64_t goes = values[BATCH] * (values[GUIDANCE] == MAKING_YES && values[TEXT] > 0 ? 2 : 1);
    int64_t latents = values[IMAGE_HEIGHT] / SHRINK * (values[IMAGE_WIDTH] / SHRINK);
    struct diffusion d = {.making = &making,
                          .values = values,
                          .dtype = making_float(values[DTYPE]),
                          .width = values[WIDTH],
                          .latents = latents,
                          .patches = latents / (values[PATCH] * values[PATCH]),
                          .goes = goes,
                          .text_rows = goes * values[TEXT]};
    if (making_begin(&making, ret_problem)) {
        if (values[WIDTH] % values[HEADS] != 0) {
            making_refuse(&making, STEPS_CONFLICT,
                          "width, %" PRId64 ", must be a multiple of heads, %" PRId64,
                          values[WIDTH], values[HEADS]);
        }
        if (values[IMAGE_HEIGHT] % side != 0 || values[IMAGE_WIDTH] % side != 0) {
            making_refuse(&making, STEPS_CONFLICT,
                          "image-height, %" PRId64 ", and image-width, %" PRId64
                          ", must be multiples of 8 x patch, %" PRId64,
                          values[IMAGE_HEIGHT], values[IMAGE_WIDTH], side);
        }
        if (making.status == STEPS_OK) {
            make(&d);
        }
    }
    return making_end(&making, ret_steps);
}

/* ---------------------------------------------------------------- published models */

static const struct template_preset presets[] = {
    {"pixart-alpha", (const struct template_setting[]){{"layers", 28},
                                                       {"width", 1152},
                                                       {"heads", 16},
                                                       {"feed-forward", 4608},
                                                       {"patch", 2},
                                                       {"modulation", 1},
                                                       {"text", 120},
                                                       {"text-layers", 24},
                                                       {"text-width", 4096},
                                                       {"text-heads", 64},
                                                       {"text-head-size", 64},
                                                       {"text-feed-forward", 10240},
                                                       {"text-vocabulary", 32128},
                                                       {NULL, 0}}},
    {"dit-xl-2", (const struct template_setting[]){{"layers", 28},
                                                   {"width", 1152},
                                                   {"heads", 16},
                                                   {"feed-forward", 4608},
                                                   {"patch", 2},
                                                   {"modulation", 0},
                                                   {"text", 0},
                                                   {"image-height", 256},
                                                   {"image-width", 256},
                                                   {NULL, 0}}},
    {NULL, NULL},
};

const struct template diffusion_template = {
    .name = "diffusion",
    .meaning = "images from noise, by a transformer on patches",
    .parameters = parameters,
    .presets = presets,
    .make = create,
};
