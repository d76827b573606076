/* SPDX-License-Identifier: MIT */
#ifndef PLUG_H
#define PLUG_H

/* Return 0 if every reader saw live objects only; -1 if no thread could be started.  One caller at a time. */
int quiesce_try(void);

#endif
