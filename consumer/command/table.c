/* This file holds the table of subcommands. docs/man/bourse.1 follows it; a test compares the
 * two. */
#include "consumer/command/command.h"

#include <string.h>

#define OPTIONS(list) .options = (list), .option_count = sizeof(list) / sizeof *(list)
#define JOB_WORDS "JOB is an id, its first digits, or `last` for the newest job."

static const struct option_spec common[] = {
    {"json", 0, NULL, "one JSON value on stdout, errors too"},
    {"quiet", 'q', NULL, "print ids only, and no progress unless asked for"},
    {"market", 'm', "PATH", "the market's folder, or its market.yaml"},
    {"key", 'k', "FILE", "the account's key file"},
    {"timeout", 0, "TIME", "how long to wait for one answer (30s)"},
    {"color", 0, "WHEN", "when to use colour: auto, always or never"},
    {"help", 'h', NULL, "show this text"},
};

static const struct option_spec up_options[] = {
    {"dir", 'd', "DIR", "the market's private folder"},
    {"price", 0, "CREDITS", "price to ask per slot-hour (0.10)"},
    {"credits", 0, "CREDITS", "credits to mint for you on the first start (1000)"},
    {"slots", 0, "N", "cores to offer (all)"},
    {"programs", 0, "LIST", "programs that jobs may run, separated by commas"},
    {"user", 0, "NAME", "user that the agent becomes when root starts it (bourse)"},
    {"detach", 0, NULL, "leave broker and agent running in the background"},
    {"wait", 0, "TIME", "how long to wait until a device is on offer (2m)"},
};
static const struct option_spec down_options[] = {
    {"dir", 'd', "DIR", "the market's private folder (the one in use)"},
    {"wait", 0, "TIME", "how long to wait until the processes are gone (30s)"},
};
static const struct option_spec join_options[] = {
    {"name", 0, "NAME", "your name in the operator's list of accounts"},
};
static const struct option_spec key_options[] = {
    {"log", 0, NULL, "show the public key of the market's log, for `bourse verify`"},
};
#define WATCH_OPTIONS                                                                              \
    {"progress", 0, NULL, "show progress even when stderr is not a terminal"},                     \
    {                                                                                              \
        "wait-at-most", 0, "TIME", "stop waiting after this time, with exit status 8"              \
    }
