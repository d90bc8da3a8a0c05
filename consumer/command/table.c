/* This file holds the table of subcommands. docs/man/bourse.1 follows it; a test compares the
 * two. */
#include "consumer/command/command.h"

#include <string.h>

#define OPTIONS(list) .options = (list), .option_count = sizeof(list) / sizeof *(list)
#define JOB_WORDS "JOB is an id, its first digits, or `last`."

static const struct option_spec common[] = {
    {"json", 0, NULL, "one JSON value on stdout, errors too"},
    {"quiet", 'q', NULL, "print ids only, and no progress unless asked for"},
    {"market", 'm', "PATH", "the market's folder, or its market.yaml"},
    {"key", 'k', "FILE", "the account's key file"},
    {"timeout", 0, "TIME", "how long to wait for one answer (30s)"},
    {"color", 0, "WHEN", "auto, always or never"},
    {"help", 'h', NULL, "this text"},
};

static const struct option_spec up_options[] = {
    {"dir", 'd', "DIR", "the market's private folder"},
    {"price", 0, "CREDITS", "asked per slot-hour (0.10)"},
    {"credits", 0, "CREDITS", "minted for you on the first start (1000)"},
    {"slots", 0, "N", "cores to offer (all)"},
    {"programs", 0, "LIST", "programs that jobs may run, separated by commas"},
    {"user", 0, "NAME", "whom the agent becomes when root starts it (bourse)"},
    {"detach", 0, NULL, "leave both running in the background"},
    {"wait", 0, "TIME", "how long to wait until a device is on offer (2m)"},
};
static const struct option_spec down_options[] = {
    {"dir", 'd', "DIR", "the market's private folder (the one in use)"},
    {"wait", 0, "TIME", "how long to wait until they are gone (30s)"},
};
static const struct option_spec join_options[] = {
    {"name", 0, "NAME", "what the operator sees you as"},
};
static const struct option_spec key_options[] = {
    {"log", 0, NULL, "the public key of the market's log, for `bourse verify`"},
};
#define WATCH_OPTIONS                                                                              \
    {"progress", 0, NULL, "show progress also when stderr is no terminal"},                        \
    {                                                                                              \
        "wait-at-most", 0, "TIME", "stop waiting after this long (exit status 8)"                  \
    }
