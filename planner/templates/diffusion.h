/* planner/templates/diffusion.h - images from noise by a transformer on patches of a latent image
 * (DiT).
 *
 *     tokenise -> encode text -> denoise -> decode -> convert
 *
 * The text goes through an encoder of its own (transformer.h); the denoiser, over all steps,
 * attends to the patches and to the text; the decoder of the autoencoder of Stable Diffusion makes
 * pixels of the latent image, eight times as many each way. Without text the denoiser attends to
 * patches alone. docs/templates.md has the arithmetic.
 *
 * Not for: networks of convolutions (U-Nets) as denoisers, several devices on one image. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_DIFFUSION_H
#define BOURSE_PLANNER_TEMPLATES_DIFFUSION_H

#include "planner/templates/template.h"

extern const struct template diffusion_template;

#endif
