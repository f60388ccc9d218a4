"""`one_turn.py FRAMEWORK [DIALECT]`: one turn of an agent with the tools of a session.

It runs where the frameworks are installed, and prints what the model said in the end.
"""

import asyncio
import sys

from backburner import Backburner
from backburner.app import Session

PROMPT = "Do what you like."


async def openai_agents_sdk(session: Session, dialect: str | None) -> str:
    from agents import Agent, Runner

    from backburner.adapters import openai_agents

    agent = Agent(name="A", model="gpt-5.5", tools=openai_agents.tools(session, dialect))
    return (await Runner.run(agent, PROMPT)).final_output


async def pydantic_ai_agent(session: Session, dialect: str | None) -> str:
    from pydantic_ai import Agent

    from backburner.adapters import pydantic_ai

    agent = Agent("openai:gpt-5.5", toolsets=[pydantic_ai.tools(session, dialect)])
    return (await agent.run(PROMPT)).output


async def langgraph_agent(session: Session, dialect: str | None) -> str:
    from langchain.agents import create_agent
    from langchain.messages import HumanMessage

    from backburner.adapters import langchain

    agent = create_agent("openai:gpt-5.5", langchain.tools(session, dialect))
    state = await agent.ainvoke({"messages": [HumanMessage(PROMPT)]})
    return state["messages"][-1].text


async def anthropic_tool_runner(session: Session, dialect: str | None) -> str:
    from anthropic import AsyncAnthropic

    from backburner.adapters import anthropic

    async with AsyncAnthropic() as client:
        runner = client.beta.messages.tool_runner(
            model="claude-opus-5",
            max_tokens=1000,
            messages=[{"role": "user", "content": PROMPT}],
            tools=anthropic.tools(session, dialect),
        )
        reply = await runner.until_done()
    return "".join(block.text for block in reply.content if block.type == "text")


async def claude_agent_client(session: Session, dialect: str | None) -> str:
    from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, query

    from backburner.adapters import claude_agent

    options = ClaudeAgentOptions(
        mcp_servers=claude_agent.servers(session, dialect),
        allowed_tools=["mcp__backburner"],
        env={"ENABLE_TOOL_SEARCH": "false"},  # all of them at once
    )
    said = [each async for each in query(prompt=PROMPT, options=options)]
    return "".join(each.result or "" for each in said if isinstance(each, ResultMessage))


async def main(framework: str, dialect: str | None = None) -> None:
    async with Backburner.open() as bb:
        print(await globals()[framework](bb.session("test"), dialect))


asyncio.run(main(*sys.argv[1:]))
