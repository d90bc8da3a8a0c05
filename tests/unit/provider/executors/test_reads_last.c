/* The tests ask which subtask is the last of its job to read an input. */
#include "provider/executors/program.h"
#include "tests/support/suite.h"

#include <check.h>
#include <string.h>

enum { ROWS = 2, COLUMNS = 2, SUBTASKS = ROWS * COLUMNS };

/* Subtask i has block i / COLUMNS of the first matrix and block ROWS + i % COLUMNS of the
 * second. */
struct tiles {
    uint8_t hashes[ROWS + COLUMNS][32];
    Bourse__V1__ManifestInput inputs[SUBTASKS][2], shared;
    Bourse__V1__ManifestInput *pointers[SUBTASKS][2], *shared_pointer;
    Bourse__V1__ManifestSubtask subtasks[SUBTASKS];
    Bourse__V1__ManifestSubtask *subtask_pointers[SUBTASKS];
    Bourse__V1__Manifest manifest;
};

static void tiles_init(struct tiles *tiles)
{
    memset(tiles, 0, sizeof *tiles);
    bourse__v1__manifest__init(&tiles->manifest);
    bourse__v1__manifest_input__init(&tiles->shared);
    tiles->shared.hash = (ProtobufCBinaryData){32, tiles->hashes[0]};
    tiles->shared_pointer = &tiles->shared;
    for (size_t i = 0; i < ROWS + COLUMNS; i++) {
        memset(tiles->hashes[i], (int)i + 1, sizeof tiles->hashes[i]);
    }
    for (size_t i = 0; i < SUBTASKS; i++) {
        const size_t blocks[] = {i / COLUMNS, ROWS + i % COLUMNS};
        bourse__v1__manifest_subtask__init(&tiles->subtasks[i]);
        for (size_t k = 0; k < 2; k++) {
            bourse__v1__manifest_input__init(&tiles->inputs[i][k]);
            tiles->inputs[i][k].hash = (ProtobufCBinaryData){32, tiles->hashes[blocks[k]]};
            tiles->pointers[i][k] = &tiles->inputs[i][k];
        }
        tiles->subtasks[i].n_inputs = 2;
        tiles->subtasks[i].inputs = tiles->pointers[i];
        tiles->subtask_pointers[i] = &tiles->subtasks[i];
    }
    tiles->manifest.n_subtasks = SUBTASKS;
    tiles->manifest.subtask_count = SUBTASKS;
    tiles->manifest.subtasks = tiles->subtask_pointers;
}

START_TEST(the_last_of_a_row_and_of_a_column_are_the_last_to_read_their_blocks)
{
    struct tiles tiles;
    tiles_init(&tiles);
    const bool is_last[SUBTASKS][2] = {{false, false}, {true, false}, {false, true}, {true, true}};
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        for (size_t k = 0; k < 2; k++) {
            ck_assert_msg(program_reads_last(&tiles.manifest, i, k) == is_last[i][k],
                          "input %zu of subtask %u", k, i);
        }
    }
}
END_TEST

START_TEST(a_shared_input_is_read_by_all)
{
    struct tiles tiles;
    tiles_init(&tiles);
    tiles.manifest.n_shared = 1;
    tiles.manifest.shared = &tiles.shared_pointer;
    for (uint32_t i = 0; i < SUBTASKS; i++) {
        ck_assert(program_reads_last(&tiles.manifest, i, 2) == (i == SUBTASKS - 1));
    }
    tiles.manifest.n_subtasks = 0; /* none of them listed */
    ck_assert(!program_reads_last(&tiles.manifest, 0, 0));
    ck_assert(program_reads_last(&tiles.manifest, SUBTASKS - 1, 0));
}
END_TEST

SUITE("reads_last", NULL, NULL,
      TEST(the_last_of_a_row_and_of_a_column_are_the_last_to_read_their_blocks),
      TEST(a_shared_input_is_read_by_all))
