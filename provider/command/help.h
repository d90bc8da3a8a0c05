/* provider/command/help.h has the help texts of `bourse-provider` and of its commands. */
#ifndef BOURSE_PROVIDER_COMMAND_HELP_H
#define BOURSE_PROVIDER_COMMAND_HELP_H

extern const char help_all[];
extern const char help_run[];
extern const char help_probe[];
extern const char help_join[];
extern const char help_status[];
extern const char help_pause[];
extern const char help_resume[];
extern const char help_drain[];
extern const char help_why[];
extern const char help_earnings[];
extern const char help_completion[];
extern const char help_version[];

#endif