static const struct option_spec submit_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"budget", 0, "CREDITS", "hard ceiling (the job's, else as quoted)"},
    {"order", 0, "TYPE", "limit, ioc, fok, post-only or all-or-none (the job's, else limit)"},
    {"anyway", 0, NULL, "place it also when nothing fits or sells at this budget yet"},
    {"wait", 'w', NULL, "wait until the job has ended"},
    WATCH_OPTIONS,
    {"output", 'o', "DIR", "with --wait: fetch the outputs into DIR"},
};
static const struct option_spec resume_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"budget", 0, "CREDITS", "hard ceiling (as quoted)"},
    {"cap", 0, "CREDITS", "most to pay per slot-hour"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"good-till", 0, "TIME", "cancel what has not started by then, as in 2h (as the job said)"},
    {"files", 0, "DIR", "where the job's files are, if the broker lost any (the current folder)"},
    {"image", 0, "TAR", "the job's image, if the broker lost it"},
    {"anyway", 0, NULL, "place it also when nothing fits or sells yet, or a lost file is not here"},
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
    {"image", 0, "TAR", "root file system to run in"},
    {"env", 'e', "NAME=VALUE", "an environment variable; may be repeated"},
    {"stdin", 0, "TEXT", "standard input; \"{in}\" is the file's content"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"slots", 0, "N", "slots of one device for one subtask (1)"},
    {"at-most", 0, "N", "slots at a time"},
    {"limit", 0, "TIME", "wall time of one subtask (10m)"},
    {"expect", 0, "TIME", "about how long one subtask takes, for the quote"},
    {"cap", 0, "CREDITS", "most to pay per slot-hour"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"budget", 0, "CREDITS", "hard ceiling (default: as quoted)"},
    {"retries", 0, "N", "tries more for a program that fails"},
    {"good-till", 0, "TIME", "cancel what has not started by then, as in 2h (never)"},
    {"order", 0, "TYPE", "limit, ioc, fok, post-only or all-or-none (limit)"},
    {"crash-limit", 0, "N", "tries lost by their providers' fault that a subtask bears (2)"},
    {"checkpoint", 0, "DIR", "folder where it saves its state when it is told to end (none)"},
    {"interruptions", 0, "N", "so many leases may be taken from it, then only firm ones (any)"},
    {"name", 0, "NAME", "of the job"},
    {"anyway", 0, NULL, "place it also when nothing fits or sells at this budget yet"},
    {"exit-code", 0, NULL, "end with the program's own exit status"},
    {"raw", 0, NULL, "print on a terminal, too, exactly what the program printed"},
    WATCH_OPTIONS,
};
static const struct option_spec matmul_options[] = {
    {"output", 'o', "FILE", "the product, a .npy file"},
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"tiles", 0, "RxC", "blocks of A's rows and of B's columns (as the devices suggest)"},
    {"at-most", 0, "N", "slots at a time"},
    {"cap", 0, "CREDITS", "most to pay per slot-hour"},
    {"budget", 0, "CREDITS", "hard ceiling (default: as quoted)"},
    {"verify", 0, "LEVEL", "none, or cheap: a referee checks each tile before it is paid (none)"},
    {"no-check", 0, NULL, "take the product as it comes, without Freivalds' check"},
    {"resume", 0, "JOB", "go on with a product: fetch its tiles, compute those missing"},
    WATCH_OPTIONS,
};
static const struct option_spec logs_options[] = {
    {"stderr", 0, NULL, "what the program wrote to standard error"},
    {"follow", 'f', NULL, "wait for what is still to come"},
    {"raw", 0, NULL, "print on a terminal, too, exactly what the program printed"},
};
static const struct option_spec fetch_options[] = {
    {"output", 'o', "DIR", "where outputs go (a new folder named by the job's id)"},
    {"progress", 0, NULL, "show progress also when stderr is no terminal"},
};
static const struct option_spec devices_options[] = {
    {"needs", 0, "TEXT", "only those that have it: \"kind = gpu and memory >= 40GiB\""},
    {"catalogue", 0, NULL, "what is known of devices by name, offline; of ID alone in full"},
    {"estimate", 0, "OPERATION", "what it takes on those: \"matmul:4096x4096x4096:bf16\""},
    {"samples", 0, "FILE", "times measured on ID, to estimate by: lines of OPERATION and time"},
    {"operations", 0, NULL, "the operations that can be estimated: shapes, options, types"},
};
static const struct option_spec report_options[] = {
    {"svg", 0, "FILE", "write the timeline as a picture"},
    {"width", 0, "N", "columns of the timeline, 40 to 400 (the terminal's, else 80)"},
};
static const struct option_spec book_options[] = {
    {"needs", 0, "TEXT", "only the asks of devices that have it: \"kind = gpu\""},
    {"instrument", 0, "NAME", "only the asks for this one: cpu.x86_64.avx512"},
    {"follow", 'f', NULL, "live, until Ctrl-C; with --json one value a line"},
};
static const struct option_spec plan_options[] = {
    {"dag", 0, "FILE", "a task graph in JSON (bourse-dag-1), to be scheduled offline"},
    {"scheduler", 0, "SCHEDULER", "of --dag: auto, heft, peft, cpop, exact ... (auto)"},
    {"contended", 0, NULL, "of --dag: links carry one transfer at a time (any number)"},
    {"templates", 0, NULL, "the templates there are; of TEMPLATE its parameters"},
    {"file", 'f', "FILE", "what to plan, in YAML: template, parameters, devices, limits"},
    {"set", 0, "NAME=VALUE", "a parameter of the template; may be repeated"},
    {"batch", 0, "N", "the template's batch, whatever its parameter is called"},
    {"devices", 0, "LIST", "h100:8,tpu-v5p:4@4.20: of the catalogue, with prices; or `market`"},
    {"on-offer", 0, NULL, "the devices on offer now, as --devices market"},
    {"interruptible", 0, "RISK",
     "0.5/h,2m: taken away, back after; l4=0.5/h of one; may be repeated"},
    {"samples", 0, "DEVICE=FILE", "times measured on that one, as of `devices`; may be repeated"},
    {"figure", 0, "DEVICE=NAME=VALUE", "l4=memory=24GB: of a device, where it is not known"},
    {"pcie", 0, "RATE", "between devices and their machine (31.5GB/s,5us)"},
    {"peer", 0, "RATE", "PCIe between devices of a machine, where they may (none)"},
    {"fabric", 0, "RATE", "between alike devices of one machine (the catalogue's; or none)"},
    {"network", 0, "RATE", "between machines (100Gbit/s,10us; or none)"},
    {"storage", 0, "RATE", "how fast each device loads data, as in 7GB/s (not known)"},
    {"stream", 0, NULL, "weights that do not fit come over PCIe at each pass (they are refused)"},
    {"objective", 0, "OBJECTIVE", "time, price, energy or value (time)"},
    {"deadline", 0, "TIME", "the plan may take, as in 10m"},
    {"budget", 0, "CREDITS", "the plan may cost"},
    {"worth", 0, "CREDITS", "of value: what an hour sooner is worth"},
    {"place", 0, "STEP=DEVICE", "where a step has to be; may be repeated"},
    {"fall-back", 0, NULL, "a step that cannot run where it is placed may be anywhere"},
    {"svg", 0, "FILE", "write the timeline as a picture"},
    {"width", 0, "N", "columns of the timeline, 40 to 400 (the terminal's, else 80)"},
};
static const struct option_spec order_options[] = {
    {"price", 0, "CREDITS", "of an ask: the least for a slot and an hour; 0 is a donation"},
    {"slots", 0, "N", "of an ask: so many of the device's slots (all)"},
    {"for", 0, "TIME", "of `place`: good for so long, 366d at most (until cancelled)"},
    {"max-term", 0, "TIME", "of `place`: no longer leases than this, 1m at least (any)"},
    {"order", 0, "TYPE", "of `place`: limit, ioc or post-only (limit)"},
    {"to", 0, "ACCOUNT", "of `place`: only for jobs of this one, by name or key; may be repeated"},
    {"hours", 0, "WINDOW", "of `place`: only at 22:00-07:00, mon-fri 18:00-24:00; may be repeated"},
    {"daily", 0, "TIME", "of `place`: so many slot-hours a day, 1m at least (any)"},
    {"utc-offset", 0, "OFFSET", "of `place`: of these hours and days, as in +01:00 (+00:00)"},
    {"interruptible", 0, NULL, "of `place`: higher bids may take its leases (they are firm)"},
    {"notice", 0, "TIME", "of an interruptible one: told so long before its end (30s)"},
    {"minimum-run", 0, "TIME", "of an interruptible one: nobody takes it before (5m)"},
    {"cap", 0, "CREDITS", "of `replace` for a job: the most for a slot and an hour"},
    {"value", 0, "TEXT", "of `replace` for a job by value: \"0.03 per bf16 TFLOP-hour\""},
    {"at-most", 0, "N", "of `replace` for a job: so many slots at a time; 0: all it can use"},
    {"budget", 0, "CREDITS", "of `replace` for a job: its budget, more than it was"},
};
static const struct option_spec trades_options[] = {
    {"limit", 'n', "N", "at most so many (20)"},
    {"follow", 'f', NULL,
     "oldest first, then those that come, until Ctrl-C; with --json one value a line"},
};
static const struct option_spec prices_options[] = {
    {"since", 0, "TIME", "how far back: 1h, 2d (7d, as far as they are kept)"},
};
static const struct option_spec balance_options[] = {
    {"statement", 's', NULL, "the account's entries as well"},
    {"limit", 'n', "N", "at most so many entries (all)"},
};
static const struct option_spec ledger_options[] = {
    {"limit", 'n', "N", "at most so many entries (all)"},
};
static const struct option_spec receipt_options[] = {
    {"output", 'o', "DIR", "write one file per receipt into DIR"},
    {"all", 'a', NULL, "of every subtask whose result was paid"},
};
static const struct option_spec verify_options[] = {
    {"key", 'k', "VERIFIER", "the log's public key, from `bourse key --log`"},
};
static const struct option_spec admin_options[] = {
    {"note", 0, "TEXT", "mint: the same as --reason"},
    {"role", 0, "ROLE",
     "invite: consumer, provider, referee, auditor or risk; may be repeated (consumer)"},
    {"credits", 0, "CREDITS", "invite: minted for who redeems it (0)"},
    {"expires", 0, "TIME", "invite: how long it is good for (7d)"},
    {"name", 0, "NAME", "invite: of the account to be; owner: whose these accounts are"},
    {"least", 0, "PRICE", "bands: lowest price per slot-hour of an order, but for 0"},
    {"most", 0, "PRICE", "bands: highest price per slot-hour of an order"},
    {"notional", 0, "CREDITS", "bands: what one order may come to, or none"},
    {"reason", 0, "TEXT", "mint, freeze, halt, bands, owner: why; stands in the audit log"},
    {"undo", 0, NULL, "freeze, halt, owner: end it"},
};
static const struct option_spec config_options[] = {
    {"origin", 0, NULL, "where each value comes from"},
};

