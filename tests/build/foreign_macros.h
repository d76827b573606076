/* SPDX-License-Identifier: MIT */
/* foreign_macros.h - names that programs and other libraries define as macros, for foreign_macros.py.
 *
 * It is included after the system's headers and before the library's.  A name without parameters becomes an error
 * wherever a header uses it, whatever for; a name with parameters, where a parenthesis follows it.  Names that the
 * interface has by promise (list_for_each_entry(), clear() of a C++ class) are not here.
 */
#define FOREIGN @a header of the library uses a name that is often a macro@

/* Qt defines these without QT_NO_KEYWORDS, and Boost does. */
#undef foreach
#define slots FOREIGN
#define signals FOREIGN
#define emit FOREIGN
#define forever FOREIGN
#define foreach(...) FOREIGN
#define Q_SLOTS FOREIGN
#define Q_SIGNALS FOREIGN
#define Q_EMIT FOREIGN
#define Q_OBJECT FOREIGN

/* Windows, and what was written for it */
#define min(a, b) FOREIGN
#define max(a, b) FOREIGN
#define near FOREIGN
#define far FOREIGN
#define small FOREIGN
#define interface FOREIGN
#define cdecl FOREIGN
#define pascal FOREIGN
#define hyper FOREIGN
#define IN FOREIGN
#define OUT FOREIGN
#define OPTIONAL FOREIGN
#define ERROR FOREIGN
#define VOID FOREIGN
#define CONST FOREIGN
#define DELETE FOREIGN

/* X11 */
#define None FOREIGN
#define Bool FOREIGN
#define Status FOREIGN
#define True FOREIGN
#define False FOREIGN
#define Always FOREIGN
#define Success FOREIGN
#define Above FOREIGN
#define Below FOREIGN
#define Complex FOREIGN
#define Unsorted FOREIGN

/* The kernel defines these, and so do programs in its style. */
#undef unix
#undef linux
#define likely(x) FOREIGN
#define unlikely(x) FOREIGN
#define barrier() FOREIGN
#define mb() FOREIGN
#define rmb() FOREIGN
#define wmb() FOREIGN
#define smp_mb() FOREIGN
#define cpu_relax() FOREIGN
#define container_of(ptr, type, member) FOREIGN
/* raw: names only, there is no access */
#define READ_ONCE(x) FOREIGN
#define WRITE_ONCE(x, value) FOREIGN
#define ACCESS_ONCE(x) FOREIGN
#define ARRAY_SIZE(x) FOREIGN
#define BUILD_BUG_ON(x) FOREIGN
#define BIT(x) FOREIGN
#define prefetch(x) FOREIGN
#define min_t(type, a, b) FOREIGN
#define round_up(x, y) FOREIGN
#define current FOREIGN
#define asmlinkage FOREIGN
#define noinline FOREIGN
#define always_inline FOREIGN
#define fallthrough FOREIGN
#define noinstr FOREIGN
#define notrace FOREIGN
#define __init FOREIGN
#define __exit FOREIGN
#define __user FOREIGN
#define __kernel FOREIGN
#define __force FOREIGN
#define __percpu FOREIGN
#define __bitwise FOREIGN
#define __must_check FOREIGN
#define __aligned(x) FOREIGN
#define __packed FOREIGN
#define __maybe_unused FOREIGN
#define __cold FOREIGN
#define linux FOREIGN
#define unix FOREIGN

/* Programs define attributes under their names without underscores; the BSDs have names with them. */
#undef noreturn
#define unused FOREIGN
#define used FOREIGN
#define hot FOREIGN
#define cold FOREIGN
#define weak FOREIGN
#define pure FOREIGN
#define packed FOREIGN
#define nothrow FOREIGN
#define noreturn FOREIGN
#define nodiscard FOREIGN
#define maybe_unused FOREIGN
#define deprecated FOREIGN
#define aligned(x) FOREIGN
#define section(x) FOREIGN
#define visibility(x) FOREIGN
#define alias(x) FOREIGN
#define format(...) FOREIGN
#define noplt FOREIGN
#define tls_model(x) FOREIGN
#define __unused FOREIGN
#define __used FOREIGN
#define __predict_true(x) FOREIGN
#define __predict_false(x) FOREIGN

