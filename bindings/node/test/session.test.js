'use strict';

const assert = require('node:assert/strict');
const { spawn } = require('node:child_process');
const { once } = require('node:events');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const test = require('node:test');
const { Worker } = require('node:worker_threads');

const transcript = require('transcript-engine');

const KILLS = Number(process.env.TRANSCRIPT_KILLS ?? 20);
const ID = '1999463e-ee08-4b08-99d5-2d9a36fd8293';
const OPTIONS = { cwd: '/work', version: '1.0.0' };

/** Runs a test with a folder of its own. */
function inFolder(name, run) {
  test(name, async () => {
    const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-test-'));
    try {
      await run(path.join(folder, `${ID}.jsonl`), folder);
    } finally {
      fs.rmSync(folder, { recursive: true });
    }
  });
}

function entry(type, uuid, parentUuid, content, more) {
  const timestamp = '2026-03-01T09:00:00.000Z';
  return JSON.stringify({ type, uuid, parentUuid, sessionId: ID, timestamp, message: { role: type, content }, ...more });
}

inFolder('arguments that are mistakes are refused, and nothing is written', async (file, folder) => {
  const message = '{"type":"user","message":{"role":"user","content":"one"}}';
  const session = await transcript.Session.create(new URL(`file://${file}`), OPTIONS);
  await session.append({ user: 'hello' });
  await session.setTitle('leap days');
  const before = fs.readFileSync(file, 'utf8');
  async function* generated() {
    yield JSON.parse(message);
  }
  const mistakes = [
    () => session.append({ user: 'one', assistant: { role: 'assistant', content: [] } }),
    () => session.append({ user: 'one', parentUuid: null }),
    () => session.append({ user: 5 }),
    () => session.append(undefined),
    () => session.append(`${message},${message}`),
    () => session.append(`${message},"parent":null`),
    () => session.append(message.replace('one', 'half a pair \ud83d')),
    () => session.append(Buffer.from(message.replace('one', '\xff'), 'latin1')),
    () => session.appendAll([`${message},${message}`]),
    () => session.appendAll(JSON.parse(message)),
    () => session.appendAll(message),
    () => session.appendAll([undefined]),
    () => session.appendAll(generated()),
    () => session.record([`${message},${message}`]),
    () => session.setTitle(),
    () => session.setTitle(5),
    () => session.setTag(),
    () => session.endTurn(5),
    () => session.rewind(),
    () => session.rewind(NaN),
    () => session.fork({ upToMessageId: 1 }),
    () => session.compact('summary', { preserve: [1] }),
    () => session.compact('summary', { preTokens: 5.5 }),
    () => session.appendReply({}),
    () => session.agent(),
    () => transcript.Session.create(path.join(folder, 'other.jsonl'), { ...OPTIONS, sync: Infinity }),
    () => transcript.Session.create(path.join(folder, 'other.jsonl'), { ...OPTIONS, sync: 'often' }),
    () => transcript.verify(file, { function: 'repair' }),
    () => transcript.exportSession(file, file, { force: true }),
    () => new transcript.StreamReply().push(5),
  ];
  for (const mistake of mistakes) {
    await assert.rejects(async () => mistake(), (error) => /Error$/.test(error.name) && !/Failed to convert/.test(error.message), `${mistake}`);
    assert.equal(fs.readFileSync(file, 'utf8'), before, `${mistake}`);
  }
  assert.deepEqual(fs.readdirSync(folder), [path.basename(file)]);
  // Bytes of any kind are the JSON of an entry, and a URL is a path.
  const bytes = new TextEncoder().encode(message);
  for (const given of [bytes, bytes.buffer, new DataView(bytes.buffer)]) await session.append(given);
  await session.setTag(null);
  await session.close();
  const kinds = (await transcript.entries(new URL(`file://${file}`)).toArray()).map(({ kind }) => kind);
  assert.equal(kinds.filter((kind) => kind === 'entry').length, 4);
});

inFolder('sessions are listed, shown as a tree, copied and moved', async (_, root) => {
  const project = path.join(root, '-work');
  const file = path.join(project, `${ID}.jsonl`);
  fs.mkdirSync(project);
  const cwd = { cwd: '/work' };
  const lines = [entry('user', 'u1', null, 'one', cwd), entry('assistant', 'a1', 'u1', '1', cwd)];
  fs.writeFileSync(file, [...lines, entry('user', 'u2', 'a1', 'two', cwd), ''].join('\n'));
  const [row] = await transcript.list({ root, text: 'ONE' });
  assert.deepEqual([row.sessionId, row.cwd], [ID, '/work']);
  assert.deepEqual(await transcript.list({ root, since: '2026-03-02' }), []);
  assert.equal((await transcript.tree(file)).sessionId, ID);
  const copy = await transcript.fork(file, { at: '1', root });
  assert.notEqual(copy.sessionId, ID);
  await transcript.move('/work', '/new', { root, dryRun: true });
  assert.equal(fs.existsSync(file), true);
  await transcript.move('/work', '/new', { root });
  assert.equal(fs.existsSync(file), false);
  assert.equal((await transcript.list({ root, project: '/new' })).length, 2);
});

