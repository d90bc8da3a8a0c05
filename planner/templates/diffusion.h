/* The diffusion template makes images from noise by a transformer on patches of a latent image
 * (DiT).
 *
 *     tokenise -> encode text -> denoise -> decode -> convert
 *
 * The text goes through an encoder of its own (transformer.h). The denoiser attends to the patches
 * and to the text, in every step. The decoder of the autoencoder of Stable Diffusion turns the
 * latent image into pixels, eight times as many each way. Without text, the denoiser attends to
 * patches alone. docs/templates.md has the arithmetic.
 *
 * The template does not cover convolutional networks (U-Nets) as denoisers, or several devices on
 * one image. */
#ifndef BOURSE_PLANNER_TEMPLATES_DIFFUSION_H
#define BOURSE_PLANNER_TEMPLATES_DIFFUSION_H

#include "planner/templates/template.h"

extern const struct template diffusion_template;

#endif
