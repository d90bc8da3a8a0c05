#include "broker/storage/head.h"
#include "tests/support/suite.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];
static char path[96];

static void make_folder(void)
{
    strcpy(folder, "/tmp/bourse-head-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/HEAD", folder);
}

static void remove_folder(void)
{
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static struct head head_at(uint64_t index)
{
    struct head head = {.index = index, .tree_size = index * 10};
    memset(head.chain.bytes, (int)index, 32);
    return head;
}

static void damage(off_t offset)
{
    int fd = open(path, O_RDWR);
    uint8_t byte;
    ck_assert_int_eq(pread(fd, &byte, 1, offset), 1);
    byte ^= 1;
    ck_assert_int_eq(pwrite(fd, &byte, 1, offset), 1);
    close(fd);
}

static void write_heads(uint64_t last)
{
    struct head_file *file;
    struct problem problem;
    struct head head = head_at(0);
    ck_assert_int_eq(head_create(path, &head, &file, &problem), HEAD_OK);
    for (uint64_t i = 1; i <= last; i++) {
        head = head_at(i);
        ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    }
    head_close(&file);
    ck_assert_ptr_null(file);
}

static void assert_reads(uint64_t index)
{
    struct head head;
    struct problem problem;
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_OK);
    struct head expected = head_at(index);
    ck_assert_uint_eq(head.index, index);
    ck_assert_uint_eq(head.tree_size, index * 10);
    ck_assert(hash32_equal(&head.chain, &expected.chain));
}

START_TEST(the_newest_mark_is_read)
{
    for (uint64_t last = 0; last < 5; last++) {
        write_heads(last);
        assert_reads(last);
    }
}
END_TEST

static unsigned damaged_slots(void)
{
    struct head head;
    struct problem problem;
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_OK);
    return head.damaged_slots;
}

START_TEST(a_mark_whose_write_was_torn_leaves_the_one_before)
{
    write_heads(4); /* create is counter 1, so mark 4 is counter 5: slots 1 and 3 */
    damage(HEAD_SLOT_BYTES + 200);
    damage(3 * HEAD_SLOT_BYTES + 200);
    assert_reads(3);
    ck_assert_uint_eq(damaged_slots(), 2);
    write_heads(3);
    damage(20);
    damage(2 * HEAD_SLOT_BYTES + 20);
    assert_reads(2);
}
END_TEST

START_TEST(no_damaged_byte_and_no_lost_slot_hides_the_newest_mark)
{
    static const uint8_t zeros[HEAD_SLOT_BYTES];
    for (uint64_t last = 4; last < 6; last++) {
        write_heads(last);
        ck_assert_uint_eq(damaged_slots(), 0);
        for (off_t at = 0; at < 4 * HEAD_SLOT_BYTES; at++) {
            damage(at);
            assert_reads(last);
            ck_assert_uint_eq(damaged_slots(), 1);
            damage(at); /* turns it back */
        }
        for (off_t slot = 0; slot < 4; slot++) {
            write_heads(last);
            int fd = open(path, O_RDWR);
            ck_assert_int_eq(pwrite(fd, zeros, sizeof zeros, slot * HEAD_SLOT_BYTES),
                             HEAD_SLOT_BYTES);
            close(fd);
            assert_reads(last);
            ck_assert_uint_eq(damaged_slots(), 1);
        }
    }
}
END_TEST

START_TEST(a_file_of_two_slots_is_read_and_gets_its_copies)
{
    struct head_file *file;
    struct problem problem;
    struct head head;
    for (uint64_t last = 0; last < 4; last++) {
        write_heads(last);
        ck_assert_int_eq(truncate(path, 2 * HEAD_SLOT_BYTES), 0);
        assert_reads(last);
        ck_assert_uint_eq(damaged_slots(), 0);
        ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
        head = head_at(last + 1);
        ck_assert_int_eq(head_write(file, &head), HEAD_OK);
        head_close(&file);
        ck_assert_uint_eq(damaged_slots(), 0);
        for (off_t slot = 0; slot < 4; slot++) {
            damage(slot * HEAD_SLOT_BYTES + 40);
            assert_reads(last + 1);
            damage(slot * HEAD_SLOT_BYTES + 40);
        }
    }
}
END_TEST

START_TEST(a_damaged_copy_is_written_anew)
{
    struct head_file *file;
    struct problem problem;
    struct head head;
    write_heads(4);
    damage(HEAD_SLOT_BYTES + 200);
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
    ck_assert_uint_eq(head.damaged_slots, 1);
    for (uint64_t i = 5; i < 7; i++) {
        head = head_at(i);
        ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    }
    head_close(&file);
    ck_assert_uint_eq(damaged_slots(), 0);
}
END_TEST

START_TEST(mending_fills_every_slot_with_the_newest_mark)
{
    for (off_t slot = 0; slot < 4; slot++) {
        struct head_file *file;
        struct problem problem;
        struct head head;
        unsigned mended = 7;
        write_heads(4);
        damage(slot * HEAD_SLOT_BYTES + 200);
        ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
        ck_assert_int_eq(head_mend(file, &mended), HEAD_OK);
        ck_assert_uint_eq(mended, 1);
        ck_assert_uint_eq(damaged_slots(), 0);
        assert_reads(4);
        ck_assert_int_eq(head_mend(file, &mended), HEAD_OK);
        ck_assert_uint_eq(mended, 0); /* nothing is left to do */
        head_close(&file);
    }
}
END_TEST

