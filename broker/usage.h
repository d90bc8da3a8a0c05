/* The help text of the program bourse-broker, which `bourse-broker --help` prints. */
#ifndef BOURSE_BROKER_USAGE_H
#define BOURSE_BROKER_USAGE_H

extern const char usage_text[];

#endif
