/* consumer/job/program/own_program.h makes a program of this machine part of a job, so that the
 * program runs on machines that do not have the program. The header is not installed.
 *
 * `run: [./tool, ...]` names a file here and not a host program. The file becomes an input of every
 * subtask and starts as ./tool in the work folder. An ELF program gets an image that holds its
 * loader and its libraries and nothing else, so the host's libraries never matter. The image
 * depends on the libraries alone: a changed program is sent anew, and its libraries are not. A
 * script starts with the interpreter of its first line, as a host program. A WASM module makes the
 * job one of the executor `wasm`, which runs the module on any machine with an engine. */
#ifndef BOURSE_CONSUMER_JOB_PROGRAM_OWN_PROGRAM_H
#define BOURSE_CONSUMER_JOB_PROGRAM_OWN_PROGRAM_H

#include "base/problem.h"
#include "consumer/job/bourse_job.h"

/* Looks at the job's program before the job's parts are made. A program of this machine is added to
 * the shared files and, when it is ELF, as job->image; `run` and the image of job->file change to
 * match, and job->program says what was done. Any other job stays as it is. Names are relative to
 * `folder`. A failed call leaves a problem, and the job is of no use. */
bool own_program_add(struct bourse_job *job, const char *folder, struct problem *ret_problem);
/* Drops the program where the job's files name the program again, as a folder does that holds the
 * program. The program is the first of the shared files. */
void own_program_drop_again(struct bourse_job *job);

#endif
