#include "broker/usage.h"

/* The options that several commands have. */
#define HELP_JSON "  --json             prints one JSON value on standard output\n"
#define HELP_WITHOUT_BLOBS "  --without-blobs    leaves out the inputs and outputs of jobs\n"
#define HELP_FOLDER                                                                                \
    "DIR is the market's folder, or its file ledger.db, which has the journal. A broker may be\n"  \
    "running on DIR.\n"

const char usage_text[] =
    "bourse-broker - runs an exchange for compute over one folder\n"
    "\n"
    "  bourse-broker [run] --dir DIR              serve the market in DIR until SIGTERM\n"
    "\n"
    "  bourse-broker audit DIR                    derive every balance and hash of DIR again\n"
    "  bourse-broker acts DIR                     print the audit log of privileged acts\n"
    "  bourse-broker replay --verify DIR          run every command of DIR again, and compare\n"
    "\n"
    "  bourse-broker backup DIR TARGET            copy DIR to the new folder TARGET\n"
    "  bourse-broker restore BACKUP DIR           make the new folder DIR from a backup\n"
    "  bourse-broker new --dir DIR                end a log whose ledger is lost\n"
    "\n"
    "  bourse-broker cluster status DIR           compare DIR with the journal on etcd\n"
    "  bourse-broker cluster join BACKUP DIR      make the folder of one more broker\n"
    "\n"
    "  bourse-broker completion bash|zsh|fish     print a shell's completion\n"
    "  bourse-broker version\n"
    "\n"
    "`bourse-broker COMMAND --help` says more. Every command takes --log LEVEL and --log-json.\n"
    "Exit status: 0 ok, 1 failed, 2 wrong usage or config, 7 replay found a difference, or the\n"
    "backup is damaged or too old. audit and acts: 0 nothing found, 1 a finding, 3 the journal is\n"
    "missing or unreadable.\n"
    "\n"
    "examples:\n"
    "  bourse-broker run --dir /var/lib/bourse/market\n"
    "  bourse-broker backup /var/lib/bourse/market /backup/monday\n";

const char usage_run[] =
    "bourse-broker [run] --dir DIR [--check-config] [--adopt-journal] [--log LEVEL] [--log-json]\n"
    "\n"
    "Opens or makes the market in DIR and serves the market until SIGTERM. docs/operator.md has\n"
    "the keys of DIR/broker.yaml.\n"
    "\n"
    "  --dir DIR          the market's folder, private to the user of the broker\n"
    "  --check-config     reads DIR/broker.yaml, says what is wrong with the file, and ends\n"
    "  --adopt-journal    accepts a journal whose HEAD file is missing: once, after a backup was\n"
    "                     restored\n"
    "  --log LEVEL        lowest level of log lines: error, warning, info (the default) or debug\n"
    "  --log-json         logs one JSON object a line\n"
    "\n"
    "With journal.etcd in broker.yaml, the broker follows while another one leads, and takes over\n"
    "when that one is silent.\n"
    "\n"
    "Exit status: 0 ended by a signal, 1 failed, 2 wrong usage or config, 4 another broker took "
    "the\n"
    "lead from this one: started again, this one follows.\n"
    "\n"
    "examples:\n"
    "  bourse-broker run --dir /var/lib/bourse/market\n"
    "  bourse-broker run --dir /var/lib/bourse/market --check-config\n";

const char usage_audit[] =
    "bourse-broker audit DIR [--json]\n"
    "\n"
    "Derives every balance, hash and fill of DIR again. The command starts bourse-audit, which\n"
    "shares no code with the exchange, the ledger or the order book.\n" HELP_FOLDER "\n" HELP_JSON
    "\n"
    "Exit status: 0 nothing found, 1 a finding, 2 wrong usage, 3 the journal is missing or\n"
    "unreadable.\n"
    "\n"
    "examples:\n"
    "  bourse-broker audit /var/lib/bourse/market\n"
    "  bourse-broker audit /backup/monday --json\n";

const char usage_acts[] =
    "bourse-broker acts DIR [--since NUMBER] [--json]\n"
    "\n"
    "Prints the audit log of privileged and refused acts, and checks its chain against HEAD. The\n"
    "command starts bourse-audit.\n" HELP_FOLDER "\n"
    "  --since NUMBER     the first record to print (1)\n" HELP_JSON "\n"
    "Exit status: 0 nothing found, 1 a finding, 2 wrong usage, 3 the journal is missing or\n"
    "unreadable.\n"
    "\n"
    "examples:\n"
    "  bourse-broker acts /var/lib/bourse/market\n"
    "  bourse-broker acts /var/lib/bourse/market --since 100 --json\n";

const char usage_replay[] =
    "bourse-broker replay --verify DIR [--json]\n"
    "\n"
    "Runs every command of the journal again, and compares hashes, the signed tree and every row\n"
    "of the ledger. The command only reads.\n" HELP_FOLDER "\n"
    "  --verify           names the only kind of replay\n" HELP_JSON "\n"
    "Exit status: 0 the same, 1 failed, 2 wrong usage, 7 a difference.\n"
    "\n"
    "examples:\n"
    "  bourse-broker replay --verify /var/lib/bourse/market\n"
    "  bourse-broker replay --verify /backup/monday --json\n";

