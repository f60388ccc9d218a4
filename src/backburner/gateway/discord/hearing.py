"""What Discord tells, as the gateway hears it: messages, slash commands, buttons.

In a server only what is said to the bot counts: a slash command, a mention, an answer to a post of
its, or what is written in a thread that it opened. Interactions are acknowledged at once: Discord
gives them three seconds.
"""

import asyncio
import contextlib
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import discord
from discord import app_commands

from backburner.gateway.downloading import download
from backburner.gateway.platform import (
    Heard,
    MenuEntry,
    Message,
    Person,
    Place,
    Press,
    Refused,
    Upload,
)
from backburner.gateway.quiet import reason

FILE_ORIGINS = ("https://cdn.discordapp.com", "https://media.discordapp.net")

_LONGEST_WAIT_S = 30
"""A wait that Discord asks for and that is not longer is waited for by the library."""
_KINDS = {discord.MessageType.default, discord.MessageType.reply}
_DESCRIPTION = 100

_log = logging.getLogger(__name__)

Interaction = discord.Interaction[discord.Client]


class Client(discord.Client):
    """One connection to Discord, which is resumed until it is closed."""

    def __init__(
        self,
        hear: Callable[[Heard], Awaitable[None]],
        menu: Sequence[MenuEntry],
        *,
        file_origins: Sequence[str] = FILE_ORIGINS,
    ) -> None:
        super().__init__(
            intents=discord.Intents(
                guilds=True, guild_messages=True, dm_messages=True, message_content=True
            ),
            allowed_mentions=discord.AllowedMentions.none(),
            max_messages=None,
            max_ratelimit_timeout=_LONGEST_WAIT_S,
        )
        self._hear = hear
        self._file_origins = file_origins
        self._turn = asyncio.Lock()  # events come as tasks: they are heard in their order
        self._tree = app_commands.CommandTree[discord.Client](self)
        for entry in menu:
            self._tree.add_command(self._command(entry))

    async def announce(self) -> None:
        """Put the commands into Discord's own menu."""
        try:
            await self._tree.sync()
        except (discord.DiscordException, OSError) as error:
            _log.warning("Discord did not take the menu of commands: %s", reason(error))

    async def on_message(self, message: discord.Message) -> None:
        """Somebody wrote something."""
        if message.author.bot or message.webhook_id or message.type not in _KINDS:
            return
        async with self._turn:
            text = self._addressed(message)
            uploads = tuple(self._upload(each) for each in message.attachments)
            if text is None or not (text or uploads):
                return
            place = await self._place(message.channel)
            person = _person(message.author)
            await self._hear(Message(str(message.id), place, person, text, uploads))

    async def on_interaction(self, interaction: Interaction) -> None:
        """Somebody pressed a button; slash commands have their own way."""
        if interaction.type is not discord.InteractionType.component:
            return
        await _acknowledge(interaction)
        action = (interaction.data or {}).get("custom_id")
        if interaction.message is None or not isinstance(action, str):
            return
        async with self._turn:
            place = await self._place(interaction.channel)
            person, post = _person(interaction.user), str(interaction.message.id)
            await self._hear(Press(str(interaction.id), place, person, action, post))

    async def on_error(self, event_method: str, /, *_: object, **__: object) -> None:
        """Something of ours failed: said, without a page of traceback."""
        _log.error("an event of Discord (%s) could not be heard", event_method, exc_info=False)

    def _command(self, entry: MenuEntry) -> app_commands.Command[Any, ..., None]:
        async def bare(interaction: Interaction) -> None:
            await self._commanded(interaction, entry.name, "", None)

        async def with_text(
            interaction: Interaction, text: str = "", file: discord.Attachment | None = None
        ) -> None:
            await self._commanded(interaction, entry.name, text, file)

        if entry.takes:
            app_commands.describe(text=entry.takes[:_DESCRIPTION], file="A file to go with it")(
                with_text
            )
        return app_commands.Command(
            name=entry.name,
            description=entry.summary[:_DESCRIPTION],
            callback=with_text if entry.takes else bare,
        )

    async def _commanded(
        self, interaction: Interaction, name: str, text: str, file: discord.Attachment | None
    ) -> None:
        await _acknowledge(interaction)
        async with self._turn:
            said = f"/{name} {text}".rstrip()
            uploads = () if file is None else (self._upload(file),)
            place, person = await self._place(interaction.channel), _person(interaction.user)
            await self._hear(Message(str(interaction.id), place, person, said, uploads))
        # What comes of it is a post: the note that we think about it has to go.
        with contextlib.suppress(discord.DiscordException, OSError):
            await interaction.delete_original_response()

    def _addressed(self, message: discord.Message) -> str | None:
        """What was said to us; None when it was said to others: a server's talk is not ours."""
        assert self.user is not None
        mention = re.compile(rf"\s*<@!?{self.user.id}>\s*")
        if mention.match(message.content):
            return mention.sub("", message.content, count=1)
        replied = message.reference.resolved if message.reference is not None else None
        ours = (
            message.guild is None
            or self.user in message.mentions
            or (isinstance(replied, discord.Message) and replied.author.id == self.user.id)
            or getattr(message.channel, "owner_id", None) == self.user.id
        )
        return message.content if ours else None

    async def _place(self, channel: object) -> Place:
        if isinstance(channel, discord.PartialMessageable):  # of a thread that was not told of
            with contextlib.suppress(discord.DiscordException, OSError):
                channel = await self.fetch_channel(channel.id)
        if isinstance(channel, discord.Thread):
            return Place(str(channel.parent_id), str(channel.id))
        return Place(str(getattr(channel, "id", "")))

    def _upload(self, attachment: discord.Attachment) -> Upload:
        async def fetch(most: int) -> bytes:
            if attachment.size > most:
                raise Refused(f"the file is larger than {most} bytes")
            return await download(attachment.url, most, origins=self._file_origins)

        kind = (attachment.content_type or "application/octet-stream").partition(";")[0]
        return Upload(attachment.filename, kind, attachment.size, fetch)


async def _acknowledge(interaction: Interaction) -> None:
    with contextlib.suppress(discord.DiscordException, OSError):  # too late: heard all the same
        if interaction.type is discord.InteractionType.component:
            await interaction.response.defer()
        else:
            await interaction.response.defer(ephemeral=True, thinking=True)


def _person(user: discord.User | discord.Member) -> Person:
    return Person(str(user.id), user.display_name)