test('a text is returned without its secrets', async () => {
  const done = await transcript.redact("DB_PASSWORD='my long phrase' for ada@example.org", { emails: true });
  assert.deepEqual(done, {
    text: "DB_PASSWORD='[redacted: password]' for [redacted: e-mail address]",
    kinds: { password: 1, 'e-mail address': 1 },
  });
  const line = JSON.stringify({ text: 'pin "x"', password: 123456 });
  const masked = JSON.parse((await transcript.redact(line, { line: true })).text);
  assert.deepEqual(masked, { text: 'pin "x"', password: '[redacted: password]' });
});

inFolder('the functions of the SDK read and change sessions', async (file, folder) => {
  const root = path.join(folder, 'projects');
  fs.mkdirSync(path.join(root, '-work'), { recursive: true });
  const session = path.join(root, '-work', `${ID}.jsonl`);
  const lines = [
    entry('user', '11111111-1111-4111-8111-111111111111', null, 'Which years have a leap day?', { cwd: '/work' }),
    entry('assistant', '22222222-2222-4222-8222-222222222222', '11111111-1111-4111-8111-111111111111', 'Most.'),
  ];
  fs.writeFileSync(session, `${lines.join('\n')}\n`);
  const [info] = await transcript.listSessions({ root });
  assert.equal(info.summary, 'Which years have a leap day?');
  assert.deepEqual(await transcript.getSessionInfo(ID, { root }), info);
  const messages = await transcript.getSessionMessages(ID, { root });
  assert.deepEqual(messages.map(({ message }) => message.content), ['Which years have a leap day?', 'Most.']);
  const lazy = await transcript.iterSessionMessages(ID, { root, limit: 1, offset: 1 }).toArray();
  assert.deepEqual(lazy.map(({ raw }) => raw.toString()), ['{"role":"assistant","content":"Most."}']);
  assert.deepEqual(lazy[0].message, messages[1].message);
  await transcript.renameSession(ID, ' Leap days ', { root });
  await transcript.tagSession(ID, 'time', { root });
  const { customTitle, tag } = await transcript.getSessionInfo(ID, { root });
  assert.deepEqual([customTitle, tag], ['Leap days', 'time']);
  const copy = await transcript.forkSession(ID, { root, upToMessageId: messages[0].uuid });
  assert.equal((await transcript.getSessionMessages(copy.sessionId, { root })).length, 1);
  await transcript.archiveSession(ID, { root });
  assert.equal((await transcript.getSessionInfo(ID, { root })).archived, true);
  await transcript.unarchiveSession(ID, { root });
  assert.equal((await transcript.listSessions({ root, includeProgrammatic: false }))[1].archived, false);
  await transcript.deleteSession(ID, { root });
  assert.equal(await transcript.getSessionInfo(ID, { root }), undefined);
  await assert.rejects(transcript.deleteSession(ID, { root }), transcript.NotFoundError);
  await assert.rejects(transcript.renameSession('nope', 'x', { root }), /Invalid sessionId: nope/);
  await assert.rejects(transcript.forkSession(copy.sessionId, { root, upToMessageId: ID }), /not found in session/);
});

inFolder('an option that a function does not have is refused by its name', async (file, folder) => {
  const root = path.join(folder, 'projects');
  const refused = { name: 'InvalidError', message: /there is no option `sessionStore`/ };
  const sessionStore = { append: () => {} };
  for (const name of ['getSessionInfo', 'getSessionMessages', 'listSubagents', 'archiveSession', 'deleteSession']) {
    await assert.rejects(transcript[name](ID, { root, sessionStore }), refused, name);
  }
  await assert.rejects(transcript.listSessions({ root, sessionStore }), refused);
  await assert.rejects(transcript.renameSession(ID, 'x', { root, sessionStore }), refused);
  await assert.rejects(transcript.Session.create(file, { ...OPTIONS, sessionStore }), refused);
  assert.throws(() => transcript.search('x', { root, sessionStore }), refused);
  assert.throws(() => transcript.follow(file, { root, sessionStore }), refused);
  await assert.rejects(transcript.verify(file, { polcy: 'vendor' }), /there is no option `polcy`/);
});

inFolder('system entries have no message', async (file, folder) => {
  const root = path.join(folder, 'projects');
  fs.mkdirSync(path.join(root, '-work'), { recursive: true });
  const lines = [
    entry('user', '11111111-1111-4111-8111-111111111111', null, 'one'),
    entry('system', '22222222-2222-4222-8222-222222222222', '11111111-1111-4111-8111-111111111111', 'note'),
    entry('user', '33333333-3333-4333-8333-333333333333', '22222222-2222-4222-8222-222222222222', 'two'),
  ];
  fs.writeFileSync(path.join(root, '-work', `${ID}.jsonl`), `${lines.join('\n')}\n`);
  const options = { root, includeSystemMessages: true };
  const [, system, last] = await transcript.getSessionMessages(ID, options);
  assert.deepEqual(Object.keys(system).sort(), [
    'parent_agent_id',
    'parent_tool_use_id',
    'parent_uuid',
    'session_id',
    'timestamp',
    'type',
    'uuid',
  ]);
  assert.deepEqual([system.type, last.parent_uuid], ['system', system.uuid]);
  const [, lazy] = await transcript.iterSessionMessages(ID, options).toArray();
  assert.deepEqual([lazy.type, lazy.message], ['system', undefined]);
  assert.equal((await transcript.getSessionMessages(ID, { root })).length, 2);
});

