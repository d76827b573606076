/* SPDX-License-Identifier: MIT */
/* probes.c - the words of the static probes, which the kernel raises while a tracer listens (platform/probe.h). */
#include "platform/probe.h"

#if defined(QUIESCE_HAVE_SDT) && !defined(QUIESCE_SIM)
#define DEFINE_PROBE(name) \
	unsigned short quiesce_##name##_semaphore[QUIESCE_PROBE_WORDS] __attribute__((section(".probes"), aligned(QUIESCE_CACHELINE)));
QUIESCE_PROBES(DEFINE_PROBE)
#endif
