#include "provider/work/images.h"

#include "base/list.h"
#include "base/text.h"
#include "provider/work/own_folder.h"
#include "runtime/condition.h"
#include "runtime/log.h"
#include "runtime/private_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEX = 64, IMAGE_PATH_BYTES = PATH_MAX + HEX + 64 };
enum {
    IMAGES_MOST = 8,    /* the kept images have at most the files of this many of the largest */
    LOOK_NS = 50000000, /* a waiting taker looks at its `give_up` as often */
};

enum image_state { STATE_ABSENT, STATE_UNPACKING, STATE_READY, STATE_BAD };

struct image {
    struct list_link link; /* least recently used first */
    struct hash32 hash;
    uint64_t size;  /* of the tar */
    uint64_t files; /* known once ready */
    unsigned users;
    enum image_state state;
    enum image_status status; /* why the image is bad */
    struct problem problem;
    char path[IMAGE_PATH_BYTES];
};

struct images {
    struct images_config config;
    char folder[PATH_MAX];
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* the state of an image */
    struct list_link kept;
    uint64_t bytes, files; /* of all kept images */
    unsigned parts;        /* counter for names of folders that come and go */
};

static void remove_folder(struct images *images, const char *path)
{
    struct problem problem = {""};
    if (!image_remove(images->config.launcher, images->config.worker_path, images->config.cgroups,
                      path, &problem)) {
        log_warning("an old image stays on disk: %s", problem.text);
    }
}

/* The mutex is held. */
static struct image *find(struct images *images, const struct hash32 *hash)
{
    for (struct list_link *link = images->kept.next; link != &images->kept; link = link->next) {
        struct image *image = LIST_ELEMENT(link, struct image, link);
        if (hash32_equal(&image->hash, hash)) {
            return image;
        }
    }
    return NULL;
}

static struct image *add(struct images *images, const struct hash32 *hash, uint64_t size)
{
    struct image *image = calloc(1, sizeof *image);
    if (image == NULL) {
        return NULL;
    }
    image->hash = *hash;
    image->size = size;
    list_append(&images->kept, &image->link);
    images->bytes += size;
    return image;
}

static void become_ready(struct images *images, struct image *image, uint64_t files)
{
    image->files = files;
    images->files += files;
    image->state = STATE_READY;
}

static void set_path(const struct images *images, struct image *image, uint64_t files)
{
    char hex[HEX + 1];
    text_hex(image->hash.bytes, sizeof image->hash.bytes, hex);
    (void)snprintf(image->path, sizeof image->path, "%s/%s-%" PRIu64 "-%" PRIu64, images->folder,
                   hex, image->size, files);
}

static bool is_gone(const struct image *image)
{
    return access(image->path, F_OK) != 0 && errno == ENOENT;
}

static void forget(struct images *images, struct image *image)
{
    images->bytes -= image->size;
    images->files -= image->files;
    list_remove(&image->link);
    free(image);
}

/* ---------------------------------------------------------------- the caps */

static bool is_above_caps(const struct images *images)
{
    return images->bytes > images->config.cap_bytes ||
           images->files > IMAGES_MOST * images->config.limits.entries;
}

/* Returns the image that goes next, or NULL when the caps hold or all images are in use. */
static struct image *find_superfluous(const struct images *images)
{
    for (struct list_link *link = images->kept.next; link != &images->kept && is_above_caps(images);
         link = link->next) {
        struct image *image = LIST_ELEMENT(link, struct image, link);
        if (image->users == 0) {
            return image;
        }
    }
    return NULL;
}

/* Removes images above the caps. The mutex is held at entry and exit. It is released while files
 * are removed, and a taker then no longer finds the image: it has another name. */
