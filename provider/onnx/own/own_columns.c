#include "provider/onnx/own/own_columns.h"

#include "provider/onnx/own/own_parallel.h"

#include <string.h>

/* One row of the matrix: a channel, and one place of the kernel. */
struct line {
    const struct own_window *window;
    int64_t shift[OWN_SPACE_MOST]; /* from a window's first element to the one of this row */
};

static struct line line_of(const struct own_window *window, int64_t in_kernel)
{
    struct line line = {.window = window};
    int64_t place[OWN_SPACE_MOST];
    own_window_place(window, window->kernel, in_kernel, place);
    for (uint32_t i = 0; i < window->dims; i++) {
        line.shift[i] = place[i] * window->dilations[i] - window->before[i];
    }
    return line;
}

/* Returns where in the image a row of the output's last dim begins, less its own coordinate, or -1
 * when the row is outside. */
static int64_t base_of(const struct line *line, int64_t row)
{
    const struct own_window *window = line->window;
    int64_t base = 0;
    int64_t size = 1;
    for (uint32_t i = window->dims - 1; i > 0; i--) {
        size *= window->in[i];
        const int64_t at = row % window->out[i - 1] * window->strides[i - 1] + line->shift[i - 1];
        row /= window->out[i - 1];
        if (at < 0 || at >= window->in[i - 1]) {
            return -1;
        }
        base += at * size;
    }
    return base;
}

/* Returns the first and last places of a row of the output whose elements are in the image. */
static void range_of(const struct line *line, int64_t *ret_first, int64_t *ret_last)
{
    const struct own_window *window = line->window;
    const uint32_t axis = window->dims - 1;
    const int64_t shift = line->shift[axis];
    const int64_t stride = window->strides[axis];
    const int64_t out = window->out[axis];
    const int64_t first = shift >= 0 ? 0 : (-shift + stride - 1) / stride;
    const int64_t room = window->in[axis] - shift; /* at * stride has to be less */
    const int64_t last = room <= 0 ? 0 : (room + stride - 1) / stride;
    *ret_first = first < out ? first : out;
    *ret_last = last < out ? last : out;
    *ret_last = *ret_last < *ret_first ? *ret_first : *ret_last;
}

static void fill_line(const struct line *line, const uint32_t *image, int64_t first, int64_t last,
                      uint32_t *to)
{
    const uint32_t axis = line->window->dims - 1;
    const int64_t out = line->window->out[axis];
    const int64_t stride = line->window->strides[axis];
    int64_t begin = 0;
    int64_t end = 0;
    range_of(line, &begin, &end);
    for (int64_t row = first; row < last; row++, to += out) {
        const int64_t base = base_of(line, row);
        if (base < 0 || begin == end) {
            memset(to, 0, (size_t)out * sizeof *to);
            continue;
        }
        const uint32_t *from = image + base + (begin * stride + line->shift[axis]);
        memset(to, 0, (size_t)begin * sizeof *to);
        memset(to + end, 0, (size_t)(out - end) * sizeof *to);
        if (stride == 1) {
            memcpy(to + begin, from, (size_t)(end - begin) * sizeof *to);
        } else {
            for (int64_t i = begin; i < end; i++) {
                to[i] = from[(i - begin) * stride];
            }
        }
    }
}

struct filling {
    const struct own_window *window;
    const uint32_t *image;
    int64_t first, last;
    uint32_t *to;
};

static void fill_lines(void *context, int64_t first, int64_t last)
{
    const struct filling *self = context;
    const struct own_window *window = self->window;
    const int64_t length = (self->last - self->first) * window->out[window->dims - 1];
    for (int64_t at = first; at < last; at++) {
        const struct line line = line_of(window, at % window->kernel_size);
        fill_line(&line, self->image + at / window->kernel_size * window->in_size, self->first,
                  self->last, self->to + at * length);
    }
}

void own_columns_fill(const struct own_window *window, const uint32_t *image, int64_t channels,
                      int64_t first, int64_t last, unsigned threads, uint32_t *to)
{
    struct filling filling = {window, image, first, last, to};
    const int64_t length = (last - first) * window->out[window->dims - 1];
    own_parallel(threads, channels * window->kernel_size, own_parallel_least(length), fill_lines,
                 &filling);
}

void own_columns_add(const struct own_window *window, const float *columns, int64_t channels,
                     float *image)
{
    const uint32_t axis = window->dims - 1;
    const int64_t out = window->out[axis];
    const int64_t stride = window->strides[axis];
    for (int64_t at = 0; at < channels * window->kernel_size; at++) {
        const struct line line = line_of(window, at % window->kernel_size);
        float *to = image + at / window->kernel_size * window->in_size;
        int64_t begin = 0;
        int64_t end = 0;
        range_of(&line, &begin, &end);
        for (int64_t row = 0; row < window->out_size / out; row++, columns += out) {
            const int64_t base = base_of(&line, row);
            for (int64_t i = begin; base >= 0 && i < end; i++) {
                to[base + i * stride + line.shift[axis]] += columns[i];
            }
        }
    }
}
