"""Reading the options of a plain `ls` without typer, which takes longer to load than the answer.

Knows the options that need no explanation; anything else (help, `--watch`, a mistake) is left to
typer, so that there is one place that explains. A test holds both to the same options.
"""

from backburner.cli.listing import Listing

FLAGS = {
    "-a": "everything",
    "--all": "everything",
    "--all-sessions": "all_sessions",
    "-q": "ids_only",
    "--quiet": "ids_only",
    "--json": "as_json",
}
VALUES = {"--home": "home", "--session": "session", "--state": "state"}


def read_plain_ls(argv: list[str]) -> Listing | None:
    """What `ls` is asked for; None where typer has to look at it."""
    flags: set[str] = set()
    values: dict[str, str] = {}
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if word in FLAGS:
            flags.add(FLAGS[word])
        elif name in VALUES and equals:
            values[VALUES[name]] = value
        elif word in VALUES:
            following = next(words, None)
            if following is None or following.startswith("-"):
                return None
            values[VALUES[word]] = following
        else:
            return None
    return Listing(
        home=values.get("home"),
        session=values.get("session"),
        everything="everything" in flags,
        all_sessions="all_sessions" in flags,
        state=values.get("state"),
        ids_only="ids_only" in flags,
        as_json="as_json" in flags,
    )
