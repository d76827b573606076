/* SPDX-License-Identifier: MIT */
/* refuse.cpp - linked with --wrap: the calls of the objects in this program come here, those of shared libraries do not. */
#include "refuse.hpp"

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <sys/mman.h>

namespace {

/* State of the thread that armed the refusal: the library's own threads are not affected. */
struct refusal {
	std::uint32_t left, refused;
	bool armed, all;
};
thread_local refusal mine;

bool refused()
{
	if (!mine.armed)
		return false;
	if (mine.left) {
		mine.left--;
		return false;
	}
	if (!mine.all)
		mine.armed = false;
	mine.refused++;
	errno = ENOMEM;
	return true;
}

} // namespace

namespace refuse {

void arm(std::uint32_t n, bool all) { mine = { n, 0, true, all }; }

std::uint32_t count() { return mine.refused; }
void disarm() { mine = {}; }

} // namespace refuse

extern "C" {
void *__real_malloc(std::size_t size);
void *__real_calloc(std::size_t n, std::size_t size);
void *__real_realloc(void *p, std::size_t size);
void *__real_aligned_alloc(std::size_t alignment, std::size_t size);
int __real_posix_memalign(void **ret_p, std::size_t alignment, std::size_t size);
void *__real_mmap(void *start, std::size_t bytes, int protection, int flags, int fd, off_t offset);
void *__wrap_malloc(std::size_t size);
void *__wrap_calloc(std::size_t n, std::size_t size);
void *__wrap_realloc(void *p, std::size_t size);
void *__wrap_aligned_alloc(std::size_t alignment, std::size_t size);
int __wrap_posix_memalign(void **ret_p, std::size_t alignment, std::size_t size);
void *__wrap_mmap(void *start, std::size_t bytes, int protection, int flags, int fd, off_t offset);

void *__wrap_malloc(std::size_t size) { return refused() ? nullptr : __real_malloc(size); }
void *__wrap_calloc(std::size_t n, std::size_t size) { return refused() ? nullptr : __real_calloc(n, size); }
void *__wrap_realloc(void *p, std::size_t size) { return refused() ? nullptr : __real_realloc(p, size); }
void *__wrap_aligned_alloc(std::size_t alignment, std::size_t size)
{
	return refused() ? nullptr : __real_aligned_alloc(alignment, size);
}
int __wrap_posix_memalign(void **ret_p, std::size_t alignment, std::size_t size)
{
	return refused() ? ENOMEM : __real_posix_memalign(ret_p, alignment, size);
}
void *__wrap_mmap(void *start, std::size_t bytes, int protection, int flags, int fd, off_t offset)
{
	return refused() ? MAP_FAILED : __real_mmap(start, bytes, protection, flags, fd, offset);
}
}

void *refuse::allocate(std::size_t bytes)
{
	void *p = __real_calloc(1, bytes);

	if (!p)
		std::abort();
	return p;
}
