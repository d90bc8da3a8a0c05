#include "planner/templates/video.h"

#include "planner/templates/making.h"

#include <inttypes.h>

enum {
    BLOCKS_1,
    BLOCKS_2,
    BLOCKS_3,
    BLOCKS_4,
    BOTTLENECK,
    CHANNELS,
    TASK,
    CLASSES,
    ANCHORS,
    BOXES,
    INPUT_HEIGHT,
    INPUT_WIDTH,
    HEIGHT,
    WIDTH,
    FRAME_RATE,
    BIT_RATE,
    CANDIDATES,
    DTYPE,
    STREAMS,
};

enum { DETECT, SEGMENT };
static const char *const tasks[] = {"detect", "segment"};

enum {
    COLOURS = 3,
    SHRINK = 32, /* input pixels for one pixel of the network's last image, each way */
    WIDENS = 4,  /* channels out of a bottleneck for each within */
    HEAD_CHANNELS = 256,
    BOX_FIGURES = 4,  /* coordinates of a box */
    APPEARANCE = 128, /* elements that describe the content of a box */
    BOX_BYTES = 24,   /* place, class and number of a box */
    PIXEL_BYTES = 4,  /* bytes of a pixel's class */
    POOL = 3,
};
#define SIDE_MOST (INT64_C(1) << 16)
#define COUNT_MOST (INT64_C(1) << 20)

static const struct template_parameter parameters[] = {
    [BLOCKS_1] = MAKING_NUMBER("blocks-1", "blocks of the network at a quarter of its input's size",
                               3, 1, 256),
    [BLOCKS_2] = MAKING_NUMBER("blocks-2", "at an eighth", 4, 1, 256),
    [BLOCKS_3] = MAKING_NUMBER("blocks-3", "at a sixteenth", 6, 1, 256),
    [BLOCKS_4] = MAKING_NUMBER("blocks-4", "at a thirty-second", 3, 1, 256),
    [BOTTLENECK] = MAKING_CHOICE("bottleneck", "blocks of three convolutions, not two", MAKING_YES,
                                 making_answers),
    [CHANNELS] = MAKING_NUMBER("channels", "of the first blocks", 64, 1, 65536),
    [TASK] =
        MAKING_CHOICE("task", "boxes, which are tracked, or a class of each pixel", DETECT, tasks),
    [CLASSES] = MAKING_NUMBER("classes", "that are told apart", 80, 1, COUNT_MOST),
    [ANCHORS] = MAKING_NUMBER("anchors", "boxes that are looked at, at each place", 9, 1, 1024),
    [BOXES] = MAKING_NUMBER("boxes", "of a frame that are kept", 100, 1, COUNT_MOST),
    [INPUT_HEIGHT] =
        MAKING_NUMBER("input-height", "of the network; a multiple of 32", 640, SHRINK, SIDE_MOST),
    [INPUT_WIDTH] =
        MAKING_NUMBER("input-width", "of the network; a multiple of 32", 640, SHRINK, SIDE_MOST),
    [HEIGHT] = MAKING_NUMBER("height", "of a frame", 1080, 1, SIDE_MOST),
    [WIDTH] = MAKING_NUMBER("width", "of a frame", 1920, 1, SIDE_MOST),
    [FRAME_RATE] = MAKING_NUMBER("frame-rate", "frames of a stream per second", 30, 1, 100000),
    [BIT_RATE] = MAKING_NUMBER("bit-rate", "bits of a coded stream per second", 8000000, 1,
                               INT64_C(1) << 40),
    [CANDIDATES] = MAKING_NUMBER("candidates", "places that the encoder looks at for each block",
                                 64, 1, COUNT_MOST),
    [DTYPE] =
        MAKING_CHOICE("dtype", "type of weights and of what flows", MAKING_BF16, making_floats),
    [STREAMS] = MAKING_BATCH("streams", "at once", 1, COUNT_MOST),
    MAKING_END,
};

struct image {
    int64_t height, width, channels;
};

struct video {
    struct making *making;
    const int64_t *values;
    enum dtype dtype;
    int64_t streams;
    int64_t frame_bytes; /* bytes of a coded frame */
    uint128 picture;     /* bytes of a decoded frame: every other colour sample each way */
    struct step *step;   /* step of the network */
    uint128 parameters;
};