inFolder('actions in a client are appended as clients write them', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  const references = [{ kind: 'file', path: 'a.js' }];
  await session.append({ client: { prompt: { references, text: 'Why?' } } });
  const shell = await session.append({ client: { shell: { command: 'ls', stdout: 'a.js' } } });
  assert.equal(shell.length, 3);
  await session.append({ client: { interrupt: { toolUse: true } } });
  const previews = (await session.entries()).map(({ preview }) => preview);
  assert.equal(previews[0], 'Why?');
  assert.equal(previews[2], '! ls');
  assert.equal(previews.at(-1), '[Request interrupted by user for tool use]');
  await assert.rejects(session.append({ client: { stop: {} } }), transcript.InvalidError);
  await assert.rejects(session.append({ user: 'one', client: { interrupt: {} } }));
  await session.close();
});

inFolder('references to tools that are not named are not sent', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append({ user: 'Find tools' });
  const call = { type: 'tool_use', id: 'toolu_1', name: 'ToolSearch', input: {} };
  await session.append({ assistant: { id: 'm', role: 'assistant', model: 'm', content: [call] } });
  const references = ['WebFetch', 'Abacus'].map((name) => ({ type: 'tool_reference', tool_name: name }));
  const result = { type: 'tool_result', tool_use_id: 'toolu_1', content: references };
  await session.append({ type: 'user', message: { role: 'user', content: [result] } });
  await session.close();
  const referred = ({ messages }) => ['WebFetch', 'Abacus'].filter((name) => JSON.stringify(messages).includes(name));
  const resumed = await transcript.Session.resume(file, { ...OPTIONS, tools: ['Abacus'] });
  assert.deepEqual(referred(resumed.resumed.request), ['Abacus']);
  await resumed.close();
  assert.deepEqual(referred(await transcript.request(file, { tools: ['WebFetch'] })), ['WebFetch']);
});

inFolder('results of calls are appended, and a compaction keeps the last turns', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  assert.deepEqual([await session.entries(), await session.story()], [[], []]);
  const [first] = await session.append({ user: 'one' });
  await session.append({ user: 'two' });
  const calls = [0, 1].map((n) => ({ type: 'tool_use', id: `toolu_${n}`, name: 'Calendar', input: {} }));
  await session.append({ assistant: { id: 'm', role: 'assistant', model: 'm', content: calls } });
  await session.appendToolResult('toolu_0', '366 days', { toolUseResult: { days: 366 } });
  const content = [{ type: 'text', text: 'no such year' }];
  const failed = await session.appendToolResult('toolu_1', content, { isError: true });
  await assert.rejects(session.appendToolResult('toolu_1', 'again'), { name: 'InvalidError', kind: 'answered-call' });
  await assert.rejects(session.appendToolResult('toolu_1', 'again', { iserror: true }), transcript.InvalidError);
  const lines = fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(lines.at(-2).toolUseResult, { days: 366 });
  const result = { tool_use_id: 'toolu_1', type: 'tool_result', content, is_error: true };
  assert.deepEqual([lines.at(-1).uuid, lines.at(-1).message.content], [failed.uuid, [result]]);
  const both = { preserved: [first.uuid], keepTurns: 1 };
  await assert.rejects(session.compact('They counted.', both), transcript.InvalidError);
  await session.compact('They counted.', { keepTurns: 1 });
  const story = (await session.story()).map(({ preview, inContext }) => [preview, inContext]);
  assert.deepEqual(story.slice(0, 2), [['one', false], ['two', true]]);
  assert.equal(await session.findEntry(first.uuid.slice(0, 8)), first.uuid);
  assert.equal(await session.findEntry(1), first.uuid);
  await assert.rejects(session.findEntry(1000), transcript.InvalidError);
  await session.close();
});

inFolder('a conversation is written, resumed, compacted and forked', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  const [prompt] = await session.append({ user: 'How long is the year 2000?' });
  const content = [{ type: 'tool_use', id: 'toolu_1', name: 'days', input: { year: 2000 } }];
  await session.append({ assistant: { id: 'msg_1', type: 'message', role: 'assistant', model: 'm', content } });
  await session.close();
  await session.close();
  await assert.rejects(session.append({ user: 'again' }), transcript.ClosedError);

  const resumed = await transcript.Session.resume(file, OPTIONS);
  assert.ok(resumed.resumed.added.length > 0);
  assert.ok(resumed.resumed.request.accepted);
  await assert.rejects(transcript.Session.open(file), { name: 'BusyError', kind: 'busy' });
  const copy = await resumed.fork({ title: 'Copy' });
  const { summary } = await resumed.compact('They counted.', { preserved: [prompt.uuid] });
  assert.ok(summary.uuid);
  await resumed.setTitle('Leap days');
  await resumed.endTurn('How long is the year 2000?');
  await resumed.rewind(summary.uuid);
  assert.equal(await resumed.leaf(), summary.uuid);
  await resumed.close();
  const { messages } = await transcript.request(copy);
  assert.equal(messages[0].content, 'How long is the year 2000?');
});

