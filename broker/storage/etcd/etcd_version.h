/* broker/storage/etcd/etcd_version.h judges the version of an etcd member.
 *
 * The reasons are faults of etcd that its change log names. From 3.5.0 to 3.5.16 a transaction
 * could be written in part. 3.4 has no more repairs and answers reads that are out of date, which
 * the journal does not trust. Below 3.5.33 and 3.6.14 a revoked certificate, or a handshake that
 * stalls, is not handled. The code is pure. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_VERSION_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_VERSION_H

enum etcd_version_verdict {
    ETCD_VERSION_GOOD,
    ETCD_VERSION_OLD,    /* works, and a warning says what to install */
    ETCD_VERSION_REFUSED /* may lose entries, or is not known */
};

/* Judges a version such as "3.4.23" or "3.6.0-rc.1". *ret_advice is a sentence for the operator,
 * "" for GOOD. */
enum etcd_version_verdict etcd_version_judge(const char *version, const char **ret_advice);

#endif
