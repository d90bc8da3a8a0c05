/* Images from noise as steps: against published parameters and operations, and figures worked out
 * by hand. */
#include "base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static double products(const struct steps *steps, const char *step)
{
    const struct step *of = template_step(steps, step);
    return template_flops(steps, of, OPERATION_MATMUL) +
           template_flops(steps, of, OPERATION_ATTENTION) +
           template_flops(steps, of, OPERATION_CONV);
}

START_TEST(steps_are_as_drawn)
{
    static const char *const names[] = {"tokenise", "encode text", "denoise", "decode", "convert"};
    CLEANUP(steps_destroy) struct steps *all = template_steps("diffusion", SETTINGS("batch=3"));
    ck_assert_uint_eq(all->step_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(all->steps[i].name, names[i]);
    }
    /* Guidance makes it six texts of 120 tokens; latent images are 128 x 128 x 4, images 1024 x
     * 1024 x 3. */
    ck_assert_int_eq(template_flow(all, "tokenise", "encode text"), 6 * 120 * 4);
    ck_assert_int_eq(template_flow(all, "encode text", "denoise"), 6 * 120 * 4096 * 2);
    ck_assert_int_eq(template_flow(all, "denoise", "decode"), 3 * 128 * 128 * 4 * 2);
    ck_assert_int_eq(template_flow(all, "decode", "convert"), 3 * 1024 * 1024 * 3 * 2);
    ck_assert_int_eq(template_step(all, "denoise")->passes, 20);
    CLEANUP(steps_destroy) struct steps *bare = template_steps("diffusion", SETTINGS("text=0"));
    ck_assert_uint_eq(bare->step_count, 3);
}
END_TEST

/* Peebles and Xie, arXiv 2212.09748, table 4: DiT-XL/2 has 675 million parameters, and takes 118.64
 * x 10^9 products with their sums for an image of 256 x 256. Biases and the table of classes, 1.6
 * million parameters, are not in here. */
START_TEST(dit_is_as_published)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("diffusion", SETTINGS("model=dit-xl-2", "steps=1"));
    double flops = products(all, "denoise") / 2;
    ck_assert_msg(flops > 0.999 * 118.64e9 && flops < 1.001 * 118.64e9, "%g", flops);
    double parameters = (double)template_step(all, "denoise")->weight_bytes / 2;
    ck_assert_msg(parameters > 0.997 * 675.1e6 && parameters < 675.1e6, "%.0f", parameters);
    /* Forty steps take forty times as much. */
    CLEANUP(steps_destroy)
    struct steps *forty = template_steps("diffusion", SETTINGS("model=dit-xl-2", "steps=40"));
    ck_assert(products(forty, "denoise") == 40 * products(all, "denoise"));
    ck_assert_int_eq(template_step(forty, "denoise")->weight_bytes,
                     template_step(all, "denoise")->weight_bytes);
}
END_TEST

/* Chen et al., arXiv 2310.00426: 0.6 x 10^9 parameters, 610,856,096 in the weights; by hand, in
 * matrices: 28 layers of 16 x 1152^2, the text's 4096 x 1152 + 1152^2, the step's 256 x 1152 +
 * 1152^2, shifts and scales 6 x 1152^2, patches 16 x 1152 in and 32 x 1152 out. T5's encoder has
 * 4,762,310,656 in its weights, 2,048 of them for distances (Raffel et al., arXiv 1910.10683). */
START_TEST(pixart_is_as_published)
{
    CLEANUP(steps_destroy)
    struct steps *all = template_steps("diffusion", SETTINGS("model=pixart-alpha"));
    int64_t square = 1152 * 1152;
    int64_t matrices = 28 * 16 * square + 4096 * 1152 + square + 256 * 1152 + square + 6 * square +
                       16 * 1152 + 32 * 1152;
    ck_assert_int_eq(template_step(all, "denoise")->weight_bytes, 2 * matrices);
    double published = 610856096;
    ck_assert((double)matrices > 0.998 * published && (double)matrices < published);
    ck_assert_int_eq(template_step(all, "encode text")->weight_bytes,
                     2 * (INT64_C(4762310656) - 2048));
}
END_TEST

/* The decoder of Stable Diffusion's autoencoder (Rombach et al., arXiv 2112.10752) has 49,490,179
 * parameters in its weights and 20 of a convolution before it. By hand, products with their sums
 * for 512 x 512, of sizes 64, 128, 256 and 512:
 *   64^2 (16 + 9 x 4 x 512 + 4 x 9 x 512^2 + 4 x 512^2 + 6 x 9 x 512^2) + 2 x 64^4 x 512
 *   128^2 (9 x 512^2 + 6 x 9 x 512^2)
 *   256^2 (9 x 512^2 + 9 x 512 x 256 + 512 x 256 + 5 x 9 x 256^2)
 *   512^2 (9 x 256^2 + 9 x 256 x 128 + 256 x 128 + 5 x 9 x 128^2 + 9 x 128 x 3)
 * which is 1.257 x 10^12. */
START_TEST(the_decoder_is_as_published)
{
    CLEANUP(steps_destroy)
    struct steps *all =
        template_steps("diffusion", SETTINGS("image-height=512", "image-width=512"));
    double parameters = (double)template_step(all, "decode")->weight_bytes / 2;
    double published = 49490179 + 20;
    ck_assert_msg(parameters > 0.999 * published && parameters < published, "%.0f", parameters);
    double s64 = 64 * 64.0;
    double s128 = 128 * 128.0;
    double s256 = 256 * 256.0;
    double s512 = 512 * 512.0;
    double by_hand =
        s64 * (16 + 9 * 4 * 512.0 + (4 * 9 + 4 + 6 * 9) * s512) + 2 * s64 * s64 * 512 +
        s128 * (9 + 6 * 9) * s512 +
        s256 * (9 * s512 + 9 * 512 * 256.0 + 512 * 256.0 + 5 * 9 * s256) +
        s512 * (9 * s256 + 9 * 256 * 128.0 + 256 * 128.0 + 5 * 9 * s128 + 9 * 128 * 3.0);
    ck_assert(by_hand > 1.256e12 && by_hand < 1.258e12);
    ck_assert(products(all, "decode") == 2 * by_hand);
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name)
{
    struct problem problem = {""};
    ck_assert_int_eq(template_refusal("diffusion", SETTINGS("heads=7"), &problem), STEPS_CONFLICT);
    ck_assert_str_eq(problem.text, "width, 1152, must be a multiple of heads, 7");
    ck_assert_int_eq(template_refusal("diffusion", SETTINGS("image-width=1000"), &problem),
                     STEPS_CONFLICT);
    ck_assert_str_eq(problem.text,
                     "image-height, 1024, and image-width, 1000, must be multiples of "
                     "8 x patch, 16");
    ck_assert_int_eq(template_refusal("diffusion", SETTINGS("text-head-size=3"), &problem),
                     STEPS_CONFLICT);
    ck_assert_int_eq(
        template_refusal("diffusion",
                         SETTINGS("batch=16777216", "image-width=65536", "image-height=65536"),
                         &problem),
        STEPS_OVERFLOW);
}
END_TEST

SUITE("diffusion", NULL, NULL, TEST(steps_are_as_drawn), TEST(dit_is_as_published),
      TEST(pixart_is_as_published), TEST(the_decoder_is_as_published),
      TEST(what_cannot_be_is_refused_by_name))
