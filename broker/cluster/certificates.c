#include "broker/cluster/certificates.h"

#include "runtime/entropy.h"
#include "runtime/files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LOG_BYTES_MAX = 1 << 16, SUBJECT_SIZE = 192 };

/* ---- the program */

/* Reads what openssl said from a temporary file. The caller frees the text; NULL: nothing. */
static char *read_said(FILE *said)
{
    char *text = calloc(1, LOG_BYTES_MAX);
    if (text != NULL && fseek(said, 0, SEEK_SET) == 0) {
        size_t length = fread(text, 1, LOG_BYTES_MAX - 1, said);
        while (length > 0 && text[length - 1] == '\n') {
            text[--length] = '\0';
        }
    }
    return text;
}

static int spawn(const char *const *words, int said, pid_t *ret_pid)
{
    posix_spawn_file_actions_t actions;
    int error = posix_spawn_file_actions_init(&actions);
    if (error != 0) {
        return error;
    }
    if ((error = posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY,
                                                  0)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&actions, said, STDOUT_FILENO)) == 0 &&
        (error = posix_spawn_file_actions_adddup2(&actions, said, STDERR_FILENO)) == 0) {
        /* The cast drops const, which the interface lacks; the words are only read. */
        error = posix_spawnp(ret_pid, words[0], &actions, NULL, (char *const *)(uintptr_t)words,
                             environ);
    }
    (void)posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* Runs openssl. Returns 0, its exit status, or -1 with a problem when it cannot be started.
 * *ret_said is what it said, for the caller to free. */
