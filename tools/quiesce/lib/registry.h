/* SPDX-License-Identifier: MIT */
/* registry.h - a type of the tool is described once, by itself: TYPE() at the end of its file puts it into the tables.
 *
 * Each file of types/X/ registers the types that it defines, and nothing else names them: subcommands take the types
 * that have the facets they need, in the order of their ranks.  The name of a peer's type begins with the name of the
 * peer and an underscore.  By it the tool finds the module to load when a type is asked for, so that no list of absent
 * types is needed.
 *
 * Ranks leave room for more types.  In most tables floors begin at 100, types of this library at 300, those of peers
 * at 1000, and those of the system at 1500; what is broken on purpose stands beside what it breaks, or is last.
 */
#ifndef QUIESCE_TOOL_REGISTRY_H
#define QUIESCE_TOOL_REGISTRY_H

#include "op.h"

/* The lines, tables and pictures, beside those of its subcommands, that have a type; `quiesce types` prints these names.
 *
 *	RUN_SIX, RUN_SIX_WAIT		the six lines of `quiesce run`: reads, retirements and lookups; waits
 *	PEER_...			candidates for the best peer in these lines and in "where others are faster"; each has a @reason
 *	RUN_READ, RUN_OBJECT, RUN_LOCK	its tables of reads; RUN_SLOW: 64 readers take seconds
 *	RUN_WAIT			its table of waits; _SAME: also beside readers of the very object; _LONG: also for those that stay
 *	RUN_BURST, RUN_TABLE		its tables of bursts; of retirements and of lookups
 *	REPORT_...			the parts of `quiesce report`; REPORT: retirements and lookups
 *	FAMILY_...			its pictures of readers
 */
#define TYPE_GROUPS(X)                                                                                          \
	X(RUN_SIX) X(RUN_SIX_WAIT)                                                                               \
	X(PEER_RCU) X(PEER_HAZPTR) X(PEER_LOCK) X(PEER_COUNT) X(PEER_TABLE) X(PEER_ALLOC)                        \
	X(RUN_READ) X(RUN_OBJECT) X(RUN_LOCK) X(RUN_SLOW) X(RUN_WAIT) X(RUN_WAIT_SAME) X(RUN_WAIT_LONG) X(RUN_BURST) X(RUN_TABLE) \
	X(REPORT_READ) X(REPORT_WAIT) X(REPORT_BURST) X(REPORT) X(FAMILY_ALL) X(FAMILY_OBJECT) X(FAMILY_LOCK)

#define TYPE_GROUP_NUMBER(name) name##_NUMBER,
#define TYPE_GROUP_BIT(name) name = 1u << name##_NUMBER,
enum type_group_number { TYPE_GROUPS(TYPE_GROUP_NUMBER) NR_TYPE_GROUPS };
enum type_group { TYPE_GROUPS(TYPE_GROUP_BIT) };
#define RUN_READS (RUN_READ | RUN_OBJECT | RUN_LOCK)
#define RUN_WAITS (RUN_WAIT | RUN_WAIT_SAME | RUN_WAIT_LONG)
#define PEER_ANY (PEER_RCU | PEER_HAZPTR | PEER_LOCK | PEER_COUNT | PEER_TABLE)

/* A program and a module have an array of pointers to their types, which the linker puts together. */
#define TYPE_ENTRY __attribute__((section("quiesce_types"), used, aligned(sizeof(void *)))) /* aligned: no gaps */
#define TYPE_PASTE(a, b) a##b
#define TYPE_UNIQUE(name, number) TYPE_PASTE(name, number)
#define TYPE_DEFINE(id, text, ...)                                       \
	static const struct op id = { .name = text, __VA_ARGS__ };       \
	static const struct op *const TYPE_PASTE(id, _entry) TYPE_ENTRY = &id
/* Registers the type @name_, with members of struct op; C++ wants them in the order of the structure. */
#define TYPE(name_, ...) TYPE_DEFINE(TYPE_UNIQUE(type_, __COUNTER__), #name_, __VA_ARGS__)

#ifdef __cplusplus
#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* C++ warns of designated initializers, too */
extern "C" {
#endif

/* Adds types of a module.  Those of the tool are there. */
void types_add(const struct op *const *begin, const struct op *const *end);
/* The types, in their order, that @fits; after every peer's module that can be loaded was loaded.  Returns their number, at most @max. */
int types_all(bool (*fits)(const struct op *op), const struct op **ret, int max);
/* The type @name that @fits, after the module of its peer was loaded; NULL: there is none.  It is absent if the module cannot be loaded. */
const struct op *type_find(bool (*fits)(const struct op *op), const char *name);

/* A module and the program have each the bounds of its own array. */
#define TYPE_BOUND __attribute__((visibility("hidden")))
extern const struct op *const __start_quiesce_types[] TYPE_BOUND;
extern const struct op *const __stop_quiesce_types[] TYPE_BOUND;

#ifdef __cplusplus
}
#endif

#endif