/* ---------------------------------------------------------------- the network */

static int64_t pixels_of(const struct video *video, const struct image *image)
{
    return video->streams * image->height * image->width;
}

/* Adds a convolution and a norm. `is_bent` adds a relu; a block's last convolution has none, since
 * the sum comes first. */
static void add_conv(struct video *video, struct image *image, int64_t filters, int64_t kernel,
                     int64_t stride, bool is_bent)
{
    struct operation conv = operation_of(OPERATION_CONV, video->dtype);
    struct operation norm = operation_of(OPERATION_BATCHNORM, video->dtype);
    conv.shape.conv = (struct conv_shape){.batch = video->streams,
                                          .height = image->height,
                                          .width = image->width,
                                          .channels = image->channels,
                                          .filters = filters,
                                          .kernel_height = kernel,
                                          .kernel_width = kernel,
                                          .stride = stride,
                                          .padding = kernel / 2,
                                          .dilation = 1,
                                          .groups = 1};
    making_part(video->making, video->step, &conv, 1, 1, 0);
    video->parameters += making_times((uint128)(image->channels * filters), kernel * kernel);
    image->height = (image->height - 1) / stride + 1;
    image->width = (image->width - 1) / stride + 1;
    image->channels = filters;
    norm.shape.batchnorm = (struct batchnorm_shape){
        .batch = video->streams, .channels = filters, .size = image->height * image->width};
    struct operation relu =
        making_each(OPERATION_RELU, video->dtype, pixels_of(video, image), filters);
    making_part(video->making, video->step, &norm, 1, 1, 0);
    video->parameters += making_times(2, filters);
    making_part(video->making, video->step, &relu, is_bent ? 1 : 0, 0, 0);
}

/* The shortcut has the size of the block's output. A convolution adapts it if necessary. */
static void add_block(struct video *video, struct image *image, int64_t channels, int64_t stride)
{
    bool is_bottleneck = video->values[BOTTLENECK] == MAKING_YES;
    int64_t filters = is_bottleneck ? WIDENS * channels : channels;
    struct image around = *image;
    if (is_bottleneck) {
        add_conv(video, image, channels, 1, 1, true);
        add_conv(video, image, channels, 3, stride, true);
        add_conv(video, image, filters, 1, 1, false);
    } else {
        add_conv(video, image, channels, 3, stride, true);
        add_conv(video, image, filters, 3, 1, false);
    }
    if (stride != 1 || around.channels != filters) {
        add_conv(video, &around, filters, 1, stride, false);
    }
    int64_t pixels = pixels_of(video, image);
    struct operation sum = making_each(OPERATION_ADD, video->dtype, pixels, filters);
    struct operation relu = making_each(OPERATION_RELU, video->dtype, pixels, filters);
    making_part(video->making, video->step, &sum, 1, 0, 0);
    making_part(video->making, video->step, &relu, 1, 0, 0);
}

static struct image add_network(struct video *video)
{
    static const int blocks[] = {BLOCKS_1, BLOCKS_2, BLOCKS_3, BLOCKS_4};
    struct image image = {.height = video->values[INPUT_HEIGHT],
                          .width = video->values[INPUT_WIDTH],
                          .channels = COLOURS};
    int64_t channels = video->values[CHANNELS];
    add_conv(video, &image, channels, 7, 2, true);
    image.height = (image.height - 1) / 2 + 1;
    image.width = (image.width - 1) / 2 + 1;
    struct operation pool =
        making_rows(OPERATION_REDUCE, video->dtype, making_many(pixels_of(video, &image), channels),
                    (int64_t)POOL * POOL);
    making_part(video->making, video->step, &pool, 1, 0, 0);
    for (size_t size = 0; size < sizeof blocks / sizeof blocks[0]; size++) {
        for (int64_t block = 0; block < video->values[blocks[size]]; block++) {
            add_block(video, &image, channels, size > 0 && block == 0 ? 2 : 1);
        }
        channels *= 2;
    }
    return image;
}

static struct operation nearest(const struct video *video, int64_t rows, int64_t width, int64_t k)
{
    struct operation operation = operation_of(OPERATION_TOPK, video->dtype);
    operation.shape.topk = (struct topk_shape){.rows = rows, .width = width, .k = k};
    return operation;
}

