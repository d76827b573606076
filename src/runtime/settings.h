/* SPDX-License-Identifier: MIT */
/* settings.h - what the environment says: the one place that reads its variables, and says so when it cannot take a value. */
#ifndef QUIESCE_SETTINGS_H
#define QUIESCE_SETTINGS_H

#include "core.h"

/* Take all that is a number or a flag; at initialisation. */
void quiesce__settings_from_environment(void);
/* Which of the @nr @words @variable says; 0, the default, if it is not set or says something else, which is told. */
uint32_t quiesce__environment_word(const char *variable, const char *const *words, uint32_t nr);
/* All of those that are numbers and flags, as they would stand in the environment; returns the length, as snprintf() does. */
size_t quiesce__settings_describe(char *text, size_t size);

#endif
