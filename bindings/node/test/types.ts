// Uses the types as a program would; compiled with `tsc --strict`, never run.

import * as transcript from 'transcript-engine';
import { Session, StreamReply, type SDKSessionInfo, type Written } from 'transcript-engine';

export async function read(dir: string): Promise<string[]> {
  const sessions: SDKSessionInfo[] = await transcript.listSessions({ dir, limit: 10, includeWorktrees: false });
  const info: SDKSessionInfo | undefined = await transcript.getSessionInfo(sessions[0].sessionId, { dir });
  const texts: string[] = [info?.summary ?? ''];
  for await (const message of transcript.iterSessionMessages(sessions[0].sessionId, { policy: 'vendor' })) {
    const raw: Uint8Array = message.raw;
    if (message.isQueuedCommand === true) texts.push(JSON.stringify(message.origin));
    texts.push(message.type, `${raw.length}`);
  }
  const { sessionId }: { sessionId: string } = await transcript.forkSession(sessions[0].sessionId, { title: 'Copy' });
  return [...texts, sessionId];
}

export async function write(path: string): Promise<Written[]> {
  await using session = await Session.openOrCreate(path, { cwd: '.', sync: 'each', onBusy: 'fork' });
  const reply = new StreamReply();
  reply.event({ type: 'message_stop' });
  for (const { name, input } of reply.result().toolCalls) console.log(name, input);
  await session.appendReply(reply);
  const counted: transcript.Counters = await session.count({ reply: { model: 'm', usage: {} }, apiMs: 1.5, linesAdded: 2 });
  const { files, costs }: transcript.SessionState = await session.state();
  for (const { path, inContext } of files ?? []) console.log(path, inContext, costs?.totalCostUSD ?? counted.totalCostUSD);
  await session.setContext({ gitBranch: 'main' });
  const changes: transcript.PromptChanges | null = await session.promptChanges({ base: 'Be short.' }, { separator: ' ' });
  const prompt: Written | null = await session.recordPrompt({ base: 'Be short.' });
  console.log(changes?.changed, prompt?.offset);
  await session.completeCalls('Stopped');
  const result: Written = await session.appendToolResult('toolu_1', [{ type: 'text', text: 'x' }], { isError: true });
  await session.compact('They counted.', { keepTurns: 2 });
  const [{ chapter, inContext, preview }]: transcript.StoryEntry[] = await session.story();
  console.log(chapter, inContext, preview, await session.findEntry(result.uuid ?? 1));
  await session.append({ client: { rejection: { call: 'toolu_1', by: 'person', reason: 'No.' } } });
  return session.append({ user: 'hello' });
}

export async function follow(path: string, signal: AbortSignal): Promise<void> {
  try {
    for await (const record of transcript.follow(path, { signal, changes: true })) console.log(record.kind);
  } catch (error) {
    if (error instanceof transcript.NotFoundError) console.log(error.kind, error.path, error.line, error.offset);
  }
}

// @ts-expect-error: there is no such policy.
void transcript.getSessionMessages('id', { policy: 'other' });
// @ts-expect-error: sessions are opened, not made.
void new Session();

// The types of the SDK by their names.
export const named: Promise<transcript.SessionMessage[]> = transcript.getSessionMessages('id');
export const forked: Promise<transcript.ForkSessionResult> = transcript.forkSession('id');
void transcript.watch({ once: true }).close();

export async function recordTypes(session: Session): Promise<void> {
  for await (const record of transcript.search('word', { role: ['user'], output: 'hits' })) {
    if (record.kind === 'hit') console.log(record.sessionId, record.line);
  }
  const { messages, tokens } = await session.request();
  console.log(messages[0].role, tokens.over);
  const [usage] = await session.usage();
  console.log(usage.model);
}

export async function operations(options: transcript.SelectionOptions & transcript.ArchiveOptions): Promise<void> {
  const report: transcript.ResumeReport | transcript.ResumeRefusal = await transcript.request('id', { fit: '150k', provider: 'vertex' });
  console.log(report.resumable ? report.messages.length : report.reason);
  const undone: transcript.UndoneRepair = await transcript.repair('id', { undo: true });
  const repaired: transcript.RepairReport = await transcript.repair('id', { newSession: true, out: new URL('file:///out.jsonl') });
  const { path }: transcript.ExportedDocument = await transcript.exportSession('id', '/page.html', { format: 'markdown', also: ['KEY'] });
  const rows: transcript.CostRecord[] = await transcript.usage({ ...options, by: ['day'], limit: 3 });
  console.log(undone.repaired, repaired.plan, path, rows.length);
  for await (const record of transcript.follow('id', { start: 'end', once: true, archive: true })) {
    if (record.kind === 'entry') console.log(record.checkpoint);
  }
}

// @ts-expect-error: there is no such option.
void transcript.verify('id', { request: true });
// @ts-expect-error: there is no such form.
void transcript.exportSession('id', '/page', { format: 'text' });
// @ts-expect-error: there is no such message.
void ((session: Session) => session.append({ assitant: { role: 'assistant', content: [] } }));
// @ts-expect-error: there is no such text.
void ((session: Session) => session.append({ usr: 'x' }));
// @ts-expect-error: a list is no entry.
void ((session: Session) => session.append([1, 2]));