static const struct option_spec submit_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"budget", 0, "CREDITS", "the most that the job may cost (the job file's, else as quoted)"},
    {"order", 0, "TYPE",
     "type of the bid: limit, ioc, fok, post-only or all-or-none (the job's, else limit)"},
    {"anyway", 0, NULL, "submit even when no device fits, or none sells at this budget yet"},
    {"wait", 'w', NULL, "wait until the job has ended"},
    WATCH_OPTIONS,
    {"output", 'o', "DIR", "with --wait: fetch the outputs into DIR"},
};
static const struct option_spec resume_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"good-till", 0, "TIME",
     "cancel subtasks that have not started after this time: 2h (the job's)"},
    {"files", 0, "DIR", "where the job's files are, if the broker lost any (the current folder)"},
    {"image", 0, "TAR", "the job's image, if the broker lost it"},
    {"anyway", 0, NULL,
     "submit even when no device fits or sells yet, or a lost file is not found"},
    {"wait", 'w', NULL, "wait until the job has ended"},
    WATCH_OPTIONS,
    {"output", 'o', "DIR", "with --wait: fetch the outputs into DIR"},
};
static const struct option_spec run_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"each", 0, "PATTERN", "one subtask per file that matches; may be repeated"},
    {"array", 0, "RANGE", "one subtask per number: 1-100, 0-90:10"},
    {"lines", 0, "FILE", "one subtask per line"},
    {"file", 'f', "FILE", "an input of every subtask; may be repeated"},
    {"out", 0, "NAME", "an output to bring back: \"{out}\"; may be repeated"},
    {"output", 'o', "DIR", "where outputs go (the current folder)"},
    {"image", 0, "TAR", "a tar with the root file system to run in"},
    {"env", 'e', "NAME=VALUE", "an environment variable; may be repeated"},
    {"stdin", 0, "TEXT", "standard input; \"{in}\" stands for the subtask's file"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"slots", 0, "N", "slots of one device for one subtask (1)"},
    {"at-most", 0, "N", "the most slots at a time"},
    {"limit", 0, "TIME", "wall time of one subtask (10m)"},
    {"expect", 0, "TIME", "about how long one subtask takes, for the quote"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"retries", 0, "N", "how many more times to try a program that fails"},
    {"good-till", 0, "TIME", "cancel subtasks that have not started after this time: 2h (never)"},
    {"order", 0, "TYPE", "type of the bid: limit, ioc, fok, post-only or all-or-none (limit)"},
    {"crash-limit", 0, "N", "attempts of a subtask that may fail by their providers' fault (2)"},
    {"checkpoint", 0, "DIR", "folder where the program saves its state when told to end (none)"},
    {"interruptions", 0, "N",
     "how many leases may be taken from the job before it uses only firm ones (any)"},
    {"name", 0, "NAME", "name of the job"},
    {"anyway", 0, NULL, "submit even when no device fits, or none sells at this budget yet"},
    {"exit-code", 0, NULL, "end with the program's own exit status"},
    {"raw", 0, NULL, "print the program's bytes unchanged, even on a terminal"},
    WATCH_OPTIONS,
};
static const struct option_spec matmul_options[] = {
    {"output", 'o', "FILE", "the product, a .npy file"},
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"tiles", 0, "RxC",
     "blocks of A's rows and of B's columns, as in 4x8 (planned from the devices)"},
    {"at-most", 0, "N", "the most slots at a time"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"verify", 0, "LEVEL", "none, or cheap: a referee checks each tile before it is paid (none)"},
    {"no-check", 0, NULL, "take the product without Freivalds' check on this machine"},
    {"resume", 0, "JOB", "continue a product: fetch its tiles and compute the missing ones"},
    WATCH_OPTIONS,
};
static const struct option_spec logs_options[] = {
    {"stderr", 0, NULL, "print what the program wrote to standard error"},
    {"follow", 'f', NULL, "go on to print what the program prints later"},
    {"raw", 0, NULL, "print the program's bytes unchanged, even on a terminal"},
};
static const struct option_spec fetch_options[] = {
    {"output", 'o', "DIR", "where outputs go (a new folder named by the job's id)"},
    {"progress", 0, NULL, "show progress even when stderr is not a terminal"},
};
static const struct option_spec devices_options[] = {
    {"needs", 0, "TEXT", "show only devices that have this: \"kind = gpu and memory >= 40GiB\""},
    {"catalogue", 0, NULL, "show the catalogue's published devices, offline; with ID, one in full"},
    {"estimate", 0, "OPERATION",
     "show time and energy of an operation: \"matmul:4096x4096x4096:bf16\""},
    {"samples", 0, "FILE", "times measured on ID, for the estimate; a line is OPERATION and time"},
    {"operations", 0, NULL, "list the operations that can be estimated: shapes, options, types"},
};
static const struct option_spec report_options[] = {
    {"svg", 0, "FILE", "also write the timeline as an SVG picture"},
    {"width", 0, "N", "columns of the timeline, 40 to 400 (the terminal's, else 80)"},
};
static const struct option_spec book_options[] = {
    {"needs", 0, "TEXT", "show only asks of devices that have this: \"kind = gpu\""},
    {"instrument", 0, "NAME", "show only asks for this instrument: cpu.x86_64.avx512"},
    {"follow", 'f', NULL, "show changes until Ctrl-C; with --json one value a line"},
};
static const struct option_spec plan_options[] = {
    {"dag", 0, "FILE", "schedule this task graph, a bourse-dag-1 file, without a market"},
    {"scheduler", 0, "SCHEDULER", "with --dag: auto, heft, peft, cpop, exact ... (auto)"},
    {"contended", 0, NULL, "with --dag: a link carries one transfer at a time (any number)"},
    {"templates", 0, NULL, "list the templates; with TEMPLATE, its parameters"},
    {"file", 'f', "FILE", "what to plan, in YAML: template, parameters, devices, limits"},
    {"set", 0, "NAME=VALUE", "a parameter of the template; may be repeated"},
    {"batch", 0, "N", "the batch size, whatever the template calls it"},
    {"devices", 0, "LIST",
     "devices of the catalogue, with counts and prices: h100:8,tpu-v5p:4@4.20; or `market`"},
    {"on-offer", 0, NULL, "plan on the devices on offer now, as with --devices market"},
    {"interruptible", 0, "RISK",
     "how often devices are taken away, and the time to begin again: 0.5/h,2m; l4=0.5/h for one "
     "device; may be repeated"},
    {"samples", 0, "DEVICE=FILE",
     "times measured on DEVICE, as with `bourse devices`; may be repeated"},
    {"figure", 0, "DEVICE=NAME=VALUE",
     "a figure that the catalogue does not have: l4=memory=24GB; may be repeated"},
    {"pcie", 0, "RATE", "link between a device and its machine (31.5GB/s,5us)"},
    {"peer", 0, "RATE", "PCIe link between devices of one machine (none)"},
    {"fabric", 0, "RATE",
     "fabric between devices of one kind in a machine, or none (the catalogue's)"},
    {"network", 0, "RATE", "link between machines, or none (100Gbit/s,10us)"},
    {"storage", 0, "RATE", "how fast each device loads data, as in 7GB/s (unknown)"},
    {"stream", 0, NULL,
     "at each pass, load over PCIe the weights that the memory cannot hold (refuse the device)"},
    {"objective", 0, "OBJECTIVE", "time, price, energy or value (time)"},
    {"deadline", 0, "TIME", "the longest time that the plan may take, as in 10m"},
    {"budget", 0, "CREDITS", "the most that the plan may cost"},
    {"worth", 0, "CREDITS", "with --objective value: the worth of ending an hour sooner"},
    {"place", 0, "STEP=DEVICE", "the device on which a step must run; may be repeated"},
    {"fall-back", 0, NULL, "let a step that cannot run where it is placed run elsewhere"},
    {"svg", 0, "FILE", "also write the timeline as an SVG picture"},
    {"width", 0, "N", "columns of the timeline, 40 to 400 (the terminal's, else 80)"},
};
static const struct option_spec order_options[] = {
    {"price", 0, "CREDITS", "for an ask: the lowest price of a slot-hour; 0 is a donation"},
    {"slots", 0, "N", "for an ask: how many of the device's slots (all)"},
    {"for", 0, "TIME", "for `place`: how long the ask stands, 366d at most (until cancelled)"},
    {"max-term", 0, "TIME", "for `place`: the longest lease, 1m at least (any)"},
    {"order", 0, "TYPE", "for `place`: type of the ask: limit, ioc or post-only (limit)"},
    {"to", 0, "ACCOUNT", "for `place`: sell to this account only, by name or key; may be repeated"},
    {"hours", 0, "WINDOW",
     "for `place`: only at these hours, as in 22:00-07:00 or mon-fri 18:00-24:00; may be repeated"},
    {"daily", 0, "TIME", "for `place`: the most slot-hours in a day, 1m at least (any)"},
    {"utc-offset", 0, "OFFSET",
     "for `place`: time zone of --hours and --daily, as in +01:00 (+00:00)"},
    {"interruptible", 0, NULL, "for `place`: higher bids may take its leases (leases are firm)"},
    {"notice", 0, "TIME",
     "with --interruptible: time between the warning and the lease's end (30s)"},
    {"minimum-run", 0, "TIME", "with --interruptible: time before which no bid takes a lease (5m)"},
    {"cap", 0, "CREDITS", "for `replace` of a job: the highest price to pay per slot-hour"},
    {"value", 0, "TEXT", "for `replace` of a job by value: \"0.03 per bf16 TFLOP-hour\""},
    {"at-most", 0, "N", "for `replace` of a job: the most slots at a time; 0: all that it can use"},
    {"budget", 0, "CREDITS", "for `replace` of a job: a budget above the present one"},
};
static const struct option_spec trades_options[] = {
    {"limit", 'n', "N", "how many fills to show (20)"},
    {"follow", 'f', NULL,
     "oldest first, then new fills until Ctrl-C; with --json one value a line"},
};
static const struct option_spec prices_options[] = {
    {"since", 0, "TIME", "how far back to look: 1h, 2d (7d, which is all that is kept)"},
};
static const struct option_spec balance_options[] = {
    {"statement", 's', NULL, "also show the account's entries"},
    {"limit", 'n', "N", "how many entries to show (all)"},
};
static const struct option_spec ledger_options[] = {
    {"limit", 'n', "N", "how many entries to show (all)"},
};
static const struct option_spec receipt_options[] = {
    {"output", 'o', "DIR", "write one file per receipt into DIR"},
    {"all", 'a', NULL, "get the receipt of every subtask whose result was paid"},
};
static const struct option_spec verify_options[] = {
    {"key", 'k', "VERIFIER", "the log's public key, from `bourse key --log`"},
};
static const struct option_spec admin_options[] = {
    {"note", 0, "TEXT", "mint: the same as --reason"},
    {"role", 0, "ROLE",
     "invite: consumer, provider, referee, auditor or risk; may be repeated (consumer)"},
    {"credits", 0, "CREDITS", "invite: credits minted for the new account (0)"},
    {"expires", 0, "TIME", "invite: how long the invitation is valid (7d)"},
    {"name", 0, "NAME", "invite: name of the new account; owner: name of the accounts' owner"},
    {"least", 0, "PRICE", "bands: lowest price per slot-hour of an order; 0 is always allowed"},
    {"most", 0, "PRICE", "bands: highest price per slot-hour of an order"},
    {"notional", 0, "CREDITS", "bands: the most that one order may be worth, or none"},
    {"reason", 0, "TEXT", "mint, freeze, halt, bands, owner: the reason, kept in the audit log"},
    {"undo", 0, NULL, "freeze, halt, owner: take back an earlier freeze, halt or owner"},
};
static const struct option_spec config_options[] = {
    {"origin", 0, NULL, "show where each value comes from"},
};

