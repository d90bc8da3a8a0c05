/* broker/usage.h has the help texts of `bourse-broker` and of its commands. */
#ifndef BOURSE_BROKER_USAGE_H
#define BOURSE_BROKER_USAGE_H

extern const char usage_text[];
extern const char usage_run[];
extern const char usage_audit[];
extern const char usage_acts[];
extern const char usage_replay[];
extern const char usage_backup[];
extern const char usage_restore[];
extern const char usage_cluster[];
extern const char usage_new[];
extern const char usage_completion[];
extern const char usage_version[];

#endif
