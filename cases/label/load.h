/* SPDX-License-Identifier: MIT */
/* load.h - clients of the server: wrk, and a client of a few lines for the administrator and for tests. */
#ifndef LABEL_LOAD_H
#define LABEL_LOAD_H

#include <stddef.h>

/* A connection that is kept. */
struct client {
	int fd;
};
/* Connect to the server; returns 0 or -errno. */
int client_open(struct client *client, int port);
/* @body NULL: none.  Returns the status of the answer, or -errno. */
int client_request(struct client *client, const char *method, const char *path, const char *body);
void client_close(struct client *client);

struct wrk_result {
	double requests, p50_us, p99_us;
	double errors; /* connections that broke, timeouts, answers that are no 200 */
};
/* Run wrk for @seconds with @threads, each with one connection and its own file.  Returns 0; -ENOENT: there is no wrk; -EIO, reported. */
int wrk_run(int port, int threads, int seconds, struct wrk_result *ret);

#endif
