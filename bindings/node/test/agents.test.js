'use strict';

// Sessions of other agents, by the options `agent` and `root`.

const assert = require('node:assert/strict');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');

const transcript = require('transcript-engine');

const TIME = '2026-03-01T09:00:00.000Z';
const GEMINI = '40000000-0000-4000-8000-000000000003';
const PI = '20000000-0000-7000-8000-000000000002';

/** Runs a test with a home folder of its own. */
function inHome(name, run) {
  test(name, async () => {
    const home = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-test-'));
    try {
      await run(home);
    } finally {
      fs.rmSync(home, { recursive: true });
    }
  });
}

function write(file, records) {
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, records.map((record) => `${JSON.stringify(record)}\n`).join(''));
}

function writeGemini(home) {
  const tokens = { input: 1000, output: 80, cached: 400, thoughts: 20, tool: 0, total: 1100 };
  const message = (id, type, content, more) => ({ id, timestamp: TIME, type, content, ...more });
  write(path.join(home, 'tmp/src/chats/session-2026-03-01T09-00-40000000.jsonl'), [
    { sessionId: GEMINI, projectHash: 'h', startTime: TIME, lastUpdated: TIME, kind: 'main' },
    message('a', 'user', [{ text: 'ask gemini' }]),
    message('b', 'gemini', 'tell gemini', { model: 'gemini-2.5-pro', tokens }),
    message('c', 'user', [{ text: 'rewound question' }]),
    { $rewindTo: 'c' },
  ]);
}

function writePi(home) {
  const message = (id, parentId, role, text) => ({
    type: 'message', id, parentId, timestamp: TIME, message: { role, model: 'm', content: [{ type: 'text', text }] },
  });
  const file = path.join(home, `sessions/--src--/2026_${PI}.jsonl`);
  write(file, [
    { type: 'session', version: 3, id: PI, timestamp: TIME, cwd: '/src' },
    message('a', null, 'user', 'ask pi'),
    message('c', 'lost', 'user', 'ask again'),
    message('d', 'c', 'assistant', 'tell again'),
  ]);
  return file;
}

async function texts(session, options) {
  const texts = [];
  for await (const record of transcript.entries(session, options)) {
    if (record.kind === 'entry' && record.message) {
      const { content } = record.message;
      texts.push(typeof content === 'string' ? content : content[0].text);
    }
  }
  return texts;
}

inHome('a session of another agent is listed, read, found and counted', async (home) => {
  writeGemini(home);
  const place = { agent: 'gemini', root: home };
  const [listed, ...others] = await transcript.list(place);
  assert.deepEqual(others, []);
  assert.deepEqual([listed.sessionId, listed.agent, listed.firstPrompt], [GEMINI, 'gemini', 'ask gemini']);
  assert.deepEqual(await texts(GEMINI, place), ['ask gemini', 'tell gemini']);
  const request = await transcript.request(GEMINI, place);
  assert.equal(request.resumable, true);
  assert.deepEqual(request.messages.map((message) => message.role), ['user', 'assistant']);
  const { live, branches } = await transcript.items(GEMINI, place);
  assert.deepEqual(live.map((item) => [item.kind, item.text]), [['user', 'ask gemini'], ['assistant', 'tell gemini']]);
  assert.deepEqual(branches.flat().map((item) => item.text), ['rewound question']);
  const hits = [];
  for await (const record of transcript.search('"rewound question"', { cache: false, ...place })) {
    if (record.kind === 'hit') hits.push(record.live);
  }
  assert.deepEqual(hits, [false]);
  const rows = await transcript.usage({ by: ['maker'], cache: false, ...place });
  const [row] = rows.filter((record) => record.kind === 'row');
  assert.deepEqual(row.by, { maker: 'gemini' });
  assert.deepEqual([row.input, row.cacheRead, row.output], [600, 400, 100]);
  assert.ok(row.costNanoUsd > 0);
  // The conversation ends where the rewound question begins, so only that ends the file.
  const tree = await transcript.tree(GEMINI, place);
  assert.equal(tree.branches.filter((branch) => branch.tip).length, 1);
});

inHome('a damaged session is read by either policy, and nothing changes it', async (home) => {
  const file = writePi(home);
  const before = fs.readFileSync(file);
  const place = { agent: 'pi', root: home };
  assert.deepEqual(await texts(PI, place), ['ask pi', 'ask again', 'tell again']);
  assert.deepEqual(await texts(PI, { ...place, policy: 'vendor' }), ['ask again', 'tell again']);
  await assert.rejects(transcript.fork(PI, place), /a session of pi/);
  assert.deepEqual(fs.readFileSync(file), before);
});

inHome('an unknown agent is refused by its name', async (home) => {
  await assert.rejects(transcript.list({ agent: 'nobody', root: home }), /nobody/);
});