static int run(const char *const *words, char **ret_said, struct problem *ret_problem)
{
    pid_t pid = 0;
    int status = 0;
    *ret_said = NULL;
    FILE *said = tmpfile();
    const int error = said != NULL ? spawn(words, fileno(said), &pid) : errno;
    if (error != 0) {
        problem_set(ret_problem,
                    "the program openssl, which makes the certificates, cannot be started: %s; "
                    "Debian's package is openssl",
                    strerror(error));
    } else {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        *ret_said = read_said(said);
    }
    if (said != NULL) {
        (void)fclose(said); /* only read */
    }
    return error != 0 ? -1 : WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

/* Runs openssl, which makes `what`. The last line that it says has the reason of a failure. */
static bool make(const char *const *words, const char *what, struct problem *ret_problem)
{
    char *said;
    const int status = run(words, &said, ret_problem);
    if (status > 0) {
        const char *line = said != NULL ? strrchr(said, '\n') : NULL;
        problem_set(ret_problem, "openssl does not make %s: %.300s", what,
                    line != NULL   ? line + 1
                    : said != NULL ? said
                                   : "it says nothing");
    }
    free(said);
    return status == 0;
}

bool certificates_explain(const char *authority, const char *certificate, char *ret_reason,
                          size_t capacity)
{
    static const char mark[] = " lookup: ";
    const char *const words[] = {"openssl", "verify",  "-purpose",  "sslclient",
                                 "-CAfile", authority, certificate, NULL};
    struct problem ignored;
    char *said;
    bool found = false;
    if (run(words, &said, &ignored) > 0 && said != NULL) {
        const char *reason = strstr(said, mark);
        found = reason != NULL;
        if (found) {
            reason += sizeof mark - 1;
            (void)snprintf(ret_reason, capacity, "%.*s", (int)strcspn(reason, "\n"), reason);
        }
    }
    free(said);
    return found;
}

/* ---- what it makes */

/* Openssl writes certificates, which are public, with the rights of the umask. */
static bool make_private(const char *path, struct problem *ret_problem)
{
    if (chmod(path, 0600) == 0) {
        return true;
    }
    problem_set(ret_problem, "%s: %s", path, strerror(errno));
    return false;
}

bool certificates_authority(const char *folder, unsigned days, struct problem *ret_problem)
{
    char key[PATH_MAX];
    char certificate[PATH_MAX];
    char subject[SUBJECT_SIZE];
    char term[16];
    (void)snprintf(key, sizeof key, "%s/ca.key", folder);
    (void)snprintf(certificate, sizeof certificate, "%s/ca.pem", folder);
    /* Two authorities of one name would be hard to tell apart. */
    (void)snprintf(subject, sizeof subject, "/CN=bourse etcd %08" PRIx32, (uint32_t)entropy_u64());
    (void)snprintf(term, sizeof term, "%u", days);
    const char *const words[] = {"openssl",
                                 "req",
                                 "-x509",
                                 "-newkey",
                                 "ec",
                                 "-pkeyopt",
                                 "ec_paramgen_curve:P-256",
                                 "-nodes",
                                 "-days",
                                 term,
                                 "-keyout",
                                 key,
                                 "-out",
                                 certificate,
                                 "-subj",
                                 subject,
                                 "-addext",
                                 "keyUsage=critical,keyCertSign,cRLSign",
                                 NULL};
    return make(words, "the authority's certificate", ret_problem) &&
           make_private(key, ret_problem) && make_private(certificate, ret_problem);
}

static bool write_extensions(const char *path, const struct cluster_node *node,
                             enum certificates_use use, struct problem *ret_problem)
{
    char text[512];
    const char *kind = node->is_ip ? "IP" : "DNS";
    const int length = snprintf(
        text, sizeof text,
        "basicConstraints=critical,CA:FALSE\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=%s\nsubjectAltName=%s:%s,IP:127.0.0.1,DNS:localhost\n",
        use == CERTIFICATES_MEMBER ? "serverAuth,clientAuth" : "clientAuth", kind, node->host);
    return file_write(path, text, (size_t)length, 0600, ret_problem);
}

bool certificates_sign(const char *folder, const char *to, const char *name,
                       const struct cluster_node *node, enum certificates_use use, unsigned days,
                       struct problem *ret_problem)
{
    enum { CA_KEY, CA, KEY, CERTIFICATE, REQUEST, EXTENSIONS, PATHS };
    char paths[PATHS][PATH_MAX];
    char subject[SUBJECT_SIZE];
    char serial[32];
    char term[16];
    (void)snprintf(paths[CA_KEY], PATH_MAX, "%s/ca.key", folder);
    (void)snprintf(paths[CA], PATH_MAX, "%s/ca.pem", folder);
    (void)snprintf(paths[KEY], PATH_MAX, "%s/%s.key", to, name);
    (void)snprintf(paths[CERTIFICATE], PATH_MAX, "%s/%s.pem", to, name);
    (void)snprintf(paths[REQUEST], PATH_MAX, "%s/%s.csr", to, name);
    (void)snprintf(paths[EXTENSIONS], PATH_MAX, "%s/%s.ext", to, name);
    (void)snprintf(subject, sizeof subject, "/CN=bourse %s of %.40s",
                   use == CERTIFICATES_MEMBER ? "etcd" : "broker", node->host);
    (void)snprintf(serial, sizeof serial, "0x1%016" PRIx64, entropy_u64());
    (void)snprintf(term, sizeof term, "%u", days);
    const char *const ask[] = {"openssl",
                               "req",
                               "-new",
                               "-newkey",
                               "ec",
                               "-pkeyopt",
                               "ec_paramgen_curve:P-256",
                               "-nodes",
                               "-keyout",
                               paths[KEY],
                               "-out",
                               paths[REQUEST],
                               "-subj",
                               subject,
                               NULL};
    const char *const sign[] = {"openssl",
                                "x509",
                                "-req",
                                "-in",
                                paths[REQUEST],
                                "-CA",
                                paths[CA],
                                "-CAkey",
                                paths[CA_KEY],
                                "-set_serial",
                                serial,
                                "-days",
                                term,
                                "-extfile",
                                paths[EXTENSIONS],
                                "-out",
                                paths[CERTIFICATE],
                                NULL};
    const bool good = write_extensions(paths[EXTENSIONS], node, use, ret_problem) &&
                      make(ask, "a key", ret_problem) && make(sign, "a certificate", ret_problem) &&
                      make_private(paths[KEY], ret_problem) &&
                      make_private(paths[CERTIFICATE], ret_problem);
    (void)unlink(paths[REQUEST]);
    (void)unlink(paths[EXTENSIONS]);
    return good;
}
