"""Completion: scripts for shells, each of which asks `spinney` itself what may follow."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence

_BASH = """\
_spinney_completion() {
    local IFS=$'\\n'
    COMPREPLY=($(_SPINNEY_COMPLETE=1 "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _spinney_completion spinney
"""

_ZSH = """\
#compdef spinney
_spinney_completion() {
    local -a answers
    answers=("${(@f)$(_SPINNEY_COMPLETE=1 spinney "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    compadd -a answers || _files
}
compdef _spinney_completion spinney
"""

_FISH = """\
function __spinney_completion
    set --local before (commandline --tokenize --cut-at-cursor --current-process)
    env _SPINNEY_COMPLETE=1 spinney $before[2..] (commandline --current-token) 2>/dev/null
end
complete --command spinney --arguments "(__spinney_completion)"
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""What a shell must source, by shell."""


def answers(parser: argparse.ArgumentParser, words: Sequence[str]) -> list[str]:
    """Return what the last word may become; nothing where it is a file or free text."""
    *before, last = words or [""]
    here = parser
    waiting: argparse.Action | None = None
    for word in before:
        waiting = None
        below = _verbs(here)
        if word in below:
            here = below[word]
        elif word.startswith("-") and "=" not in word:
            option = _options(here).get(word)
            waiting = option if option is not None and option.nargs != 0 else None
    return [word for word in _candidates(here, waiting, last) if word.startswith(last)]


def _candidates(
    here: argparse.ArgumentParser, waiting: argparse.Action | None, last: str
) -> Iterator[str]:
    if waiting is not None:
        yield from map(str, waiting.choices or ())
    elif last.startswith("-"):
        yield from sorted(_options(here))
    else:
        yield from _verbs(here)
        for action in _positionals(here):
            yield from map(str, action.choices or ())


def _actions(here: argparse.ArgumentParser) -> list[argparse.Action]:
    return here._actions


def _verbs(here: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    for action in _actions(here):
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def _options(here: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    return {word: action for action in _actions(here) for word in action.option_strings}


def _positionals(here: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in _actions(here):
        if not action.option_strings and not isinstance(action, argparse._SubParsersAction):
            yield action
