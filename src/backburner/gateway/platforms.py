"""The platform of a name, with the tokens that the environment gives for it.

Tokens come from nowhere else: a command line can be read by everybody on the machine. Each
platform's library is loaded only when it is asked for.
"""

from collections.abc import Mapping

from backburner.gateway.platform import Platform
from backburner.model.errors import UsageError

NAMES = ("telegram", "discord", "slack")

_PORT = 3000


def platform(name: str, environ: Mapping[str, str]) -> Platform:
    """The platform, not yet connected. `UsageError` says what is missing, and where to get it."""
    try:
        match name:
            case "telegram":
                return _telegram(environ)
            case "discord":
                return _discord(environ)
            case "slack":
                return _slack(environ)
            case _:
                known = ", ".join(NAMES)
                raise UsageError(f"there is no platform {name!r}", remedy=f"one of {known}")
    except ModuleNotFoundError as error:
        raise UsageError(
            f"{name} needs a library that is not installed: {error.name}",
            remedy='pip install "backburner[chat]"',
        ) from None


def _telegram(environ: Mapping[str, str]) -> Platform:
    token = _needed(environ, "TELEGRAM_BOT_TOKEN", "@BotFather on Telegram gives one: /newbot")
    from backburner.gateway.telegram.adapter import BASE, Telegram

    return Telegram(token, base=environ.get("BACKBURNER_TELEGRAM_URL") or BASE)


def _discord(environ: Mapping[str, str]) -> Platform:
    where = "the page Bot of your application at discord.com/developers gives one"
    token = _needed(environ, "DISCORD_BOT_TOKEN", where)
    from backburner.gateway.discord.adapter import Discord

    return Discord(token, base=environ.get("BACKBURNER_DISCORD_URL") or None)


def _slack(environ: Mapping[str, str]) -> Platform:
    where = "the page OAuth & Permissions of your app at api.slack.com/apps gives one: xoxb-…"
    token = _needed(environ, "SLACK_BOT_TOKEN", where)
    app_token = environ.get("SLACK_APP_TOKEN", "").strip()
    secret = environ.get("SLACK_SIGNING_SECRET", "").strip()
    if not app_token and not secret:
        raise UsageError(
            "SLACK_APP_TOKEN is not set",
            remedy="the page Basic Information of your app at api.slack.com/apps gives one,"
            " with the scope connections:write: xapp-…; or set SLACK_SIGNING_SECRET, for events"
            " over HTTP",
        )
    from backburner.gateway.slack.adapter import BASE, Slack
    from backburner.gateway.slack.doors import Requests, Socket

    door = Socket(app_token) if app_token else Requests(secret, _port(environ))
    return Slack(token, door, base=environ.get("BACKBURNER_SLACK_URL") or BASE)


def _needed(environ: Mapping[str, str], name: str, where: str) -> str:
    if not (value := environ.get(name, "").strip()):
        raise UsageError(f"{name} is not set", remedy=where)
    return value


def _port(environ: Mapping[str, str]) -> int:
    given = environ.get("SLACK_PORT", str(_PORT))
    try:
        port = int(given)
    except ValueError:
        port = 0
    if not 0 < port < 1 << 16:
        raise UsageError(f"SLACK_PORT is no port: {given!r}", remedy=f"such as {_PORT}")
    return port
