/* SPDX-License-Identifier: MIT */
/* main.c - the command quiesce: finds the subcommand. */
#include <string.h>

#include <quiesce/control.h>

#include "emit.h"
#include "hogs.h"
#include "inventory.h"
#include "run/run.h"
#include "team.h"
#include "tool.h"

static const struct subcommand *const commands[] = {
	&refscale_command, &rcuscale_command, &retirescale_command, &rwscale_command, &hashscale_command,
	&walkscale_command, &queuescale_command,
	&costs_command, &torture_command, &doctor_command, &run_command, &study_command, &report_command,
};
#define NR_COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct subcommand *find(const char *name)
{
	for (size_t i = 0; i < NR_COMMANDS; i++)
		if (!strcmp(commands[i]->name, name))
			return commands[i];
	return NULL;
}

static int help(FILE *out)
{
	fprintf(out, "Usage: quiesce SUBCOMMAND [OPTION...]\n"
		     "Measure, torture and explain read-mostly synchronisation on this machine.\n\n");
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(out, "  %-11s %s\n", commands[i]->name, commands[i]->what);
	fprintf(out, "\n'quiesce SUBCOMMAND --help' explains each; 'quiesce --version' prints the version.\n"
		     "Exit status: 0 good, 1 a test failed or a result is missing, 2 wrong usage, 130 interrupted.\n");
	return emit_close(out, &(struct options){ 0 });
}

/* For the test that compares docs/json.md. */
static int columns(void)
{
	emit_columns(stdout, NULL);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		emit_columns(stdout, commands[i]);
	run_faster_fields(stdout);
	return 0;
}

static int version(void)
{
	printf("quiesce %s\n", quiesce_version());
	return emit_close(stdout, &(struct options){ 0 });
}

static int unknown(const char *name)
{
	fprintf(stderr, "quiesce: unknown subcommand '%s'; valid:", name);
	for (size_t i = 0; i < NR_COMMANDS; i++)
		fprintf(stderr, " %s", commands[i]->name);
	fputc('\n', stderr);
	return EXIT_USAGE;
}

int main(int argc, char **argv)
{
	const struct subcommand *command;
	struct options options;

	bench_note = job_send_note;
	if (argc < 2) {
		fprintf(stderr, "quiesce: a subcommand is needed; see quiesce --help\n");
		return EXIT_USAGE;
	}
	if (!strcmp(argv[1], "--child"))
		return job_child(find);
	if (!strcmp(argv[1], "--hog"))
		return hog_main(argv[2]);
	if (!strcmp(argv[1], "--columns"))
		return columns();
	if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
		return help(stdout);
	if (!strcmp(argv[1], "--version"))
		return version();
	if (!strcmp(argv[1], "types"))
		return inventory(commands, NR_COMMANDS);
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	options_parse(command, argc - 1, argv + 1, &options);
	interrupt_catch();
	return command->run ? command->run(&options) : subcommand_measure(command, &options);
}
