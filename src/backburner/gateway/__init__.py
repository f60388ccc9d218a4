"""Background work in a chat: Telegram, Discord, Slack and the terminal."""
