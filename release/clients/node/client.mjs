// Continues a session, or begins it: a prompt and a scripted reply, acknowledged one by one.

import { existsSync } from 'node:fs';
import { Session } from 'transcript-engine';

const path = process.argv.at(-1);
const options = { cwd: '/work', version: '1.0.0' };
const begun = existsSync(path);
const session = await (begun ? Session.resume(path, options) : Session.create(path, options));
const before = begun ? session.resumed.request.messages.length : 0;
await session.append({ user: 'Which years have a leap day?' });
const content = [{ type: 'text', text: 'Node: most fourth ones.' }];
// Each run has a reply of its own: a client reads two entries with the same message id as parts of one.
const id = `msg_node_${before}`;
await session.append({ assistant: { id, type: 'message', role: 'assistant', model: 'scripted', content } });
const after = (await session.request()).messages.length;
await session.close();
console.log(`resumed with ${before} messages, closed with ${after}`);
