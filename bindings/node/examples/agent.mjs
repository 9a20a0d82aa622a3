// A small agent: streams a reply, runs a tool, and can be killed at any point and resumed.
//
// Usage: agent.mjs SESSION URL [PROMPT]. Without a prompt it continues where the session stopped. URL is that of a
// server that answers POST requests with the events of a streamed reply, as the Messages API does.

import { existsSync } from 'node:fs';
import { Session, StreamReply } from 'transcript';

/** Sends the messages, and assembles the reply as it arrives. */
async function stream(url, messages) {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ messages, stream: true }) });
  const reply = new StreamReply();
  for await (const bytes of response.body) {
    if (reply.push(bytes)) break;
  }
  return reply;
}

/** The only tool of this agent. */
function runTool(name, { year }) {
  if (name !== 'days') return `there is no tool ${name}`;
  const isLeap = year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
  return isLeap ? '366 days' : '365 days';
}

const [path, url, prompt] = process.argv.slice(2);
const options = { cwd: '.', version: '1.0.0' };
const session = existsSync(path) ? await Session.resume(path, options) : await Session.create(path, options);
try {
  if (prompt !== undefined) await session.append({ user: prompt });
  let result;
  do {
    const reply = await stream(url, (await session.request()).messages);
    result = reply.result();
    await session.appendReply(reply);
    for (const { id, name, input } of result.toolCalls) {
      const block = { type: 'tool_result', tool_use_id: id, content: runTool(name, input) };
      await session.append({ type: 'user', message: { role: 'user', content: [block] } });
    }
  } while (result.toolCalls.length > 0);
  await session.endTurn(prompt);
  for (const { text } of result.message.content) console.log(text ?? '');
} finally {
  await session.close();
}
