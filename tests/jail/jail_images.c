/* The provider's unpacked images: takers give up and go on, and the caps hold. */
#include "fixture.h"

#include "base/text.h"
#include "provider/work/images.h"

#include <pthread.h>
#include <stdatomic.h>

enum { BLOCK = 512, MANY_FILES = 40000 };

/* Writes the header of an empty file (POSIX ustar). */
static void write_header(FILE *file, unsigned number)
{
    char block[BLOCK] = "";
    unsigned sum = 0;
    (void)snprintf(block, 100, "f%u", number);
    memcpy(block + 100, "0000644", 8); /* mode; then user, group, size, time */
    memcpy(block + 108, "0000000", 8);
    memcpy(block + 116, "0000000", 8);
    memcpy(block + 124, "00000000000", 12);
    memcpy(block + 136, "00000000000", 12);
    memset(block + 148, ' ', 8);
    block[156] = '0';
    memcpy(block + 257, "ustar\00000", 8);
    for (size_t i = 0; i < BLOCK; i++) {
        sum += (unsigned char)block[i];
    }
    (void)snprintf(block + 148, 8, "%06o", sum);
    ck_assert_uint_eq(fwrite(block, 1, BLOCK, file), BLOCK);
}

/* Makes a tar of `count` empty files, without a name. */
static FILE *archive_of(unsigned first, unsigned count)
{
    static const char end[2 * BLOCK];
    FILE *file = tmpfile();
    ck_assert_ptr_nonnull(file);
    for (unsigned i = 0; i < count; i++) {
        write_header(file, first + i);
    }
    ck_assert_uint_eq(fwrite(end, 1, sizeof end, file), sizeof end);
    ck_assert_int_eq(fflush(file), 0);
    return file;
}

struct images_test {
    struct fixture fixture;
    char folder[96];
    struct images *images;
};

static void reopen(struct images_test *test, uint64_t entries)
{
    struct problem problem;
    const struct images_config config = {.folder = test->folder,
                                         .cap_bytes = UINT64_C(1) << 30,
                                         .limits = {.entries = entries, .bytes = MIB},
                                         .launcher = test->fixture.launcher,
                                         .worker_path = test->fixture.worker,
                                         .cgroups = test->fixture.cgroups};
    images_close(&test->images);
    ck_assert_msg(images_open(&config, &test->images, &problem), "%s", problem.text);
}

static void begin(struct images_test *test, int way, uint64_t entries)
{
    *test = (struct images_test){.fixture = fixture_open(way)};
    (void)snprintf(test->folder, sizeof test->folder, "%s/images", test->fixture.folder);
    reopen(test, entries);
}

static size_t count_names(const char *path)
{
    size_t count = 0;
    DIR *folder = opendir(path);
    for (struct dirent *file = folder == NULL ? NULL : readdir(folder); file != NULL;
         file = readdir(folder)) {
        count += strcmp(file->d_name, ".") != 0 && strcmp(file->d_name, "..") != 0;
    }
    if (folder != NULL) {
        (void)closedir(folder);
    }
    return count;
}

/* Removes what the caches left, in jails, since a job's files may be anybody's. */
static void end(struct images_test *test)
{
    DIR *folder = opendir(test->folder);
    ck_assert_ptr_nonnull(folder);
    for (struct dirent *file = readdir(folder); file != NULL; file = readdir(folder)) {
        char path[512];
        struct problem problem;
        (void)snprintf(path, sizeof path, "%s/%s", test->folder, file->d_name);
        ck_assert_msg(file->d_name[0] == '.' ||
                          image_remove(test->fixture.launcher, test->fixture.worker,
                                       test->fixture.cgroups, path, &problem),
                      "%s", problem.text);
    }
    (void)closedir(folder);
    images_close(&test->images);
    ck_assert_int_eq(rmdir(test->folder), 0);
    fixture_close(&test->fixture);
}

struct taker {
    struct images *images;
    int file;
    struct hash32 hash;
    atomic_bool give_up, has_ended;
    pthread_t thread;
    enum image_status status;
    struct image *image;
    struct problem problem;
};

static void take(struct taker *taker)
{
    struct stat status;
    ck_assert_int_eq(fstat(taker->file, &status), 0);
    taker->status = images_take(taker->images, &taker->hash, taker->file, (uint64_t)status.st_size,
                                &taker->give_up, &taker->image, &taker->problem);
}

static void *run_taker(void *argument)
{
    struct taker *taker = argument;
    take(taker);
    atomic_store(&taker->has_ended, true);
    return NULL;
}

static void start(struct taker *taker)
{
    ck_assert_int_eq(pthread_create(&taker->thread, NULL, run_taker, taker), 0);
}

static void join(struct taker *taker)
{
    ck_assert_int_eq(pthread_join(taker->thread, NULL), 0);
}

/* Waits until the first files of the first unpacking, which the taker does, are there. */
static void await_files(const struct images_test *test, struct taker *taker)
{
    char path[192];
    (void)snprintf(path, sizeof path, "%s/new-1-%ld.part", test->folder, (long)getpid());
    while (count_names(path) == 0) {
        ck_assert_msg(!atomic_load(&taker->has_ended), "%s", taker->problem.text);
        const struct timespec pause = {.tv_nsec = 1000000};
        (void)nanosleep(&pause, NULL); /* an early return is fine */
    }
}

