/* SPDX-License-Identifier: MIT */
/* perturbed.h - options of the programs that are built with a perturbed library. */
#ifndef QUIESCE_TORTURE_PERTURBED_H
#define QUIESCE_TORTURE_PERTURBED_H

#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "platform/perturb.h"

#define DEFAULT_RATE 20

struct perturbed_options {
	double seconds;
	const char *mutant; /* set already; NULL: none */
};

/* Read the options, and set the rate and the mutant.  False, after a message: they are wrong. */
static inline bool perturbed_options(struct perturbed_options *ret, int argc, char **argv)
{
	static const struct option options[] = { { "seconds", required_argument, NULL, 's' },
						 { "mutant", required_argument, NULL, 'm' },
						 { "perturb", required_argument, NULL, 'p' },
						 { NULL, 0, NULL, 0 } };

	*ret = (struct perturbed_options){ .seconds = 2 };
	quiesce_perturb_rate = DEFAULT_RATE;
	for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
		switch (c) {
		case 's': ret->seconds = atof(optarg); break;
		case 'm': ret->mutant = optarg; break;
		case 'p': quiesce_perturb_rate = (unsigned int)atoi(optarg); break;
		default: return false;
		}
	}
	if (!quiesce_mutant_set(ret->mutant))
		return true;
	fprintf(stderr, "unknown mutant %s\n", ret->mutant);
	return false;
}

#endif
