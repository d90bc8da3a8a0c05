#include "provider/command/help.h"

const char help_all[] =
    "bourse-provider - offers this machine on a bourse market\n"
    "\n"
    "  bourse-provider [run] [--config FILE] [--market DIR]   offer this machine and run jobs\n"
    "  bourse-provider probe [--json]                         show what would be offered\n"
    "  bourse-provider join INVITE [--name N] [--dir DIR]     join a market\n"
    "\n"
    "  bourse-provider status [--json]                        show what the running agent does\n"
    "  bourse-provider pause [--for 2h] [--now]               withdraw the offer for a while\n"
    "  bourse-provider resume                                 offer again after a pause\n"
    "  bourse-provider drain                                  finish the running work, end the "
    "agent\n"
    "\n"
    "  bourse-provider why [--json]                           say why no work comes, and what "
    "would help\n"
    "  bourse-provider earnings [--since 7d] [--json]         show the pay by day, job and "
    "device\n"
    "  bourse-provider completion bash|zsh|fish               print a shell's completion\n"
    "  bourse-provider version\n"
    "\n"
    "`bourse-provider COMMAND --help` says more.\n"
    "Exit status: 0 ok, 1 failed, 2 usage, 3 no agent runs here, 4 refused, 6 broker "
    "unreachable.\n";

const char help_run[] =
    "bourse-provider run [--config FILE] [--market DIR] [--dir DIR] [--check-config]\n"
    "\n"
    "Offers this machine's cores and runs the jobs that lease them, each in a jail, until "
    "SIGTERM.\n"
    "An agent that root starts first becomes the user of the config; jobs never run as root.\n"
    "\n"
    "  --config FILE    config; default provider.yaml in the agent's folder\n"
    "  --market DIR     folder of a market on this machine; the agent's folder is DIR/provider\n"
    "  --dir DIR        the agent's folder\n"
    "  --check-config   check the config against its rules and this machine, say what is wrong, "
    "and end\n"
    "  --log LEVEL      lowest level of log lines: error, warning, info (the default) or debug\n"
    "  --log-json       log one JSON object a line\n"
    "\n"
    "Exit status: 0 ended by a signal or a drain, 1 failed, 2 usage or config,\n"
    "4 this host cannot isolate jobs, or this key is not a provider of the market.\n";

const char help_probe[] =
    "bourse-provider probe [--json] [--config FILE] [--market DIR] [--dir DIR]\n"
    "\n"
    "Shows what would be offered, and every attribute that jobs may ask for with its source. A "
    "trial\n"
    "jail shows which walls this kernel can put around a job. For each gap, the text says what "
    "to do.\n"
    "The command connects nowhere, so it suggests no price; `why` compares prices. A running "
    "agent is\n"
    "not disturbed; `status` shows what that agent does.\n"
    "\n"
    "Exit status: 0 something would be offered, 1 failed, 2 usage or config, 4 nothing would be "
    "offered.\n";

const char help_join[] =
    "bourse-provider join INVITE [--name NAME] [--dir DIR]\n"
    "\n"
    "Redeems an invitation. The command makes this agent's key, and the broker accepts the key.\n"
    "Then the command writes market.yaml and provider.yaml, which `bourse-provider run` reads. A\n"
    "repeated join is harmless. The folder of a broker is refused.\n"
    "\n"
    "  --name NAME   this machine's name in lists; default the host's name\n"
    "  --dir DIR     the agent's folder; default /var/lib/bourse-provider for root, else\n"
    "                ~/.local/share/bourse-provider\n"
    "\n"
    "Exit status: 0 joined, 1 failed, 2 usage or a bad invitation, 4 refused, 6 broker "
    "unreachable.\n";

#define OF_THE_AGENT                                                                               \
    "  --dir DIR      the agent's folder\n"                                                        \
    "  --market DIR   folder of a market on this machine; the agent's folder is DIR/provider\n"

const char help_status[] =
    "bourse-provider status [--json] [--dir DIR] [--market DIR]\n"
    "\n"
    "Shows the running agent: its connection and since when, its asks, leases, work and jails, "
    "the\n"
    "results accepted since its start, a pause or a drain, and its last error. If the market "
    "answers,\n"
    "the command also shows the slot-hours that the agent gave away at price 0.\n"
    "\n"
    "  --json         one JSON object\n" OF_THE_AGENT "\n"
    "Exit status: 0 shown, 1 failed, 2 usage, 3 no agent runs here, 4 the agent obeys another "
    "user.\n";

