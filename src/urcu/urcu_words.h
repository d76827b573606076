/* SPDX-License-Identifier: MIT */
/* urcu_words.h - the internal interface of urcu_words.c, which is the handlers of a fork. */
#ifndef QUIESCE_SRC_URCU_WORDS_H
#define QUIESCE_SRC_URCU_WORDS_H

void quiesce__urcu_fork_prepare(void);
void quiesce__urcu_fork_parent(void);
void quiesce__urcu_fork_child(void);
void quiesce__urcu_fork_survivor(struct quiesce_tls_v1 *self);

#endif
