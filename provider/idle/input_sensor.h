/* provider/idle/input_sensor.h sees that somebody uses a key, the mouse or a terminal of this
 * machine. No right is needed, and nobody's keys are read: only counters and times are.
 *
 *     terminals   /dev/tty1, /dev/pts/0 and the like: the time of the last read, which the kernel
 *                 moves at the first key in each 8 s
 *     USB         keyboards and mice by their class; `urbnum` counts the reports of each
 *     interrupts  the lines of /proc/interrupts of built-in keyboards and touchpads
 *
 * A change since the last look is input. A terminal that opens or closes, or a keyboard that is
 * plugged in, is a change, too. A Bluetooth keyboard leaves no trace in these places; the sensor
 * names it. */
#ifndef BOURSE_PROVIDER_IDLE_INPUT_SENSOR_H
#define BOURSE_PROVIDER_IDLE_INPUT_SENSOR_H

#include <stdbool.h>
#include <stdint.h>

struct input_sensor {
    const char *root; /* borrowed */
    bool has_looked;
    uint64_t state;                 /* sum over all counters and times of the last look */
    unsigned terminals, usb, lines; /* sources of the last look */
    char unseen[64];                /* a keyboard or mouse without a trace; "": none */
};

void input_sensor_init(struct input_sensor *sensor, const char *root);
/* Returns false when there is no source at all. *ret_input says whether anything changed since the
 * last look. The first look finds no input. */
bool input_sensor_look(struct input_sensor *sensor, bool *ret_input);

#endif
