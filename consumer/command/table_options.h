/* consumer/command/table_options.h declares the options of each subcommand, in the order of the
 * help. table.c has the subcommands. */
#ifndef BOURSE_CONSUMER_COMMAND_TABLE_OPTIONS_H
#define BOURSE_CONSUMER_COMMAND_TABLE_OPTIONS_H

#include "consumer/command/command.h"

extern const struct option_list options_of_common; /* options of every command */
extern const struct option_list options_of_up;
extern const struct option_list options_of_down;
extern const struct option_list options_of_join;
extern const struct option_list options_of_key;
extern const struct option_list options_of_submit;
extern const struct option_list options_of_resume;
extern const struct option_list options_of_run;
extern const struct option_list options_of_shell;
extern const struct option_list options_of_matmul;
extern const struct option_list options_of_model;
extern const struct option_list options_of_train;
extern const struct option_list options_of_quote;
extern const struct option_list options_of_logs;
extern const struct option_list options_of_ps;
extern const struct option_list options_of_wait;
extern const struct option_list options_of_cancel;
extern const struct option_list options_of_fetch;
extern const struct option_list options_of_devices;
extern const struct option_list options_of_report;
extern const struct option_list options_of_book;
extern const struct option_list options_of_plan;
extern const struct option_list options_of_order;
extern const struct option_list options_of_trades;
extern const struct option_list options_of_prices;
extern const struct option_list options_of_balance;
extern const struct option_list options_of_ledger;
extern const struct option_list options_of_storage;
extern const struct option_list options_of_forget;
extern const struct option_list options_of_receipt;
extern const struct option_list options_of_verify;
extern const struct option_list options_of_admin;
extern const struct option_list options_of_config;

#endif
