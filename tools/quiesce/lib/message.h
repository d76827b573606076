/* SPDX-License-Identifier: MIT */
/* message.h - the messages in the pipes between the tool and its children, which run the same program. */
#ifndef QUIESCE_TOOL_MESSAGE_H
#define QUIESCE_TOOL_MESSAGE_H

#include <limits.h>

#include "tool.h"

#define MESSAGE_FD 3

/* A job; names stand for its pointers, because the child is loaded at another address. */
struct wire {
	char command[16];
	char type[64];
	struct job job;
};
_Static_assert(sizeof(struct wire) <= PIPE_BUF, "one write, and one read");

enum message_kind { MESSAGE_SAMPLE, MESSAGE_COSTS, MESSAGE_SLOT, MESSAGE_NOTE, MESSAGE_TEXT, MESSAGE_ALIVE };

struct message {
	uint32_t kind;
	int32_t scenario;
	int32_t metric;
	int32_t threads;
	uint32_t group;
	union {
		double value;
		struct costs costs;
		char text[MESSAGE_TEXT_MAX];
	};
};

#endif
