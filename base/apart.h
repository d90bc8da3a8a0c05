/* base/apart.h - keeps a function out of those that call it.
 *
 * What is called rarely, made a part of what runs always, costs that its registers. The third
 * compiler extension that we use; cleanup.h names the others. */
#ifndef BOURSE_BASE_APART_H
#define BOURSE_BASE_APART_H

#define APART __attribute__((noinline))

#endif
