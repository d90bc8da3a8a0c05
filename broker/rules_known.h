/* The program applies commands under the rules of the exchange that it knows, its own and those
 * before.
 *
 * A program of another release has other numbers. The tests build such a program
 * (cmake/helpers.cmake), and the simulator of several brokers gives each broker its own. */
#ifndef BOURSE_BROKER_RULES_KNOWN_H
#define BOURSE_BROKER_RULES_KNOWN_H

#include <stdint.h>

struct rules_known {
    uint32_t first, last;
};
struct rules_known rules_known(void);

#endif
