/* SPDX-License-Identifier: MIT */
/* java.c - the native method of Try.java. */
#include <jni.h>

#include "plug.h"

JNIEXPORT jint JNICALL Java_Try_quiesce(JNIEnv *env, jclass class)
{
	(void)env;
	(void)class;
	return quiesce_try();
}
