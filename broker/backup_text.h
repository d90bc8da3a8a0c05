/* broker/backup_text.h tells the operator what a backup or a restored folder holds. */
#ifndef BOURSE_BROKER_BACKUP_TEXT_H
#define BOURSE_BROKER_BACKUP_TEXT_H

#include "broker/storage/backup.h"

#include <stdbool.h>

struct backup_told {
    const char *command; /* "backup" or "restore" */
    const char *folder;  /* where the copy was made */
    bool is_json;
    bool has_head; /* the HEAD of the lost folder was given */
};

/* Prints one line, or one JSON object, that says how new the copy is and what it holds. */
void backup_text_print(const struct backup_told *told, const char *done,
                       const struct backup_report *report);
/* Logs what the operator of a restored folder has to do, and what is lost. */
void backup_text_next(const struct backup_told *told, const struct backup_report *report);

#endif
