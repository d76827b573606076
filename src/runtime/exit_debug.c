/* SPDX-License-Identifier: MIT */
/* exit_debug.c - report a thread that calls exit(), or returns from main(), inside a section or with
 * something held: the destructors of its thread-specific keys do not run then. */
#include "core.h"
#include "subsystem.h"

#if !defined(QUIESCE_SIM) /* a simulated process has no destructors */
__attribute__((destructor)) static void report_process(void)
{
	quiesce__each_subsystem(process_report, quiesce__self());
}
#endif
