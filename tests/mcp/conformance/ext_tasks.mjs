// The TypeScript client of the Tasks extension against a server at an address: one call that becomes
// a task and is waited for, and one that asks its user something. Prints one line for each. With
// `start FILE` a call is made and left; with `resume FILE`, another time, it is waited for.
//   node ext_tasks.mjs URL FOLDER_OF_NODE_MODULES [start|resume FILE]
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [url, folder, mode, file] = process.argv.slice(2);
const require = createRequire(pathToFileURL(`${folder}/here.js`));
const load = (name) => import(pathToFileURL(require.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { createTaskSessionFromClient, resultFromTaskOutcome } = await import(
  pathToFileURL(`${folder}/node_modules/@modelcontextprotocol/ext-tasks/dist/client/index.js`)
);

const protocolVersion = "2026-07-28";
const clientInfo = { name: "ext-tasks-proof", version: "1" };
const clientCapabilities = {
  elicitation: { form: {} },
  extensions: { "io.modelcontextprotocol/tasks": {} },
};

let number = 0;
// Task shapes do not go through the SDK's client: the package wants the request sent as it is.
async function rawDispatch(request, options = {}) {
  const { method, params } = request;
  const name = method === "tools/call" ? params.name : params.taskId;
  const reply = await fetch(url, {
    method: "POST",
    signal: options.signal,
    headers: {
      "Content-Type": "application/json",
      Accept: "application/json, text/event-stream",
      "MCP-Protocol-Version": protocolVersion,
      "Mcp-Method": method,
      "Mcp-Name": name,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: ++number, method, params }),
  });
  const text = await reply.text();
  const said = JSON.parse(
    text.startsWith("{") ? text : text.split("data: ").at(-1),
  );
  if (said.error) return { kind: "error", error: said.error };
  return { kind: "result", result: said.result };
}

const client = new Client(clientInfo, {
  capabilities: clientCapabilities,
  versionNegotiation: { mode: { pin: protocolVersion } },
});
await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const session = createTaskSessionFromClient(client, {
  endpointId: "fixture",
  rawDispatch,
  v2RequestFraming: { protocolVersion, clientInfo, clientCapabilities },
  onInputRequest: async () => ({ action: "accept", content: { confirm: true } }),
});
const settled = async (execution) => {
  const { outcome } = await execution.settle();
  return resultFromTaskOutcome(outcome).content[0].text;
};
try {
  if (mode === "start") {
    const given = { seconds: 4, label: "restart" };
    const execution = await session.callTool("slow_compute", given);
    await writeFile(file, JSON.stringify(execution.serializeReference()));
    process.exit(0); // as an agent that is closed: a session that is, cancels what it has begun
  } else if (mode === "resume") {
    const reference = JSON.parse(await readFile(file, "utf8"));
    console.log(await settled(await session.resumeTask(reference)));
  } else {
    for (const [tool, given] of [
      ["slow_compute", { seconds: 1, label: "typescript" }],
      ["confirm_delete", { filename: "proof.txt" }],
    ]) {
      console.log(`${tool}: ${await settled(await session.callTool(tool, given))}`);
    }
  }
} finally {
  await session.close();
  await client.close();
}
