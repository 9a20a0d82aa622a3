// Reads sessions with the official TypeScript SDK: `node read.mjs SDK.mjs FOLDER`, the ids of the
// sessions as a JSON array on stdin, what the SDK makes of them as one JSON object on stdout.
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [sdkPath, dir] = process.argv.slice(2);
const sdk = await import(pathToFileURL(sdkPath));
const told = (message) => ({
  uuid: message.uuid,
  type: message.type,
  sessionId: message.session_id,
  message: message.message,
  call: message.parent_tool_use_id,
});

const sessions = {};
for (const id of JSON.parse(readFileSync(0, "utf8"))) {
  const agents = {};
  for (const agent of await sdk.listSubagents(id, { dir })) {
    agents[agent] = (await sdk.getSubagentMessages(id, agent, { dir })).map(told);
  }
  sessions[id] = { messages: (await sdk.getSessionMessages(id, { dir })).map(told), agents };
}
const list = (await sdk.listSessions({ dir })).map((info) => ({
  id: info.sessionId,
  title: info.customTitle ?? null,
  summary: info.summary,
  firstPrompt: info.firstPrompt ?? null,
  cwd: info.cwd ?? null,
  tag: info.tag ?? null,
}));
process.stdout.write(JSON.stringify({ sessions, list }));
