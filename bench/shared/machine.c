#include "bench/shared/machine.h"

#include "base/text.h"
#include "consumer/client/bourse.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zmq.h>

void machine_print(void)
{
    char model[128] = "unknown";
    char line[256];
    struct utsname system;
    double load = 0;
    FILE *cpus = fopen("/proc/cpuinfo", "re");
    while (cpus != NULL && fgets(line, sizeof line, cpus) != NULL) {
        if (strncmp(line, "model name", 10) == 0 && strchr(line, ':') != NULL) {
            line[strcspn(line, "\n")] = '\0';
            text_printable(strchr(line, ':') + 2, strlen(strchr(line, ':') + 2), model,
                           sizeof model);
            break;
        }
    }
    if (cpus != NULL) {
        (void)fclose(cpus);
    }
    (void)uname(&system);
    (void)getloadavg(&load, 1);
    (void)printf("\"machine\":{\"processor\":\"%s\",\"processors\":%ld,\"kernel\":\"%s\","
                 "\"load\":%.1f}",
                 model, sysconf(_SC_NPROCESSORS_ONLN), system.release, load);
}

void machine_print_versions(void)
{
    int major;
    int minor;
    int patch;
    zmq_version(&major, &minor, &patch);
    (void)printf("\"versions\":{\"bourse\":\"%s\",\"libzmq\":\"%d.%d.%d\",\"sqlite\":\"%s\"}",
                 bourse_version(), major, minor, patch, sqlite3_libversion());
}
