// Lists all sessions with the official TypeScript SDK: `node list.mjs SDK.mjs`, one JSON array on stdout.
import { pathToFileURL } from "node:url";

const sdk = await import(pathToFileURL(process.argv[2]));
const list = (await sdk.listSessions({})).map((info) => ({
  sessionId: info.sessionId,
  title: info.customTitle ?? null,
  firstPrompt: info.firstPrompt ?? null,
  branch: info.gitBranch ?? null,
  cwd: info.cwd ?? null,
}));
process.stdout.write(JSON.stringify(list));