/* the C library, POSIX, and what they once were */
#undef I
#undef major
#undef minor
#undef makedev
#undef assert_perror
#undef B0
#undef index
#define I FOREIGN
#define complex FOREIGN
#define imaginary FOREIGN
#define major(device) FOREIGN
#define minor(device) FOREIGN
#define makedev(major, minor) FOREIGN
#define B0 FOREIGN
#define index strchr
#define rindex strrchr
#define bcopy(from, to, size) FOREIGN
#define bzero(to, size) FOREIGN
#define timezone FOREIGN
#define daylight FOREIGN
#define vector FOREIGN
#define pixel FOREIGN
#define interrupt FOREIGN
#define MIN(a, b) FOREIGN
#define MAX(a, b) FOREIGN
#define ABS(x) FOREIGN
#define howmany(x, y) FOREIGN
#define roundup(x, y) FOREIGN
#define isset(map, bit) FOREIGN
#define TRUE FOREIGN
#define FALSE FOREIGN
#define PAGE_SIZE FOREIGN
#define CACHE_LINE_SIZE FOREIGN
#define NR_CPUS FOREIGN
#define HZ FOREIGN

/* Programs define these for main() of SDL, messages, tests, checks and gettext. */
#define main SDL_main
#define _(text) FOREIGN
#define N_(text) FOREIGN
#define error(...) FOREIGN
#define warn(...) FOREIGN
#define fatal(...) FOREIGN
#define panic(...) FOREIGN
#define die(...) FOREIGN
#define debug(...) FOREIGN
#define info(...) FOREIGN
#define trace(...) FOREIGN
#define LOG(...) FOREIGN
#define TRACE(...) FOREIGN
#define DEBUG FOREIGN
#define check(x) FOREIGN
#define verify(x) FOREIGN
#define require(x, label) FOREIGN
#define ensure(x) FOREIGN
#define fail(...) FOREIGN
#define CHECK(x) FOREIGN
#define REQUIRE(x) FOREIGN
#define SECTION(x) FOREIGN
#define TEST(...) FOREIGN
#define ASSERT(x) FOREIGN
#define Assert(x) FOREIGN
#define streq(a, b) FOREIGN
#define nelem(x) FOREIGN
#define lengthof(x) FOREIGN
#define countof(x) FOREIGN
#define PRIVATE FOREIGN
#define PUBLIC FOREIGN
#define EXPORT FOREIGN
#define API FOREIGN
#define INLINE FOREIGN
#define KEY FOREIGN
#define HASH FOREIGN
#define COPY FOREIGN
#define LAST FOREIGN
#define PRESENT FOREIGN
#define EMPTY FOREIGN
#define ACQUIRE FOREIGN
#define RELEASE FOREIGN

/* C only: ncurses, whose header has none of these in C++; dmalloc and its kind; letters, which are template parameters in C++ */
#ifndef __cplusplus
#define clear() FOREIGN
#define erase() FOREIGN
#define refresh() FOREIGN
#define filter() FOREIGN
#define move(y, x) FOREIGN
#define timeout(delay) FOREIGN
#define echo() FOREIGN
#define lock(x) FOREIGN
#define unlock(x) FOREIGN
#define swap(a, b) FOREIGN
#define malloc(size) FOREIGN
#define calloc(nr, size) FOREIGN
#define realloc(old, size) FOREIGN
#define free(old) FOREIGN
#define A FOREIGN
#define B FOREIGN
#define C FOREIGN
#define D FOREIGN
#define E FOREIGN
#define F FOREIGN
#define G FOREIGN
#define H FOREIGN
#define J FOREIGN
#define K FOREIGN
#define L FOREIGN
#define M FOREIGN
#define N FOREIGN
#define O FOREIGN
#define P FOREIGN
#define Q FOREIGN
#define R FOREIGN
#define S FOREIGN
#define T FOREIGN
#define U FOREIGN
#define V FOREIGN
#define W FOREIGN
#define X FOREIGN
#define Y FOREIGN
#define Z FOREIGN
#endif
