import asyncio

from claude_agent_sdk import ClaudeAgentOptions, ClaudeSDKClient, ResultMessage

from backburner import Backburner
from backburner.adapters import claude_agent


async def main() -> None:
    async with Backburner.open() as bb:
        session = bb.session("chat-42")
        servers, allowed = claude_agent.servers(session), ["mcp__backburner"]
        options = ClaudeAgentOptions(mcp_servers=servers, allowed_tools=allowed)
        async with ClaudeSDKClient(options) as client:
            await turn(client, "Build the project.")
            async for signal in session.signals():
                print("Told: ", signal.text)
                await turn(client, signal.text)
                await signal.ack()
                break


async def turn(client: ClaudeSDKClient, text: str) -> None:
    await client.query(text)
    said = [message async for message in client.receive_response()]
    print("Model:", *(each.result for each in said if isinstance(each, ResultMessage)))


asyncio.run(main())
