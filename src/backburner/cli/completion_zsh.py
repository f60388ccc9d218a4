"""The completion script for zsh."""

from backburner.cli.completion_tree import Command, placed, quoted

_SCRIPT = r"""#compdef backburner
# Completes backburner in zsh. Made by: backburner completion zsh

# What there is at each command: verbs, options with their meaning, what they take.
_backburner_know() {
    verbs=() options=() argument='' several='' takes=()
    case $1 in
{cases}
    esac
}

# What fits at a place of this kind.
_backburner_offer() {
    local kind=$1 id meaning
    shift
    case $kind in
        '' | free) return 1 ;;
        words:*) compadd -- ${=kind#words:} ;;
        folder) _files -/ ;;
        file) _files ;;
        command) _command_names -e ;;
        *)
            local -a ids lines
            while IFS=$'\t' read -r id meaning; do
                ids+=("$id")
                lines+=("$id${meaning:+  ($meaning)}")
            done < <(backburner completion --candidates "$kind" "$@" -- "$PREFIX" 2>/dev/null)
            (( $#ids )) || return 1
            # -U: some are found by their titles, and begin otherwise than what was typed.
            compadd -U -V tasks -l -d lines -a ids
            [[ $ids[1] == "$PREFIX"* ]] || compstate[insert]=menu
            ;;
    esac
}

_backburner() {
    local command='' pending='' given=0 each at argument several
    local -a verbs options place all
    local -A takes
    all=({commands})
    place=({place})
    for ((at = 2; at < CURRENT; at++)); do
        each=$words[at]
        if [[ -n $pending ]]; then
            [[ $pending == --home || $pending == --session ]] && place+=("$pending" "${(Q)each}")
            pending=''
        elif [[ $each == -- && $command == run ]]; then
            shift $at words
            (( CURRENT -= at ))
            _normal
            return
        elif [[ $each == (--home|--session)=* ]]; then
            place+=("${each%%=*}" "${(Q)each#*=}")
        elif [[ $each == -* ]]; then
            [[ -n ${takes[$each]} ]] && pending=$each
        elif [[ -z $command ]]; then
            command=$each
            _backburner_know "$command"
        elif (( $#verbs )); then
            command="$command $each"
            _backburner_know "$command"
        else
            (( given++ ))
        fi
    done
    if [[ -n $pending ]]; then
        _backburner_offer "${takes[$pending]}" $place
    elif [[ $PREFIX == --*=* && -n ${takes[${PREFIX%%=*}]} ]]; then
        each=${PREFIX%%=*}
        compset -P '*='
        _backburner_offer "${takes[$each]}" $place
    elif [[ $PREFIX == -* ]]; then
        _describe -o option options
    elif [[ -z $command ]]; then
        _describe command all
    elif (( $#verbs )); then
        _describe verb verbs
    elif (( given == 0 )) || [[ -n $several ]]; then
        _backburner_offer "$argument" $place
    fi
}

if [[ $funcstack[1] == _backburner ]]; then
    _backburner "$@"
else
    compdef _backburner backburner
fi
"""


def script(commands: list[Command], place: list[str]) -> str:
    """The script."""
    cases = "\n".join(_case(name, command) for each in commands for name, command in each.walk())
    return (
        _SCRIPT.replace("{cases}", cases)
        .replace("{commands}", _described(commands))
        .replace("{place}", placed(place))
    )


def _described(commands: list[Command] | tuple[Command, ...]) -> str:
    return " ".join(_pair(command.name, command.meaning) for command in commands)


def _pair(name: str, meaning: str) -> str:
    return quoted(f"{name}:{meaning.replace(':', ' -')}")


def _case(name: str, command: Command) -> str:
    options = " ".join(
        _pair(spelling, option.meaning) for option in command.options for spelling in option.names
    )
    takes = " ".join(
        f"{spelling} {quoted(option.takes)}"
        for option in command.options
        if option.takes
        for spelling in option.names
    )
    return "\n".join(
        [
            f"        {quoted(name)})",
            f"            verbs=({_described(command.verbs)})",
            f"            options=({options})",
            f"            takes=({takes})",
            f"            argument={quoted(command.argument)} several={'1' * command.several}",
            "            ;;",
        ]
    )
