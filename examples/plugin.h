/* SPDX-License-Identifier: MIT */
/* plugin.h - what plugin.c, the host, and plugin_codec.c, its plug-in, agree on. */
#ifndef PLUGIN_H
#define PLUGIN_H

#include <stdbool.h>

struct codec {
	unsigned int (*encode)(unsigned int value);
	bool (*set_key)(unsigned int key); /* false: no memory, and the key is the old one */
	void (*exit)(void);                /* no other function is called afterwards */
};

/* The one symbol that a plug-in exports. */
extern const struct codec codec;

#endif