inFolder('appends that are not awaited keep their order', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  const written = await Promise.all(Array.from({ length: 500 }, (_, number) => session.append({ user: `${number}` })));
  written.forEach(([{ parentUuid }], at) => assert.equal(parentUuid, at === 0 ? null : written[at - 1][0].uuid));
  const broken = [session.append({ user: 'one' }), session.append('no json'), session.append({ user: 'two' })];
  const settled = await Promise.allSettled(broken);
  assert.deepEqual(settled.map(({ status }) => status), ['fulfilled', 'rejected', 'fulfilled']);
  assert.equal(settled[1].reason.path, file);
  await session.close();
});

inFolder('the event loop gets its turns while a program appends in a loop', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  let turns = 0;
  const count = () => {
    turns += 1;
    immediate = setImmediate(count);
  };
  let immediate = setImmediate(count);
  for (let number = 0; number < 1000; number += 1) await session.append({ user: `${number}` });
  clearImmediate(immediate);
  assert.ok(turns >= 20, `${turns} turns`);
  await session.close();
});

inFolder('every value of JSON survives, and what makes requests fail is refused', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append('{"type":"user","message":{"role":"user","content":"\\u00e9"},"n":9007199254740993}');
  for (const text of ['half a pair \ud83d', 'NUL \0']) {
    const message = { role: 'user', content: text };
    await assert.rejects(session.append({ type: 'user', message }), transcript.InvalidError);
  }
  const long = 'x'.repeat(63 << 20);
  await session.append({ user: long });
  await session.close();
  assert.match(fs.readFileSync(file, 'latin1').slice(0, 400), /"content":"\\u00e9"\},"n":9007199254740993/);
  const records = await transcript.entries(file).toArray();
  assert.equal(records[2].message.content.length, long.length);
  fs.appendFileSync(file, `${entry('user', 'u9', records[2].uuid, '').replace('""', '"\\ud800\\u0000"')}\n`);
  const [, , , last] = await transcript.entries(file).toArray();
  assert.equal(last.message.content, '\ud800\0');
});

inFolder('a session is followed, and reading ends when it is aborted', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append({ user: 'one' });
  const abort = new AbortController();
  const events = transcript.follow(file, { signal: abort.signal });
  const found = [];
  const reading = (async () => {
    for await (const { kind, message } of events) {
      if (kind !== 'entry') continue;
      found.push(message.content);
      if (found.length === 1) await session.append({ user: 'two' });
      if (found.length === 2) setTimeout(() => abort.abort(), 20);
    }
  })();
  await assert.rejects(reading, { name: 'AbortError' });
  assert.deepEqual(found, ['one', 'two']);
  await session.close();
});

inFolder('records that are asked for together come in order', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.appendAll(Array.from({ length: 300 }, (_, n) => ({ type: 'user', message: { role: 'user', content: `${n}` } })));
  await session.close();
  const events = transcript.entries(file);
  const found = await Promise.all(Array.from({ length: 305 }, () => events.next()));
  const contents = found.filter(({ value }) => value?.kind === 'entry').map(({ value }) => value.message.content);
  assert.deepEqual(contents, Array.from({ length: 300 }, (_, n) => `${n}`));
  assert.deepEqual(found.slice(302).map(({ done }) => done), [true, true, true]);
});

inFolder('watching returns what is written after it has started', async (file, folder) => {
  for (let round = 0; round < 20; round += 1) {
    const project = path.join(folder, `projects${round}`, '-work');
    fs.mkdirSync(project, { recursive: true });
    const old = path.join(project, `${ID}.jsonl`);
    fs.writeFileSync(old, `${entry('user', 'u1', null, 'old')}\n`);
    const events = await transcript.watch({ in: path.dirname(project) }).ready();
    fs.appendFileSync(old, `${entry('user', 'u2', 'u1', 'new')}\n`);
    for await (const { kind, message } of events) {
      if (kind !== 'entry') continue;
      assert.equal(message.content, 'new');
      break;
    }
  }
});

inFolder('a streamed reply is kept as far as it arrived', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append({ user: 'Say hello' });
  const reply = new transcript.StreamReply();
  reply.event({ type: 'message_start', message: { id: 'msg_1', role: 'assistant', model: 'm', content: [] } });
  reply.push('data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}\n\n');
  reply.push('data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hel"}}\n\n');
  assert.equal(reply.result().state, 'partial');
  assert.equal((await session.appendReply(reply)).length, 1);
  await session.close();
});

inFolder('worker threads have sessions of their own, and may end at any time', async (file, folder) => {
  const source = `
    const { Session, follow } = require('transcript-engine');
    const { parentPort, workerData } = require('node:worker_threads');
    (async () => {
      const session = await Session.create(workerData, { cwd: '/', version: '1' });
      await session.append({ user: 'hello' });
      follow(workerData).next();
      for (let n = 0; n < 1e9; n += 1) {
        const written = session.append({ user: 'x' });
        if (n === 100) parentPort.postMessage('written');
        await written;
      }
    })();`;
  const workers = Array.from({ length: 4 }, (_, number) => {
    const workerData = path.join(folder, `${number}999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl`);
    return new Worker(source, { eval: true, workerData });
  });
  await Promise.all(workers.map((worker) => once(worker, 'message')));
  await Promise.all(workers.map((worker) => worker.terminate()));
  for (let number = 0; number < 4; number += 1) {
    const written = path.join(folder, `${number}999463e-ee08-4b08-99d5-2d9a36fd8293.jsonl`);
    assert.ok((await transcript.entries(written).toArray()).length > 100);
  }
});