static void own(const struct video *video, struct step *step)
{
    making_own(video->making, step, (uint32_t)video->making->steps->set_count, 0);
}

/* ---------------------------------------------------------------- tasks */

static struct step *add_detection(struct video *video)
{
    struct making *making = video->making;
    const int64_t *values = video->values;
    struct step *step = making_step(making, "detect");
    video->step = step;
    struct image image = add_network(video);
    int64_t looked_at = image.height * image.width * values[ANCHORS];
    making_check(making, "boxes", values[BOXES], 1, looked_at);
    add_conv(video, &image, HEAD_CHANNELS, 3, 1, true);
    struct operation best = nearest(video, video->streams, looked_at, values[BOXES]);
    add_conv(video, &image, values[ANCHORS] * (values[CLASSES] + BOX_FIGURES), 1, 1, false);
    making_part(making, step, &best, 1, 0, 0);
    own(video, step);
    return step;
}

/* Tracking describes the content of each box, and compares all boxes of this frame with all of the
 * last. */
static struct step *add_tracking(struct video *video, const struct step *detect)
{
    struct making *making = video->making;
    int64_t boxes = video->values[BOXES];
    int64_t all = video->streams * boxes;
    struct operation look = making_product(video->dtype, all, APPEARANCE, HEAD_CHANNELS);
    struct operation compare = making_product(video->dtype, boxes, boxes, APPEARANCE);
    compare.shape.product.batch = video->streams;
    struct operation best = nearest(video, all, boxes, 1);
    struct step *step = making_step(making, "track");
    making_part(making, step, &look, 1, 1, 0);
    making_part(making, step, &compare, 1, 0, 0);
    making_part(making, step, &best, 1, 0, 0);
    own(video, step);
    video->parameters += (uint128)(APPEARANCE * HEAD_CHANNELS);
    uint128 features =
        making_bytes(making_times((uint128)all, (int64_t)HEAD_CHANNELS), video->dtype);
    making_edge(making, detect, step, features + making_times((uint128)all, (int64_t)BOX_BYTES));
    return step;
}

static struct step *add_segmentation(struct video *video)
{
    struct making *making = video->making;
    const int64_t *values = video->values;
    struct step *step = making_step(making, "segment");
    video->step = step;
    struct image image = add_network(video);
    add_conv(video, &image, values[CLASSES], 1, 1, false);
    struct operation resize = operation_of(OPERATION_RESIZE, video->dtype);
    resize.shape.image = (struct image_shape){.batch = video->streams,
                                              .height = image.height,
                                              .width = image.width,
                                              .channels = values[CLASSES],
                                              .new_height = values[INPUT_HEIGHT],
                                              .new_width = values[INPUT_WIDTH]};
    struct operation best = nearest(
        video, video->streams * values[INPUT_HEIGHT] * values[INPUT_WIDTH], values[CLASSES], 1);
    making_part(making, step, &resize, 1, 0, 0);
    making_part(making, step, &best, 1, 0, 0);
    own(video, step);
    return step;
}

/* ---------------------------------------------------------------- frames */

static struct operation coding(const struct video *video, enum operation_kind kind)
{
    struct operation operation = operation_of(kind, video->dtype);
    operation.shape.frames.frames = video->streams;
    operation.shape.frames.height = video->values[HEIGHT];
    operation.shape.frames.width = video->values[WIDTH];
    operation.shape.frames.bytes = video->frame_bytes;
    if (kind == OPERATION_ENCODE_VIDEO) {
        operation.shape.frames.candidates = video->values[CANDIDATES];
    }
    return operation;
}

static struct step *add_preprocessing(struct video *video, const struct step *decode)
{
    struct making *making = video->making;
    const int64_t *values = video->values;
    struct operation resize = operation_of(OPERATION_RESIZE, video->dtype);
    resize.shape.image = (struct image_shape){.batch = video->streams,
                                              .height = values[HEIGHT],
                                              .width = values[WIDTH],
                                              .channels = COLOURS,
                                              .new_height = values[INPUT_HEIGHT],
                                              .new_width = values[INPUT_WIDTH]};
    struct operation normalise = operation_of(OPERATION_NORMALISE, video->dtype);
    normalise.shape.image = (struct image_shape){.batch = video->streams,
                                                 .height = values[INPUT_HEIGHT],
                                                 .width = values[INPUT_WIDTH],
                                                 .channels = COLOURS};
    struct step *step = making_step(making, "preprocess");
    making_part(making, step, &resize, 1, 0, 0);
    making_part(making, step, &normalise, 1, 0, 0);
    making_edge(making, decode, step, making_times(video->picture, video->streams));
    return step;
}