static void evict(struct images *images)
{
    for (struct image *image = find_superfluous(images); image != NULL;
         image = find_superfluous(images)) {
        char gone[IMAGE_PATH_BYTES];
        (void)snprintf(gone, sizeof gone, "%s/gone-%u-%ld", images->folder, ++images->parts,
                       (long)getpid());
        const bool is_renamed = rename(image->path, gone) == 0;
        if (!is_renamed && errno != ENOENT) { /* somebody may have removed it */
            log_warning("the old image %s stays on disk: %s", image->path, strerror(errno));
        }
        forget(images, image);
        if (is_renamed) {
            pthread_mutex_unlock(&images->mutex);
            remove_folder(images, gone);
            pthread_mutex_lock(&images->mutex);
        }
    }
}

/* ---------------------------------------------------------------- opening */

/* Reads the name of a complete image. */
static bool read_name(const char *name, struct hash32 *ret_hash, uint64_t *ret_size,
                      uint64_t *ret_files)
{
    char hex[HEX + 1] = "";
    char *end = NULL;
    (void)snprintf(hex, sizeof hex, "%s", name);
    if (strlen(name) <= HEX + 1 || name[HEX] != '-' ||
        !text_unhex(hex, ret_hash->bytes, sizeof ret_hash->bytes)) {
        return false;
    }
    *ret_size = strtoull(name + HEX + 1, &end, 10);
    if (*end != '-') {
        return false;
    }
    *ret_files = strtoull(end + 1, &end, 10);
    return *end == '\0';
}

static void adopt(struct images *images, const char *name)
{
    struct hash32 hash;
    char path[IMAGE_PATH_BYTES];
    uint64_t size;
    uint64_t files;
    struct image *image = NULL;
    if (read_name(name, &hash, &size, &files) && find(images, &hash) == NULL) {
        image = add(images, &hash, size);
    }
    (void)snprintf(path, sizeof path, "%s/%s", images->folder, name);
    if (image != NULL) {
        (void)snprintf(image->path, sizeof image->path, "%s", path);
        become_ready(images, image, files);
    } else {
        remove_folder(images, path);
    }
}

bool images_open(const struct images_config *config, struct images **ret_images,
                 struct problem *ret_problem)
{
    if (!private_folder(config->folder, true, ret_problem)) {
        return false;
    }
    DIR *files = opendir(config->folder);
    struct images *images = calloc(1, sizeof *images);
    if (files == NULL || images == NULL || strlen(config->folder) >= sizeof images->folder) {
        problem_set(ret_problem, "cannot read %s: %s", config->folder, strerror(errno));
        if (files != NULL) {
            closedir(files);
        }
        free(images);
        return false;
    }
    images->config = *config;
    (void)snprintf(images->folder, sizeof images->folder, "%s", config->folder);
    pthread_mutex_init(&images->mutex, NULL);
    condition_init(&images->changed);
    list_init(&images->kept);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (file->d_name[0] != '.') {
            adopt(images, file->d_name);
        }
    }
    closedir(files);
    pthread_mutex_lock(&images->mutex);
    evict(images);
    pthread_mutex_unlock(&images->mutex);
    *ret_images = images;
    return true;
}

void images_close(struct images **self)
{
    struct images *images = *self;
    if (images == NULL) {
        return;
    }
    while (!list_empty(&images->kept)) {
        struct image *image = LIST_ELEMENT(images->kept.next, struct image, link);
        assert(image->users == 0);
        forget(images, image); /* the folder stays for the next run */
    }
    pthread_cond_destroy(&images->changed);
    pthread_mutex_destroy(&images->mutex);
    free(images);
    *self = NULL;
}

/* ---------------------------------------------------------------- taking */

static enum image_status unpack(struct images *images, struct image *image, unsigned part, int fd,
                                const atomic_bool *give_up, uint64_t *ret_files,
                                struct problem *problem)
{
    char fresh[IMAGE_PATH_BYTES];
    struct tar_limits has;
    if (!images_keep_folder(images, problem)) {
        return IMAGE_NO_ROOM; /* another provider has its folders */
    }
    (void)snprintf(fresh, sizeof fresh, "%s/new-%u-%ld", images->folder, part, (long)getpid());
    enum image_status status =
        image_unpack(images->config.launcher, images->config.worker_path, images->config.cgroups,
                     fd, image->size, &images->config.limits, fresh, give_up, &has, problem);
    if (status != IMAGE_OK) {
        return status;
    }
    *ret_files = has.entries;
    set_path(images, image, has.entries); /* nobody else reads the path before the image is ready */
    if (rename(fresh, image->path) != 0) {
        problem_set(problem, "cannot rename an unpacked image: %s", strerror(errno));
        remove_folder(images, fresh);
        return IMAGE_FAILED;
    }
    return IMAGE_OK;
}