static const struct command table[] = {
    {.name = "up",
     .arguments = "",
     .summary = "start a private market on this machine",
     OPTIONS(up_options),
     .flags = COMMAND_OFFLINE,
     .run = command_up,
     .details = "A broker and a provider agent run as two processes. Sockets in a private folder "
                "connect them.\n"
                "The first start makes the keys. Ctrl-C or `bourse down` ends the market."},
    {.name = "down",
     .arguments = "",
     .summary = "stop the market that `up` started",
     OPTIONS(down_options),
     .flags = COMMAND_OFFLINE,
     .run = command_down},
    {.name = "join",
     .arguments = "INVITATION",
     .summary = "redeem an invitation to a market",
     OPTIONS(join_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_join,
     .details = "Makes your key if you have none, and makes the market your default.\n"
                "\nWith --market, the market's file is written there instead: to a new folder of "
                "your own, or a file in one. The folder of a broker is refused."},
    {.name = "key",
     .arguments = "",
     .summary = "show your public key, or the public key of the market's log",
     OPTIONS(key_options),
     .run = command_key},
    {.name = "submit",
     .arguments = "FILE",
     .summary = "submit a job file",
     OPTIONS(submit_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_submit,
     .details = "Shows the plan and the quote, asks you, holds the budget and starts the job. The "
                "market gives back what the job does not use."},
    {.name = "run",
     .arguments = "[OPTIONS] -- PROGRAM [ARGUMENT ...]",
     .summary = "run a program on the market and wait for it",
     OPTIONS(run_options),
     .words_min = 1,
     .words_max = -1,
     .flags = COMMAND_STOPS_EARLY,
     .run = command_run,
     .details = "Prints what the program prints, and downloads its outputs. In arguments, {in}, "
                "{out}, {line}, {index} and {value} stand for the values of each subtask.\n\n"
                "`bourse run matmul A.npy B.npy -o C.npy` multiplies matrices: see `bourse run "
                "matmul --help`."},
    {.name = "quote",
     .arguments = "FILE",
     .summary = "show what a job would cost now",
     .words_min = 1,
     .words_max = 1,
     .run = command_quote},
    {.name = "plan",
     .arguments = "FILE|JOB|TEMPLATE",
     .summary = "show how a job would run, before anything is spent",
     OPTIONS(plan_options),
     .words_max = 1,
     .run = command_plan,
     .details = "FILE is a job file. For JOB, the plan has the rest of the job. The plan says "
                "which subtask runs where and when.\n\n"
                "With --dag instead of FILE, the command schedules tasks and asks no market. The "
                "file has each task's cost on each processor, and the bytes between tasks. The "
                "schedule stands beside a bound that no schedule can beat.\n\n"
                "With TEMPLATE, the command plans a kind of work on devices of the catalogue, or "
                "on those on offer, by time, price, energy or value. Write ./NAME for a file "
                "whose name is also a template's."},
    {.name = "ps",
     .arguments = "[JOB]",
     .summary = "list your jobs, or one with its tasks and leases",
     .words_max = 1,
     .run = command_ps,
     .details = JOB_WORDS},
    {.name = "logs",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "print what a job's programs printed",
     OPTIONS(logs_options),
     .words_min = 1,
     .words_max = 2,
     .run = command_logs,
     .details = JOB_WORDS},
    {.name = "fetch",
     .arguments = "JOB",
     .summary = "download a job's outputs",
     OPTIONS(fetch_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_fetch,
     .details = JOB_WORDS
     "\nNothing is overwritten. Another fetch of the job downloads only what is missing."},
    {.name = "watch",
     .arguments = "[JOB]",
     .summary = "show your open jobs live, or one of them, until they have ended",
     .words_max = 1,
     .run = command_watch,
     .details = JOB_WORDS "\n"
                          "Ctrl-C ends the view; the jobs go on."},
    {.name = "report",
     .arguments = "JOB",
     .summary = "show where a job's time and money went, device by device",
     OPTIONS(report_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_report,
     .details = JOB_WORDS
     "\nIn the timeline, the height of a column shows how busy its lane was. An x marks a "
     "failed attempt."},
    {.name = "history",
     .arguments = "JOB|FILE",
     .summary = "show how long a job's work was measured to take on this market",
     .words_min = 1,
     .words_max = 1,
     .run = command_history,
     .details = JOB_WORDS
     "\nFILE is a job file that may be submitted later. A row has the median of the last "
     "measured times of one program, size of inputs and class of devices, whoever ran "
     "it. The time of a class is the time on its fastest device. A device unlike its "
     "class has a row of its own, with the first digits of its id.\n\n"
     "A second table shows how many times as long each slower device takes for all "
     "work. The commands plan, quote and submit use these figures."},
    {.name = "cancel",
     .arguments = "JOB",
     .summary = "cancel a job; unused money comes back",
     .words_min = 1,
     .words_max = 1,
     .run = command_cancel,
     .details = JOB_WORDS},
    {.name = "judge",
     .arguments = "JOB",
     .summary = "compute the check of each result that one referee rejects",
     .words_min = 1,
     .words_max = 1,
     .run = command_judge,
     .details = JOB_WORDS
     "\nIn a job with `verify: cheap`, a result that one referee rejects is held until a "
     "referee of another owner has judged it. Where there is no such referee, this "
     "command computes the check from its seed and tells the market the outcome. "
     "Commands that wait for the job do the same."},
    {.name = "resume",
     .arguments = "JOB",
     .summary = "run again what failed or was cancelled in a job that has ended",
     OPTIONS(resume_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_resume,
     .details = JOB_WORDS
     "\nStarts a new job with the subtasks that are left. Accepted results stay, and the "
     "new job reads their outputs."},
    {.name = "explain",
     .arguments = "JOB|JOB/INDEX|JOB/TASK|ORDER|FILE",
     .summary = "say why a job, a subtask or an order waits, would wait, or has ended",
     .words_min = 1,
     .words_max = 1,
     .run = command_explain,
     .details = JOB_WORDS
     "\nJOB/INDEX or JOB/TASK is one subtask. ORDER is the bid of one part of a job, or "
     "an ask of this account. FILE is a job file."},
    {.name = "devices",
     .arguments = "[ID]",
     .summary = "list the devices on the market, or those of the catalogue",
     OPTIONS(devices_options),
     .words_max = 1,
     .run = command_devices,
     .details = "Lists the devices of all providers, with the price per slot-hour and the free "
                "slots. With ID, a label or the first digits of an id, it shows one device in "
                "full, each figure with its source.\n\n"
                "--catalogue and --estimate show published figures and ask no market; ID is then a "
                "name of the catalogue. --operations lists the operations that can be estimated."},
    {.name = "providers",
     .arguments = "",
     .summary = "list the providers",
     .run = command_providers},
    {.name = "book",
     .arguments = "",
     .summary = "show what is offered and what is wanted, by price",
     OPTIONS(book_options),
     .run = command_book,
     .details = "Lists asks by instrument and price, cheapest first. Then it lists the bids of "
                "jobs by needs and by the most that they pay per slot-hour. Bids have no names.\n\n"
                "--follow shows changes. On a terminal the book is drawn anew; elsewhere each "
                "level that changed is a line. With --json each line is the whole book. After a "
                "lost connection the command connects again and catches up."},
    {.name = "trades",
     .arguments = "",
     .summary = "show the market's last fills",
     OPTIONS(trades_options),
     .run = command_trades,
     .details = "Lists the newest fill first: time, instrument, slots, and price per slot-hour, "
                "without names.\n\n"
                "--follow goes on with new fills. A lost connection leaves none out."},
    {.name = "prices",
     .arguments = "[INSTRUMENT]",
     .summary = "show the prices paid lately, by instrument or minute by minute",
     OPTIONS(prices_options),
     .words_max = 1,
     .run = command_prices,
     .details =
         "With INSTRUMENT, a row has the first, highest, lowest and last price of one minute "
         "with a trade.\n\n"
         "Without INSTRUMENT, a row has these prices of one instrument; the instrument traded "
         "last comes first. Prices are per slot-hour. The market keeps 7 days, and 1440 minutes "
         "of one instrument. `bourse quote` suggests a cap from the last day."},
    {.name = "order",
     .arguments = "list | place DEVICE | replace ORDER | cancel ORDER",
     .summary = "list and change your own asks and bids",
     OPTIONS(order_options),
     .words_min = 1,
     .words_max = 2,
     .run = command_order,
     .details =
         "`list` shows in PLACE where an order stands among orders for the same kind of "
         "device, or with the same needs.\n\n"
         "`replace` gives an order other terms. ORDER is a job's id, one bid of a job, or an "
         "ask. A job takes --cap (or --value), --at-most and --budget; an ask takes --price "
         "and --slots. Fewer slots at the same price keep the place in the queue; any other "
         "change goes to its end. Leases stay as they are; above a lowered cap they stay "
         "until the end of their term.\n\n"
         "`place`, with a provider's key (--key), places an ask for a device that its agent "
         "offers now. DEVICE is an id, the beginning of an id, or a label of `bourse "
         "devices`. A device has one ask: a new ask replaces the old one, and leases stay "
         "as they are. The ask ends when it is cancelled, when --for is over, or when the "
         "agent connects, pauses or resumes. The agent's own ask then takes its place at "
         "once.\n\n"
         "`cancel` ends an ask; its leases run on. After the agent's own ask is cancelled, "
         "the device has no ask until the agent next connects, or until `bourse-provider "
         "resume`.\n\n"
         "Only jobs place bids, and a bid ends with its job: `bourse cancel`."},
    {.name = "balance",
     .arguments = "",
     .summary = "show your money",
     OPTIONS(balance_options),
     .run = command_balance},
    {.name = "ledger",
     .arguments = "",
     .summary = "show your account statement",
     OPTIONS(ledger_options),
     .run = command_ledger},
    {.name = "receipt",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "get proofs of a job's results",
     OPTIONS(receipt_options),
     .words_min = 1,
     .words_max = 2,
     .run = command_receipt,
     .details =
         JOB_WORDS "\nA receipt proves one result to anyone, offline: see `bourse help verify`."},
    {.name = "verify",
     .arguments = "FILE|DIR ...",
     .summary = "check receipts, offline",
     OPTIONS(verify_options),
     .words_min = 1,
     .words_max = -1,
     .run = command_verify,
     .details = "Needs only the log's public key. Without --key, the command takes the key of the "
                "market in use.\n"
                "DIR stands for every *.receipt in it. The exit status is 7 when a receipt is not "
                "what was signed."},
    {.name = "admin",
     .arguments = "mint WHO CREDITS|invite|freeze WHO|halt|bands|owner WHO...|accounts",
     .summary = "run the operator's commands",
     OPTIONS(admin_options),
     .words_min = 1,
     .words_max = 33,
     .run = command_admin,
     .details =
         "WHO is an account: its key, the first digits of its key (eight or more), or a name "
         "that no other account has.\n\n"
         "`halt` stops new jobs, new asks and fills. Leases run on to the end of their term "
         "and are paid; none is renewed.\n\n"
         "`freeze` ends an account's leases and asks, and cancels its jobs.\n\n"
         "`bands` bounds new and replaced orders, not orders that rest. Without options, "
         "`bands` shows the bands. An order is worth price x slots x time; the order of a job "
         "is worth at most its budget.\n\n"
         "`owner` names the owner of accounts. Accounts of one owner do not judge one "
         "another's results. An account that nobody named is its own owner."},
    {.name = "config",
     .arguments = "show",
     .summary = "show the settings in force",
     OPTIONS(config_options),
     .words_max = 1,
     .run = command_config},
    {.name = "completion",
     .arguments = "bash|zsh|fish",
     .summary = "print a shell's completion of this command line",
     .words_min = 1,
     .words_max = 1,
     .flags = COMMAND_OFFLINE,
     .run = command_completion,
     .details = "bash: source <(bourse completion bash)\n"
                "zsh:  source <(bourse completion zsh)    after compinit\n"
                "fish: bourse completion fish | source"},
    {.name = "version",
     .arguments = "",
     .summary = "print the version",
     .flags = COMMAND_OFFLINE,
     .run = command_version},
    {.name = "help",
     .arguments = "[COMMAND]",
     .summary = "show this list, or help on one command",
     .words_max = 2,
     .flags = COMMAND_OFFLINE,
     .run = command_help},
};

/* Templates of `run` have their full name here; users write the word after "run ". */
static const struct command template_table[] = {
    {.name = "run matmul",
     .arguments = "A.npy B.npy -o C.npy",
     .summary = "multiply two matrices on all devices that make it faster",
     OPTIONS(matmul_options),
     .words_max = 2,
     .run = command_matmul,
     .details = "The matrices are .npy files of float32. The command cuts C into tiles and spreads "
                "them over devices by the speeds that these declare. Then it puts C together and "
                "checks it. With --resume, A and B may be left out; then nothing is checked.\n\n"
                "With --verify cheap, a referee checks each tile. A wrong tile is not paid, and "
                "another agent computes it again. A referee is an agent whose account has that "
                "role and that made none of the tiles it checks. Checks are work and are paid.\n\n"
                "To run a program called matmul, write `bourse run -- matmul`."},
};

const struct command *command_templates(size_t *ret_count)
{
    *ret_count = sizeof template_table / sizeof *template_table;
    return template_table;
}

const struct command *command_template_find(const char *word)
{
    for (size_t i = 0; i < sizeof template_table / sizeof *template_table; i++) {
        if (strcmp(template_table[i].name + strlen("run "), word) == 0) {
            return &template_table[i];
        }
    }
    return NULL;
}

const struct command *command_list(size_t *ret_count)
{
    *ret_count = sizeof table / sizeof *table;
    return table;
}

const struct option_spec *command_common_options(size_t *ret_count)
{
    *ret_count = sizeof common / sizeof *common;
    return common;
}

const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].name, name) == 0) {
            return &table[i];
        }
    }
    return NULL;
}