/** Kills a program that appends; returns how many entries it acknowledged, and how many of them are lost. */
async function acknowledgedAfterKills(program, file, kills) {
  const acknowledged = new Set();
  for (let kill = 0; kill < kills; kill += 1) {
    const child = spawn(process.execPath, ['-e', program, file], { stdio: ['ignore', 'pipe', 'inherit'] });
    let text = '';
    child.stdout.on('data', (data) => {
      if (text === '') setTimeout(() => child.kill('SIGKILL'), kill % 17);
      text += data;
    });
    await once(child, 'close');
    for (const line of text.split('\n').slice(0, -1)) acknowledged.add(line);
  }
  // A torn line, to which another may be glued, has no uuid.
  const uuids = (line) => {
    try {
      return [JSON.parse(line).uuid];
    } catch {
      return [];
    }
  };
  // A program that never writes leaves no file.
  const written = fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : '';
  const found = new Set(written.split('\n').flatMap(uuids));
  const lost = [...acknowledged].filter((uuid) => !found.has(uuid));
  return [acknowledged.size, lost.length];
}

inFolder('nothing acknowledged is lost by a kill', async (file) => {
  const program = `
    const { Session } = require('transcript-engine');
    const { writeSync } = require('node:fs');
    (async () => {
      const session = await Session.openOrCreate(process.argv[1], { cwd: '/', version: '1' });
      for (;;) for (const { uuid } of await session.append({ user: 'x'.repeat(200) })) writeSync(1, uuid + '\\n');
    })();`;
  const [acknowledged, lost] = await acknowledgedAfterKills(program, file, KILLS);
  assert.ok(acknowledged > 10 * KILLS);
  assert.equal(lost, 0);
});

/** Runs steps of `work.json` in a session, which the tests of Rust and Python run, too. */
async function work(session, steps) {
  for (const step of steps) {
    const [[name, given]] = Object.entries(step);
    if (name === 'append') await session.append(given.entry ?? given);
    else if (name === 'count') await session.count(given);
    else if (name === 'context') await session.setContext(given);
    else if (name === 'completeCalls') await session.completeCalls(given);
    else if (name === 'endTurn') await session.endTurn(given);
    else throw new Error(name);
  }
}

/** Returns what is the same each time the steps are run. */
function found({ durationMs, startTime, ...counters }, state) {
  assert.ok(Number.isInteger(durationMs) && Number.isInteger(startTime));
  const known = (list) => list.map(({ uuid, timestamp, ...item }) => item);
  const { files, denials, gitBranch, entrypoint } = state;
  return { counters, files: known(files), denials: known(denials), gitBranch, entrypoint };
}

