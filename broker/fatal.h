/* broker/fatal.h - the broker's last line: what went wrong, then the end, at once.
 *
 * For what must not be retried or worked around: a failed fsync or commit (P11), memory short where
 * something was already promised, a state hash that disagrees (P10). Never for what a peer sent.
 * The next start finds everything acknowledged, because nothing was acknowledged before its commit.
 */
#ifndef BOURSE_BROKER_FATAL_H
#define BOURSE_BROKER_FATAL_H

enum { FATAL_EXIT_STATUS = 1 };

__attribute__((format(printf, 1, 2))) _Noreturn void fatal(const char *format, ...);

#endif
