/* Frames that are looked at in real time, as steps: against published networks, and figures worked
 * out by hand. */
#include "base/cleanup.h"
#include "tests/support/suite.h"
#include "tests/support/template_steps.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define SETTINGS(...) ((const char *const[]){__VA_ARGS__, NULL})

START_TEST(steps_are_as_drawn)
{
    static const char *const names[] = {"decode", "preprocess", "detect", "track", "encode"};
    CLEANUP(steps_destroy) struct steps *all = template_steps("video", SETTINGS("streams=4"));
    ck_assert_uint_eq(all->step_count, 5);
    for (size_t i = 0; i < 5; i++) {
        ck_assert_str_eq(all->steps[i].name, names[i]);
    }
    ck_assert(all->period_s == 1.0 / 30);
    /* Frames of 1080 x 1920 with one and a half samples a pixel; inputs of 640 x 640 x 3; 100 boxes
     * of a stream. */
    ck_assert_int_eq(template_flow(all, "decode", "preprocess"), 4 * 1080 * 1920 * 3 / 2);
    ck_assert_int_eq(template_flow(all, "decode", "encode"), 4 * 1080 * 1920 * 3 / 2);
    ck_assert_int_eq(template_flow(all, "preprocess", "detect"), 4 * 640 * 640 * 3 * 2);
    ck_assert_int_eq(template_flow(all, "detect", "track"), 4 * 100 * (256 * 2 + 24));
    ck_assert_int_eq(template_flow(all, "track", "encode"), 4 * 100 * 24);
    CLEANUP(steps_destroy)
    struct steps *pixels = template_steps("video", SETTINGS("task=segment"));
    ck_assert_uint_eq(pixels->step_count, 4);
    ck_assert_int_eq(template_flow(pixels, "segment", "encode"), 640 * 640 * 4);
}
END_TEST

/* He et al., arXiv 1512.03385, as the weights have them and torchvision counts them: parameters
 * without the last product of 1,000 classes, and 10^9 products with their sums for 224 x 224
 * without it. A class of each pixel is a product of 2048 or 512 x 80 at 7 x 7 places here, with a
 * norm. */
START_TEST(networks_are_as_published)
{
    static const struct {
        const char *model;
        int64_t parameters;
        double products, wide;
    } published[] = {
        {"model=resnet-18", 11689512 - 513000, 1.814e9 - 513000, 512},
        {"model=resnet-34", 21797672 - 513000, 3.664e9 - 513000, 512},
        {"model=resnet-50", 25557032 - 2049000, 4.089e9 - 2049000, 2048},
        {"model=resnet-101", 44549160 - 2049000, 7.801e9 - 2049000, 2048},
        {"model=resnet-152", 60192808 - 2049000, 11.514e9 - 2049000, 2048},
    };
    for (size_t i = 0; i < sizeof published / sizeof published[0]; i++) {
        CLEANUP(steps_destroy)
        struct steps *all =
            template_steps("video", SETTINGS(published[i].model, "task=segment", "input-height=224",
                                             "input-width=224"));
        int64_t head = (int64_t)published[i].wide * 80 + 2 * 80;
        ck_assert_int_eq(all->parameters, published[i].parameters + head);
        ck_assert_int_eq(template_step(all, "segment")->weight_bytes, 2 * all->parameters);
        double products = template_flops(all, NULL, OPERATION_CONV) / 2;
        products -= published[i].wide * 80 * 49;
        ck_assert_msg(products > 0.998 * published[i].products &&
                          products < 1.002 * published[i].products,
                      "%s: %g", published[i].model, products);
    }
}
END_TEST

START_TEST(boxes_are_found_and_told_apart)
{
    CLEANUP(steps_destroy) struct steps *all = template_steps("video", SETTINGS("streams=2"));
    CLEANUP(steps_destroy)
    struct steps *pixels = template_steps("video", SETTINGS("streams=2", "task=segment"));
    /* The heads at 20 x 20 places take 3 x 3 x 2048 x 256, and 256 x 9 x 84; a class of each: 2048
     * x 80. */
    double heads = 2.0 * 2 * 400 * (9 * 2048 * 256 + 256 * 9 * 84 - 2048 * 80);
    ck_assert(template_flops(all, NULL, OPERATION_CONV) -
                  template_flops(pixels, NULL, OPERATION_CONV) ==
              heads);
    const struct step *track = template_step(all, "track");
    ck_assert(template_flops(all, track, OPERATION_MATMUL) ==
              2.0 * 2 * (100 * 128 * 256 + 100 * 100 * 128));
    ck_assert_int_eq(track->weight_bytes, 2 * 128 * 256);
}
END_TEST

/* 8,000,000 bits a second are 266,666 and a part a frame: 33,334 bytes. */
START_TEST(a_frame_has_its_share_of_the_bits)
{
    char text[OPERATION_TEXT_SIZE];
    CLEANUP(steps_destroy) struct steps *all = template_steps("video", SETTINGS("candidates=16"));
    operation_write(&template_step(all, "decode")->parts[0].operation, text);
    ck_assert_str_eq(text, "decode-video:1x1080x1920x33334:bf16");
    operation_write(&template_step(all, "encode")->parts[0].operation, text);
    ck_assert_str_eq(text, "encode-video:1x1080x1920x33334,candidates=16:bf16");
}
END_TEST

START_TEST(what_cannot_be_is_refused_by_name)
{
    static const struct {
        const char *setting;
        enum steps_status status;
        const char *says;
    } wrong[] = {
        {"input-width=650", STEPS_CONFLICT, "and input-width, 650, must be multiples of 32"},
        {"boxes=3601", STEPS_BAD_VALUE, "boxes is 3601; it may be 1 to 3600"},
        {"channels=65536", STEPS_OK, ""},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct problem problem = {""};
        if (wrong[i].status == STEPS_OK) {
            CLEANUP(steps_destroy)
            struct steps *all = template_steps("video", SETTINGS(wrong[i].setting));
            ck_assert_uint_eq(all->step_count, 5);
        } else {
            ck_assert_int_eq(template_refusal("video", SETTINGS(wrong[i].setting), &problem),
                             wrong[i].status);
            ck_assert_msg(strstr(problem.text, wrong[i].says) != NULL, "%s", problem.text);
        }
    }
    ck_assert_int_eq(
        template_refusal("video",
                         SETTINGS("blocks-1=256", "blocks-2=256", "blocks-3=256", "blocks-4=256"),
                         NULL),
        STEPS_TOO_LARGE);
    ck_assert_int_eq(template_refusal("video",
                                      SETTINGS("channels=65536", "streams=1048576",
                                               "input-height=65536", "input-width=65536"),
                                      NULL),
                     STEPS_OVERFLOW);
}
END_TEST

SUITE("video", NULL, NULL, TEST(steps_are_as_drawn), TEST(networks_are_as_published),
      TEST(boxes_are_found_and_told_apart), TEST(a_frame_has_its_share_of_the_bits),
      TEST(what_cannot_be_is_refused_by_name))
