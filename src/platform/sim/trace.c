/* SPDX-License-Identifier: MIT */
/* trace.c - print the events of a run, and compute a hash of them, to show that a seed replays. */
#include "machine.h"

#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const order_name[] = { "relaxed", "acquire", "release", "full" };

extern const char __ehdr_start[]; /* start of the mapped executable; defined by the linker */

/* ---- names of static variables, from the executable's own symbol table ---- */

static const Elf64_Ehdr *own_image(void)
{
	static const Elf64_Ehdr *image SIM_KEEP;
	struct stat st;
	void *p;
	int fd;

	if (image)
		return image;
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return NULL;
	p = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (p != MAP_FAILED)
		image = p;
	return image;
}

static const Elf64_Shdr *symbol_section(const Elf64_Ehdr *image)
{
	const Elf64_Shdr *s = (const void *)((const char *)image + image->e_shoff);

	for (int i = 0; i < image->e_shnum; i++)
		if (s[i].sh_type == SHT_SYMTAB)
			return &s[i];
	return NULL;
}

static bool symbol_of(uintptr_t address, char *ret_text, size_t size)
{
	const Elf64_Ehdr *image = own_image();
	const Elf64_Shdr *section = image ? symbol_section(image) : NULL;
	const Elf64_Sym *symbol;
	const char *names;
	uintptr_t base;

	if (!section)
		return false;
	base = image->e_type == ET_DYN ? (uintptr_t)__ehdr_start : 0;
	symbol = (const void *)((const char *)image + section->sh_offset);
	names = (const char *)image + ((const Elf64_Shdr *)((const char *)image + image->e_shoff))[section->sh_link].sh_offset;
	for (size_t i = 0; i < section->sh_size / sizeof *symbol; i++)
		if (ELF64_ST_TYPE(symbol[i].st_info) == STT_OBJECT && address - base - symbol[i].st_value < symbol[i].st_size) {
			snprintf(ret_text, size, "%s+%zu", names + symbol[i].st_name,
				 (size_t)(address - base - symbol[i].st_value));
			return true;
		}
	return false;
}

static void place_of(const void *p, char *ret_text, size_t size)
{
	uintptr_t address = (uintptr_t)p;
	size_t thread = address - (uintptr_t)M->threads, arena = address - (uintptr_t)M->arena;
	size_t object = address - (uintptr_t)M->objects;

	if (!p)
		snprintf(ret_text, size, "-");
	else if (thread < sizeof M->threads)
		snprintf(ret_text, size, "T%zu.tls+%zu", thread / sizeof(struct thread), thread % sizeof(struct thread));
	else if (arena < sizeof M->arena)
		snprintf(ret_text, size, "arena+%#zx", arena);
	else if (object < sizeof M->objects)
		snprintf(ret_text, size, "data of object %zu", object / sizeof(struct object));
	else if (!symbol_of(address, ret_text, size))
		snprintf(ret_text, size, "%p", p);
}

/* ---- events ---- */

void sim__trace_text(const char *format, ...)
{
	va_list args;

	printf("%6u ", M->steps);
	va_start(args, format);
	vprintf(format, args);
	va_end(args);
	putchar('\n');
}

static void mix(uint64_t value)
{
	M->hash = (M->hash ^ value) * 0x100000001b3ull;
}

void sim__trace(const char *op, const void *p, uint64_t value, enum sim_order order, const struct sim_site *site)
{
	char place[96];

	mix((uint64_t)M->steps << 8 | (uint8_t)M->cur);
	mix(op[0] | order << 8);
	if (value < 1ull << 32) /* addresses differ from process to process */
		mix(value);
	if (!M->opt.trace)
		return;
	place_of(p, place, sizeof place);
	printf("%6u T%d %-10s %-15s %-28s %#llx %s%s%s (%s:%d)\n", M->steps, M->cur, M->threads[M->cur].name, op, place,
	       (unsigned long long)value, order_name[order], *site->label ? " " : "", site->label, site->func, site->line);
}
