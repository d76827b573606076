/* SPDX-License-Identifier: MIT */
/* side.h - the interface between a host and its plug-in: cells whose objects are read in sections, and replaced. */
#ifndef TESTS_LIBURCU_MIX_SIDE_H
#define TESTS_LIBURCU_MIX_SIDE_H

struct cell {
	void *object;
};

struct side {
	void (*begin)(void); /* each thread calls it */
	void (*end)(void);
	void (*quiet)(void);
	void (*leave)(void); /* a thread calls both around waits of the other side */
	void (*come_back)(void);
	/* One section, in whose midst the other side reads @nested, unless that is NULL.  Aborts if an object has been reclaimed. */
	void (*read)(struct cell *cell, const struct side *other, struct cell *nested);
	/* Replace the object; the old one is reclaimed after a grace period, before this returns or in a callback. */
	void (*replace)(struct cell *cell, int by_callback);
	void (*barrier)(void);
	int (*nr_live)(void); /* objects that have not been reclaimed */
};

extern const struct side host, plugin;

#endif
