/* SPDX-License-Identifier: MIT */
/* objects.c - the program and its shared objects: which contain a copy of the library, and which must stay
 * loaded. */
#define _GNU_SOURCE
#include "platform/platform.h"

#include <quiesce/arch/rseq.h>

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

/* ---- copies ----
 * Each copy of the library contains this note; the loader's list of objects shows how many there are, also of
 * static copies inside programs and plug-ins, without use of the environment. */

#define NOTE_NAME "quiesce"
#define NOTE_TYPE 0x71

__asm__(".pushsection .note.quiesce,\"a\",%note\n"
	"	.balign 4\n"
	"	.long 8, 4, 0x71\n"
	"	.asciz \"quiesce\"\n"
	"	.long 1\n"
	".popsection\n");

static size_t round4(size_t n)
{
	return (n + 3) & ~(size_t)3;
}

static int notes_in_segment(const char *at, const char *end)
{
	int found = 0;

	while (at + sizeof(ElfW(Nhdr)) <= end) {
		const ElfW(Nhdr) *note = (const void *)at;

		if (note->n_type == NOTE_TYPE && note->n_namesz == sizeof NOTE_NAME &&
		    !memcmp(at + sizeof *note, NOTE_NAME, sizeof NOTE_NAME))
			found++;
		at += sizeof *note + round4(note->n_namesz) + round4(note->n_descsz);
	}
	return found;
}

static int count_notes(struct dl_phdr_info *object, size_t size, void *ret_count)
{
	int found = 0;

	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
		const char *at = (const char *)(object->dlpi_addr + segment->p_vaddr);

		if (segment->p_type == PT_NOTE && segment->p_align <= 4)
			found |= notes_in_segment(at, at + segment->p_memsz);
	}
	*(int *)ret_count += found != 0;
	return 0;
}

int platform_count_copies(void)
{
	int count = 0;

	dl_iterate_phdr(count_notes, &count);
	return count;
}

/* ---- objects that stay loaded ---- */

/* Weak, and not dlopen() itself: a fully static program has no object that could be unloaded, and linkers
 * warn of dlopen() there. */
#pragma weak dlsym

struct object {
	const void *inside;
	const char *name; /* NULL: not found; "": the program */
};

static int find_object(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct object *wanted = arg;

	(void)size;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type == PT_LOAD &&
		    (uintptr_t)wanted->inside - (info->dlpi_addr + segment->p_vaddr) < segment->p_memsz) {
			wanted->name = info->dlpi_name;
			return 1;
		}
	}
	return 0;
}

/* The loader knows the object by that name, so no file is opened. */
static void load_for_good(const char *name)
{
	void *(*load)(const char *, int) = NULL;
	void *found = dlsym ? dlsym(RTLD_DEFAULT, "dlopen") : NULL;

	memcpy(&load, &found, sizeof load);
	if (load)
		load(name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

void quiesce__keep_loaded(const void *inside)
{
	struct object object = { inside, NULL };

	dl_iterate_phdr(find_object, &object);
	if (object.name && *object.name)
		load_for_good(object.name);
}
