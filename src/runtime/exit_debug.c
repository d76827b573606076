/* SPDX-License-Identifier: MIT */
/* exit_debug.c - who calls exit() or returns from main() inside a section, or with something held: no key destructor runs for
 * that thread. */
#include "core.h"
#include "subsystem.h"

#if !defined(QUIESCE_SIM) /* which ends as it likes */
__attribute__((destructor)) static void process_exits(void)
{
	quiesce__each_subsystem(process_report, quiesce__self());
}
#endif
