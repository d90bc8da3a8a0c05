#include "tests/support/scarce_vfs.h"

#include <check.h>
#include <sqlite3.h>

struct scarce scarce;

static sqlite3_vfs *system_vfs;
static sqlite3_vfs vfs;
static const sqlite3_io_methods *system_methods; /* a file of the database */
static sqlite3_io_methods methods;

static int write_page(sqlite3_file *file, const void *bytes, int length, sqlite3_int64 offset)
{
    return scarce.database_write != 0 ? scarce.database_write
                                      : system_methods->xWrite(file, bytes, length, offset);
}

static int map_index(sqlite3_file *file, int region, int bytes, int may_extend, void volatile **map)
{
    return scarce.index_grow != 0 && region > 0 && may_extend != 0
               ? scarce.index_grow
               : system_methods->xShmMap(file, region, bytes, may_extend, map);
}

static int open_file(sqlite3_vfs *self, const char *name, sqlite3_file *file, int flags,
                     int *ret_flags)
{
    (void)self;
    int code = system_vfs->xOpen(system_vfs, name, file, flags, ret_flags);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) != 0) {
        system_methods = file->pMethods;
        methods = *system_methods;
        methods.xWrite = write_page;
        methods.xShmMap = map_index;
        file->pMethods = &methods;
    }
    return code;
}

void scarce_register(void)
{
    scarce = (struct scarce){0};
    system_vfs = sqlite3_vfs_find(NULL);
    vfs = *system_vfs;
    vfs.zName = "scarce";
    vfs.xOpen = open_file;
    ck_assert_int_eq(sqlite3_vfs_register(&vfs, 1), SQLITE_OK);
}

void scarce_unregister(void)
{
    ck_assert_int_eq(sqlite3_vfs_unregister(&vfs), SQLITE_OK);
    ck_assert_int_eq(sqlite3_vfs_register(system_vfs, 1), SQLITE_OK);
}
