"""The completion script for fish. It offers only what begins like, or contains, what was typed: so

titles are shown beside the ids, and found by a search in its list (Ctrl-S).
"""

from collections.abc import Iterator

from backburner.cli.completion_tree import Command, Option, placed, quoted

_HEAD = r"""# Completes backburner in fish. Made by: backburner completion fish
function __backburner_at
    set -l words (commandline -opc)
    test "$words[2]" = "$argv[1]"; or return 1
    test (count $argv) -eq 1; or test "$words[3]" = "$argv[2]"
end

function __backburner_offer
    set -l place {place}
    set -l words (commandline -opc)
    for at in (seq (count $words))
        switch $words[$at]
            case --home --session
                set -q words[(math $at + 1)]; and set -a place $words[$at] $words[(math $at + 1)]
            case '--home=*' '--session=*'
                set -a place (string split -m 1 = -- $words[$at])
        end
    end
    backburner completion --candidates $argv[1] $place -- (commandline -ct) 2>/dev/null
end

complete -c backburner -f
"""


def script(commands: list[Command], place: list[str]) -> str:
    """The script."""
    head = _HEAD.replace("{place}", placed(place))
    return head + "\n".join(line for command in commands for line in _lines(command)) + "\n"


def _lines(command: Command) -> Iterator[str]:
    yield _line("test (count (commandline -opc)) -eq 1", f"-a {command.name}", command.meaning)
    for verb in command.verbs:
        first = f"__backburner_at {command.name}; and test (count (commandline -opc)) -eq 2"
        yield _line(first, f"-a {verb.name}", verb.meaning)
    for name, each in command.walk():
        for option in each.options:
            yield _line(f"__backburner_at {name}", _option(option), option.meaning)
        if each.argument and each.argument != "free":
            yield _line(f"__backburner_at {name}", _offer(each.argument), "")


def _option(option: Option) -> str:
    names = [f"-l {name[2:]}" for name in option.names if name.startswith("--")]
    names += [f"-s {name[1:]}" for name in option.names if not name.startswith("--")]
    if option.takes:
        names.append("-r" if option.takes == "free" else f"-r {_offer(option.takes)}")
    return " ".join(names)


def _offer(kind: str) -> str:
    if kind.startswith("words:"):
        return f"-a {quoted(kind.removeprefix('words:'))}"
    if kind == "folder":
        return "-a '(__fish_complete_directories)'"
    if kind == "file":
        return "-F"
    if kind == "command":
        return "-a '(__fish_complete_subcommand --fcs-skip=2)'"
    return f"-a '(__backburner_offer {kind})'"


def _line(when: str, what: str, meaning: str) -> str:
    described = f" -d {quoted(meaning)}" if meaning else ""
    return f"complete -c backburner -n {quoted(when)} {what}{described}"
