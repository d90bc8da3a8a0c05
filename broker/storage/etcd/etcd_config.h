/* broker/storage/etcd/etcd_config.h has what an operator says about the etcd that keeps the
 * journal. */
#ifndef BOURSE_BROKER_STORAGE_ETCD_ETCD_CONFIG_H
#define BOURSE_BROKER_STORAGE_ETCD_ETCD_CONFIG_H

#include <stddef.h>

enum { ETCD_MEMBERS_MAX = 7, ETCD_URL_SIZE = 256, ETCD_PATH_SIZE = 1024 };

struct etcd_config {
    size_t member_count;                           /* 0: the journal is not on etcd */
    char members[ETCD_MEMBERS_MAX][ETCD_URL_SIZE]; /* https://HOST:PORT */
    /* PEM files: who signed the members' certificates, and the certificate that they know us by. */
    char ca[ETCD_PATH_SIZE], certificate[ETCD_PATH_SIZE], key[ETCD_PATH_SIZE];
};

#endif
