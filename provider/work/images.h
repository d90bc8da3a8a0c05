/* provider/work/images.h keeps unpacked root images between jobs.
 *
 *     FOLDER/<64 hex digits of the tar's hash>-<its bytes>    complete
 *     FOLDER/new-...                                          unpacking; removed at the next start
 *     FOLDER/gone-...                                         being removed; the same
 *
 * Unpacking happens in a jail (image.h), once per image however many lanes wait. The caps count the
 * tars of the kept images and their files. Above a cap, the least recently used images go, never
 * one in use. Thread-safe. */
#ifndef BOURSE_PROVIDER_WORK_IMAGES_H
#define BOURSE_PROVIDER_WORK_IMAGES_H

#include "base/id.h"
#include "base/problem.h"
#include "provider/jail/image.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct images;
struct image; /* one image in use */

struct images_config {
    const char *folder; /* absolute, private; made when absent */
    uint64_t cap_bytes;
    struct tar_limits limits; /* bounds on one image */
    struct launcher *launcher;
    const char *worker_path;
    struct cgroups *cgroups;
};

bool images_open(const struct images_config *config, struct images **ret_images,
                 struct problem *ret_problem);
void images_close(struct images **self); /* nothing may be in use */

/* Takes the image of the tar behind `fd` (`size` bytes that hash to `hash`). Blocks while the image
 * is unpacked, here or by another taker, or until `give_up` becomes true. When the taker that
 * unpacks gives up, another one that waits begins anew. Any status but IMAGE_OK leaves a problem,
 * and nothing on the disk. */
enum image_status images_take(struct images *images, const struct hash32 *hash, int fd,
                              uint64_t size, const atomic_bool *give_up, struct image **ret_image,
                              struct problem *ret_problem);
/* Makes the folder of the images again when somebody removed it. Returns false with the problem
 * when that is impossible. An image that is gone is unpacked again when it is wanted. */
bool images_keep_folder(const struct images *images, struct problem *ret_problem);
const char *image_folder(const struct image *image);
void images_release(struct images *images, struct image **image);

#endif
