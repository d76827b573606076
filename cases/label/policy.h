/* SPDX-License-Identifier: MIT */
/* policy.h - the one label that decides about every open of every worker, and the ways to keep it while it is asked. */
#ifndef LABEL_POLICY_H
#define LABEL_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "case.h"

/* A label in text, as the server takes it: rules line by line, of which the first that fits decides; nothing else is allowed.
 *	deny /secret
 *	allow /f
 * A line "complain" allows everything. */
#define POLICY_TEXT_MAX 1024

extern const struct case_choice policy_variants[];

/* Choose one of policy_variants and publish the first label.  @watched: detect labels that are used after they were freed,
 * and yield or sleep now and then in the middle of a check.  0, or -errno. */
int policy_init(const struct case_choice *variant, const char *text, bool watched);
/* Free the last label, and wait until all are freed; all threads that called policy_check() have ended. */
void policy_exit(void);
/* Return true if the label allows this thread to open @path. */
bool policy_check(const char *path);
/* Replace the label; any number of threads may do so at a time.  Returns 0, -EINVAL if the text is no label, or -ENOMEM. */
int policy_replace(const char *text);
/* Return the number of labels freed so far. */
uint64_t policy_freed(void);

#endif
