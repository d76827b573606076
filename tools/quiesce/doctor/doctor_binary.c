/* SPDX-License-Identifier: MIT */
/* doctor_binary.c - checks the restartable sequences of a program or library that was linked.
 *
 * The section __rseq_cs has a descriptor of each sequence: where it begins, how long it is, and where the kernel sends a
 * thread that it interrupts, behind four bytes of signature.  A tool that moves code after the link, such as
 * BOLT, and does not know of sequences, leaves descriptors that describe something else.  Then the kernel does not restart
 * what it interrupts, without a word, or kills the process.
 *
 * I1. Sequence and restart are in code, the restart is outside of the sequence and has the signature in front of it.
 * I2. Code that announces a descriptor is directly before the sequence that it describes.
 * I3. The last instruction of the sequence, the commit, stores to memory: a range that is too long restarts what has been done.
 *     There is no verdict on code with an instruction that instruction_length() does not know.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "doctor.h"

#define SIGNATURE 0x53053053u
#define MAX_NAMED 20 /* descriptors that are shown one by one */
#define ANNOUNCED_IN 16   /* bytes of the code that announces a sequence, at most */
#define OTHERS_BETWEEN 32 /* bytes between announcement and sequence, at most, in code of others */

#define ADVICE                                                                                                     \
	"counts and guards are lost: a tool has moved code after the link.  Let it skip the functions that are named " \
	"here for the program as it was linked (llvm-bolt --skip-funcs=...)"

struct descriptor {
	uint32_t version, flags;
	uint64_t start, bytes, restart;
};

struct image {
	const char *path;
	const uint8_t *bytes;
	size_t size;
	const Elf64_Shdr *sections;
	size_t nr_sections;
	const Elf64_Shdr *names;
	const Elf64_Shdr *symbols, *strings; /* NULL: the file is stripped */
	const Elf64_Shdr *table;             /* NULL: the file has no sequences */
	struct descriptor *list;
	size_t nr;
};

/* ---- the file ---- */

static const void *part(const struct image *i, uint64_t offset, uint64_t size)
{
	return offset <= i->size && size <= i->size - offset ? i->bytes + offset : NULL;
}

static const void *content(const struct image *i, const Elf64_Shdr *section)
{
	return section->sh_type == SHT_NOBITS ? NULL : part(i, section->sh_offset, section->sh_size);
}

static const char *string_in(const struct image *i, const Elf64_Shdr *strings, uint32_t at)
{
	const char *text = content(i, strings);

	return text && at < strings->sh_size && memchr(text + at, '\0', strings->sh_size - at) ? text + at : "";
}

static bool is_code(const struct image *i, const Elf64_Shdr *section)
{
	return section->sh_flags & SHF_EXECINSTR && content(i, section);
}

/* BOLT moves functions out of these sections, and leaves their code behind.  Functions that it skips still run there. */
static bool is_old_code(const struct image *i, const Elf64_Shdr *section)
{
	return strncmp(string_in(i, i->names, section->sh_name), ".bolt.org", 9) == 0;
}

/* Return @size bytes of code at @address, or NULL. */
static const uint8_t *code_at(const struct image *i, uint64_t address, uint64_t size)
{
	for (size_t n = 0; n < i->nr_sections; n++) {
		const Elf64_Shdr *s = &i->sections[n];
		uint64_t at = address - s->sh_addr;

		if (at < s->sh_size && size <= s->sh_size - at && is_code(i, s))
			return (const uint8_t *)content(i, s) + at;
	}
	return NULL;
}

/* Return the symbol of the function at @address, or NULL. */
static const Elf64_Sym *function_at(const struct image *i, uint64_t address)
{
	const Elf64_Sym *symbol = i->symbols ? content(i, i->symbols) : NULL;

	for (size_t n = 0; symbol && n < i->symbols->sh_size / sizeof(*symbol); n++)
		if (ELF64_ST_TYPE(symbol[n].st_info) == STT_FUNC && address - symbol[n].st_value < symbol[n].st_size)
			return &symbol[n];
	return NULL;
}

static const char *name_of(const struct image *i, const Elf64_Sym *symbol)
{
	return symbol ? string_in(i, i->strings, symbol->st_name) : "a function without a name";
}

