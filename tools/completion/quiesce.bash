# SPDX-License-Identifier: MIT
# Completion of quiesce for bash.  It asks the tool, so that the types of other libraries are there where those are installed.

# Prints the words that the help of a subcommand ($2) has for $3: "options", "words", or the values of an option.
_quiesce_words()
{
	local -x ARGP_HELP_FMT=rmargin=9999

	case $3 in
	words)
		[ "$2" = study ] && { echo all; "$1" study 2>/dev/null | awk '!NF { exit } { print $1 }'; } ;;
	options)
		"$1" "$2" --help 2>/dev/null | awk '/^ +(-., )?--/ { sub(/^ +(-., )?/, ""); sub(/=.*/, "="); print $1 }' ;;
	--type | --base | --scenario)
		"$1" "$2" --help 2>/dev/null | awk -v list="$([ "$3" = --scenario ] && echo Scenarios: || echo Types:)" '
			/^[A-Z]/ { here = $0 == list } here && /^  [^ ]/ { print $1 }' ;;
	--distribution)
		printf '%s\n' uniform zipf hot ;;
	*) # the placeholder of a choice is its values: --fence=light,full
		"$1" "$2" --help 2>/dev/null | awk -v option="$3" '{ split($1, a, "=") } a[1] == option && a[2] ~ /^[a-z,]+$/ {
			gsub(",", "\n", a[2]); print a[2] }' ;;
	esac
}

_quiesce()
{
	local tool=${COMP_WORDS[0]} subcommand=${COMP_WORDS[1]} word=${COMP_WORDS[COMP_CWORD]} last=${COMP_WORDS[COMP_CWORD - 1]}
	local option='' list='' words

	# Bash breaks words at "=".
	[ "$word" = = ] && { option=$last; word=; }
	[ "$last" = = ] && option=${COMP_WORDS[COMP_CWORD - 2]}
	if [ "$COMP_CWORD" -eq 1 ]; then
		words="$("$tool" --help 2>/dev/null | awk '/^  [a-z]/ { print $1 }') --help --version"
	elif [ "$option" ]; then
		words=$(_quiesce_words "$tool" "$subcommand" "$option")
		[[ $word = *,* ]] && list=${word%,*},
	elif [[ $word = -* ]]; then
		words=$(_quiesce_words "$tool" "$subcommand" options)
	else
		words=$(_quiesce_words "$tool" "$subcommand" words)
	fi
	mapfile -t COMPREPLY < <(compgen -P "$list" -W "$words" -- "${word#"$list"}")
	[[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} = *= ]] && compopt -o nospace 2>/dev/null
	if [ ${#COMPREPLY[@]} -eq 0 ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		compopt -o filenames 2>/dev/null
	fi
	return 0
}

complete -F _quiesce quiesce
