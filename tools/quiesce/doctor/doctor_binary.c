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
 *     There is no verdict on a sequence with an instruction that instruction_length() does not know.
 * I4. No sequence overlaps another one.
 *
 * The file may be hostile: sequences are short and do not overlap, so that each byte of code is decoded at most once, and each loop
 * over what the file counts ends when the tool is interrupted; finding() then drops the verdict.
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

#define LONGEST 4096 /* bytes of a sequence, at most */

/* Types of sections with Android's packed relocations, which elf.h does not have. */
#define ANDROID_REL 0x60000001
#define ANDROID_RELA 0x60000002

#define ADVICE                                                                                                         \
	"counts and guards are lost: a tool has moved code after the link, or the assembler has added instructions "     \
	"(-mlfence-after-load).  Let a tool skip the functions that are named here for the program as it was linked " \
	"(llvm-bolt --skip-funcs=...)"
#define UNKNOWN "an instruction in a sequence is not known to the doctor, so that its last instruction cannot be found"

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
	for (size_t n = 0; n < i->nr_sections && !interrupted(); n++) {
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

/* True if the file has relocations in a form that is not read, and a descriptor without an address. */
static bool has_unread_relocations(const struct image *i)
{
	bool unread = false, unset = false;

	for (size_t n = 0; n < i->nr_sections; n++)
		unread |= i->sections[n].sh_type == ANDROID_REL || i->sections[n].sh_type == ANDROID_RELA;
	for (size_t n = 0; unread && n < i->nr; n++)
		unset |= !i->list[n].start;
	return unset;
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
	for (size_t n = 0; n < i->nr_sections && !interrupted(); n++)
		if (i->sections[n].sh_type == SHT_RELA && i->sections[n].sh_flags & SHF_ALLOC)
			relocate(i, &i->sections[n]);
	return has_unread_relocations(i) ? "with relocations in Android's packed form, which are not read: no verdict" : NULL;
}

/* ---- instructions ---- */

/* For each opcode: m: has a ModRM byte, M: and stores where that says; 1, 4: bytes of a constant; 8: of 4, or 8 with a wide operand;
 * -: none of these; ?: unknown.  Opcodes that do either by their ModRM byte have letters of their own: c compares if it is 7, i stores
 * if it is 0 or 1, jumps if it is 2 or 4; t has a constant, which it tests, if it is 0 or 1, and stores if it is 2 or 3; f is a fence if it
 * is 5 to 7 and names no memory. */
#define ALU(base) [base] = "M", [(base) + 1] = "M", [(base) + 2 ... (base) + 3] = "m", [(base) + 4] = "1", [(base) + 5] = "4"
static const char *const opcodes[256] = {
	ALU(0x00), ALU(0x08), ALU(0x10), ALU(0x18), ALU(0x20), ALU(0x28), ALU(0x30),
	[0x38 ... 0x3b] = "m", [0x3c] = "1", [0x3d] = "4", [0x50 ... 0x5f] = "-", [0x63] = "m", [0x69] = "m4", [0x6b] = "m1",
	[0x70 ... 0x7f] = "1", [0x80] = "c1", [0x81] = "c4", [0x83] = "c1", [0x84 ... 0x85] = "m", [0x86 ... 0x89] = "M",
	[0x8a ... 0x8b] = "m", [0x8d] = "m", [0x90 ... 0x99] = "-", [0xa8] = "1", [0xa9] = "4", [0xb0 ... 0xb7] = "1",
	[0xb8 ... 0xbf] = "8", [0xc0 ... 0xc1] = "M1", [0xc3] = "-", [0xc6] = "M1", [0xc7] = "M4", [0xcc] = "-", [0xd0 ... 0xd3] = "M",
	[0xe8 ... 0xe9] = "4", [0xeb] = "1", [0xf5] = "-", [0xf6] = "t1", [0xf7] = "t4", [0xff] = "i",
};
static const char *const opcodes_0f[256] = {
	[0x0b] = "-", [0x0d] = "m", [0x18 ... 0x1f] = "m", [0x31] = "-", [0x40 ... 0x4f] = "m", [0x80 ... 0x8f] = "4",
	[0x90 ... 0x9f] = "M", [0xa2] = "-", [0xa3] = "m", [0xae] = "f", [0xaf] = "m", [0xb0 ... 0xb1] = "M", [0xb6 ... 0xb7] = "m",
	[0xbe ... 0xbf] = "m", [0xc0 ... 0xc1] = "M", [0xc8 ... 0xcf] = "-",
};
#undef ALU

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

/* Return the bytes of an instruction's constant.  @narrow: 2 bytes take the place of 4; @wide: 8 do. */
static size_t constant_length(char kind, bool narrow, bool wide)
{
	if (kind == '8' && wide)
		return 8;
	return kind == '1' ? 1 : kind == '4' || kind == '8' ? (narrow ? 2 : 4) : 0;
}

static bool is_prefix(uint8_t byte)
{
	return byte == 0x2e || byte == 0x3e || byte == 0x64 || byte == 0x65 || byte == 0x66 || byte == 0xf0 || byte == 0xf2 || byte == 0xf3;
}

static bool modrm_stores(char kind, uint8_t modrm)
{
	unsigned int reg = modrm >> 3 & 7;

	if (modrm >> 6 == 3)
		return false;
	return kind == 'M' || (kind == 'c' && reg != 7) || (kind == 'i' && reg < 2) || (kind == 't' && (reg == 2 || reg == 3));
}

static bool modrm_known(char kind, uint8_t modrm)
{
	unsigned int reg = modrm >> 3 & 7;

	return (kind != 'i' || reg < 2 || reg == 2 || reg == 4) && (kind != 'f' || (modrm >> 6 == 3 && reg >= 5));
}

/* Return the length of the instruction at @at, 0 if it is not known; @at has 16 bytes. */
static size_t instruction_length(const uint8_t *at, bool *ret_stores)
{
	bool narrow = false, wide;
	size_t n = 0;
	const char *kind;

	*ret_stores = false;
	for (; n < 4 && is_prefix(at[n]); n++)
		narrow |= at[n] == 0x66;
	wide = (at[n] & 0xf8) == 0x48;
	n += (at[n] & 0xf0) == 0x40;
	kind = at[n] == 0x0f ? opcodes_0f[at[n + 1]] : opcodes[at[n]];
	n += at[n] == 0x0f ? 2 : 1;
	if (!kind)
		return 0;
	if (strchr("mMcitf", kind[0])) {
		uint8_t modrm = at[n];

		if (!modrm_known(kind[0], modrm))
			return 0;
		*ret_stores = modrm_stores(kind[0], modrm);
		n += modrm_length(at + n);
		if (kind[0] == 't' && (modrm >> 3 & 7) > 1)
			return n;
		kind++;
	}
	return n + constant_length(kind[0], narrow && !wide, wide);
}

enum ending { ENDS_WITH_STORE, ENDS_OTHERWISE, ENDS_UNKNOWN };

/* Check I3. */
static enum ending ending_of(const struct image *i, const struct descriptor *d)
{
	const uint8_t *code = code_at(i, d->start, d->bytes);
	uint64_t at = 0;
	bool stores = false;

	while (at < d->bytes) {
		uint8_t copy[16] = { 0 };
		uint64_t rest = d->bytes - at < sizeof(copy) ? d->bytes - at : sizeof(copy);
		size_t length;

		memcpy(copy, code + at, rest);
		length = instruction_length(copy, &stores);
		if (!length)
			return ENDS_UNKNOWN;
		at += length;
	}
	return at == d->bytes && stores ? ENDS_WITH_STORE : ENDS_OTHERWISE;
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
	bool unknown; /* I3 could not be checked */
};

static const char *fault_of(const struct image *i, const struct descriptor *d)
{
	static const uint32_t signature = SIGNATURE;
	const uint8_t *before;

	if (d->version || d->flags)
		return "has a version or flags that the kernel refuses";
	if (d->bytes > LONGEST)
		return "is longer than any sequence";
	if (!d->bytes || !code_at(i, d->start, d->bytes))
		return "describes something that is not code";
	if (d->restart - d->start < d->bytes)
		return "restarts inside of itself";
	before = code_at(i, d->restart - sizeof(signature), sizeof(signature) + 1);
	if (!before || memcmp(before, &signature, sizeof(signature)) != 0)
		return "restarts where no signature is";
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct descriptor *x = *(const struct descriptor *const *)a, *y = *(const struct descriptor *const *)b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Check I4 for the descriptors that have no fault so far.  Return false if there is no memory. */
static bool check_overlaps(const struct image *i, struct verdict *verdicts)
{
	const struct descriptor **order = malloc(i->nr * sizeof(const struct descriptor *)), *last;
	size_t nr = 0;

	if (!order)
		return false;
	for (size_t n = 0; n < i->nr; n++)
		if (!verdicts[n].wrong)
			order[nr++] = &i->list[n];
	qsort(order, nr, sizeof(const struct descriptor *), by_start);
	last = nr ? order[0] : NULL; /* that which ends last */
	for (size_t n = 1; n < nr; n++) {
		uint64_t distance = order[n]->start - last->start;

		if (distance < last->bytes)
			verdicts[order[n] - i->list].wrong = verdicts[last - i->list].wrong = "overlaps another sequence";
		if (distance + order[n]->bytes > last->bytes)
			last = order[n];
	}
	free(order);
	return true;
}

static void check_ending(const struct image *i, const struct descriptor *d, struct verdict *verdict)
{
	enum ending ending = ending_of(i, d);

	verdict->unknown = ending == ENDS_UNKNOWN;
	if (ending == ENDS_OTHERWISE)
		verdict->wrong = "does not end with its store";
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

/* Check I2 in a section of code. */
static void check_announcements(const struct image *i, struct verdict *verdicts, const Elf64_Shdr *section)
{
	const uint8_t *code = content(i, section);
	bool old = is_old_code(i, section);

	for (uint64_t at = 0; section->sh_size - at >= 16 && !interrupted(); at++)
		check_announcement(i, verdicts, code + at, section->sh_addr + at, old);
}

/* Return false if there is no memory. */
static bool check_all(const struct image *i, struct verdict *verdicts)
{
	for (size_t n = 0; n < i->nr && !interrupted(); n++)
		verdicts[n].wrong = fault_of(i, &i->list[n]);
	if (!check_overlaps(i, verdicts))
		return false;
	for (size_t n = 0; n < i->nr && !interrupted(); n++)
		if (!verdicts[n].wrong)
			check_ending(i, &i->list[n], &verdicts[n]);
	for (size_t s = 0; s < i->nr_sections && !interrupted(); s++)
		if (is_code(i, &i->sections[s]))
			check_announcements(i, verdicts, &i->sections[s]);
	for (size_t n = 0; n < i->nr; n++)
		if (!verdicts[n].wrong && !verdicts[n].announced && restarts_in_front(&i->list[n]))
			verdicts[n].wrong = "is announced by no code";
	return true;
}

/* ---- findings ---- */

/* The functions that have sequences, each once, with commas: as BOLT has them, which adds a slash and a number to local names. */
static char *functions_of(const struct image *i)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const Elf64_Sym *last = NULL;

	for (size_t n = 0; out && n < i->nr && !interrupted(); n++) {
		const Elf64_Sym *symbol;

		if (last && i->list[n].start - last->st_value < last->st_size)
			continue;
		symbol = function_at(i, i->list[n].start);
		if (!symbol)
			continue;
		fprintf(out, "%s%s%s", last ? "," : "", name_of(i, symbol), ELF64_ST_BIND(symbol->st_info) == STB_LOCAL ? "/.*" : "");
		last = symbol;
	}
	if (!out || fclose(out) != 0)
		return NULL;
	return text;
}

/* Print the first of the sequences that are broken, or have no verdict.  Return the numbers of both. */
static void report_sequences(struct findings *f, const struct image *i, const struct verdict *verdicts, size_t *ret_wrong,
			     size_t *ret_unknown)
{
	*ret_wrong = *ret_unknown = 0;
	for (size_t n = 0; n < i->nr; n++) {
		const struct verdict *v = &verdicts[n];
		char topic[40];

		if (!v->wrong && !v->unknown)
			continue;
		++*(v->wrong ? ret_wrong : ret_unknown);
		if (*ret_wrong + *ret_unknown > MAX_NAMED)
			continue;
		snprintf(topic, sizeof(topic), "sequence %#lx", (unsigned long)(i->table->sh_addr + n * sizeof(*i->list)));
		finding(f, topic, NULL, "%s, at %#lx in %s", v->wrong ? v->wrong : "has no verdict", (unsigned long)i->list[n].start,
			name_of(i, function_at(i, i->list[n].start)));
	}
}

static int report(struct findings *f, const struct image *i, const struct verdict *verdicts)
{
	size_t wrong, unknown;
	char *functions = functions_of(i);

	report_sequences(f, i, verdicts, &wrong, &unknown);
	if (wrong && unknown)
		finding(f, i->path, ADVICE, "%zu of %zu restartable sequences are broken, and %zu have no verdict", wrong, i->nr, unknown);
	else if (wrong)
		finding(f, i->path, ADVICE, "%zu of %zu restartable sequences are broken", wrong, i->nr);
	else if (unknown)
		finding(f, i->path, UNKNOWN, "%zu of %zu restartable sequences have no verdict", unknown, i->nr);
	else
		finding(f, i->path, NULL, "%zu restartable sequences, all as they were compiled", i->nr);
	if (functions && *functions)
		finding(f, "functions with sequences", NULL, "%s", functions);
	free(functions);
	return wrong || unknown ? EXIT_FAILED : EXIT_SUCCESS;
}

static int check_image(struct findings *f, struct image *i)
{
	const char *unfit = open_sections(i);
	struct verdict *verdicts = NULL;
	int status = EXIT_FAILED;

	if (!unfit)
		unfit = read_descriptors(i);
	if (!unfit && (!(verdicts = calloc(i->nr + 1, sizeof(*verdicts))) || (i->nr && !check_all(i, verdicts))))
		unfit = "too large for the memory";
	if (unfit)
		finding(f, i->path, NULL, "%s", unfit);
	else
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
