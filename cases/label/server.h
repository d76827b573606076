/* SPDX-License-Identifier: MIT */
/* server.h - an HTTP server of files on 127.0.0.1 that asks the policy before it opens one. */
#ifndef LABEL_SERVER_H
#define LABEL_SERVER_H

#include <stdbool.h>

#define SERVER_MAX_FILES 1024

/* Make a directory with files f0, f1, ... and serve them to @clients connections at a time, each with a thread; GET of a path
 * that the policy does not allow is 403, PUT or POST of /label replaces the label.  There is one server at a time.
 * 0, or -errno. */
int server_start(int clients, int files);
/* Stop the server: its threads have ended, and the directory is gone, when this returns. */
void server_stop(void);
int server_port(void);
/* Where a file besides those that are served may be made; removed with the others. */
#define SERVER_SCRIPT "load.lua"
const char *server_directory(void);
/* SIGTERM and SIGINT remove the directory, and end the process @child, if it is not 0, and this one. */
void server_catch_signals(void);
void server_child(int child);

#endif
