/* SPDX-License-Identifier: MIT */
/* settings.h - settings from the environment: only settings.c reads its variables, and it reports a value that it cannot accept. */
#ifndef QUIESCE_SETTINGS_H
#define QUIESCE_SETTINGS_H

#include "core.h"

/* Read all settings that are numbers or flags from the environment, at initialisation. */
void quiesce__settings_from_environment(void);
/* Return the index of @variable's value in @words, of which there are @nr; 0, the default, if it is not set or has another value, which
 * is reported. */
uint32_t quiesce__environment_word(const char *variable, const char *const *words, uint32_t nr);
/* Print all settings that are numbers or flags, in the form of environment variables; returns the length, as snprintf() does. */
size_t quiesce__settings_describe(char *text, size_t size);

#endif
