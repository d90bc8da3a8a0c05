/* planner/templates/video.h - frames of cameras, each looked at before the next comes.
 *
 *     decode -> preprocess -> detect -> track -> encode          or          preprocess -> segment -> encode
 *        |                                         |
 *        +-----------------------------------------+
 *
 * One frame of each stream, anew after each period: steps.h's period_s. The network is a residual
 * one (ResNet) with a head for boxes or for a class of each pixel. docs/templates.md has the
 * arithmetic.
 *
 * Not for: networks over several frames, frames that are skipped. Pure. */
#ifndef BOURSE_PLANNER_TEMPLATES_VIDEO_H
#define BOURSE_PLANNER_TEMPLATES_VIDEO_H

#include "planner/templates/template.h"

extern const struct template video_template;

#endif
