/* The attribute of a referee admits its device to checks. */
#ifndef BOURSE_EXCHANGE_WORK_CHECK_ROLES_H
#define BOURSE_EXCHANGE_WORK_CHECK_ROLES_H

#include "exchange/state/records.h"

/* Gives the attribute of referees, which no provider may claim itself. */
void check_role_attribute(struct attribute *ret_attribute);
bool check_role_is_attribute(const struct attribute *attribute);
/* Adds that attribute unless `needs` ends with it. Returns false without room for it. */
bool check_role_require(const struct requirement *needs, struct requirement *ret_needs);

#endif