inFolder('counters and files survive a kill and a resume', async (file) => {
  const steps = JSON.parse(fs.readFileSync(path.join(__dirname, 'work.json'), 'utf8'));
  const program = `
    const { Session } = require('transcript-engine');
    ${work}
    (async () => {
      const session = await Session.create(process.argv[1], { cwd: '/work', version: '1.0.0' });
      await work(session, JSON.parse(process.argv[2]));
      process.stdout.write('ready');
      setInterval(() => {}, 1000);
    })();`;
  const child = spawn(process.execPath, ['-e', program, file, JSON.stringify(steps.before)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.on('data', () => child.kill('SIGKILL'));
  const [code, signal] = await once(child, 'close');
  assert.deepEqual([code, signal], [null, 'SIGKILL']);
  const session = await transcript.Session.resume(file, OPTIONS);
  assert.equal((await session.counters()).linesAdded, 1);
  await work(session, steps.after);
  const counters = await session.counters();
  assert.deepEqual(found(counters, await session.state()), steps.expected);
  const fork = await session.fork();
  await session.close();
  const { state } = await transcript.request(file, { full: true });
  assert.deepEqual(found(state.costs, state), steps.expected);
  const copy = await transcript.Session.open(fork, OPTIONS);
  assert.equal((await copy.counters()).totalCostUSD, counters.totalCostUSD);
  await copy.close();
});

inFolder('counts and settings are checked', async (file) => {
  const session = await transcript.Session.create(file, { ...OPTIONS, gitBranch: 'main', entrypoint: 'sdk-test' });
  assert.equal((await session.state()).files, null);
  await session.append({ user: 'go' });
  const before = fs.readFileSync(file, 'utf8');
  assert.equal(JSON.parse(before).gitBranch, 'main');
  for (const wrong of [{ reply: {} }, { apiMs: -1 }, { linesAdded: 1.5 }, { lines: 1 }]) {
    await assert.rejects(session.count(wrong), transcript.TranscriptError);
  }
  await assert.rejects(session.setContext({ branch: 'x' }), transcript.TranscriptError);
  await assert.rejects(session.completeCalls(), transcript.TranscriptError);
  assert.equal(fs.readFileSync(file, 'utf8'), before);
  await session.close();
});

inFolder('the naive writer loses entries in the same test', async (file) => {
  const program = `
    const fs = require('node:fs');
    const stream = fs.createWriteStream(process.argv[1], { flags: 'a' });
    for (;;) {
      const uuid = crypto.randomUUID();
      stream.write(JSON.stringify({ type: 'user', uuid }) + '\\n');
      fs.writeSync(1, uuid + '\\n');
    }`;
  const [, lost] = await acknowledgedAfterKills(program, file, 3);
  assert.ok(lost > 0);
});

inFolder('closed sessions and those without a reference keep no threads', async (file) => {
  // In a process of its own, which may collect objects without a reference.
  const script = `
    const fs = require('node:fs');
    const { Session } = require('transcript-engine');
    const threads = () => fs.readdirSync('/proc/self/task').length;
    const [file] = process.argv.slice(1);
    const pause = () => new Promise((done) => setTimeout(done, 20));
    (async () => {
      await (await Session.create(file, { cwd: '/', version: '1' })).append({ user: 'one' });
      const before = threads();
      for (let i = 0; i < 50; i += 1) await (await Session.open(file, { onBusy: 'share' })).close();
      for (let i = 0; i < 20; i += 1) await Session.open(file, { onBusy: 'share' });
      // An open session has up to 3 threads; the engine may keep the last one for a while.
      for (let i = 0; i < 500 && threads() > before + 3; i += 1) { global.gc(); await pause(); }
      if (threads() > before + 3) throw new Error(before + ' threads are ' + threads());
    })();`;
  if (!fs.existsSync('/proc/self/task')) return;
  const child = spawn(process.execPath, ['--expose-gc', '-e', script, file], { cwd: path.dirname(__dirname), stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  assert.equal(code, 0);
});

inFolder('a name without an entry changes and returns nothing', async (file, folder) => {
  const root = path.join(folder, 'projects');
  fs.mkdirSync(path.join(root, '-work'), { recursive: true });
  const session = await transcript.Session.create(path.join(root, '-work', `${ID}.jsonl`), OPTIONS);
  await session.append({ user: 'hello' });
  await session.close();
  await transcript.tagSession(ID, 'kept', { root });
  await assert.rejects(transcript.tagSession(ID, undefined, { root }), transcript.InvalidError);
  assert.equal((await transcript.getSessionInfo(ID, { root })).tag, 'kept');
  assert.deepEqual(await transcript.getSubagentMessages(ID, undefined, { root }), []);
  await assert.rejects(transcript.getSessionMessages(ID, { root, agentId: 'a' }), transcript.InvalidError);
  assert.deepEqual(await transcript.getSessionMessages(undefined, { root }), []);
  assert.equal((await transcript.getSessionMessages(ID, { root, limit: Infinity })).length, 1);
  await assert.rejects(transcript.Session.create('', OPTIONS), transcript.InvalidError);
  const listeners = new AbortController();
  await assert.rejects(transcript.entries(path.join(folder, 'none.jsonl'), { signal: listeners.signal }).next());
  const { getEventListeners } = require('node:events');
  assert.equal(getEventListeners(listeners.signal, 'abort').length, 0);
});

inFolder('the error of a call has its caller in its stack', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  async function caller() {
    await session.append('{}');
  }
  await assert.rejects(caller(), ({ stack }) => stack.includes('caller'));
  async function reader() {
    for await (const record of transcript.entries(`${file}.none.jsonl`)) assert.fail(record);
  }
  await assert.rejects(reader(), ({ stack }) => stack.includes('reader'));
  await session.close();
});

/** The events of a reply of the model: a call, or a text if the messages end with the result of one. */
function streamed(messages) {
  const isAnswered = JSON.stringify(messages).includes('366 days');
  const number = messages.length;
  const block = isAnswered
    ? { type: 'text', text: '' }
    : { type: 'tool_use', id: `toolu_${number}`, name: 'days', input: {} };
  const deltas = isAnswered
    ? [{ type: 'text_delta', text: '366 days.' }]
    : ['{"ye', 'ar": 2000}'].map((piece) => ({ type: 'input_json_delta', partial_json: piece }));
  const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: 'm', content: [], stop_reason: null, usage: { input_tokens: 10, output_tokens: 1 } };
  const events = [
    { type: 'message_start', message },
    { type: 'content_block_start', index: 0, content_block: block },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index: 0, delta })),
    { type: 'content_block_stop', index: 0 },
    { type: 'message_delta', delta: { stop_reason: isAnswered ? 'end_turn' : 'tool_use' } },
    { type: 'message_stop' },
  ];
  return Buffer.from(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(''));
}

