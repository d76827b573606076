/* SPDX-License-Identifier: MIT */
/* filter.h - make system calls fail, or succeed without doing anything.
 *
 * A rule is CALL[@N][TEST]=RESULT:
 *	CALL     a name of the table below
 *	N        the argument that is tested, counted from 0; the first one by default
 *	TEST     &MASK any bit set, :VALUE equal, !VALUE different
 *	RESULT   an errno by name; "fake": the call returns 0 and nothing happens; "kill": the process ends with SIGSYS
 */
#ifndef FILTER_H
#define FILTER_H

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FILTER_RULE_LENGTH 5
#define FILTER_MAX_INSTRUCTIONS (8 * FILTER_RULE_LENGTH + 1)

struct name_value {
	const char *name;
	unsigned int value;
};

static const struct name_value filter_calls[] = {
	{ "membarrier", SYS_membarrier }, { "rseq", SYS_rseq },         { "clone", SYS_clone },
	{ "clone3", SYS_clone3 },         { "mprotect", SYS_mprotect }, { "mmap", SYS_mmap },
	{ "madvise", SYS_madvise },       { "tgkill", SYS_tgkill },     { "sched_setaffinity", SYS_sched_setaffinity },
	{ NULL, 0 },
};

static const struct name_value filter_results[] = {
	{ "fake", SECCOMP_RET_ERRNO },
	{ "ENOSYS", SECCOMP_RET_ERRNO | ENOSYS },
	{ "EPERM", SECCOMP_RET_ERRNO | EPERM },
	{ "EAGAIN", SECCOMP_RET_ERRNO | EAGAIN },
	{ "ENOMEM", SECCOMP_RET_ERRNO | ENOMEM },
	{ "EINVAL", SECCOMP_RET_ERRNO | EINVAL },
	{ "kill", SECCOMP_RET_KILL_PROCESS },
	{ NULL, 0 },
};

struct filter {
	struct sock_filter code[FILTER_MAX_INSTRUCTIONS];
	unsigned short length;
};

static inline int filter_find(const struct name_value *table, const char *name, size_t length, unsigned int *ret_value)
{
	for (; table->name; table++)
		if (strlen(table->name) == length && !strncmp(table->name, name, length)) {
			*ret_value = table->value;
			return 0;
		}
	fprintf(stderr, "filter: unknown name %.*s\n", (int)length, name);
	return -1;
}

static inline void filter_add(struct filter *f, struct sock_filter instruction)
{
	f->code[f->length++] = instruction;
}

/* If the argument fails @test, jump over the one instruction that follows. */
static inline void filter_add_test(struct filter *f, const char *test)
{
	unsigned int argument = *test == '@' ? (unsigned int)strtoul(test + 1, (char **)&test, 0) : 0;
	unsigned int value = (unsigned int)strtoul(test + 1, NULL, 0);
	unsigned short how = *test == '&' ? BPF_JSET : BPF_JEQ;

	filter_add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
						   (unsigned int)offsetof(struct seccomp_data, args) + argument * 8));
	if (*test == '!')
		filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 1, 0));
	else
		filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | how | BPF_K, value, 0, 1));
}

static inline int filter_add_rule(struct filter *f, const char *rule)
{
	size_t name = strcspn(rule, "@&:!="), whole = strcspn(rule, "=");
	unsigned char over = rule[name] == '=' ? 1 : 3;
	unsigned int call, result;

	if (!rule[whole] || f->length + FILTER_RULE_LENGTH >= FILTER_MAX_INSTRUCTIONS)
		return -1;
	if (filter_find(filter_calls, rule, name, &call) ||
	    filter_find(filter_results, rule + whole + 1, strlen(rule + whole + 1), &result))
		return -1;
	filter_add(f, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)));
	filter_add(f, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, over));
	if (rule[name] != '=')
		filter_add_test(f, rule + name);
	filter_add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, result));
	return 0;
}

/* Install the filter for all threads of the process, and for programs that it executes.  Return 0 or -errno. */
static inline int filter_install(struct filter *f)
{
	struct sock_fprog program = { .len = 0, .filter = f->code };

	filter_add(f, (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
	program.len = f->length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return -errno;
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) ? -errno : 0;
}

/* Install @rule; exit with 77 where the kernel has no filters. */
static inline void filter_now(const char *rule)
{
	struct filter f = { .length = 0 };
	int err;

	if (filter_add_rule(&f, rule))
		exit(2);
	err = filter_install(&f);
	if (err) {
		printf("skipped: seccomp filters cannot be installed here: %s\n", strerror(-err));
		exit(77);
	}
}

#endif
