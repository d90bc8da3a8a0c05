/* provider/pauses.h keeps the pause of the whole agent and the pauses of single devices.
 *
 * The pauses survive a restart in the file `paused` of the agent's folder, which is JSON. A member
 * is in the file only while the pause that it describes holds:
 *
 *     {"until_ms":0,"devices":[{"device":"gpu0","id":"5c..","until_ms":1790000000000}]}
 *
 * Times are of the wall clock, as owners name them; 0 means until `resume`. */
#ifndef BOURSE_PROVIDER_PAUSES_H
#define BOURSE_PROVIDER_PAUSES_H

#include "base/problem.h"
#include "provider/config.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAUSES_DEVICES_MAX = 1 + CONFIG_DEVICES_MAX };

struct paused_device {
    struct id128 id; /* of the device in the market: its label may change */
    char label[ATTRIBUTE_TEXT_SIZE];
    int64_t until_ms;
    /* The programs' time to save their state ends here, on the agent's own clock. 0: no program was
     * told to save. The file does not keep this member. */
    int64_t saved_ns;
};

struct pauses {
    bool is_whole; /* the agent is paused */
    int64_t until_ms;
    struct paused_device devices[PAUSES_DEVICES_MAX];
    size_t count;
};

/* Reads the file, which must be there. Returns false with the problem; *ret_pauses is then left
 * unchanged. */
bool pauses_read(const char *path, struct pauses *ret_pauses, struct problem *ret_problem);
/* Writes the file, or removes it when nothing is paused. The file is durable when this returns
 * true. */
bool pauses_write(const char *path, const struct pauses *pauses, struct problem *ret_problem);

/* Returns the pause of the device with this label, or NULL. */
const struct paused_device *pauses_device(const struct pauses *pauses, const char *label);
/* Pauses a device, or changes until when. Returns false when PAUSES_DEVICES_MAX are paused. */
bool pauses_add(struct pauses *pauses, const struct paused_device *device);
void pauses_remove(struct pauses *pauses, const struct id128 *id);
/* Returns the paused devices as a JSON array, as in the file. */
json_t *pauses_json(const struct pauses *pauses);

#endif
