/* SPDX-License-Identifier: MIT */
/* refscale.h - the scenario of refscale. */
#ifndef QUIESCE_TOOL_REFSCALE_H
#define QUIESCE_TOOL_REFSCALE_H

#include "tool.h"

enum { SCENARIO_READ };

#endif