START_TEST(a_copied_slot_is_the_same_mark)
{
    write_heads(4);
    uint8_t slot[HEAD_SLOT_BYTES];
    int fd = open(path, O_RDWR);
    ck_assert_int_eq(pread(fd, slot, sizeof slot, HEAD_SLOT_BYTES), HEAD_SLOT_BYTES);
    ck_assert_int_eq(pwrite(fd, slot, sizeof slot, 0), HEAD_SLOT_BYTES);
    close(fd);
    assert_reads(4);
    struct head_file *file;
    struct head head;
    struct problem problem;
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
    head = head_at(5);
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    assert_reads(5);
}
END_TEST

START_TEST(a_file_without_a_whole_slot_is_corrupt)
{
    struct head head;
    struct head_file *file;
    struct problem problem;
    write_heads(4);
    for (off_t slot = 0; slot < 4; slot++) {
        damage(slot * HEAD_SLOT_BYTES + 30);
    }
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_CORRUPT);
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_CORRUPT);
    ck_assert_ptr_null(file);
    ck_assert_ptr_nonnull(strstr(problem.text, "damaged"));
}
END_TEST

START_TEST(missing_and_empty_files_are_missing)
{
    struct head head;
    struct head_file *file;
    struct problem problem;
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_MISSING);
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_MISSING);
    close(open(path, O_CREAT | O_WRONLY, 0600));
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_MISSING);
    ck_assert_int_eq(truncate(path, 1024), 0); /* zeros: what a power cut may leave of a new file */
    ck_assert_int_eq(head_read(path, &head, &problem), HEAD_MISSING);
}
END_TEST

START_TEST(writing_goes_on_where_it_stopped)
{
    write_heads(7);
    struct head_file *file;
    struct head head;
    struct problem problem;
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
    ck_assert_uint_eq(head.index, 7);
    head = head_at(8);
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    assert_reads(8);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_size, 4 * HEAD_SLOT_BYTES);
    ck_assert_int_eq(status.st_mode & 0777, 0600);
}
END_TEST

START_TEST(a_symbolic_link_is_not_followed)
{
    char target[128];
    snprintf(target, sizeof target, "%s/target", folder);
    ck_assert_int_eq(symlink(target, path), 0);
    struct head head = head_at(0);
    struct head_file *file;
    struct problem problem;
    ck_assert_int_eq(head_create(path, &head, &file, &problem), HEAD_FAILED);
    ck_assert_int_ne(access(target, F_OK), 0);
}
END_TEST

static struct head_file *open_head(void)
{
    struct head_file *file;
    struct head head;
    struct problem problem;
    ck_assert_int_eq(head_open(path, &file, &head, &problem), HEAD_OK);
    return file;
}

START_TEST(a_removed_file_is_made_anew)
{
    write_heads(3);
    struct head_file *file = open_head();
    ck_assert_int_eq(head_look(file), HEAD_STANDS);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(head_look(file), HEAD_REMOVED);
    struct head head = head_at(4);
    ck_assert_int_eq(head_create_again(file, &head), HEAD_OK);
    ck_assert_int_eq(head_look(file), HEAD_STANDS);
    assert_reads(4);
    head = head_at(5);
    ck_assert_int_eq(head_write(file, &head), HEAD_OK);
    head_close(&file);
    assert_reads(5);
}
END_TEST

START_TEST(another_file_of_that_name_is_left_alone)
{
    char other[128];
    snprintf(other, sizeof other, "%s/other", folder);
    write_heads(9);
    ck_assert_int_eq(rename(path, other), 0);
    write_heads(3);
    struct head_file *file = open_head();
    ck_assert_int_eq(rename(other, path), 0);
    ck_assert_int_eq(head_look(file), HEAD_REPLACED);
    struct head head = head_at(4);
    ck_assert_int_eq(head_create_again(file, &head), HEAD_FAILED);
    ck_assert_int_eq(errno, EEXIST);
    head_close(&file);
    assert_reads(9);
}
END_TEST

/* A restore took the folder's place: its HEAD is not ours to write. */
START_TEST(a_moved_folder_keeps_its_head)
{
    char moved[sizeof folder + 8];
    char theirs[sizeof path];
    snprintf(moved, sizeof moved, "%s.moved", folder);
    snprintf(theirs, sizeof theirs, "%s", path);
    write_heads(3);
    struct head_file *file = open_head();
    ck_assert_int_eq(rename(folder, moved), 0);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
    write_heads(1);
    ck_assert_int_eq(head_look(file), HEAD_STANDS);
    snprintf(path, sizeof path, "%s/HEAD", moved);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(head_look(file), HEAD_REMOVED);
    struct head head = head_at(4);
    ck_assert_int_eq(head_create_again(file, &head), HEAD_OK);
    head_close(&file);
    assert_reads(4);
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(moved), 0);
    snprintf(path, sizeof path, "%s", theirs);
    assert_reads(1);
}
END_TEST

SUITE("head", make_folder, remove_folder, TEST(the_newest_mark_is_read),
      TEST(a_mark_whose_write_was_torn_leaves_the_one_before),
      TEST(no_damaged_byte_and_no_lost_slot_hides_the_newest_mark),
      TEST(a_file_of_two_slots_is_read_and_gets_its_copies), TEST(a_damaged_copy_is_written_anew),
      TEST(mending_fills_every_slot_with_the_newest_mark), TEST(a_copied_slot_is_the_same_mark),
      TEST(a_file_without_a_whole_slot_is_corrupt), TEST(missing_and_empty_files_are_missing),
      TEST(writing_goes_on_where_it_stopped), TEST(a_symbolic_link_is_not_followed),
      TEST(a_removed_file_is_made_anew), TEST(another_file_of_that_name_is_left_alone),
      TEST(a_moved_folder_keeps_its_head))
