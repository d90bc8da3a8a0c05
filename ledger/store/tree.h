/* ledger/store/tree.h reads hashes of the Merkle tree's complete subtrees from table tree.
 *
 * Leaves and every TREE_LEVEL_STEP-th level are stored. The others are folded from at most
 * 2^(TREE_LEVEL_STEP-1) stored hashes. */
#ifndef BOURSE_LEDGER_STORE_TREE_H
#define BOURSE_LEDGER_STORE_TREE_H

#include "ledger/merkle.h"
#include "ledger/merkle_block.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum { TREE_LEVEL_STEP = 8 };

struct tree_reader {
    sqlite3_stmt *select_range; /* level, first, count */
    int error;                  /* the code of the last failed read */
};
int tree_reader_init(struct tree_reader *self, sqlite3 *database);
void tree_reader_fini(struct tree_reader *self);
/* The function is a merkle_read_node. */
bool tree_read_node(void *tree_reader, unsigned level, uint64_t index, struct hash32 *ret_hash);
/* Reads the stored hashes number * 256 and on of a stored level, as many as there are, with their
 * subtrees. */
bool tree_read_block(struct tree_reader *reader, unsigned level, uint64_t number,
                     struct merkle_block *ret_block);
/* Loads the tree of the first `size` leaves. */
bool tree_load(struct tree_reader *reader, uint64_t size, struct merkle *ret_tree);

#endif
