/* SPDX-License-Identifier: MIT */
/* load.c - requests: wrk's, as a child whose script prints what it measured, and our own over plain sockets. */
#include "load.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "case.h"
#include "server.h"

#define TIMEOUT_S 10

extern char **environ;

/* ---- the client ---- */

int client_open(struct client *client, int port)
{
	struct sockaddr_in address = { AF_INET, htons((uint16_t)port), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct timeval timeout = { TIMEOUT_S, 0 };

	client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (client->fd < 0)
		return -errno;
	setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	setsockopt(client->fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
	return connect(client->fd, (struct sockaddr *)&address, sizeof(address)) ? -errno : 0;
}

void client_close(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	client->fd = -1;
}

/* How long the answer at @text is with its body; 0: not known yet. */
static size_t answer_length(const char *text)
{
	const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\nContent-Length:");

	if (!end)
		return 0;
	return (size_t)(end + 4 - text) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
}

static int receive(struct client *client)
{
	char text[4096];
	size_t have = 0, want = 0;
	int status;

	while (!want || have < want) {
		ssize_t n = have + 1 < sizeof(text) ? recv(client->fd, text + have, sizeof(text) - 1 - have, 0) : -1;

		if (n <= 0)
			return n ? -errno : -ECONNRESET;
		have += (size_t)n;
		text[have] = 0;
		want = want ? want : answer_length(text);
	}
	return sscanf(text, "HTTP/1.1 %d", &status) == 1 ? status : -EPROTO;
}

int client_request(struct client *client, const char *method, const char *path, const char *body)
{
	char text[2048];
	int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: %zu\r\n\r\n%s", method, path,
			 body ? strlen(body) : 0, body ? body : "");

	if (n >= (int)sizeof(text))
		return -EMSGSIZE;
	if (send(client->fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		return errno ? -errno : -EPIPE;
	return receive(client);
}

/* ---- wrk ---- */

/* Each of its threads has a Lua of its own: setup() sees them all, the others see one. */
static const char script[] =
	"local threads = 0\n"
	"function setup(thread) thread:set('id', threads); threads = threads + 1 end\n"
	"function init(arguments) text = wrk.format('GET', '/f' .. id) end\n"
	"function request() return text end\n"
	"function done(summary, latency, requests)\n"
	"  local e = summary.errors\n"
	"  io.write(string.format('\\nresult %d %d %d %d\\n', summary.requests,\n"
	"    latency:percentile(50), latency:percentile(99), e.connect + e.read + e.write + e.status + e.timeout))\n"
	"end\n";

static int write_script(char *path, size_t size)
{
	FILE *f;

	snprintf(path, size, "%s/%s", server_directory(), SERVER_SCRIPT);
	f = fopen(path, "we");
	if (!f)
		return -errno;
	fputs(script, f);
	return fclose(f) ? -errno : 0;
}

/* The pipe's read end in @ret_from. */
static int start(char *const argv[], pid_t *ret_pid, int *ret_from)
{
	posix_spawn_file_actions_t actions;
	int fd[2], err;

	if (pipe2(fd, O_CLOEXEC))
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, fd[1], 1);
	err = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	close(fd[1]);
	if (err)
		close(fd[0]);
	*ret_from = fd[0];
	return -err;
}

/* Collect all that a program writes, for a limited time. */
static void collect(int from, int seconds, char *text, size_t size)
{
	struct pollfd p = { from, POLLIN, 0 };
	size_t have = 0;

	while (have + 1 < size && poll(&p, 1, (seconds + TIMEOUT_S) * 1000) > 0) {
		ssize_t n = read(from, text + have, size - 1 - have);

		if (n <= 0)
			break;
		have += (size_t)n;
	}
	text[have] = 0;
}

static bool parse(const char *text, struct wrk_result *ret)
{
	const char *line = strstr(text, "\nresult ");

	return line && sscanf(line, " result %lf %lf %lf %lf", &ret->requests, &ret->p50_us, &ret->p99_us, &ret->errors) == 4 &&
	       ret->requests > 0;
}

static int finish(pid_t pid, const char *text, struct wrk_result *ret)
{
	int status;

	kill(pid, SIGTERM); /* the program has ended, or took too long */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	server_child(0);
	if (parse(text, ret))
		return 0;
	case_note("wrk failed (wait status %d); what it printed: %.200s", status, text);
	return -EIO;
}

int wrk_run(int port, int threads, int seconds, struct wrk_result *ret)
{
	char name[] = "wrk", timeout[] = "--timeout=60", count[24], connections[24], duration[24];
	char path[256], with[300], url[64], text[8192];
	char *argv[] = { name, timeout, count, connections, duration, with, url, NULL };
	int from = -1, err = write_script(path, sizeof(path));
	pid_t pid = 0;

	snprintf(count, sizeof(count), "-t%d", threads);
	snprintf(connections, sizeof(connections), "-c%d", threads);
	snprintf(duration, sizeof(duration), "-d%ds", seconds);
	snprintf(with, sizeof(with), "--script=%s", path);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	if (!err)
		err = start(argv, &pid, &from);
	if (err)
		return err;
	server_child(pid);
	collect(from, seconds, text, sizeof(text));
	close(from);
	return finish(pid, text, ret);
}
