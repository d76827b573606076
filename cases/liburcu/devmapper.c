/* SPDX-License-Identifier: MIT */
/* devmapper.c - a device mapper without devices, by libdevmapper's names; preloaded, so that multipathd runs where the kernel has none.
 *
 * It also makes the events of a device that multipathd is configured to ignore: a burst of them each 10 ms, which one section filters.
 * No thread becomes a real-time thread: with more of these than CPUs, callbacks would only be called when the readers sleep.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <libdevmapper.h>
#include <libudev.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define BURST 1000 /* what multipathd takes at once */

int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	(void)pid;
	(void)policy;
	(void)param;
	errno = EPERM;
	return -1;
}

int dm_driver_version(char *version, size_t size)
{
	snprintf(version, size, "4.48.0");
	return 1;
}

int dm_task_run(struct dm_task *task)
{
	(void)task;
	return 1;
}

struct dm_versions *dm_task_get_versions(struct dm_task *task)
{
	static struct {
		struct dm_versions version;
		char name[sizeof("multipath")];
	} only = { { .version = { 1, 14, 0 } }, "" };

	(void)task;
	memcpy(only.version.name, "multipath", sizeof(only.name));
	return &only.version;
}

struct dm_names *dm_task_get_names(struct dm_task *task)
{
	static struct dm_names none;

	(void)task;
	return &none;
}

int dm_task_get_info(struct dm_task *task, struct dm_info *info)
{
	(void)task;
	memset(info, 0, sizeof(*info));
	return 1;
}

void dm_hold_control_dev(int hold)
{
	(void)hold;
}

/* ---- events ---- */

int udev_monitor_get_fd(struct udev_monitor *monitor)
{
	(void)monitor;
	return eventfd(1, 0); /* the descriptor is never read, so there is always another event */
}

struct udev_device *udev_monitor_receive_device(struct udev_monitor *monitor)
{
	static const char *const event[] = {
		"ACTION=change", "DEVPATH=/devices/virtual/block/ignored", "SUBSYSTEM=block", "DEVTYPE=disk", "SEQNUM=1",
	};
	static char text[5][64], *variables[] = { text[0], text[1], text[2], text[3], text[4], NULL };
	static unsigned int received;

	if (received++ % BURST == 0)
		usleep(10000);
	for (int i = 0; variables[i]; i++) /* each time, as libudev cuts them where they are */
		snprintf(text[i], sizeof(text[i]), "%s", event[i]);
	environ = variables; /* no other code reads the previous environment once there are events */
	return udev_device_new_from_environment(udev_monitor_get_udev(monitor));
}
