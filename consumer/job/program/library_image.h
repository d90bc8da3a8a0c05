/* consumer/job/program/library_image.h writes libraries as an image, which is a root file system in
 * a tar archive. The header is not installed.
 *
 * All libraries lie in /lib. The folders /lib64, /usr/lib and /usr/lib64 are links to /lib, so a
 * loader finds the libraries in each folder that it may have been built for. The same libraries
 * give the same bytes: entries are sorted, and times and owners are 0. */
#ifndef BOURSE_CONSUMER_JOB_PROGRAM_LIBRARY_IMAGE_H
#define BOURSE_CONSUMER_JOB_PROGRAM_LIBRARY_IMAGE_H

#include "base/problem.h"
#include "consumer/job/program/libraries.h"

#include <stdbool.h>

/* Returns true when the image has a folder for a loader with this absolute path. */
bool library_image_has_place(const char *loader);
/* Writes the archive to an empty file. */
bool library_image_write(const struct libraries *libraries, int fd, struct problem *ret_problem);

#endif