const char help_pause[] =
    "bourse-provider pause [--after-running|--now] [--for DURATION] [--json] [--dir DIR] "
    "[--market DIR]\n"
    "\n"
    "Withdraws the offer, then returns. The agent starts no more work: waiting work goes back to "
    "the\n"
    "market, and running work ends by itself. An agent that is started again is still paused.\n"
    "\n"
    "  --after-running  let running work end by itself; the default\n"
    "  --now            cancel running work, too; the market runs it again elsewhere\n"
    "  --for DURATION   offer again after this time, such as 90m or 2h; else at `resume`\n"
    "  --json           one JSON object\n"
    "  --dir DIR        the agent's folder\n"
    "  --market DIR     folder of a market on this machine\n"
    "\n"
    "Exit status: 0 paused and withdrawn, 1 failed, 2 usage, 3 no agent runs here, 4 the agent\n"
    "obeys another user, or is paused and its account is frozen, 6 paused, but the broker has not\n"
    "confirmed that the asks are gone.\n";

const char help_resume[] =
    "bourse-provider resume [--json] [--dir DIR] [--market DIR]\n"
    "\n"
    "Ends a pause, and places asks again that were cancelled by hand. The command returns when all "
    "of\n"
    "the agent's asks stand.\n"
    "\n"
    "  --json         one JSON object\n" OF_THE_AGENT "\n"
    "Exit status: 0 offering, 1 failed, 2 usage, 3 no agent runs here, 4 refused, or an ask is "
    "not\n"
    "accepted, 6 broker unreachable.\n";

const char help_drain[] =
    "bourse-provider drain [--json] [--dir DIR] [--market DIR]\n"
    "\n"
    "Withdraws the offer, gives back waiting work, lets running work end however long it takes, "
    "and\n"
    "delivers every result. Then the agent ends, and this command returns. The drain goes on "
    "when this\n"
    "command is interrupted. SIGTERM, which services get, is shorter: work may run for 5 s more.\n"
    "\n"
    "  --json         one JSON object\n" OF_THE_AGENT "\n"
    "Exit status: 0 drained and ended, 1 the agent ended before the drain was done, 2 usage,\n"
    "3 no agent runs here, 4 the agent obeys another user.\n";

const char help_why[] =
    "bourse-provider why [--json] [--config FILE] [--dir DIR] [--market DIR]\n"
    "\n"
    "Says why no work comes. The command checks that the agent runs, that its asks stand, and "
    "that\n"
    "neither account nor market is stopped. Then it shows who asks less for such a device, and "
    "what\n"
    "keeps each waiting bid from this device, the smallest change first. The market is asked with\n"
    "the agent's key; the agent need not run.\n"
    "\n"
    "  --json         one JSON object\n"
    "  --config FILE  config; default provider.yaml in the agent's folder\n" OF_THE_AGENT "\n"
    "Exit status: 0 answered, 1 failed, 2 usage, config or no market joined, 4 refused, 6 broker\n"
    "unreachable.\n";

const char help_earnings[] =
    "bourse-provider earnings [--since DURATION] [--json] [--config FILE] [--dir DIR]\n"
    "                         [--market DIR]\n"
    "\n"
    "Adds up this provider's pay from its own statement, by day (UTC), job and device. Beside "
    "each sum\n"
    "stand the market's fee, the accepted results, and the slot-hours given away at price 0. "
    "Accepted\n"
    "results count even if their pay was rounded down to nothing.\n"
    "\n"
    "  --since DURATION  how far back to look, such as 12h or 7d; else everything\n"
    "  --json            one JSON object\n"
    "  --config FILE     config; default provider.yaml in the agent's folder\n"
    "  --dir DIR         the agent's folder\n"
    "  --market DIR      folder of a market on this machine\n"
    "\n"
    "Exit status: 0 shown, 1 failed, 2 usage, config or no market joined, 4 refused, 6 broker\n"
    "unreachable.\n";

const char help_completion[] =
    "bourse-provider completion bash|zsh|fish\n"
    "\n"
    "Prints a script with which a shell completes this command line.\n"
    "\n"
    "  bash  source <(bourse-provider completion bash)\n"
    "  zsh   source <(bourse-provider completion zsh)    after compinit\n"
    "  fish  bourse-provider completion fish | source\n"
    "\n"
    "Exit status: 0 printed, 2 usage.\n";
