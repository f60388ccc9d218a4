import asyncio

from agents import Agent, Runner

from backburner import Backburner
from backburner.adapters import openai_agents


async def main() -> None:
    async with Backburner.open() as bb:
        session = bb.session("chat-42")
        agent = Agent(name="Builder", model="gpt-5.5", tools=openai_agents.tools(session))
        result = await Runner.run(agent, "Build the project.")
        print("Model:", result.final_output)
        async for signal in session.signals():
            print("Told: ", signal.text)
            chat = result.to_input_list()
            chat.append({"role": "user", "content": signal.text})
            result = await Runner.run(agent, chat)
            print("Model:", result.final_output)
            await signal.ack()
            break


asyncio.run(main())
