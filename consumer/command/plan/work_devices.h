/* consumer/command/plan/work_devices.h collects the devices that work is planned on, with their
 * figures, links and risks, and finds those that steps must run on. */
#ifndef BOURSE_CONSUMER_COMMAND_PLAN_WORK_DEVICES_H
#define BOURSE_CONSUMER_COMMAND_PLAN_WORK_DEVICES_H

#include "consumer/command/plan/work.h"

/* Makes the devices, named or on the market. All functions return 0, or the exit status after a
 * message. */
int work_devices_make(struct work *work);
/* Sets the risks that devices are taken away. */
int work_devices_interrupt(struct work *work);
/* Puts steps on the devices that the request names for them. Steps and devices exist. */
int work_devices_place(struct work *work);

#endif
