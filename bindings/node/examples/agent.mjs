// A small agent: streams a reply, runs a tool, and can be killed at any point and resumed.
//
// Usage: agent.mjs SESSION URL [PROMPT]. Without a prompt it continues where the session stopped. URL is that of a
// server that answers POST requests with the events of a streamed reply, as the Messages API does.

import { existsSync } from 'node:fs';
import { Session, StreamReply } from 'transcript-engine';

/** Sends the messages, and assembles the reply as it arrives. The connection may end before the reply does. */
async function stream(url, messages) {
  const response = await fetch(url, { method: 'POST', body: JSON.stringify({ messages, stream: true }) });
  const reply = new StreamReply();
  try {
    for await (const bytes of response.body) {
      if (reply.push(bytes)) break;
    }
  } catch {
    // The part that arrived is in the reply, and `state` says that it is not whole.
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
    const start = performance.now();
    const reply = await stream(url, (await session.request()).messages);
    result = reply.result();
    if (result.state !== 'nothing') await session.appendReply(reply);
    if (result.state !== 'whole') {
      // None of its calls runs. Started again, the agent tells the model that they were cut.
      throw new Error('the reply was cut; run again without a prompt to continue');
    }
    await session.count({ reply: result.message, apiMs: performance.now() - start });
    // A whole reply may still have calls in `partialCalls`; the next request says that they did not run.
    for (const { id, name, input } of result.toolCalls) {
      await session.appendToolResult(id, runTool(name, input));
    }
  } while (result.toolCalls.length + result.partialCalls.length > 0);
  await session.endTurn(prompt);
  for (const { text } of result.message.content) console.log(text ?? '');
} finally {
  await session.close();
}
