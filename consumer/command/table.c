/* This file holds the table of subcommands. docs/man/bourse.1 follows it; a test compares the
 * two. */
#include "consumer/command/command.h"
#include "consumer/command/table_options.h"

#include <string.h>

#define JOB_WORDS                                                                                  \
    "JOB is an id, its first digits, a name, or `last` for the newest job. A name stands for the " \
    "open job of that name, or for the newest one when none is open."
#define JOBS_WORDS                                                                                 \
    "JOB is an id, its first digits, a name, or `last` for the newest job. A name stands for "     \
    "every open job of that name, or for the newest one when none is open."

static const struct command table[] = {
    {.name = "up",
     .arguments = "",
     .summary = "start a private market on this machine",
     .examples = {"bourse up --detach", "bourse up --dir ~/market --slots 4 --price 0.05"},
     .options = &options_of_up,
     .flags = COMMAND_OFFLINE,
     .run = command_up,
     .details = "A broker and a provider agent run as two processes. Sockets in a private folder "
                "connect them.\n"
                "The first start makes the keys. Ctrl-C or `bourse down` ends the market."},
    {.name = "down",
     .arguments = "",
     .summary = "stop the market that `up` started",
     .examples = {"bourse down", "bourse down --dir ~/market --wait 1m"},
     .options = &options_of_down,
     .flags = COMMAND_OFFLINE,
     .run = command_down},
    {.name = "join",
     .arguments = "INVITATION",
     .summary = "redeem an invitation to a market",
     .examples = {"bourse join bourse-invite-1.AbC", "bourse join bourse-invite-1.AbC --name ann"},
     .options = &options_of_join,
     .words_min = 1,
     .words_max = 1,
     .run = command_join,
     .details = "Makes your key if you have none, and makes the market your default.\n"
                "\nWith --market PATH, the command writes the market's file to PATH, and the "
                "default stays. PATH is a new folder of your own, or a file in one. The folder of "
                "a broker is refused."},
    {.name = "key",
     .arguments = "",
     .summary = "show your public key, or the public key of the market's log",
     .examples = {"bourse key", "bourse key --log"},
     .options = &options_of_key,
     .run = command_key,
     .details = "Your public key names your account in lists and receipts. The first use makes "
                "the key. The line before it names the key's file.\n"
                "`bourse verify` needs the log's key: get it once, from somebody whom you trust."},
    {.name = "submit",
     .arguments = "FILE",
     .summary = "submit a job file",
     .examples = {"bourse submit job.yaml",
                  "bourse submit job.yaml -y --cap 0.12 --wait -o results"},
     .options = &options_of_submit,
     .words_min = 1,
     .words_max = 1,
     .run = command_submit,
     .details = "Shows the plan and the quote, asks you, holds the budget and starts the job. The "
                "market gives back what the job does not use."},
    {.name = "run",
     .arguments = "[OPTIONS] -- [PROGRAM] [ARGUMENT ...]",
     .summary = "run a program on the market and wait for it",
     .examples = {"bourse run -- echo hello",
                  "bourse run --each '*.log' --out '{in}.xz' -- xz -9 -k '{in}'"},
     .options = &options_of_run,
     .words_min = 0,
     .words_max = -1,
     .flags = COMMAND_STOPS_EARLY,
     .run = command_run,
     .details = "Prints what the program prints, and downloads its outputs. A path such as ./tool "
                "is sent with its libraries, and what is piped in is standard input. With --image, "
                "PROGRAM is a program of the image, after the image's entrypoint: `bourse run "
                "--image docker://debian:12 -- cat /etc/os-release`. Without PROGRAM, the image's "
                "own command runs. In arguments, {in}, {out}, {line}, {index} and {value} stand "
                "for the subtask's values. With --json, each line that the program prints is a "
                "value of its own; the last value has the outcomes.\n\n"
                "`bourse run matmul A.npy B.npy -o C.npy` multiplies matrices: see `bourse run "
                "matmul --help`. `bourse run MODEL.onnx --input x=x.npy` runs an ONNX model: see "
                "`bourse run model --help`."},
    {.name = "shell",
     .arguments = "[OPTIONS] -- [PROGRAM] [ARGUMENT ...]",
     .summary = "open a terminal on a leased device",
     .examples = {"bourse shell", "bourse shell --needs 'memory >= 8GiB' -- bash"},
     .options = &options_of_shell,
     .words_min = 0,
     .words_max = -1,
     .flags = COMMAND_STOPS_EARLY,
     .run = command_shell,
     .details = "PROGRAM runs in a jail on one device and has your terminal: keys, window size and "
                "Ctrl-C reach the program. Without PROGRAM, the shell of the host or of the image "
                "runs. The command ends with the program's exit status.\n"
                "At the beginning of a line, `~.` ends the shell and its job, and `~?` prints "
                "help. However the shell ends, the market gives back the money that was not used. "
                "The market keeps nothing of what was typed and printed."},
    {.name = "train",
     .arguments = "MODEL.onnx --input NAME=FILE --labels FILE --steps N",
     .summary = "train an ONNX model on the market's devices",
     .examples = {"bourse train net.onnx --input x=x.npy --labels y.npy --steps 100 --batch 64 "
                  "--parts 3 -o out",
                  "bourse train net.onnx --from out/step-100 --save trained.onnx"},
     .options = &options_of_train,
     .words_min = 1,
     .words_max = 1,
     .run = command_train,
     .details = "Each step takes a batch of rows, in the order of the files and again from the "
                "first one. The batch is cut into parts, whose gradients devices compute. Another "
                "subtask adds the gradients and changes the weights. Gradients are exact sums over "
                "the batch, so that the parts do not change what is learnt.\n\n"
                "The folder step-N of the outputs has the weights, the optimizer's state and all "
                "losses after step N. With --from, training goes on there. With --save, the model "
                "is written with these weights, and nothing is trained.\n\n"
                "A model has one output and operators with a derivative: see docs/train.md. To run "
                "a program called train, write `bourse run -- train`."},
    {.name = "quote",
     .arguments = "FILE",
     .summary = "show what a job would cost now",
     .examples = {"bourse quote job.yaml", "bourse quote job.yaml --verbose"},
     .options = &options_of_quote,
     .words_min = 1,
     .words_max = 1,
     .run = command_quote,
     .details = "Shows the expected cost and time, the budget that is held until the job ends, and "
                "what is on offer now. Unused money comes back. The command spends nothing.\n"
                "The exit status is 5 when the job would not start now."},
    {.name = "plan",
     .arguments = "FILE|JOB|TEMPLATE|MODEL",
     .summary = "show how a job would run, before anything is spent",
     .examples = {"bourse plan job.yaml", "bourse plan llm --devices h100:2"},
     .options = &options_of_plan,
     .words_max = 1,
     .run = command_plan,
     .details =
         "FILE is a job file. With JOB, the plan is for the subtasks that are left. The plan "
         "says which subtask runs where and when.\n\n"
         "With --dag instead of FILE, the command schedules tasks and asks no market. The "
         "file has each task's cost on each processor, and the bytes between tasks. Beside "
         "the schedule stands a bound that no schedule can beat.\n\n"
         "With TEMPLATE, the command plans a kind of work on devices of the catalogue, or "
         "on those on offer, by time, price, energy or value. Write ./NAME for a file "
         "whose name is also a template's.\n\n"
         "With MODEL, a file that ends in .onnx, the command plans one run of the model on "
         "such devices. The model is read and not run; `bourse run MODEL` runs one."},
    {.name = "ps",
     .arguments = "[JOB]",
     .summary = "list your jobs, or one with its tasks and leases",
     .examples = {"bourse ps --state open --since 1d", "bourse ps last"},
     .options = &options_of_ps,
     .words_max = 1,
     .run = command_ps,
     .details = JOB_WORDS
     "\nDONE, FAILED and RUNNING count subtasks. COST is paid so far, of BUDGET at most. WHY says "
     "what an open job waits for, or how an ended job failed; `bourse explain JOB` says more.\n"
     "With JOB, the command also shows each task, or what failed, and the leases of the job."},
    {.name = "logs",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "print what a job's programs printed",
     .examples = {"bourse logs last --follow", "bourse logs last/7 --stderr"},
     .options = &options_of_logs,
     .words_min = 1,
     .words_max = 2,
     .run = command_logs,
     .details = JOB_WORDS "\nWith --json, each line that was printed is a value of its own, before "
                          "the outcomes; --quiet "
                          "leaves the lines out. With INDEX, the text is in the one value."},
    {.name = "wait",
     .arguments = "JOB ...",
     .summary = "wait until jobs have ended, and print a line as each ends",
     .examples = {"bourse wait last", "bourse wait train-a train-b --any --wait-at-most 2h"},
     .options = &options_of_wait,
     .words_min = 1,
     .words_max = -1,
     .run = command_wait,
     .details = JOBS_WORDS
     "\nThe exit status is that of the worst end: 1 when a job failed, else 9 when one was "
     "cancelled, else 5 when one got no device in time, else 0."},
    {.name = "fetch",
     .arguments = "JOB [INDEX|TASK ...]|JOB/INDEX ...",
     .summary = "download the outputs of a job, or of some of its subtasks",
     .examples = {"bourse fetch last -o results", "bourse fetch last/7 last/9 -o results"},
     .options = &options_of_fetch,
     .words_min = 1,
     .words_max = -1,
     .run = command_fetch,
     .details = JOB_WORDS
     "\nIn a job with `array:`, INDEX is a number of the array as it was written.\nNothing is "
     "overwritten. Another fetch of the job downloads only what is missing."},
    {.name = "watch",
     .arguments = "[JOB]",
     .summary = "show your open jobs live, or one of them, until they have ended",
     .examples = {"bourse watch", "bourse watch last"},
     .words_max = 1,
     .run = command_watch,
     .details = JOB_WORDS "\n"
                          "Ctrl-C ends the view; the jobs go on."},
    {.name = "report",
     .arguments = "JOB",
     .summary = "show where a job's time and money went, device by device",
     .examples = {"bourse report last", "bourse report last --svg job.svg"},
     .options = &options_of_report,
     .words_min = 1,
     .words_max = 1,
     .run = command_report,
     .details = JOB_WORDS
     "\nIn the timeline, the height of a column shows how busy its lane was. An x marks a "
     "failed attempt."},
    {.name = "history",
     .arguments = "JOB|FILE",
     .summary = "show how long a job's work was measured to take on this market",
     .examples = {"bourse history last", "bourse history job.yaml"},
     .words_min = 1,
     .words_max = 1,
     .run = command_history,
     .details = JOB_WORDS
     "\nFILE is a job file that may be submitted later. A row has the median of the last "
     "measured times of one program, size of inputs and class of devices, whoever ran "
     "it. INPUTS is the size of a subtask's inputs, rounded down to a size class. DEVICES is the "
     "class of devices. The time of a class is the time on its fastest device. A device unlike its "
     "class has a row of its own, with the first digits of its id. OUTLIERS counts times far "
     "from the others, which are left out. Nine of ten times are P90 or less.\n\n"
     "A second table shows how many times as long each slower device takes for all "
     "work. The commands plan, quote and submit use these figures."},
    {.name = "cancel",
     .arguments = "JOB ...",
     .summary = "cancel jobs; unused money comes back",
     .examples = {"bourse cancel last", "bourse cancel --all -y"},
     .options = &options_of_cancel,
     .words_max = -1,
     .run = command_cancel,
     .details = JOBS_WORDS "\nA job that has ended is refused, and the others are cancelled."},
    {.name = "judge",
     .arguments = "JOB",
     .summary = "compute the check of each result that one referee rejects",
     .examples = {"bourse judge last", "bourse judge 5f3a91c2"},
     .words_min = 1,
     .words_max = 1,
     .run = command_judge,
     .details = JOB_WORDS
     "\nIn a job with `verify: cheap`, a result that one referee rejects is held until a "
     "referee of another owner has judged the result. When there is no such referee, this "
     "command computes the check itself, from the check's seed, and tells the market the "
     "outcome. Commands that wait for the job do the same."},
    {.name = "resume",
     .arguments = "JOB",
     .summary = "run again what failed or was cancelled in a job that has ended",
     .examples = {"bourse resume last", "bourse resume last -y --wait -o results"},
     .options = &options_of_resume,
     .words_min = 1,
     .words_max = 1,
     .run = command_resume,
     .details = JOB_WORDS
     "\nStarts a new job with the subtasks that are left. Accepted results stay, and the "
     "new job reads their outputs."},
    {.name = "explain",
     .arguments = "JOB|JOB/INDEX|JOB/TASK|ORDER|FILE",
     .summary = "say why a job, a subtask or an order waits, would wait, or has ended",
     .examples = {"bourse explain last", "bourse explain last/7"},
     .words_min = 1,
     .words_max = 1,
     .run = command_explain,
     .details = JOB_WORDS
     "\nJOB/INDEX or JOB/TASK is one subtask. ORDER is the bid of one part of a job, or "
     "an ask of this account. FILE is a job file."},
    {.name = "devices",
     .arguments = "[ID]",
     .summary = "list the devices on the market, or those of the catalogue",
     .examples = {"bourse devices", "bourse devices --needs \"kind = gpu and memory >= 40GiB\""},
     .options = &options_of_devices,
     .words_max = 1,
     .run = command_devices,
     .details = "Lists the devices of all providers, with the price per slot-hour and the free "
                "slots. ID is a label or the first digits of an id. With ID, the command shows "
                "one device in full, each figure with its source.\n\n"
                "--catalogue and --estimate show published figures and ask no market; ID is then a "
                "name of the catalogue. --operations lists the operations that can be estimated."},
    {.name = "providers",
     .arguments = "",
     .summary = "list the providers",
     .examples = {"bourse providers", "bourse providers --json"},
     .run = command_providers,
     .details = "Shows for each provider its state, its devices, and how many of their slots are "
                "free. `bourse devices` shows each device and its price."},
    {.name = "book",
     .arguments = "",
     .summary = "show what is offered and what is wanted, by price",
     .examples = {"bourse book", "bourse book --follow"},
     .options = &options_of_book,
     .run = command_book,
     .details = "Lists asks by instrument and price, cheapest first. Then the command lists the "
                "bids of jobs, by their needs and the most that they pay per slot-hour. The owners "
                "of bids are not shown.\n\n"
                "--follow shows changes. On a terminal the book is drawn anew; elsewhere each "
                "level that changed is a line. With --json each line is the whole book. After a "
                "lost connection the command connects again and catches up."},
    {.name = "trades",
     .arguments = "",
     .summary = "show the market's last fills",
     .examples = {"bourse trades -n 50", "bourse trades --follow"},
     .options = &options_of_trades,
     .run = command_trades,
     .details = "Lists the newest fill first: time, instrument, slots, and price per slot-hour, "
                "without names.\n\n"
                "--follow goes on with new fills. A lost connection leaves none out."},
    {.name = "prices",
     .arguments = "[INSTRUMENT]",
     .summary = "show the prices paid lately, by instrument or minute by minute",
     .examples = {"bourse prices", "bourse prices cpu.x86_64.avx512 --since 1d"},
     .options = &options_of_prices,
     .words_max = 1,
     .run = command_prices,
     .details =
         "A row has the first, highest, lowest and last price of one instrument, a kind of device. "
         "The instrument traded last comes first.\n\n"
         "With INSTRUMENT, a row has these prices of one minute with a trade.\n\n"
         "Prices are per slot-hour. The market keeps 7 days, and 1440 minutes "
         "of one instrument. `bourse quote` suggests a cap from the last day."},
    {.name = "order",
     .arguments = "list | place DEVICE | replace ORDER | cancel ORDER",
     .summary = "list and change your own asks and bids",
     .examples = {"bourse order list", "bourse order replace last --cap 0.20"},
     .options = &options_of_order,
     .words_min = 1,
     .words_max = 2,
     .run = command_order,
     .details =
         "`list` shows in PLACE where an order stands among orders for the same kind of "
         "device, or with the same needs.\n\n"
         "`replace` gives an order other terms. ORDER is a job's id, one bid of a job, or an "
         "ask. A job takes --cap (or --value), --at-most, --budget and --deadline; an ask "
         "takes --price and --slots. Fewer slots at the same price keep the place in the queue; "
         "any other "
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
    {.name = "status",
     .arguments = "",
     .summary = "show the market's state and your account's",
     .examples = {"bourse status", "bourse status --json"},
     .run = command_status,
     .details = "Says whether the market is open or halted, and whether your account is frozen, "
                "with the operator's reason. The times of jobs and payments are log time. Log time "
                "stands still while the broker is down; the command also says how far it is behind "
                "the broker's own clock."},
    {.name = "balance",
     .arguments = "",
     .summary = "show your money",
     .examples = {"bourse balance", "bourse balance --statement -n 20"},
     .options = &options_of_balance,
     .run = command_balance,
     .details = "`available` can be spent. `held` is set apart for open jobs, and what they do not "
                "use comes back. `stored` says how much of your quota the broker's disk holds."},
    {.name = "ledger",
     .arguments = "",
     .summary = "show your account statement",
     .examples = {"bourse ledger", "bourse ledger -n 20"},
     .options = &options_of_ledger,
     .run = command_ledger,
     .details = "Lists the newest entry first. A `hold` sets money apart for a job. A `capture` "
                "pays a result from that money, and a `release` gives the rest back when the job "
                "ends. A `transfer` is money that the operator made for you."},
    {.name = "storage",
     .arguments = "",
     .summary = "show what the broker stores for you, by job",
     .examples = {"bourse storage", "bourse storage -n 5 --json"},
     .options = &options_of_storage,
     .run = command_storage,
     .details = "SIZE is what a job uses: its program, inputs and outputs. A file that several "
                "jobs use counts in each of them, so the sizes may add up to more than is "
                "stored.\n"
                "EXPIRES says when the broker forgets the files, unless an open job needs them. "
                "`-` means never, or that the job has not ended."},
    {.name = "forget",
     .arguments = "JOB ...|--ended",
     .summary = "free what ended jobs store on the broker",
     .examples = {"bourse forget last", "bourse forget --ended --older 7d --dry-run"},
     .options = &options_of_forget,
     .words_max = -1,
     .run = command_forget,
     .details = JOBS_WORDS
     "\n\nFiles that another job of yours uses stay. Your quota has the space at once; the "
     "broker's disk is freed after a grace. Receipts, results and the ledger stay."},
    {.name = "receipt",
     .arguments = "JOB [INDEX|TASK]|JOB/INDEX",
     .summary = "get proofs of a job's results",
     .examples = {"bourse receipt last --all -o proofs", "bourse receipt last/7 -o proofs"},
     .options = &options_of_receipt,
     .words_min = 1,
     .words_max = 2,
     .run = command_receipt,
     .details =
         JOB_WORDS "\nA receipt proves one result to anyone, offline: see `bourse help verify`."},
    {.name = "verify",
     .arguments = "FILE|DIR ...",
     .summary = "check receipts, offline",
     .examples = {"bourse verify proofs", "bourse verify proofs --key \"$(bourse key --log)\""},
     .options = &options_of_verify,
     .words_min = 1,
     .words_max = -1,
     .run = command_verify,
     .details = "Needs only the log's public key. Without --key, the command takes the key of the "
                "market in use.\n"
                "DIR stands for every *.receipt in it. The exit status is 7 when a receipt does "
                "not match its signatures."},
    {.name = "admin",
     .arguments = "mint WHO CREDITS|invite|freeze WHO|halt|bands|owner WHO...|accounts",
     .summary = "run the operator's commands",
     .examples = {"bourse admin invite --role provider --name lab",
                  "bourse admin mint ann 100 --reason \"start\""},
     .options = &options_of_admin,
     .words_min = 1,
     .words_max = 33,
     .run = command_admin,
     .details =
         "WHO is an account: its key, the first digits of its key (eight or more), or a name "
         "that no other account has.\n\n"
         "`halt` stops new jobs, new asks and fills. Leases run on to the end of their term "
         "and are paid; none is renewed.\n\n"
         "`freeze` ends an account's leases and asks, and cancels its jobs.\n\n"
         "`bands` bounds new and replaced orders, not orders that wait already. Without options, "
         "`bands` shows the bands. An order is worth price x slots x time; the order of a job "
         "is worth at most its budget.\n\n"
         "`owner` names the owner of accounts. Accounts of one owner do not judge one "
         "another's results. An account that nobody named is its own owner."},
    {.name = "config",
     .arguments = "show",
     .summary = "show the settings in force",
     .examples = {"bourse config show", "bourse config show --origin"},
     .options = &options_of_config,
     .words_max = 1,
     .run = command_config,
     .details = "A setting comes from the first of: an option, the environment (BOURSE_MARKET, "
                "BOURSE_KEY, BOURSE_TIMEOUT, BOURSE_COLOR), ./.bourse.yaml, the user's "
                "config.yaml, /etc/bourse/config.yaml."},
    {.name = "completion",
     .arguments = "bash|zsh|fish",
     .summary = "print a shell's completion of this command line",
     .examples = {"source <(bourse completion bash)", "bourse completion fish | source"},
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
     .examples = {"bourse version", "bourse version --json"},
     .flags = COMMAND_OFFLINE,
     .run = command_version},
    {.name = "help",
     .arguments = "[COMMAND]",
     .summary = "show this list, or help on one command",
     .examples = {"bourse help", "bourse help submit"},
     .words_max = 2,
     .flags = COMMAND_OFFLINE,
     .run = command_help},
};

/* Templates of `run` have their full name here; users write the word after "run ". */
static const struct command template_table[] = {
    {.name = "run matmul",
     .arguments = "A.npy B.npy -o C.npy",
     .summary = "multiply two matrices on all devices that make it faster",
     .examples = {"bourse run matmul A.npy B.npy -o C.npy",
                  "bourse run matmul A.npy B.npy -o C.npy --resume last"},
     .options = &options_of_matmul,
     .words_max = 2,
     .run = command_matmul,
     .details = "The matrices are .npy files of float32. The command cuts C into tiles and spreads "
                "them over devices by the speeds that these declare. Then the command puts C "
                "together and checks C. With --resume, A and B may be left out; then C is not "
                "checked.\n\n"
                "With --verify cheap, a referee checks each tile. A wrong tile is not paid, and "
                "another agent computes it again. A referee is an agent whose account has the role "
                "referee, and checks no tile that it made. Checks are work and are paid.\n\n"
                "To run a program called matmul, write `bourse run -- matmul`."},
    {.name = "run model",
     .arguments = "MODEL.onnx --input NAME=FILE | --prompt TEXT",
     .summary = "run an ONNX model on arrays, or a language model on prompts",
     .examples = {"bourse run model resnet.onnx --input data=images.npy -o results",
                  "bourse run decoder.onnx --prompt \"Once upon\" --max-tokens 40 -o results"},
     .options = &options_of_model,
     .words_max = 1,
     .run = command_model,
     .details = "A device with an engine for ONNX computes the model: see `bourse devices --needs "
                "'executor = onnx'`. The names, types and dims of the inputs are compared with the "
                "model before anything is sent. Weights in other files go with the model. With "
                "--split and --parts, each subtask takes a part of the rows, which are what stands "
                "at one index of the first dim. The outputs are joined by rows. "
                "With --stages, the model itself is cut into models that run one behind the other, "
                "each with its own weights on slots of its own.\n\n"
                "With --prompt, the model is a decoder with past. Its tokenizer.json and "
                "config.json lie beside it. The text comes while it is made. With -o, the folder "
                "gets answer.txt and answer.json. With --prompts, each line of a file is a prompt. "
                "Several "
                "--prompt, and the lines of --prompts with --batch, run together: each step of the "
                "model makes a token of several texts. Each text is the one that its prompt alone "
                "gets, and a line of answers.jsonl.\n\n"
                "The word `model` may be left out before a name that ends in .onnx. To run a "
                "program called model, write `bourse run -- model`."},
};

const struct command *command_templates(size_t *ret_count)
{
    *ret_count = sizeof template_table / sizeof *template_table;
    return template_table;
}

bool command_is_model(const char *word)
{
    static const char ending[] = ".onnx";
    const size_t length = strlen(word);
    return length >= sizeof ending && strcmp(word + length - (sizeof ending - 1), ending) == 0;
}

const struct command *command_template_find(const char *word)
{
    const char *name = command_is_model(word) ? "model" : word;
    for (size_t i = 0; i < sizeof template_table / sizeof *template_table; i++) {
        if (strcmp(template_table[i].name + strlen("run "), name) == 0) {
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
    *ret_count = options_of_common.count;
    return options_of_common.items;
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
