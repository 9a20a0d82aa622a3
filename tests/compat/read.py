"""Reads sessions with the official Python SDK: `python read.py FOLDER`, the ids of the sessions as a
JSON array on stdin, what the SDK makes of them as one JSON object on stdout, as read.mjs does."""
import json, sys

if __name__ == "__main__" and {"-h", "--help"} & set(sys.argv[1:]):
    print(__doc__)
    sys.exit()

import claude_agent_sdk as sdk


def told(messages):
    return [{"uuid": m.uuid, "type": m.type, "sessionId": m.session_id, "message": m.message,
             "call": m.parent_tool_use_id} for m in messages]


folder, sessions = sys.argv[1], {}
for id in json.load(sys.stdin):
    agents = {agent: told(sdk.get_subagent_messages(id, agent, folder)) for agent in sdk.list_subagents(id, folder)}
    sessions[id] = {"messages": told(sdk.get_session_messages(id, folder)), "agents": agents}
found = [{"id": info.session_id, "title": info.custom_title, "summary": info.summary, "firstPrompt": info.first_prompt,
          "cwd": info.cwd, "tag": info.tag} for info in sdk.list_sessions(folder)]
json.dump({"sessions": sessions, "list": found}, sys.stdout)
