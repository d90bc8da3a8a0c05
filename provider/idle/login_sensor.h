/* provider/idle/login_sensor.h sees who is logged in at this machine, in the files of systemd's
 * logind (/run/systemd/sessions). A session counts if it is active, has a seat, and belongs to a
 * person. A screen that waits for a login, a session over the network and a service do not
 * count. */
#ifndef BOURSE_PROVIDER_IDLE_LOGIN_SENSOR_H
#define BOURSE_PROVIDER_IDLE_LOGIN_SENSOR_H

#include <stdbool.h>
#include <stddef.h>

/* Returns false when there is no such folder. *ret_user is a person who is logged in, "" when
 * nobody is. */
bool login_sensor_look(const char *root, char *ret_user, size_t capacity);

#endif