static void leave(struct images *images, struct image *image)
{
    assert(image->users > 0);
    image->users--;
    if (image->users == 0 && image->state != STATE_READY) {
        forget(images, image);
    }
    evict(images);
}

/* Unpacks the image for all takers. The mutex is held at entry and exit, and released meanwhile. */
static enum image_status unpack_for_all(struct images *images, struct image *image, int fd,
                                        const atomic_bool *give_up, struct problem *ret_problem)
{
    const unsigned part = ++images->parts;
    struct problem problem = {""};
    uint64_t files = 0;
    image->state = STATE_UNPACKING;
    pthread_mutex_unlock(&images->mutex);
    const enum image_status status = unpack(images, image, part, fd, give_up, &files, &problem);
    pthread_mutex_lock(&images->mutex);
    if (status == IMAGE_OK) {
        become_ready(images, image, files);
    } else if (status == IMAGE_GIVEN_UP) {
        image->state = STATE_ABSENT; /* another taker may still want it */
        *ret_problem = problem;
    } else {
        image->state = STATE_BAD;
        image->status = status;
        image->problem = problem;
    }
    pthread_cond_broadcast(&images->changed);
    return status;
}

/* Waits until the image is ready, bad or given up. The mutex is held at entry and exit. */
static enum image_status make_ready(struct images *images, struct image *image, int fd,
                                    const atomic_bool *give_up, struct problem *ret_problem)
{
    enum image_status status = IMAGE_OK;
    if (image->state == STATE_READY && is_gone(image)) {
        images->files -= image->files;
        image->files = 0;
        image->state = STATE_ABSENT;
    }
    while (image->state != STATE_READY && status != IMAGE_GIVEN_UP) {
        if (image->state == STATE_BAD) {
            *ret_problem = image->problem;
            return image->status;
        }
        if (atomic_load(give_up)) {
            problem_set(ret_problem, "waiting for the image was given up");
            status = IMAGE_GIVEN_UP;
        } else if (image->state == STATE_UNPACKING) {
            condition_wait(&images->changed, &images->mutex, LOOK_NS);
        } else {
            status = unpack_for_all(images, image, fd, give_up, ret_problem);
        }
    }
    return status;
}

enum image_status images_take(struct images *images, const struct hash32 *hash, int fd,
                              uint64_t size, const atomic_bool *give_up, struct image **ret_image,
                              struct problem *ret_problem)
{
    pthread_mutex_lock(&images->mutex);
    struct image *image = find(images, hash);
    if (image == NULL) {
        image = add(images, hash, size);
    }
    enum image_status status = IMAGE_FAILED;
    if (image == NULL) {
        problem_set(ret_problem, "out of memory");
    } else {
        image->users++;
        status = make_ready(images, image, fd, give_up, ret_problem);
        if (status == IMAGE_OK) {
            list_remove(&image->link);
            list_append(&images->kept, &image->link); /* most recently used */
            *ret_image = image;
        } else {
            leave(images, image);
        }
    }
    pthread_mutex_unlock(&images->mutex);
    return status;
}

bool images_keep_folder(const struct images *images, struct problem *ret_problem)
{
    return own_folder_keep(images->folder, ret_problem);
}

const char *image_folder(const struct image *image)
{
    return image->path;
}

void images_release(struct images *images, struct image **image)
{
    if (*image != NULL) {
        pthread_mutex_lock(&images->mutex);
        leave(images, *image);
        pthread_mutex_unlock(&images->mutex);
        *image = NULL;
    }
}