static const struct command table[] = {
    {.name = "up",
     .arguments = "",
     .summary = "start a private market on this machine",
     OPTIONS(up_options),
     .flags = COMMAND_OFFLINE,
     .run = command_up,
     .details = "A broker and a provider agent, as processes of their own, over sockets in a "
                "private folder.\n"
                "Keys are made on the first start. Ends with Ctrl-C, or with `bourse down`."},
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
     .details = "Makes your key if you have none, and keeps the market as your default."},
    {.name = "key",
     .arguments = "",
     .summary = "show your public key, made on first use, or the log's",
     OPTIONS(key_options),
     .run = command_key},
    {.name = "submit",
     .arguments = "FILE",
     .summary = "submit a job file",
     OPTIONS(submit_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_submit,
     .details = "Shows the plan and the quote, asks, then holds the budget and starts. What is not "
                "used comes back."},
    {.name = "run",
     .arguments = "[OPTIONS] -- PROGRAM [ARGUMENT ...]",
     .summary = "run a program on the market and wait for it",
     OPTIONS(run_options),
     .words_min = 1,
     .words_max = -1,
     .flags = COMMAND_STOPS_EARLY,
     .run = command_run,
     .details = "Prints what the program prints, and brings back its outputs. In arguments, {in}, "
                "{out}, {line},\n"
                "{index} and {value} stand for the subtask's own.\n"
                "`bourse run matmul A.npy B.npy -o C.npy` multiplies matrices: see `bourse run "
                "matmul --help`."},
    {.name = "quote",
     .arguments = "FILE",
     .summary = "what a job would cost now",
     .words_min = 1,
     .words_max = 1,
     .run = command_quote},
    {.name = "plan",
     .arguments = "FILE|JOB|TEMPLATE",
     .summary = "how a job would run, before anything is spent",
     OPTIONS(plan_options),
     .words_max = 1,
     .run = command_plan,
     .details =
         "Of FILE, a job file, and of JOB, what is left of it: which subtask runs where and when.\n"
         "With --dag instead of FILE, no market is asked: tasks with their cost on each "
         "processor,\n"
         "and bytes between them, become a schedule, beside a bound that none can beat.\n"
         "With TEMPLATE, nor is it: the work is put on devices of the catalogue, or on those\n"
         "on offer, by time, price, energy or value. ./NAME is a file of a template's name."},
    {.name = "ps",
     .arguments = "[JOB]",
     .summary = "list your jobs, or one with its tasks and leases",
     .words_max = 1,
     .run = command_ps,
     .details = JOB_WORDS},
    {.name = "logs",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "what a job's programs printed",
     OPTIONS(logs_options),
     .words_min = 1,
     .words_max = 2,
     .run = command_logs,
     .details = JOB_WORDS},
    {.name = "fetch",
     .arguments = "JOB",
     .summary = "bring a job's outputs home",
     OPTIONS(fetch_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_fetch,
     .details = JOB_WORDS "\nNothing is overwritten; repeating it fetches only what is missing."},
    {.name = "watch",
     .arguments = "[JOB]",
     .summary = "a live view of your open jobs, or of one, until they have ended",
     .words_max = 1,
     .run = command_watch,
     .details = JOB_WORDS "\nCtrl-C leaves the view; jobs go on."},
    {.name = "report",
     .arguments = "JOB",
     .summary = "where a job's time and money went, device by device",
     OPTIONS(report_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_report,
     .details = JOB_WORDS
     "\nA column of the timeline is as high as its lane was busy; x is where an attempt failed."},
    {.name = "history",
     .arguments = "JOB|FILE",
     .summary = "what a job's work was measured to take on this market",
     .words_min = 1,
     .words_max = 1,
     .run = command_history,
     .details = JOB_WORDS
     "\nOf a job, or of a job file, before it is submitted: for each program, "
     "size of inputs and class "
     "of devices the median of the last measured times, by whomever, each as on the fastest device "
     "of the class; and as it is of each device (the beginning of its id) that is unlike that. "
     "Then "
     "how many times as long devices that are slower take at all work. plan, quote and submit go "
     "by them."},
    {.name = "cancel",
     .arguments = "JOB",
     .summary = "cancel a job; unused money comes back",
     .words_min = 1,
     .words_max = 1,
     .run = command_cancel,
     .details = JOB_WORDS},
    {.name = "judge",
     .arguments = "JOB",
     .summary = "compute the checks of what one referee rejects",
     .words_min = 1,
     .words_max = 1,
     .run = command_judge,
     .details = JOB_WORDS
     "\nOf a job of `verify: cheap`: a result that one referee rejects is held until a referee of "
     "another\nowner has judged it, too. Where there is none, this computes the check from its "
     "seed and tells\nthe market what it found. Whoever waits for the job does so by itself."},
    {.name = "resume",
     .arguments = "JOB",
     .summary = "run what failed of a job that has ended, or was cancelled",
     OPTIONS(resume_options),
     .words_min = 1,
     .words_max = 1,
     .run = command_resume,
     .details =
         JOB_WORDS "\nA new job of what is left; what was accepted stays, and its outputs are "
                   "given to the rest."},
    {.name = "explain",
     .arguments = "JOB|JOB/INDEX|JOB/TASK|ORDER|FILE",
     .summary = "why a job, a subtask or an order waits, or would, or how it ended",
     .words_min = 1,
     .words_max = 1,
     .run = command_explain,
     .details =
         JOB_WORDS "\nJOB/INDEX or JOB/TASK is one subtask. ORDER is the bid of one part of a "
                   "job, or an ask of this account."},
    {.name = "devices",
     .arguments = "[ID]",
     .summary = "list the devices on the market, or those that are known",
     OPTIONS(devices_options),
     .words_max = 1,
     .run = command_devices,
     .details =
         "Those of all providers, with what each asks per slot-hour and what is free of it; one in "
         "full, each figure with\nits source, by its label or the first digits of its id.\n"
         "With --catalogue or --estimate, what is published of devices, ID being one of them; "
         "no market is asked. --operations lists what can be estimated."},
    {.name = "providers",
     .arguments = "",
     .summary = "list the providers",
     .run = command_providers},
    {.name = "book",
     .arguments = "",
     .summary = "show what is offered and what is wanted, by price",
     OPTIONS(book_options),
     .run = command_book,
     .details = "Asks by instrument and price, cheapest first; then what jobs still want, by what "
                "they need "
                "and the most\nthey pay per slot-hour. Bids are without names.\n"
                "--follow shows it as it changes: on a terminal drawn anew, elsewhere a line for "
                "each level that\nchanged, with --json the whole book a line. A lost connection is "
                "made again, and what was missed\ncaught up with."},
    {.name = "trades",
     .arguments = "",
     .summary = "the market's last fills",
     OPTIONS(trades_options),
     .run = command_trades,
     .details = "Newest first: when, which instrument, how many slots, at what price per "
                "slot-hour. Without "
                "names.\n--follow goes on with those that come; none is left out when the "
                "connection is lost meanwhile."},
    {.name = "prices",
     .arguments = "[INSTRUMENT]",
     .summary = "what was paid lately, by instrument or minute by minute",
     OPTIONS(prices_options),
     .words_max = 1,
     .run = command_prices,
     .details = "Of INSTRUMENT the first, highest, lowest and last price of every minute in which "
                "it was traded;\nwithout one, those of all the time, what was traded last first. "
                "Prices are per slot-hour. The\nmarket keeps 7 days, and of one instrument 1440 "
                "minutes. `bourse quote` suggests a cap from the last day."},
    {.name = "order",
     .arguments = "list | place DEVICE | replace ORDER | cancel ORDER",
     .summary = "your own asks and bids",
     OPTIONS(order_options),
     .words_min = 1,
     .words_max = 2,
     .run = command_order,
     .details =
         "PLACE is where an order stands among those for the same kind of device, or with the same "
         "needs.\n`replace` gives a job (its id), one bid of it, or an ask other terms, without "
         "sending it "
         "again: --cap\n(or --value), --at-most and --budget of a job, --price and --slots of an "
         "ask. Fewer "
         "slots at "
         "the same price keep\nthe place in the queue, anything else goes to its end. What is "
         "leased "
         "stays leased; above a lowered\ncap only to the end of its term.\n`place`, with the key "
         "of a provider (--key), asks for slots of a device that its "
         "agent offers\nnow: an id or the beginning of it, or a label of `bourse devices`. A "
         "device "
         "has one ask, and the\nnew one replaces it; what is leased stays leased. It stands until "
         "it is cancelled, --for is over, or\nthe agent offers anew: when it connects, pauses or "
         "resumes. However it ends, the agent's own\nask takes its place at once. An ask that is "
         "cancelled fills no more; its leases run on. The agent's own,\ncancelled, stays away "
         "until "
         "it next connects, or until `bourse-provider resume`.\nBids are placed by jobs: one "
         "without a job would buy nothing "
         "to run. A job's bid ends with the job:\n`bourse cancel`."},
    {.name = "balance",
     .arguments = "",
     .summary = "your money",
     OPTIONS(balance_options),
     .run = command_balance},
    {.name = "ledger",
     .arguments = "",
     .summary = "your account statement",
     OPTIONS(ledger_options),
     .run = command_ledger},
    {.name = "receipt",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "proofs of a job's results",
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
     .details =
         "Needs nothing but the log's public key; without --key, that of the market in use.\n"
         "Of a folder, every *.receipt in it. Exit status 7 when any is not what was signed."},
    {.name = "admin",
     .arguments = "mint WHO CREDITS|invite|freeze WHO|halt|bands|owner WHO...|accounts",
     .summary = "the operator's commands",
     OPTIONS(admin_options),
     .words_min = 1,
     .words_max = 33,
     .run = command_admin,
     .details =
         "WHO is an account: its key, the first digits of its key, or its name.\n"
         "A halt takes no new jobs and asks and fills nothing; leases that stand run on to the "
         "end of\n"
         "their term and are paid, none is renewed. A freeze ends an account's leases and "
         "asks, and\n"
         "cancels its jobs. Bands hold for orders that come, or are replaced; without "
         "options they are\n"
         "shown. What one order comes to is its price x slots x time, of a job no more "
         "than its budget.\n"
         "Accounts of one owner do not judge one another's results; an account that nobody "
         "named is its\nown owner."},
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
     .summary = "this list, or help on one command",
     .words_max = 2,
     .flags = COMMAND_OFFLINE,
     .run = command_help},
};

/* Templates of `run` have their full name here; users write the word after "run ". */
static const struct command template_table[] = {
    {.name = "run matmul",
     .arguments = "A.npy B.npy -o C.npy",
     .summary = "multiply two matrices on all devices that help",
     OPTIONS(matmul_options),
     .words_max = 2,
     .run = command_matmul,
     .details = "The matrices are .npy files of float32. C is cut into tiles, spread over devices "
                "by the speeds\n"
                "that they declare, put together here and checked. With --resume, A and B may be "
                "left out: "
                "nothing is checked\n"
                "then. A program called matmul is run with `bourse run -- matmul`.\n"
                "With --verify cheap a wrong tile is not paid and is computed again by somebody "
                "else. It takes an agent whose\n"
                "account has the role referee and that made none of the tiles it checks; "
                "checks are work, and are paid."},
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
