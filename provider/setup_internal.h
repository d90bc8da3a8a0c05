/* provider/setup_internal.h joins the files of provider/setup.h. No other file includes it. */
#ifndef BOURSE_PROVIDER_SETUP_INTERNAL_H
#define BOURSE_PROVIDER_SETUP_INTERNAL_H

#include "provider/setup.h"

/* Fills the machine, the isolation and the measured figures, by trial jails. The launcher and the
 * config are there. Matrices or kernels that cannot be computed here get their reason. Returns
 * false when the machine cannot be read, or lacks a device that the config names. */
bool setup_learn(struct setup *setup, struct problem *ret_problem);

#endif
