/* SPDX-License-Identifier: MIT */
/* wait_link.h - how who needs a link waits for the thread that is about to store it. */
#ifndef QUIESCE_DS_WAIT_LINK_H
#define QUIESCE_DS_WAIT_LINK_H

#include <quiesce/base.h>

/* One pause between two looks at a link.  @round: 0, 1, ... */
void quiesce__link_pause(uint32_t round);

#endif
