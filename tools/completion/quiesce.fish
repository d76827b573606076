# SPDX-License-Identifier: MIT
# Completion of quiesce for fish.  It asks the tool, so that the types of other libraries are there where those are installed.

function __quiesce_subcommands
	quiesce --help 2>/dev/null | string match -rg '^  ([a-z]\w+) +(.*)' | paste - -
end

# Prints the options of the subcommand of the command line, and for one that is being written, its values.
function __quiesce_options
	set -l words (commandline -opc)
	set -l help (quiesce $words[2] --help 2>/dev/null)
	set -l current (commandline -ct)
	set -l option (string match -rg '^(--[a-z-]+)=' -- $current)
	set -l list
	if test -z "$option"
		string match -q -- '-*' $current && printf '%s\n' $help | string match -rg '^ {2,6}(?:-\S, )?(--[a-z-]+=?)'
		__fish_complete_path $current
		return
	end
	switch $option
		case --type --base
			set list (printf '%s\n' $help | awk '/^[A-Z]/ { here = $0 == "Types:" } here && /^  [^ ]/ { print $1 }')
		case --scenario
			set list (printf '%s\n' $help | awk '/^[A-Z]/ { here = $0 == "Scenarios:" } here && /^  [^ ]/ { print $1 }')
		case --distribution
			set list uniform zipf hot
		case '*' # the placeholder of a choice is its values: --fence=light,full
			set list (printf '%s\n' $help | string match -rg "^ +$option=([a-z,]+)(?: |\$)" | string split ,)
	end
	if set -q list[1]
		printf '%s\n' (string match -r '^.*[=,]' -- $current)$list
	else
		printf '%s\n' $option=(__fish_complete_path (string replace "$option=" '' -- $current))
	end
end

complete -c quiesce -n 'test (count (commandline -opc)) -eq 1' -f -a '(__quiesce_subcommands)'
complete -c quiesce -n 'test (count (commandline -opc)) -ge 2' -f -a '(__quiesce_options)'
complete -c quiesce -n 'contains study (commandline -opc)' -f -a 'all (quiesce study 2>/dev/null | string match -rg "^([a-z]\S+)")'
