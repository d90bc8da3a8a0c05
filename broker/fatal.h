/* The function fatal logs the broker's last line, the reason, and ends the process at once.
 *
 * It is for failures that must not be retried or worked around: a failed fsync or commit (P11),
 * short memory after a promise, a state hash that differs (P10). Input of a peer never causes it.
 * The next start finds everything acknowledged, because nothing is acknowledged before its
 * commit. */
#ifndef BOURSE_BROKER_FATAL_H
#define BOURSE_BROKER_FATAL_H

enum {
    FATAL_EXIT_STATUS = 1,
    FATAL_DEPOSED_STATUS = 4 /* another broker leads; a broker that is started again follows it */
};

__attribute__((format(printf, 1, 2))) _Noreturn void fatal(const char *format, ...);
/* Ends the process like fatal(), because another broker leads the market. */
__attribute__((format(printf, 1, 2))) _Noreturn void fatal_deposed(const char *format, ...);

#endif