inFolder('the agent runs no call with a part of its input, wherever a stream ends', async (file, folder) => {
  const { fetch: before } = globalThis;
  const { log } = console;
  const { argv } = process;
  const sent = [];
  let cut;
  globalThis.fetch = async (url, { body }) => {
    const { messages } = JSON.parse(body);
    sent.push(messages);
    const bytes = streamed(messages);
    const end = cut ?? bytes.length;
    cut = undefined;
    async function* arrived() {
      yield bytes.subarray(0, end);
      if (end < bytes.length) throw new Error('terminated');
    }
    return { body: arrived() };
  };
  console.log = () => {};
  let runs = 0;
  const run = (...given) => {
    process.argv = [argv[0], 'agent.mjs', ...given];
    runs += 1;
    return import(`../examples/agent.mjs?run=${runs}`);
  };
  try {
    const { length } = streamed([{ role: 'user', content: 'x' }]);
    let noted = 0;
    for (let end = 0; end <= length; end += 1) {
      const session = path.join(folder, String(end), `${ID}.jsonl`);
      fs.mkdirSync(path.dirname(session));
      sent.length = 0;
      cut = end;
      try {
        await run(session, 'http://model', 'How long is the year 2000?');
      } catch (error) {
        assert.match(error.message, /cut/);
        await run(session, 'http://model');
        if (JSON.stringify(sent[1]).includes('[Tool call not run: ')) noted += 1;
      }
      const results = [];
      for (const line of fs.readFileSync(session, 'utf8').trim().split('\n')) {
        const content = JSON.parse(line).message?.content;
        for (const block of Array.isArray(content) ? content : []) {
          if (block.type === 'tool_result' && !block.is_error) results.push(block.content);
        }
      }
      assert.deepEqual(results, ['366 days'], `cut after ${end} bytes`);
    }
    assert.ok(noted > 50, `${noted} cuts within the input`);
  } finally {
    globalThis.fetch = before;
    console.log = log;
    process.argv = argv;
  }
});

inFolder('a resume says what changed in the system prompt', async (file) => {
  const prompt = { base: 'Be short.', git: 'branch: main' };
  const session = await transcript.Session.create(file, OPTIONS);
  assert.equal(await session.promptChanges(prompt), null);
  await session.append({ user: 'go' });
  assert.equal((await session.recordPrompt(prompt)).uuid, null);
  assert.equal(await session.recordPrompt(prompt), null);
  const fork = await session.fork();
  await session.close();
  const changed = { base: 'Be short.', git: 'branch: fix', tools: 'None.' };
  for (const name of [file, fork]) {
    const resumed = await transcript.Session.resume(name, OPTIONS);
    const changes = { added: ['tools'], removed: [], changed: ['git'], isRearranged: false };
    assert.deepEqual(await resumed.promptChanges(changed), changes);
    const joined = await resumed.promptChanges(prompt, { separator: ' ' });
    assert.deepEqual(joined, { added: [], removed: [], changed: [], isRearranged: true });
    const before = fs.readFileSync(name, 'utf8');
    await assert.rejects(resumed.recordPrompt({}), transcript.TranscriptError);
    await assert.rejects(resumed.recordPrompt(prompt, { limit: 5 }), transcript.InvalidError);
    assert.equal(fs.readFileSync(name, 'utf8'), before);
    await resumed.close();
  }
});

inFolder('a request is made for a provider', async (file) => {
  const call = [{ type: 'tool_use', id: 't1', name: 'mcp__a.b', input: {} }];
  const result = [{ type: 'tool_result', tool_use_id: 't1', content: 'ok' }];
  const lines = [
    entry('user', 'u1', null, 'Go.'),
    entry('assistant', 'a1', 'u1', call),
    entry('user', 'u2', 'a1', result),
    entry('assistant', 'a2', 'u2', 'Done.'),
  ];
  fs.writeFileSync(file, `${lines.join('\n')}\n`);
  const named = (request) => request.messages[1].content[0].name;
  for (const [provider, name] of [
    [undefined, 'mcp__a.b'],
    ['vertex', 'mcp__a.b'],
    ['converse', 'mcp__a_b'],
  ]) {
    const request = await transcript.request(file, { provider });
    assert.deepEqual([named(request), request.lint.ok], [name, true]);
    assert.equal(request.provider, provider ?? 'messages');
  }
  const session = await transcript.Session.open(file, { ...OPTIONS, provider: 'converse' });
  const request = await session.request();
  assert.deepEqual([named(request), request.provider], ['mcp__a_b', 'converse']);
  await session.close();
  for (const options of [{ provider: 'azure' }, { provider: 'vertex', policy: 'vendor' }]) {
    await assert.rejects(transcript.request(file, options), /provider/);
  }
});

inFolder('an entry that no reader would find is refused with the reason', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append({ user: 'x' });
  const call = { type: 'tool_use', id: 'toolu_1', name: 'days', input: {} };
  // A call that the provider runs, and whose result did not arrive, is not sent.
  const search = { type: 'server_tool_use', id: 'srvtoolu_1', name: 'web_search', input: {} };
  const content = [search, call];
  const [searched, asked] = await session.append({ assistant: { id: 'm', role: 'assistant', model: 'm', content } });
  const open = await session.request();
  assert.deepEqual(
    open.synthetic.map(({ kind, uuid }) => [kind, uuid]),
    [['pending-result', asked.uuid]],
  );
  assert.deepEqual(
    open.omitted.map(({ reason, uuid }) => [reason, uuid]),
    [['api-tool-pair', searched.uuid]],
  );
  const result = (id) => {
    const block = { type: 'tool_result', tool_use_id: id, content: '366 days' };
    return session.append({ type: 'user', message: { role: 'user', content: [block] } });
  };
  const kind = (expected) => (error) => error instanceof transcript.InvalidError && error.kind === expected;
  await assert.rejects(result('toolu_WRONG'), kind('unknown-call'));
  await result('toolu_1');
  await assert.rejects(result('toolu_1'), kind('answered-call'));
  for (const entry of [{ type: 'user' }, { type: 'usr', message: {} }, { type: 'user', message: { content: 3 } }]) {
    await assert.rejects(session.append(entry), kind('invalid-entry'));
  }
  assert.equal(fs.readFileSync(file, 'utf8').trim().split('\n').length, 4);
  assert.deepEqual((await session.request()).synthetic, []);
  await session.close();
});

