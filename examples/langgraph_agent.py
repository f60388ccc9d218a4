import asyncio

from langchain.agents import create_agent
from langchain.messages import HumanMessage

from backburner import Backburner
from backburner.adapters import langchain


async def main() -> None:
    async with Backburner.open() as bb:
        session = bb.session("chat-42")
        agent = create_agent("openai:gpt-5.5", langchain.tools(session))
        state = await agent.ainvoke({"messages": [HumanMessage("Build the project.")]})
        print("Model:", state["messages"][-1].text)
        async for signal in session.signals():
            print("Told: ", signal.text)
            chat = [*state["messages"], HumanMessage(signal.text)]
            state = await agent.ainvoke({"messages": chat})
            print("Model:", state["messages"][-1].text)
            await signal.ack()
            break


asyncio.run(main())