static const char *open_sections(struct image *i)
{
	const Elf64_Ehdr *head = part(i, 0, sizeof(*head));

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0)
		return "not a program or library";
	if (head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_machine != EM_X86_64)
		return "for another CPU: only those for x86-64 have sequences";
	if (head->e_type != ET_EXEC && head->e_type != ET_DYN)
		return "not linked yet";
	i->nr_sections = head->e_shnum;
	i->sections = part(i, head->e_shoff, head->e_shnum * sizeof(*i->sections));
	if (!i->sections || !head->e_shnum || head->e_shstrndx >= head->e_shnum || head->e_shentsize != sizeof(*i->sections))
		return "without a table of sections: nothing can be checked";
	i->names = &i->sections[head->e_shstrndx];
	for (size_t n = 0; n < i->nr_sections; n++) {
		const Elf64_Shdr *s = &i->sections[n];

		if (s->sh_type == SHT_SYMTAB && s->sh_link < i->nr_sections)
			i->symbols = s, i->strings = &i->sections[s->sh_link];
		if (!strcmp(string_in(i, i->names, s->sh_name), "__rseq_cs"))
			i->table = s;
	}
	return NULL;
}

/* In position-independent files the dynamic linker writes the addresses; the relocations have them. */
static void relocate(struct image *i, const Elf64_Shdr *section)
{
	const Elf64_Rela *entry = content(i, section);

	for (size_t n = 0; entry && n < section->sh_size / sizeof(*entry); n++) {
		uint64_t at = entry[n].r_offset - i->table->sh_addr;

		if (ELF64_R_TYPE(entry[n].r_info) == R_X86_64_RELATIVE && at / sizeof(*i->list) < i->nr && at % sizeof(uint64_t) == 0)
			((uint64_t *)i->list)[at / sizeof(uint64_t)] = (uint64_t)entry[n].r_addend;
	}
}

static const char *read_descriptors(struct image *i)
{
	const void *raw = i->table ? content(i, i->table) : NULL;

	if (!raw || i->table->sh_size % sizeof(*i->list))
		return i->table ? "with a section __rseq_cs that has no descriptors" : NULL;
	i->nr = i->table->sh_size / sizeof(*i->list);
	i->list = malloc(i->table->sh_size + 1);
	if (!i->list)
		return "too large for the memory";
	memcpy(i->list, raw, i->table->sh_size);
	for (size_t n = 0; n < i->nr_sections; n++)
		if (i->sections[n].sh_type == SHT_RELA && i->sections[n].sh_flags & SHF_ALLOC)
			relocate(i, &i->sections[n]);
	return NULL;
}

/* ---- instructions ---- */

/* For each opcode of one byte: m: has a ModRM byte, M: and stores where that says; 1, 4: bytes of a constant; -: none of these; ?: unknown.
 * Opcodes that do either by their ModRM byte have letters of their own: c compares if it is 7, i stores if it is 0 or 1. */
static const char *const opcodes[256] = {
	[0x01] = "M", [0x03] = "m", [0x29] = "M", [0x2b] = "m", [0x31] = "M", [0x33] = "m", [0x39] = "m", [0x3b] = "m", [0x63] = "m",
	[0x70 ... 0x7f] = "1", [0x80] = "c1", [0x81] = "c4", [0x83] = "c1", [0x84 ... 0x85] = "m", [0x88 ... 0x89] = "M",
	[0x8a ... 0x8b] = "m", [0x8d] = "m", [0x90] = "-", [0xa8] = "1", [0xa9] = "4", [0xc1] = "M1", [0xc6] = "M1", [0xc7] = "M4",
	[0xeb] = "1", [0xff] = "i",
};

/* Return the bytes of a ModRM byte and what belongs to it. */
static size_t modrm_length(const uint8_t *at)
{
	unsigned int mod = at[0] >> 6, rm = at[0] & 7;
	size_t n = 1;

	if (mod == 3)
		return n;
	if (rm == 4) {
		n++;
		if (mod == 0 && (at[1] & 7) == 5)
			n += 4;
	}
	return n + (mod == 1 ? 1 : mod == 2 || (mod == 0 && rm == 5) ? 4 : 0);
}

