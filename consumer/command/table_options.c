#include "consumer/command/table_options.h"

/* The options that only experts need come last in each list. */
#define LIST(name, of_experts)                                                                     \
    const struct option_list options_of_##name = {.items = (name##_options),                       \
                                                  .count = sizeof(name##_options) /                \
                                                           sizeof *(name##_options),               \
                                                  .expert_count = (of_experts)}

static const struct option_spec common_options[] = {
    {"json", 0, NULL, "one JSON value on stdout, errors too"},
    {"quiet", 'q', NULL,
     "print only ids, if there are any; no progress unless asked for; failures are told"},
    {"market", 'm', "PATH", "the market's folder, or its market.yaml"},
    {"key", 'k', "FILE", "the account's key file"},
    {"timeout", 0, "TIME", "how long to wait for one answer (30s)"},
    {"read-from", 0, "WHO",
     "who may answer reads: leader, any broker, or any that has command N (leader)"},
    {"color", 0, "WHEN", "when to use colour: auto, always or never (auto)"},
    {"help", 'h', NULL, "show this text"},
};

static const struct option_spec up_options[] = {
    {"dir", 'd', "DIR", "the market's private folder"},
    {"price", 0, "CREDITS", "price to ask per slot-hour (0.10)"},
    {"credits", 0, "CREDITS", "credits to mint for you on the first start (1000)"},
    {"slots", 0, "N", "slots to offer, one core each (all)"},
    {"detach", 0, NULL, "leave broker and agent running in the background"},
    {"wait", 0, "TIME", "how long to wait until a device is on offer (2m)"},
    {"user", 0, "NAME", "user that the agent becomes when root starts it (bourse)"},
    {"programs", 0, "LIST", "programs that jobs may run, separated by commas"},
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
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"budget", 0, "CREDITS", "the most that the job may cost (the job file's, else as quoted)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour (the job file's)"},
    {"after", 0, "JOB",
     "wait until this job has succeeded, then submit; needs -y; may be repeated"},
    {"wait", 'w', NULL, "wait until the job has ended"},
    WATCH_OPTIONS,
    {"output", 'o', "DIR", "wait, and fetch the outputs into DIR"},
    {"value", 0, "TEXT",
     "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\" (the job file's)"},
    {"order", 0, "TYPE",
     "type of the bid: market, limit, ioc, fok, post-only or all-or-none (the job's, else market)"},
    {"anyway", 0, NULL, "submit even when nothing fits or sells yet, or the deadline is missed"},
};
static const struct option_spec resume_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"wait", 'w', NULL, "wait until the job has ended"},
    WATCH_OPTIONS,
    {"output", 'o', "DIR", "wait, and fetch the outputs into DIR"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"good-till", 0, "TIME",
     "cancel subtasks that have not started after this time: 2h (the job's)"},
    {"deadline", 0, "TIME",
     "end the job after this time, as 2h, or at a moment of UTC; results stay (the job's)"},
    {"files", 0, "DIR", "where the job's files are, if the broker lost any (the current folder)"},
    {"image", 0, "IMAGE", "the job's image, if the broker lost it"},
    {"anyway", 0, NULL,
     "submit even when nothing fits or sells yet, a file is lost, or the deadline is missed"},
};
static const struct option_spec run_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"each", 0, "PATTERN", "one subtask per file that matches; may be repeated"},
    {"array", 0, "RANGE", "one subtask per number: 1-100, 0-90:10"},
    {"lines", 0, "FILE", "one subtask per line"},
    {"file", 'f', "FILE", "an input of every subtask: file, folder or pattern; may be repeated"},
    {"workdir", 0, "DIR", "send every file below DIR, but what DIR/.bourseignore leaves out"},
    {"out", 0, "NAME",
     "an output to bring back: \"{out}\", a folder results/, or a pattern 'part-*' (-o says where "
     "to); may be repeated"},
    {"output", 'o', "DIR", "where outputs go (the current folder)"},
    {"image", 0, "IMAGE",
     "what to run in: a container image (folder, tar, docker://NAME:TAG) or a tar of a root"},
    {"env", 'e', "NAME=VALUE", "an environment variable; may be repeated"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"at-most", 0, "N", "the most slots at a time"},
    {"limit", 0, "TIME", "wall time of one subtask (no limit)"},
    {"term", 0, "TIME", "how long slots are leased at a time (twice the limit; 20m without one)"},
    {"expect", 0, "TIME", "about how long one subtask takes, for the quote"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"name", 0, "NAME", "name of the job"},
    WATCH_OPTIONS,
    {"entrypoint", 0, "PROGRAM", "instead of the image's entrypoint; \"\": none"},
    {"directory", 0, "PATH", "where the program starts, instead of the image's folder: /work"},
    {"host-libraries", 0, NULL, "send your own program without its libraries"},
    {"stdin", 0, "TEXT", "standard input, instead of the pipe; \"{in}\": the subtask's file"},
    {"retries", 0, "N", "how many more times to try a program that fails"},
    {"after", 0, "JOB",
     "wait until this job has succeeded, then submit; needs -y; may be repeated"},
    {"exit-code", 0, NULL, "end with the program's own exit status"},
    {"slots", 0, "N", "how many slots of one device a subtask takes (1)"},
    {"value", 0, "TEXT", "instead of a cap: what work is worth, \"0.02 per bf16 TFLOP-hour\""},
    {"good-till", 0, "TIME", "cancel subtasks that have not started after this time: 2h (never)"},
    {"deadline", 0, "TIME",
     "end the job after this time, as 2h, or at a moment of UTC; results stay (never)"},
    {"objective", 0, "NAME", "what to keep low: time, price or energy (time)"},
    {"order", 0, "TYPE",
     "type of the bid: market, limit, ioc, fok, post-only or all-or-none (market)"},
    {"crash-limit", 0, "N", "how many attempts of a subtask may fail by a provider's fault (2)"},
    {"interruptions", 0, "N",
     "how many leases may be taken from the job before it uses only firm ones (any)"},
    {"checkpoint", 0, "DIR", "folder where the program saves its state when told to end (none)"},
    {"raw", 0, NULL, "print the program's bytes unchanged, even on a terminal"},
    {"anyway", 0, NULL, "submit even when nothing fits or sells yet, or the deadline is missed"},
};
static const struct option_spec shell_options[] = {
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"slots", 0, "N", "how many slots of one device the shell takes (1)"},
    {"image", 0, "IMAGE",
     "what to run in: a container image (folder, tar, docker://NAME:TAG) or a tar of a root"},
    {"entrypoint", 0, "PROGRAM", "instead of the image's entrypoint; \"\": none"},
    {"directory", 0, "PATH", "where the program starts, instead of the image's folder: /work"},
    {"file", 'f', "FILE", "an input: file, folder or pattern; may be repeated"},
    {"workdir", 0, "DIR", "send every file below DIR, but what DIR/.bourseignore leaves out"},
    {"env", 'e', "NAME=VALUE", "an environment variable; may be repeated"},
    {"limit", 0, "TIME", "the longest time that the shell may last (1h)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the shell may cost (as quoted)"},
    {"name", 0, "NAME", "name of the job"},
    {"anyway", 0, NULL, "start even when no device fits, or none sells at this budget yet"},
};
static const struct option_spec matmul_options[] = {
    {"output", 'o', "FILE", "the product, a .npy file"},
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"at-most", 0, "N", "the most slots at a time"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"verify", 0, "LEVEL", "none, or cheap: a referee checks each tile before it is paid (none)"},
    {"resume", 0, "JOB", "continue a product: fetch its tiles and compute the missing ones"},
    WATCH_OPTIONS,
    {"tiles", 0, "RxC",
     "blocks of A's rows and of B's columns, as in 4x8 (planned from the devices)"},
    {"no-check", 0, NULL, "take the product without Freivalds' check on this machine"},
};
static const struct option_spec model_options[] = {
    {"input", 0, "NAME=FILE",
     "the array of an input: x=a.npy, or x=a.bin:float32[1,3] without a header; may be repeated"},
    {"prompt", 0, "TEXT", "the text that a language model goes on with; may be repeated"},
    {"prompts", 0, "FILE", "a file with one prompt in each line, and one subtask for each"},
    {"batch", 0, "N",
     "so many prompts share a step of the model; the lines of --prompts become one subtask (8)"},
    {"tokenizer", 0, "FILE", "the model's tokenizer (tokenizer.json beside the model)"},
    {"max-tokens", 0, "N", "how many tokens a prompt gets at most (128)"},
    {"temperature", 0, "T",
     "how freely tokens are drawn, 0 to 10: 0.8 (0: the likeliest each time)"},
    {"top-k", 0, "K", "draw only from so many of the likeliest tokens (all)"},
    {"seed", 0, "N", "the seed of what is drawn (0)"},
    {"context", 0, "N", "how many tokens the model has places for (config.json)"},
    {"output", 'o', "DIR", "where the outputs go (the current folder)"},
    {"save", 0, "NAME=FILE", "an output and its file (all outputs, NAME.npy); may be repeated"},
    {"split", 0, "NAME", "cut the rows of this input into subtasks; may be repeated"},
    {"parts", 0, "N", "how many subtasks the rows are cut into, or auto: by the devices' speeds"},
    {"stages", 0, "N", "cut the model itself into N models, which run on devices of their own"},
    {"each", 0, "PATTERN", "one run per file that matches, with --input x={in}; may be repeated"},
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"slots", 0, "N", "how many slots of one device a run takes, each a thread (1)"},
    {"at-most", 0, "N", "the most slots at a time"},
    {"limit", 0, "TIME", "wall time of one run (no limit)"},
    {"term", 0, "TIME", "how long slots are leased at a time (twice the limit; 20m without one)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"name", 0, "NAME", "name of the job"},
    WATCH_OPTIONS,
    {"expect", 0, "TIME", "about how long one run takes, for the quote"},
    {"retries", 0, "N", "how many more times to try a run that fails"},
    {"deadline", 0, "TIME",
     "end the job after this time, as 2h, or at a moment of UTC; results stay (never)"},
    {"objective", 0, "NAME", "what to keep low: time, price or energy (time)"},
    {"order", 0, "TYPE",
     "type of the bid: market, limit, ioc, fok, post-only or all-or-none (market)"},
    {"crash-limit", 0, "N", "how many attempts of a subtask may fail by a provider's fault (2)"},
    {"anyway", 0, NULL, "submit even when nothing fits or sells yet, or the deadline is missed"},
};
static const struct option_spec train_options[] = {
    {"input", 0, "NAME=FILE", "the rows of an input of the model: x=x.npy; may be repeated"},
    {"labels", 0, "FILE", "a .npy file with a label for each row"},
    {"steps", 0, "N", "how many batches change the weights"},
    {"batch", 0, "ROWS", "rows of a batch (all rows)"},
    {"parts", 0, "N", "how many subtasks a batch is cut into, or auto: by the devices' speeds (1)"},
    {"loss", 0, "NAME", "cross-entropy, with classes as labels, or mse (cross-entropy)"},
    {"optimizer", 0, "NAME", "adamw or sgd (adamw)"},
    {"rate", 0, "RATE", "learning rate (0.001; 0.01 with sgd)"},
    {"decay", 0, "D", "decay of weights (0.01; 0 with sgd)"},
    {"momentum", 0, "M", "momentum of sgd (0.9)"},
    {"every", 0, "N", "bring back the weights after every N steps, too (only the last)"},
    {"from", 0, "DIR", "go on with the weights in this folder"},
    {"save", 0, "FILE", "write the model with the weights of --from, and train nothing"},
    {"output", 'o', "DIR", "where the outputs go (the current folder)"},
    {"yes", 'y', NULL, "do not ask before money is held"},
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
    {"needs", 0, "TEXT", "what a device must have: \"memory >= 2GiB\""},
    {"slots", 0, "N", "how many slots of one device a subtask takes, each a thread (1)"},
    {"at-most", 0, "N", "the most slots at a time"},
    {"limit", 0, "TIME", "wall time of one subtask (no limit)"},
    {"cap", 0, "CREDITS", "the highest price to pay per slot-hour"},
    {"budget", 0, "CREDITS", "the most that the job may cost (as quoted)"},
    {"name", 0, "NAME", "name of the job"},
    WATCH_OPTIONS,
    {"beta1", 0, "B", "adamw's share of earlier gradients (0.9)"},
    {"beta2", 0, "B", "adamw's share of earlier squares (0.999)"},
    {"epsilon", 0, "E", "what adamw adds to the root of the squares (1e-8)"},
    {"expect", 0, "TIME", "about how long one part takes, for the quote"},
    {"term", 0, "TIME", "how long slots are leased at a time (twice the limit; 20m without one)"},
    {"retries", 0, "N", "how many more times to try a subtask that fails"},
    {"crash-limit", 0, "N", "how many attempts of a subtask may fail by a provider's fault (2)"},
    {"anyway", 0, NULL, "submit even when nothing fits or sells yet, or the deadline is missed"},
};
static const struct option_spec quote_options[] = {
    {"verbose", 0, NULL, "show the whole quote: each level of the offer, and why"},
};
static const struct option_spec logs_options[] = {
    {"stderr", 0, NULL, "print what the program wrote to standard error"},
    {"follow", 'f', NULL,
     "go on to print what running programs print, within a second; with --json one value a line"},
    {"raw", 0, NULL, "print the program's bytes unchanged, even on a terminal"},
};
static const struct option_spec ps_options[] = {
    {"state", 0, "STATE",
     "only jobs that are open, waiting, running, checking, done, failed or cancelled; may be "
     "repeated"},
    {"name", 0, "GLOB", "only jobs whose name matches: \"train-*\""},
    {"since", 0, "TIME", "only jobs submitted in this time: 2h, 1d (any)"},
    {"limit", 'n', "N", "how many jobs to show, newest first (1000)"},
};
static const struct option_spec wait_options[] = {
    {"any", 0, NULL, "end when the first of the jobs has ended"},
    WATCH_OPTIONS,
};
static const struct option_spec cancel_options[] = {
    {"all", 'a', NULL, "cancel every open job of this account, after a question"},
    {"yes", 'y', NULL, "with --all: do not ask"},
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
    {"samples", 0, "FILE",
     "times measured on ID, for the estimate; each line is an OPERATION and its time"},
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
    {"templates", 0, NULL, "list the templates; with TEMPLATE, its parameters"},
    {"file", 'f', "FILE", "what to plan, in YAML: template, parameters, devices, limits"},
    {"set", 0, "NAME=VALUE", "a parameter of the template; may be repeated"},
    {"batch", 0, "N", "the batch size, whatever the template calls it"},
    {"dim", 0, "NAME=N", "a number for a dim of a model's inputs: batch=16; may be repeated"},
    {"devices", 0, "LIST",
     "devices of the catalogue, with counts and prices: h100:8,tpu-v5p:4@4.20; or `market`"},
    {"on-offer", 0, NULL, "plan on the devices on offer now, as with --devices market"},
    {"objective", 0, "OBJECTIVE", "time, price, energy or value (time)"},
    {"deadline", 0, "TIME", "the longest time that the plan may take, as in 10m"},
    {"budget", 0, "CREDITS", "the most that the plan may cost"},
    {"svg", 0, "FILE", "also write the timeline as an SVG picture"},
    {"width", 0, "N", "columns of the timeline, 40 to 400 (the terminal's, else 80)"},
    {"scheduler", 0, "SCHEDULER", "with --dag: auto, heft, peft, cpop, exact ... (auto)"},
    {"contended", 0, NULL, "with --dag: a link carries one transfer at a time (any number)"},
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
    {"worth", 0, "CREDITS", "with --objective value: the worth of ending an hour sooner"},
    {"place", 0, "STEP=DEVICE", "the device on which a step must run; may be repeated"},
    {"fall-back", 0, NULL, "with --place: let a step run elsewhere when it cannot run there"},
};
static const struct option_spec order_options[] = {
    {"price", 0, "CREDITS", "for an ask: the lowest price of a slot-hour; 0 is a donation"},
    {"slots", 0, "N", "for an ask: how many of the device's slots (all)"},
    {"for", 0, "TIME", "for `place`: how long the ask stands, 366d at most (until cancelled)"},
    {"cap", 0, "CREDITS", "for `replace` of a job: the highest price to pay per slot-hour"},
    {"at-most", 0, "N", "for `replace` of a job: the most slots at a time; 0: all that it can use"},
    {"budget", 0, "CREDITS", "for `replace` of a job: a budget above the present one"},
    {"deadline", 0, "TIME",
     "for `replace` of a job: end the job after this time from now, as 2h, or at a moment of UTC"},
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
    {"value", 0, "TEXT", "for `replace` of a job by value: \"0.03 per bf16 TFLOP-hour\""},
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
    {"statement", 's', NULL, "also show the account's entries, as `bourse ledger` does"},
    {"limit", 'n', "N", "how many entries to show (all)"},
};
static const struct option_spec ledger_options[] = {
    {"limit", 'n', "N", "how many entries to show (all)"},
};
static const struct option_spec storage_options[] = {
    {"limit", 'n', "N", "how many jobs to show, the largest first (20)"},
};
static const struct option_spec forget_options[] = {
    {"ended", 0, NULL, "forget the files of every ended job"},
    {"older", 0, "TIME",
     "with --ended: only of jobs that ended at least this long ago, as 7d (any)"},
    {"dry-run", 'n', NULL, "say what would be freed, and free nothing"},
    {"yes", 'y', NULL, "do not ask before the files of all ended jobs go"},
};
static const struct option_spec receipt_options[] = {
    {"output", 'o', "DIR", "write one file per receipt into DIR"},
    {"all", 'a', NULL, "get the receipt of every subtask whose result was paid"},
};
static const struct option_spec verify_options[] = {
    {"key", 'k', "VERIFIER", "the log's public key, from `bourse key --log`"},
};
static const struct option_spec admin_options[] = {
    {"note", 0, "TEXT", NULL}, /* the earlier name of --reason, for mint */
    {"role", 0, "ROLE",
     "invite: consumer, provider, referee, auditor or risk; may be repeated (consumer)"},
    {"credits", 0, "CREDITS", "invite: credits minted for the new account (0)"},
    {"expires", 0, "TIME", "invite: how long the invitation is valid (7d)"},
    {"name", 0, "NAME", "invite: name of the new account; owner: name of the accounts' owner"},
    {"reason", 0, "TEXT", "mint, freeze, halt, bands, owner: the reason, kept in the audit log"},
    {"undo", 0, NULL, "freeze, halt, owner: take back an earlier freeze, halt or owner"},
    {"least", 0, "PRICE", "bands: lowest price per slot-hour of an order; 0 is always allowed"},
    {"most", 0, "PRICE", "bands: highest price per slot-hour of an order"},
    {"notional", 0, "CREDITS", "bands: the most that one order may be worth, or none"},
};
static const struct option_spec config_options[] = {
    {"origin", 0, NULL, "show where each value comes from"},
};

LIST(common, 0);
LIST(up, 2);
LIST(down, 0);
LIST(join, 0);
LIST(key, 0);
LIST(submit, 3);
LIST(resume, 6);
LIST(run, 18);
LIST(shell, 0);
LIST(matmul, 2);
LIST(model, 7);
LIST(train, 8);
LIST(quote, 0);
LIST(logs, 1);
LIST(ps, 0);
LIST(wait, 0);
LIST(cancel, 0);
LIST(fetch, 0);
LIST(devices, 2);
LIST(report, 0);
LIST(book, 0);
LIST(plan, 15);
LIST(order, 10);
LIST(trades, 0);
LIST(prices, 0);
LIST(balance, 0);
LIST(ledger, 0);
LIST(storage, 0);
LIST(forget, 0);
LIST(receipt, 0);
LIST(verify, 0);
LIST(admin, 4);
LIST(config, 0);
