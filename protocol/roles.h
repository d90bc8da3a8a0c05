/* The names of the roles that an account may have (enum account_role in protocol/message.h). */
#ifndef BOURSE_PROTOCOL_ROLES_H
#define BOURSE_PROTOCOL_ROLES_H

#include <stddef.h>

enum { ROLE_COUNT = 7, ROLES_TEXT_SIZE = 80 };
/* The name of role i stands for bit i. The array outlives the process. */
extern const char *const role_names[ROLE_COUNT];

/* Writes the names of all roles in `roles` with ", " between them, or "none". ROLES_TEXT_SIZE bytes
 * hold every set of roles. */
void roles_text(unsigned roles, char *ret_text, size_t capacity);
/* Returns the bit of the role with this name, or 0. */
unsigned role_named(const char *name);
/* Returns the name of a role that `name` may be a slip of, or NULL. */
const char *role_nearest(const char *name);

#endif