inFolder('a process ends while a follower waits, if it is told that it may', async (file) => {
  const session = await transcript.Session.create(file, OPTIONS);
  await session.append({ user: 'x' });
  await session.close();
  const waits = (how) => `
    const { follow } = require('transcript-engine');
    const events = follow(${JSON.stringify(file)}, { start: 'end' });
    events.ready().then(() => {
      ${how}
      events.next().then(({ done }) => console.log('next', done));
      console.log('waits');
      setTimeout(() => events.close(), 60_000).unref();
    });`;
  const run = async (how) => {
    const child = spawn(process.execPath, ['-e', waits(how)], { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      shown += text;
      // One that is kept alive waits for a line.
      if (how.includes('.ref()') && text.includes('waits')) fs.appendFileSync(file, '{"type":"tag","tag":"x"}\n');
    });
    const [code] = await once(child, 'close');
    assert.equal(code, 0);
    return shown;
  };
  assert.equal(await run('events.unref();'), 'waits\n');
  assert.equal(await run('events.unref().ref();'), 'waits\nnext false\n');
});

const MANY_FOLLOWS = `
const fs = require('node:fs');
const { Session, follow } = require('transcript-engine');
const [FOLLOWS, SESSIONS] = [1000, 400];
const path = (number) => process.argv[1] + '/' + number.toString(16).padStart(8, '0') + '-ee08-4b08-99d5-2d9a36fd8293.jsonl';
const used = () => [
  fs.readdirSync('/proc/self/task').length,
  fs.readdirSync('/proc/self/fd').filter((name) => {
    try {
      return fs.readlinkSync('/proc/self/fd/' + name).includes('inotify');
    } catch {
      return false;
    }
  }).length,
];
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const range = (from, to) => Array.from({ length: to - from }, (_, at) => from + at);
const options = { cwd: '/', version: '1' };
const texts = async (events, count) => {
  const found = [];
  while (found.length < count) {
    const { value } = await events.next();
    if (value.kind === 'entry') found.push(value.message.content);
  }
  return found;
};
(async () => {
  // Those that Node itself starts for files are there.
  await Promise.all(range(0, 64).map(() => fs.promises.stat('/')));
  const [before] = used();
  const few = async (when) => {
    // A slow disk may keep more of them for a moment.
    for (let times = 0; times < 1200 && used()[0] - before > 7; times += 1) await pause();
    const [threads, instances] = used();
    console.log(JSON.stringify([when, threads - before, instances]));
  };
  const sessions = await Promise.all(range(0, SESSIONS).map((number) => Session.create(path(number), options)));
  await Promise.all(sessions.map((session) => session.append({ user: '0' })));
  for (const number of range(SESSIONS, FOLLOWS)) {
    const session = await Session.create(path(number), { ...options, sync: 'none' });
    await session.append({ user: '0' });
    await session.close();
  }
  const follows = [];
  const extra = range(0, FOLLOWS).map(() => []);
  for (const number of range(0, FOLLOWS)) {
    follows.push(follow(path(number)));
    if (number % 5 === 0) {
      const other = (number * 7) % SESSIONS;
      extra[other].push('x');
      await sessions[other].append({ user: 'x' });
    }
  }
  for (const number of range(0, FOLLOWS)) {
    const all = ['0', ...extra[number]];
    const found = await texts(follows[number], all.length);
    if (found.join() !== all.join()) throw new Error(number + ': ' + found);
  }
  await few('opened');
  await Promise.all(sessions.map((session) => session.append({ user: '1' })));
  for (const number of range(0, SESSIONS)) {
    const [found] = await texts(follows[number], 1);
    if (found !== '1') throw new Error(number + ': ' + found);
  }
  await few('written');
  for (const events of follows) events.close();
  await Promise.all(sessions.map((session) => session.close()));
  // The threads end by themselves.
  for (let times = 0; times < 1200 && used()[0] > before; times += 1) await pause();
  await few('closed');
})();
`;

const skipMany = fs.existsSync('/proc/self/task') ? false : 'no /proc here';
test('a thousand follows and four hundred sessions take seven threads besides those of Node', { skip: skipMany }, async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'transcript-'));
  try {
    const given = ['-c', 'ulimit -n 4000; exec "$@"', 'sh', process.execPath, '-e', MANY_FOLLOWS, folder];
    const child = spawn('sh', given, { cwd: __dirname, stdio: ['ignore', 'pipe', 'inherit'] });
    let shown = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (shown += text));
    const [code] = await once(child, 'close');
    assert.equal(code, 0);
    const said = shown.trim().split('\n').map((line) => JSON.parse(line));
    assert.deepEqual(said.map(([when]) => when), ['opened', 'written', 'closed']);
    for (const [when, threads, instances] of said.slice(0, 2)) {
      assert.ok(threads <= 7, when + ': ' + threads);
      assert.equal(instances, 1);
    }
    assert.deepEqual(said[2], ['closed', 0, 0]);
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
});
