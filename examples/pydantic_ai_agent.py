import asyncio

from pydantic_ai import Agent

from backburner import Backburner
from backburner.adapters.pydantic_ai import Background


async def write_paragraph() -> str:
    """Write the next paragraph of the change log."""
    await asyncio.sleep(0.5)
    return "Written."


async def main() -> None:
    async with Backburner.open() as bb:
        session = bb.session("chat-42")
        background = Background(session)
        agent = Agent("openai:gpt-5.5", tools=[write_paragraph], capabilities=[background])
        result = await agent.run("Build the project, and write the change log meanwhile.")
        print("Model:", result.output)
        for signal in await session.told():
            print(f"Told:  {signal.text} ({signal.record.state})")


asyncio.run(main())