static void make(struct video *video)
{
    struct making *making = video->making;
    const int64_t *values = video->values;
    bool is_detection = values[TASK] == DETECT;
    int64_t inputs = video->streams * values[INPUT_HEIGHT] * values[INPUT_WIDTH]; /* pixels */
    struct operation from = coding(video, OPERATION_DECODE_VIDEO);
    struct operation into = coding(video, OPERATION_ENCODE_VIDEO);
    struct step *decode = making_step(making, "decode");
    making_part(making, decode, &from, 1, 0, 0);
    making_outside(making, decode, making_times((uint128)video->frame_bytes, video->streams), 0);
    struct step *preprocess = add_preprocessing(video, decode);
    struct step *look = is_detection ? add_detection(video) : add_segmentation(video);
    making_edge(making, preprocess, look,
                making_bytes(making_times((uint128)inputs, (int64_t)COLOURS), video->dtype));
    struct step *last = is_detection ? add_tracking(video, look) : look;
    struct step *encode = making_step(making, "encode");
    making_part(making, encode, &into, 1, 0, 0);
    making_outside(making, encode, 0, making_times((uint128)video->frame_bytes, video->streams));
    making_edge(making, decode, encode, making_times(video->picture, video->streams));
    making_edge(making, last, encode,
                is_detection ? making_times((uint128)(video->streams * values[BOXES]), BOX_BYTES)
                             : making_times((uint128)inputs, PIXEL_BYTES));
    making_count(making, video->parameters);
    making->steps->period_s = 1 / (double)values[FRAME_RATE];
}

static enum steps_status create(const int64_t *values, struct steps **ret_steps,
                                struct problem *ret_problem)
{
    struct making making;
    int64_t bits = values[BIT_RATE] / values[FRAME_RATE];
    struct video video = {.making = &making,
                          .values = values,
                          .dtype = making_float(values[DTYPE]),
                          .streams = values[STREAMS],
                          .frame_bytes = bits / 8 + 1,
                          .picture = (uint128)((3 * values[HEIGHT] * values[WIDTH] + 1) / 2)};
    if (making_begin(&making, ret_problem)) {
        if (values[INPUT_HEIGHT] % SHRINK != 0 || values[INPUT_WIDTH] % SHRINK != 0) {
            making_refuse(&making, STEPS_CONFLICT,
                          "input-height, %" PRId64 ", and input-width, %" PRId64
                          ", must be multiples of %d",
                          values[INPUT_HEIGHT], values[INPUT_WIDTH], SHRINK);
        }
        if (making.status == STEPS_OK) {
            make(&video);
        }
    }
    return making_end(&making, ret_steps);
}

/* ---------------------------------------------------------------- published networks */

#define NETWORK(first, second, third, fourth, bottleneck)                                          \
    (const struct template_setting[])                                                              \
    {                                                                                              \
        {"blocks-1", first}, {"blocks-2", second}, {"blocks-3", third}, {"blocks-4", fourth},      \
            {"bottleneck", bottleneck}, {"channels", 64},                                          \
        {                                                                                          \
            NULL, 0                                                                                \
        }                                                                                          \
    }

static const struct template_preset presets[] = {
    {"resnet-18", NETWORK(2, 2, 2, 2, 0)},   {"resnet-34", NETWORK(3, 4, 6, 3, 0)},
    {"resnet-50", NETWORK(3, 4, 6, 3, 1)},   {"resnet-101", NETWORK(3, 4, 23, 3, 1)},
    {"resnet-152", NETWORK(3, 8, 36, 3, 1)}, {NULL, NULL},
};

const struct template video_template = {
    .name = "video",
    .meaning = "frames of streams, looked at in real time",
    .parameters = parameters,
    .presets = presets,
    .make = create,
};
