"""The completion script for bash. Needs nothing but bash 4."""

from collections.abc import Iterable

from backburner.cli.completion_tree import Command, placed, quoted

_SCRIPT = r"""# Completes backburner in bash. Made by: backburner completion bash
_backburner_commands() { printf '%s\n' {commands}; }

# The verbs, the options and the argument of a command; what an option takes.
_backburner_verbs() {
    case $1 in
{verbs}
    esac
}
_backburner_options() {
    case $1 in
{options}
    esac
}
_backburner_argument() {
    case $1 in
{arguments}
    esac
}
_backburner_takes() {
    case "$1 $2" in
{takes}
    esac
}

# What fits at a place of this kind, in COMPREPLY.
_backburner_offer() {
    local kind=$1 word=$2 id meaning
    shift 2
    case $kind in
        '' | free) ;;
        words:*) mapfile -t COMPREPLY < <(compgen -W "${kind#words:}" -- "$word") ;;
        folder) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
        file) compopt -o filenames; mapfile -t COMPREPLY < <(compgen -f -- "$word") ;;
        command) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
        *)
            local -a ids=() lines=()
            while IFS=$'\t' read -r id meaning; do
                ids+=("$id")
                lines+=("$id${meaning:+  ($meaning)}")
            done < <(backburner completion --candidates "$kind" "$@" -- "$word" 2>/dev/null)
            # 37 and 42: the candidates themselves go into the line, one after the other.
            if ((${#ids[@]} < 2)) || [[ $COMP_TYPE == 37 || $COMP_TYPE == 42 ]]; then
                COMPREPLY=("${ids[@]}")
            else
                COMPREPLY=("${lines[@]}")
                # Found by their titles: nothing in common with what was typed, which has to stay.
                [[ ${ids[0]} == "$word"* ]] || COMPREPLY+=(' ')
            fi
            ;;
    esac
}

_backburner() {
    local word=${COMP_WORDS[COMP_CWORD]} command='' pending='' given=0 at=1 each kind=''
    local -a place=({place})
    COMPREPLY=()
    [[ $word == '=' ]] && word=''
    for ((; at < COMP_CWORD; at++)); do
        each=${COMP_WORDS[at]}
        if [[ $each == '=' ]]; then
            continue
        elif [[ -n $pending ]]; then
            [[ $pending == --home || $pending == --session ]] && place+=("$pending" "$each")
            pending=''
        elif [[ $each == -- && $command == run ]]; then
            if declare -F _command_offset >/dev/null; then
                _command_offset $((at + 1))
            else
                kind=file
                ((COMP_CWORD == at + 1)) && kind=command
                _backburner_offer $kind "$word"
            fi
            return
        elif [[ $each == -* ]]; then
            kind=$(_backburner_takes "$command" "$each")
            [[ -n $kind ]] && pending=$each
        elif [[ -z $command ]]; then
            command=$each
        elif ((given == 0)) && [[ -n $(_backburner_verbs "$command") ]]; then
            command="$command $each"
        else
            given=$((given + 1))
        fi
    done
    if [[ -n $pending ]]; then
        _backburner_offer "$kind" "$word" "${place[@]}"
    elif [[ $word == -* ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_backburner_options "$command")" -- "$word")
    elif [[ -z $command ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_backburner_commands)" -- "$word")
    elif [[ -n $(_backburner_verbs "$command") ]]; then
        mapfile -t COMPREPLY < <(compgen -W "$(_backburner_verbs "$command")" -- "$word")
    else
        read -r kind each < <(_backburner_argument "$command")
        if ((given == 0)) || [[ $each == several ]]; then
            _backburner_offer "${kind//+/ }" "$word" "${place[@]}"
        fi
    fi
}
complete -F _backburner backburner
"""


def script(commands: list[Command], place: list[str]) -> str:
    """The script."""
    walked = [pair for command in commands for pair in command.walk()]
    takes = [
        f'        "{name} {spelling}") echo {quoted(option.takes)} ;;'
        for name, command in walked
        for option in command.options
        if option.takes
        for spelling in option.names
    ]
    parts = {
        "place": placed(place),
        "commands": " ".join(command.name for command in commands),
        "verbs": _cases(
            (name, " ".join(verb.name for verb in command.verbs))
            for name, command in walked
            if command.verbs
        ),
        "options": _cases(
            (name, " ".join(spelling for option in command.options for spelling in option.names))
            for name, command in walked
            if command.options
        ),
        "arguments": _cases(
            (name, command.argument.replace(" ", "+") + " several" * command.several)
            for name, command in walked
            if command.argument
        ),
        "takes": "\n".join(takes),
    }
    text = _SCRIPT
    for name, part in parts.items():
        text = text.replace("{" + name + "}", part)
    return text


def _cases(pairs: Iterable[tuple[str, str]]) -> str:
    return "\n".join(f"        {quoted(name)}) echo {quoted(words)} ;;" for name, words in pairs)
