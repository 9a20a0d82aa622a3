import transcript from './index.js';

export * from './lib/functions.mjs';
export default transcript;
export const {
  TranscriptError,
  NotFoundError,
  ExistsError,
  InvalidError,
  BusyError,
  NotResumableError,
  ClosedError,
  InternalError,
  Records,
  LazyMessage,
  listSessions,
  getSessionInfo,
  getSessionMessages,
  iterSessionMessages,
  listSubagents,
  getSubagentMessages,
  renameSession,
  tagSession,
  archiveSession,
  unarchiveSession,
  deleteSession,
  forkSession,
  Session,
  StreamReply,
  version,
} = transcript;
