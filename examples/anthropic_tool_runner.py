import asyncio

from anthropic import AsyncAnthropic

from backburner import Backburner
from backburner.adapters import anthropic


async def main() -> None:
    async with Backburner.open() as bb, AsyncAnthropic() as client:
        session = bb.session("chat-42")
        chat, tools = [], anthropic.tools(session)

        async def turn(text: str) -> None:
            chat.append({"role": "user", "content": text})
            run = client.beta.messages.tool_runner
            runner = run(model="claude-opus-5", max_tokens=1000, messages=chat, tools=tools)
            chat.append((reply := await runner.until_done()).to_param())
            print("Model:", *(block.text for block in reply.content if block.type == "text"))

        await turn("Build the project.")
        async for signal in session.signals():
            print("Told: ", signal.text)
            await turn(signal.text)
            await signal.ack()
            break


asyncio.run(main())