/* Return the length of the instruction at @at, 0 if it is not known; @at has 16 bytes. */
static size_t instruction_length(const uint8_t *at, bool *ret_stores)
{
	size_t n = 0;
	const char *kind;

	*ret_stores = false;
	n += at[n] == 0x64; /* %fs: */
	n += (at[n] & 0xf0) == 0x40;
	if (at[n] == 0x0f)
		return (at[n + 1] & 0xf0) == 0x80 ? n + 6 : 0;
	kind = opcodes[at[n]];
	if (!kind)
		return 0;
	n++;
	if (strchr("mMci", kind[0])) {
		unsigned int reg = at[n] >> 3 & 7;

		if (kind[0] == 'i' && reg > 1)
			return 0;
		*ret_stores = at[n] >> 6 != 3 && kind[0] != 'm' && !(kind[0] == 'c' && reg == 7);
		n += modrm_length(at + n);
		kind++;
	}
	return n + (kind[0] == '1' ? 1 : kind[0] == '4' ? 4 : 0);
}

/* Check I3. */
static bool ends_with_store(const struct image *i, const struct descriptor *d)
{
	uint64_t at = 0;
	bool stores = false;

	while (at < d->bytes) {
		uint8_t copy[16] = { 0 };
		const uint8_t *code = code_at(i, d->start + at, 1);
		uint64_t rest = d->bytes - at < sizeof(copy) ? d->bytes - at : sizeof(copy);
		size_t length;

		if (!code || !(code = code_at(i, d->start + at, rest)))
			return false;
		memcpy(copy, code, rest);
		length = instruction_length(copy, &stores);
		if (!length)
			return true;
		at += length;
	}
	return at == d->bytes && stores;
}

/* Return the length of the code at @at (which has 16 bytes) that announces a descriptor, whose address is stored: lea of it, a store
 * of that register to the thread's area.  0: it is something else. */
static size_t announcement(const uint8_t *at, uint64_t address, uint64_t *ret_descriptor)
{
	size_t n = 7;
	int32_t distance;

	if ((at[0] & 0xfb) != 0x48 || at[1] != 0x8d || (at[2] & 0xc7) != 0x05 || at[n] != 0x64)
		return 0;
	memcpy(&distance, at + 3, sizeof(distance));
	*ret_descriptor = address + n + (uint64_t)(int64_t)distance;
	n++;
	n += (at[n] & 0xf0) == 0x40;
	return at[n] == 0x89 ? n + 1 + modrm_length(at + n + 1) : 0;
}

/* ---- what is wrong ---- */

struct verdict {
	const char *wrong; /* NULL: nothing */
	bool announced;
};

static const char *fault_of(const struct image *i, const struct descriptor *d)
{
	static const uint32_t signature = SIGNATURE;
	const uint8_t *before;

	if (d->version || d->flags)
		return "has a version or flags that the kernel refuses";
	if (!d->bytes || d->bytes > i->size || !code_at(i, d->start, d->bytes))
		return "describes something that is not code";
	if (d->restart - d->start < d->bytes)
		return "restarts inside of itself";
	before = code_at(i, d->restart - sizeof(signature), sizeof(signature) + 1);
	if (!before || memcmp(before, &signature, sizeof(signature)) != 0)
		return "restarts where no signature is";
	return ends_with_store(i, d) ? NULL : "does not end with its store";
}

/* Sequences of this library restart where they are announced, and are announced right in front; those of others need not. */
static bool restarts_in_front(const struct descriptor *d)
{
	return d->start - d->restart <= ANNOUNCED_IN;
}

/* Check I2 at one place. */
static void check_announcement(const struct image *i, struct verdict *verdicts, const uint8_t *at, uint64_t address, bool old)
{
	uint64_t target, length = announcement(at, address, &target), n;
	const struct descriptor *d;
	bool matches;

	if (!length || target - i->table->sh_addr >= i->table->sh_size || (target - i->table->sh_addr) % sizeof(*d))
		return;
	n = (target - i->table->sh_addr) / sizeof(*d);
	d = &i->list[n];
	matches = d->start - (address + length) <= (restarts_in_front(d) ? 0 : OTHERS_BETWEEN);
	verdicts[n].announced |= matches;
	if (!verdicts[n].wrong && !matches && !old)
		verdicts[n].wrong = "is announced by code before something else";
}

