/* SPDX-License-Identifier: MIT */
/* run.c - calls of the program's code that may not return: its thread ends there, or an exception leaves it.
 *
 * pthread_exit() calls cleanup handlers from the inside out, before the destructors of keys and before the
 * stack is overwritten.  The handler is of the form for C, which glibc also reaches through frames without
 * unwind tables.  An exception would leave the handler registered in a frame that is gone.  So there is a
 * frame that no exception passes: it ends the process as a noexcept function of C++ would, where the
 * exception is thrown, with the whole stack for the debugger.
 */
#include "platform/platform.h"

#include <pthread.h>
#include <unwind.h>

static void (*exception_hook)(void);

void platform_exceptions_init(void (*hook)(void));

void platform_exceptions_init(void (*hook)(void))
{
	exception_hook = hook;
}

/* The personality routine of call() runs for each exception that searches for a handler above it, and when
 * pthread_exit() unwinds it. */
__attribute__((visibility("hidden"), used)) _Unwind_Reason_Code quiesce__no_exception(int version, _Unwind_Action actions,
	_Unwind_Exception_Class class, struct _Unwind_Exception *exception, struct _Unwind_Context *context);

_Unwind_Reason_Code quiesce__no_exception(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
					  struct _Unwind_Exception *exception, struct _Unwind_Context *context)
{
	(void)version, (void)class, (void)exception, (void)context;
	if (actions & _UA_FORCE_UNWIND)
		return _URC_CONTINUE_UNWIND;
	if (exception_hook)
		exception_hook();
	platform_die();
}

__attribute__((noinline)) static void call(void (*code)(void *arg), void *arg)
{
#if defined(__GCC_HAVE_DWARF2_CFI_ASM) /* without unwind tables no exception passes */
	/* Set the function's personality routine: an address relative to this one, in four bytes. */
	__asm__ volatile(".cfi_personality 0x1b, quiesce__no_exception");
#endif
	code(arg);
	__asm__ volatile(""); /* keeps the call from being a tail call */
}

void platform_run(void (*code)(void *arg), void (*ended)(void *arg), void *arg)
{
	pthread_cleanup_push(ended, arg);
	call(code, arg);
	pthread_cleanup_pop(0);
}

bool platform_set_cancelable(bool may)
{
	int before;

	pthread_setcancelstate(may ? PTHREAD_CANCEL_ENABLE : PTHREAD_CANCEL_DISABLE, &before);
	return before == PTHREAD_CANCEL_ENABLE;
}