const char usage_backup[] =
    "bourse-broker backup DIR TARGET [--without-blobs] [--with-keys] [--unchecked] [--json]\n"
    "\n"
    "Copies DIR, as of one moment, to the new folder TARGET, and checks the copy. A broker may be\n"
    "running on DIR. HEAD is never in a backup, because HEAD tells an old backup from the present\n"
    "market.\n"
    "\n" HELP_WITHOUT_BLOBS
    "  --with-keys        puts the secret keys into the backup: keep the backup where nobody else\n"
    "                     can read it\n"
    "  --unchecked        makes no replay, no audit and no check of the blobs' hashes\n" HELP_JSON
    "\n"
    "Exit status: 0 backed up, 1 failed, 2 wrong usage, 7 a blob is missing or damaged.\n"
    "\n"
    "examples:\n"
    "  bourse-broker backup /var/lib/bourse/market /backup/monday\n"
    "  bourse-broker backup /var/lib/bourse/market /backup/noon --without-blobs\n";

const char usage_restore[] =
    "bourse-broker restore BACKUP DIR [--head FILE] [--checkpoint FILE] [--without-blobs]\n"
    "                      [--skip-damaged-blobs] [--json]\n"
    "\n"
    "Copies BACKUP to the new folder DIR, if the journal's chain, a replay, an audit and the "
    "blobs\n"
    "agree.\n"
    "\n"
    "  --head FILE        HEAD of the lost market: a backup that ends before HEAD is refused\n"
    "  --checkpoint FILE  a signed checkpoint or receipt of anybody: an older backup is "
    "refused\n" HELP_WITHOUT_BLOBS
    "  --skip-damaged-blobs  restores without the blobs that are missing or damaged, and names\n"
    "                     them\n" HELP_JSON "\n"
    "Exit status: 0 restored, 1 failed, 2 wrong usage, 7 the backup is damaged or too old.\n"
    "\n"
    "examples:\n"
    "  bourse-broker restore /backup/monday /var/lib/bourse/market\n"
    "  bourse-broker restore /backup/monday /var/lib/bourse/market --head /safe/HEAD\n";

const char usage_cluster[] =
    "bourse-broker cluster status DIR [--json]\n"
    "bourse-broker cluster join BACKUP DIR [--json]\n"
    "\n"
    "Brokers of one market share a journal on etcd: one leads, and the others follow.\n"
    "\n"
    "status compares the folder DIR with etcd: who leads, how far the journal is, how far DIR is,\n"
    "and how each member of etcd is. It only reads, and a broker may be running on DIR.\n"
    "\n"
    "join makes the new folder DIR for one more broker from a backup with keys of a broker that\n"
    "leads or follows. It checks the backup as restore does, and that etcd has what comes after "
    "it.\n"
    "\n" HELP_JSON "\n"
    "Exit status: 0 done, 1 failed, 2 wrong usage, 7 the backup is damaged.\n"
    "\n"
    "examples:\n"
    "  bourse-broker cluster status /var/lib/bourse/market\n"
    "  bourse-broker cluster join /backup/monday /var/lib/bourse/market\n";

const char usage_new[] =
    "bourse-broker new --dir DIR --i-know-the-log-ends [--end-market ORIGIN]\n"
    "\n"
    "Ends the log in DIR when the ledger is lost and has no backup. The command moves the whole\n"
    "market to DIR/ended-1 and makes a new log key. The next start begins another market, to "
    "which\n"
    "every member has to be invited anew.\n"
    "\n"
    "  --dir DIR          the market's folder\n"
    "  --i-know-the-log-ends  confirms that all accounts, balances and receipts of the log end\n"
    "  --end-market ORIGIN  ends the market with this name even though the market can start\n"
    "\n"
    "Exit status: 0 ended, 1 failed, 2 wrong usage.\n"
    "\n"
    "examples:\n"
    "  bourse-broker new --dir /var/lib/bourse/market --i-know-the-log-ends\n"
    "  bourse-broker restore /backup/monday /var/lib/bourse/market   where a backup is left\n";

const char usage_completion[] = "bourse-broker completion bash|zsh|fish\n"
                                "\n"
                                "Prints a script with which a shell completes this command line.\n"
                                "\n"
                                "  bash  source <(bourse-broker completion bash)\n"
                                "  zsh   source <(bourse-broker completion zsh)    after compinit\n"
                                "  fish  bourse-broker completion fish | source\n"
                                "\n"
                                "Exit status: 0 printed, 2 wrong usage.\n"
                                "\n"
                                "examples:\n"
                                "  source <(bourse-broker completion bash)\n"
                                "  bourse-broker completion fish | source\n";

const char usage_version[] = "bourse-broker version\n"
                             "\n"
                             "Prints the version.\n"
                             "\n"
                             "examples:\n"
                             "  bourse-broker version\n"
                             "  bourse-broker --version\n";