static void check_all(const struct image *i, struct verdict *verdicts)
{
	for (size_t n = 0; n < i->nr; n++)
		verdicts[n].wrong = fault_of(i, &i->list[n]);
	for (size_t s = 0; s < i->nr_sections; s++) {
		const Elf64_Shdr *section = &i->sections[s];

		if (is_code(i, section))
			for (uint64_t at = 0; at + 16 <= section->sh_size; at++)
				check_announcement(i, verdicts, (const uint8_t *)content(i, section) + at, section->sh_addr + at,
						   is_old_code(i, section));
	}
	for (size_t n = 0; n < i->nr; n++)
		if (!verdicts[n].wrong && !verdicts[n].announced && restarts_in_front(&i->list[n]))
			verdicts[n].wrong = "is announced by no code";
}

/* ---- findings ---- */

/* The functions that have sequences, each once, with commas: as BOLT has them, which adds a slash and a number to local names. */
static char *functions_of(const struct image *i)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const Elf64_Sym *last = NULL;

	for (size_t n = 0; out && n < i->nr; n++) {
		const Elf64_Sym *symbol = function_at(i, i->list[n].start);

		if (!symbol || symbol == last)
			continue;
		fprintf(out, "%s%s%s", last ? "," : "", name_of(i, symbol), ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? "/.*" : "");
		last = symbol;
	}
	if (!out || fclose(out) != 0)
		return NULL;
	return text;
}

static int report(struct findings *f, const struct image *i, const struct verdict *verdicts)
{
	size_t wrong = 0;
	char *functions = functions_of(i);

	for (size_t n = 0; n < i->nr; n++) {
		char topic[40];

		if (!verdicts[n].wrong || wrong++ >= MAX_NAMED)
			continue;
		snprintf(topic, sizeof(topic), "sequence %#lx", (unsigned long)(i->table->sh_addr + n * sizeof(*i->list)));
		finding(f, topic, NULL, "%s, at %#lx in %s", verdicts[n].wrong, (unsigned long)i->list[n].start,
			name_of(i, function_at(i, i->list[n].start)));
	}
	if (wrong)
		finding(f, i->path, ADVICE, "%zu of %zu restartable sequences are broken", wrong, i->nr);
	else
		finding(f, i->path, NULL, "%zu restartable sequences, all as they were compiled", i->nr);
	if (functions && *functions)
		finding(f, "functions with sequences", NULL, "%s", functions);
	free(functions);
	return wrong ? EXIT_FAILED : EXIT_SUCCESS;
}

static int check_image(struct findings *f, struct image *i)
{
	const char *unfit = open_sections(i);
	struct verdict *verdicts;
	int status;

	if (!unfit)
		unfit = read_descriptors(i);
	verdicts = unfit ? NULL : calloc(i->nr + 1, sizeof(*verdicts));
	if (!verdicts) {
		finding(f, i->path, NULL, "%s", unfit ? unfit : "too large for the memory");
		return EXIT_FAILED;
	}
	if (i->nr)
		check_all(i, verdicts);
	status = report(f, i, verdicts);
	free(verdicts);
	free(i->list);
	return status;
}

int doctor_binary(struct findings *f, const char *path)
{
	struct image i = { .path = path };
	int fd = open(path, O_RDONLY | O_CLOEXEC), status, err = 0;
	struct stat file;
	void *bytes = MAP_FAILED;

	if (fd < 0 || fstat(fd, &file) != 0 || (bytes = mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_PRIVATE, fd, 0)) == MAP_FAILED)
		err = errno;
	if (fd >= 0)
		close(fd);
	if (err) {
		finding(f, path, NULL, "cannot be read: %s", strerror(err));
		return EXIT_FAILED;
	}
	i.bytes = bytes;
	i.size = (size_t)file.st_size;
	status = check_image(f, &i);
	munmap(bytes, i.size);
	return status;
}