START_TEST(unpacking_ends_when_its_taker_gives_up)
{
    struct images_test test;
    begin(&test, _i, MANY_FILES);
    FILE *archive = archive_of(0, MANY_FILES);
    struct taker taker = {.images = test.images, .file = fileno(archive), .hash = {{1}}};
    start(&taker);
    await_files(&test, &taker);
    atomic_store(&taker.give_up, true);
    join(&taker);
    ck_assert_msg(taker.status == IMAGE_GIVEN_UP, "%s", taker.problem.text);
    ck_assert_uint_eq(count_names(test.folder), 0);
    ck_assert_uint_gt(strlen(taker.problem.text), 0);
    (void)fclose(archive);
    end(&test);
}
END_TEST

START_TEST(a_taker_that_waits_goes_on_when_the_one_that_unpacks_gives_up)
{
    struct images_test test;
    begin(&test, _i, MANY_FILES);
    FILE *archive = archive_of(0, MANY_FILES);
    struct taker first = {.images = test.images, .file = fileno(archive), .hash = {{1}}};
    struct taker second = first;
    struct taker third = first;
    start(&first);
    await_files(&test, &first);
    start(&second);
    start(&third);
    atomic_store(&third.give_up, true);
    join(&third); /* while the first one still unpacks */
    ck_assert_int_eq(third.status, IMAGE_GIVEN_UP);
    atomic_store(&first.give_up, true);
    join(&first);
    ck_assert_int_eq(first.status, IMAGE_GIVEN_UP);
    join(&second);
    ck_assert_msg(second.status == IMAGE_OK, "%s", second.problem.text);
    ck_assert_uint_ge(count_names(image_folder(second.image)), MANY_FILES);
    images_release(test.images, &second.image);
    ck_assert_uint_eq(count_names(test.folder), 1);
    (void)fclose(archive);
    end(&test);
}
END_TEST

START_TEST(the_files_of_kept_images_are_bounded)
{
    enum { FILES = 9, MOST = 10, KEPT = 8, TAKEN = 11 };
    struct images_test test;
    begin(&test, _i, MOST);
    for (unsigned i = 0; i < TAKEN; i++) {
        FILE *archive = archive_of(i, FILES);
        struct taker taker = {
            .images = test.images, .file = fileno(archive), .hash = {{(uint8_t)i}}};
        take(&taker);
        ck_assert_msg(taker.status == IMAGE_OK, "%s", taker.problem.text);
        images_release(test.images, &taker.image);
        (void)fclose(archive);
    }
    ck_assert_uint_eq(count_names(test.folder), KEPT); /* 72 files; 81 are above 8 times 10 */
    reopen(&test, MOST);
    ck_assert_uint_eq(count_names(test.folder), KEPT);
    struct taker newest = {.images = test.images, .file = -1, .hash = {{TAKEN - 1}}};
    newest.status = images_take(newest.images, &newest.hash, -1, 1, &newest.give_up, &newest.image,
                                &newest.problem);
    ck_assert_int_eq(newest.status, IMAGE_OK); /* known by the name of its folder */
    images_release(test.images, &newest.image);
    reopen(&test, MOST / 2); /* an owner who lowers the bound gets the room back */
    ck_assert_uint_eq(count_names(test.folder), KEPT / 2);
    end(&test);
}
END_TEST

/* Somebody cleans the caches of the machine. */
START_TEST(an_image_that_is_removed_is_unpacked_again)
{
    struct images_test test;
    struct problem problem;
    char aside[128];
    begin(&test, _i, MANY_FILES);
    FILE *archive = archive_of(0, 3);
    struct taker taker = {.images = test.images, .file = fileno(archive), .hash = {{1}}};
    (void)snprintf(aside, sizeof aside, "%s/aside", test.fixture.folder);
    for (int i = 0; i < 2; i++) {
        take(&taker);
        ck_assert_msg(taker.status == IMAGE_OK, "%s", taker.problem.text);
        ck_assert_uint_ge(count_names(image_folder(taker.image)), 3);
        images_release(test.images, &taker.image);
        ck_assert_int_eq(rename(test.folder, aside), 0);
        if (i == 1) {
            ck_assert(images_keep_folder(test.images, &problem));
            ck_assert_uint_eq(count_names(test.folder), 0);
        }
        take(&taker);
        ck_assert_msg(taker.status == IMAGE_OK, "%s", taker.problem.text);
        ck_assert_uint_ge(count_names(image_folder(taker.image)), 3);
        images_release(test.images, &taker.image);
        ck_assert_msg(image_remove(test.fixture.launcher, test.fixture.worker, test.fixture.cgroups,
                                   aside, &problem),
                      "%s", problem.text);
    }
    (void)fclose(archive);
    end(&test);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        unpacking_ends_when_its_taker_gives_up,
        a_taker_that_waits_goes_on_when_the_one_that_unpacks_gives_up,
        the_files_of_kept_images_are_bounded,
        an_image_that_is_removed_is_unpacked_again,
    };
    return fixture_main("jail_images", tests, sizeof tests / sizeof *tests);
}
