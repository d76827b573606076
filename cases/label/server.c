/* SPDX-License-Identifier: MIT */
/* server.c - libmicrohttpd with a pool of threads, each with an epoll of its own, and the policy in front of open(). */
#include "server.h"

#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <quiesce/atomic.h>

#include "policy.h"

#define FILE_BYTES 256

static struct {
	struct MHD_Daemon *daemon;
	char path[200];
	int directory;
	int files;
	char name[SERVER_MAX_FILES + 1][16]; /* names of the files and of the script */
	pid_t child;
} server;

/* ---- the directory ---- */

/* Remove the directory; may be called in a signal handler. */
static void remove_directory(void)
{
	if (!server.path[0])
		return;
	for (int i = 0; i <= server.files; i++)
		unlinkat(server.directory, server.name[i], 0);
	rmdir(server.path);
	server.path[0] = 0;
}

static int make_file(const char *name)
{
	char text[FILE_BYTES];
	int fd = openat(server.directory, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600), err = 0;

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\n';
	if (fd < 0 || write(fd, text, sizeof(text)) != (ssize_t)sizeof(text))
		err = errno ? -errno : -ENOSPC;
	if (fd >= 0)
		close(fd);
	return err;
}

static int make_directory(int files)
{
	const char *tmp = getenv("TMPDIR");
	int err = 0;

	snprintf(server.path, sizeof(server.path), "%s/quiesce-label-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(server.path)) {
		err = -errno;
		server.path[0] = 0;
		return err;
	}
	atexit(remove_directory);
	server.directory = open(server.path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	server.files = files;
	snprintf(server.name[files], sizeof(server.name[files]), "%s", SERVER_SCRIPT);
	for (int i = 0; i < files && !err; i++) {
		snprintf(server.name[i], sizeof(server.name[i]), "f%d", i);
		err = make_file(server.name[i]);
	}
	return err;
}

const char *server_directory(void)
{
	return server.path;
}

/* ---- an end from outside ---- */

void server_child(int child)
{
	quiesce_store_relaxed(&server.child, child); /* Relaxed: for this thread's signal handler. */
}

static void end(int sig)
{
	pid_t child = quiesce_load_relaxed(&server.child); /* Relaxed: its own thread stored it. */

	if (child)
		kill(child, SIGTERM);
	remove_directory();
	raise(sig); /* pending until the handler has returned, and then the default */
}

void server_catch_signals(void)
{
	struct sigaction action = { .sa_handler = end, .sa_flags = (int)SA_RESETHAND };

	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

/* ---- requests ---- */

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned int status, struct MHD_Response *response)
{
	enum MHD_Result result = response ? MHD_queue_response(connection, status, response) : MHD_NO;

	if (response)
		MHD_destroy_response(response);
	return result;
}

static enum MHD_Result say(struct MHD_Connection *connection, unsigned int status, const char *text)
{
	return answer(connection, status, MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

/* Open a file after a check of the label, which is the operation that the case measures. */
static int open_checked(const char *path)
{
	if (!policy_check(path))
		return -EACCES;
	if (strchr(path + 1, '/'))
		return -ENOENT; /* there are no folders in it */
	return openat(server.directory, path + 1, O_RDONLY | O_CLOEXEC);
}

static enum MHD_Result get(struct MHD_Connection *connection, const char *path)
{
	int fd = open_checked(path);
	struct stat st;

	if (fd == -EACCES)
		return say(connection, MHD_HTTP_FORBIDDEN, "the label does not allow that\n");
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode)) {
		if (fd >= 0)
			close(fd);
		return say(connection, MHD_HTTP_NOT_FOUND, "there is no such file\n");
	}
	return answer(connection, MHD_HTTP_OK, MHD_create_response_from_fd((uint64_t)st.st_size, fd)); /* the response closes the file */
}

struct upload {
	size_t size;
	char text[POLICY_TEXT_MAX + 1];
};

static enum MHD_Result put(struct MHD_Connection *connection, const struct upload *upload)
{
	switch (upload->size > POLICY_TEXT_MAX ? -EINVAL : policy_replace(upload->text)) {
	case 0: return say(connection, MHD_HTTP_OK, "the label is replaced\n");
	case -EINVAL: return say(connection, MHD_HTTP_BAD_REQUEST, "that is no label: lines of allow PREFIX, deny PREFIX, complain\n");
	default: return say(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory for a label\n");
	}
}

static void append(struct upload *upload, const char *data, size_t size)
{
	if (upload->size + size <= POLICY_TEXT_MAX)
		memcpy(upload->text + upload->size, data, size);
	upload->size += size; /* an upload that is too long is refused at its end */
}

/* Handle a request; the daemon calls this with the headers, then for each part of a body, then for the answer. */
static enum MHD_Result request(void *unused, struct MHD_Connection *connection, const char *path, const char *method,
			       const char *version, const char *data, size_t *size, void **state)
{
	bool changes = !strcmp(method, MHD_HTTP_METHOD_PUT) || !strcmp(method, MHD_HTTP_METHOD_POST);

	(void)unused, (void)version;
	if (!*state) {
		*state = calloc(1, changes ? sizeof(struct upload) : 1);
		return *state ? MHD_YES : MHD_NO;
	}
	if (changes && *size) {
		append(*state, data, *size);
		*size = 0;
		return MHD_YES;
	}
	if (changes && !strcmp(path, "/label"))
		return put(connection, *state);
	if (changes || strcmp(method, MHD_HTTP_METHOD_GET))
		return say(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET a file, or PUT /label\n");
	return get(connection, path);
}

static void completed(void *unused, struct MHD_Connection *connection, void **state, enum MHD_RequestTerminationCode how)
{
	(void)unused, (void)connection, (void)how;
	free(*state);
	*state = NULL;
}

/* ---- its life ---- */

/* As many connections as threads: else one thread, the first to be awake, takes them all, and no check meets another. */
int server_start(int clients, int files)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int err = make_directory(files);

	if (!err) {
		errno = 0;
		server.daemon = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_TURBO, 0, NULL, NULL, request, NULL,
						 MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_THREAD_POOL_SIZE, (unsigned int)clients,
						 MHD_OPTION_CONNECTION_LIMIT, (unsigned int)clients, MHD_OPTION_NOTIFY_COMPLETED,
						 completed, NULL, MHD_OPTION_END);
		err = server.daemon ? 0 : errno ? -errno : -EIO;
	}
	if (err)
		server_stop();
	return err;
}

void server_stop(void)
{
	if (server.daemon)
		MHD_stop_daemon(server.daemon);
	server.daemon = NULL;
	remove_directory();
	if (server.directory)
		close(server.directory);
	server.directory = 0;
}

int server_port(void)
{
	return MHD_get_daemon_info(server.daemon, MHD_DAEMON_INFO_BIND_PORT)->port;
}
