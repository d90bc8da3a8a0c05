/* The video template processes camera frames, each before the next one comes.
 *
 *    decode -> preprocess -> detect -> track -> encode     or     preprocess -> segment -> encode
 *       |                                         |
 *       +-----------------------------------------+
 *
 * The work is one frame of each stream, repeated after each period (period_s in steps.h). The
 * network is a residual one (ResNet), with a head for boxes or for a class of each pixel.
 * docs/templates.md has the arithmetic.
 *
 * The template does not cover networks over several frames, or skipped frames. */
#ifndef BOURSE_PLANNER_TEMPLATES_VIDEO_H
#define BOURSE_PLANNER_TEMPLATES_VIDEO_H

#include "planner/templates/template.h"

extern const struct template video_template;

#endif
