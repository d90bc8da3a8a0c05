#include "provider/work/images.h"

#include "base/list.h"
#include "base/text.h"
#include "runtime/log.h"
#include "runtime/private_folder.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEX = 64, IMAGE_PATH_BYTES = PATH_MAX + HEX + 32 };

struct image {
    struct list_link link; /* least recently used first */
    struct hash32 hash;
    uint64_t size;
    unsigned users;
    bool unpacking;
    enum image_status status; /* result of unpacking */
    struct problem problem;
    char path[IMAGE_PATH_BYTES];
};

struct images {
    struct images_config config;
    char folder[PATH_MAX];
    pthread_mutex_t mutex;
    pthread_cond_t unpacked;
    struct list_link kept;
    uint64_t bytes;
    unsigned parts; /* counter for names of folders being unpacked */
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
    char hex[HEX + 1];
    text_hex(hash->bytes, sizeof hash->bytes, hex);
    image->hash = *hash;
    image->size = size;
    (void)snprintf(image->path, sizeof image->path, "%s/%s-%llu", images->folder, hex,
                   (unsigned long long)size);
    list_append(&images->kept, &image->link);
    images->bytes += size;
    return image;
}

static void forget(struct images *images, struct image *image)
{
    images->bytes -= image->size;
    list_remove(&image->link);
    free(image);
}

/* Removes images above the cap. The mutex is held throughout. Removal is rare, and a taker must not
 * find an image half removed. */
static void evict(struct images *images)
{
    for (struct list_link *link = images->kept.next;
         link != &images->kept && images->bytes > images->config.cap_bytes;) {
        struct image *image = LIST_ELEMENT(link, struct image, link);
        link = link->next;
        if (image->users == 0) {
            remove_folder(images, image->path);
            forget(images, image);
        }
    }
}

static void adopt(struct images *images, const char *name)
{
    char hex[HEX + 1] = "";
    struct hash32 hash;
    char path[IMAGE_PATH_BYTES];
    char *end = NULL;
    (void)snprintf(hex, sizeof hex, "%s", name);
    if (strlen(name) > HEX + 1 && name[HEX] == '-' &&
        text_unhex(hex, hash.bytes, sizeof hash.bytes)) {
        unsigned long long size = strtoull(name + HEX + 1, &end, 10);
        if (*end == '\0' && add(images, &hash, size) != NULL) {
            return;
        }
    }
    (void)snprintf(path, sizeof path, "%s/%s", images->folder, name);
    remove_folder(images, path);
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
    pthread_cond_init(&images->unpacked, NULL);
    list_init(&images->kept);
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        if (file->d_name[0] != '.') {
            adopt(images, file->d_name);
        }
    }
    closedir(files);
    evict(images);
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
    pthread_cond_destroy(&images->unpacked);
    pthread_mutex_destroy(&images->mutex);
    free(images);
    *self = NULL;
}

static enum image_status unpack(struct images *images, const struct image *image, unsigned part,
                                int fd, struct problem *problem)
{
    char fresh[IMAGE_PATH_BYTES];
    (void)snprintf(fresh, sizeof fresh, "%s/new-%u-%ld", images->folder, part, (long)getpid());
    enum image_status status =
        image_unpack(images->config.launcher, images->config.worker_path, images->config.cgroups,
                     fd, image->size, &images->config.limits, fresh, problem);
    if (status != IMAGE_OK) {
        return status;
    }
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
    if (image->users == 0 && image->status != IMAGE_OK) {
        forget(images, image);
    }
    evict(images);
}

/* Unpacks the image, or waits for the thread that does. The mutex is held at entry and exit, and
 * released meanwhile. */
static enum image_status make_ready(struct images *images, struct image *image, bool fresh, int fd)
{
    if (fresh) {
        unsigned part = ++images->parts;
        image->unpacking = true;
        pthread_mutex_unlock(&images->mutex);
        struct problem problem = {""};
        enum image_status status = unpack(images, image, part, fd, &problem);
        pthread_mutex_lock(&images->mutex);
        image->unpacking = false;
        image->status = status;
        image->problem = problem;
        pthread_cond_broadcast(&images->unpacked);
    }
    while (image->unpacking) {
        pthread_cond_wait(&images->unpacked, &images->mutex);
    }
    return image->status;
}

enum image_status images_take(struct images *images, const struct hash32 *hash, int fd,
                              uint64_t size, struct image **ret_image, struct problem *ret_problem)
{
    pthread_mutex_lock(&images->mutex);
    struct image *image = find(images, hash);
    bool fresh = image == NULL;
    if (fresh) {
        image = add(images, hash, size);
    }
    enum image_status status = IMAGE_FAILED;
    if (image == NULL) {
        problem_set(ret_problem, "out of memory");
    } else {
        image->users++;
        status = make_ready(images, image, fresh, fd);
        if (status == IMAGE_OK) {
            list_remove(&image->link);
            list_append(&images->kept, &image->link); /* most recently used */
            *ret_image = image;
        } else {
            problem_set(ret_problem, "%s", image->problem.text);
            leave(images, image);
        }
    }
    pthread_mutex_unlock(&images->mutex);
    return status;
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
