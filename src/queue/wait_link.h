/* SPDX-License-Identifier: MIT */
/* wait_link.h - wait for a link that another thread is about to store. */
#ifndef QUIESCE_DS_WAIT_LINK_H
#define QUIESCE_DS_WAIT_LINK_H

#include <quiesce/base.h>

/* Pause between two loads of a link.  @round: 0, 1, ... */
void quiesce__link_pause(uint32_t round);

#endif
