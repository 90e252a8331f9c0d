const AGENTMAIL = ["agentmail"];

// OpenCode's plugin for agentmail: tells it of sessions and turns, and puts what it answers at the end of every request
// to the model, as the result of a synthetic `broadcast` call that OpenCode does not store. It never fails OpenCode:
// whatever goes wrong, nothing is injected. Seen with OpenCode 1.18.33.

import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";

const LIMIT_MS = 10000;

/** Calls `agentmail hook opencode` with an event; its answer, or null. */
function tell(event) {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = [...AGENTMAIL, "hook", "opencode"];
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], timeout: LIMIT_MS });
      let text = "";
      child.stdout.on("data", (data) => (text += data));
      child.on("error", () => resolve(null));
      child.on("close", () => {
        try {
          resolve(JSON.parse(text));
        } catch {
          resolve(null);
        }
      });
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(event));
    } catch {
      resolve(null);
    }
  });
}

/** Whether a bell in the directory rings: there may be mail. */
function rings(bells) {
  try {
    return readdirSync(bells).some((name) => statSync(`${bells}/${name}`).size > 0);
  } catch {
    return true;
  }
}

export const AgentmailPlugin = async ({ directory }) => {
  const parents = new Map(); // a sub-agent's session → its parent's
  const known = new Map(); // session → what agentmail last answered about it
  const stale = new Set(); // sessions whose agent did something since: it may have answered a message

  async function report(name, session, more = {}) {
    const parent = parents.get(session);
    const whose = parent ? { session_id: parent, agent_id: session } : { session_id: session };
    const answer = await tell({ hook_event_name: name, cwd: directory, ...whose, ...more });
    if (answer) known.set(session, { ...known.get(session), ...answer });
    return answer;
  }

  const silently = (hook) => async (...given) => {
    try {
      await hook(...given);
    } catch {}
  };

  return {
    event: silently(async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id;
      if (event.type === "session.created") {
        const parent = event.properties.info?.parentID;
        if (parent) parents.set(session, parent);
        await report("SessionStart", session, { source: "startup" });
      } else if (event.type === "session.idle") {
        await report("SessionIdle", session);
      } else if (event.type === "session.deleted") {
        await report("SessionEnd", session);
        known.delete(session);
        parents.delete(session);
      }
    }),

    "chat.message": silently(async (input) => {
      stale.add(input.sessionID);
      await report("UserPrompt", input.sessionID);
    }),

    "tool.execute.before": async (input, output) => {
      const command = output.args?.command;
      if (input.tool !== "bash" || typeof command !== "string" || !command.includes("agentmail")) return;
      const answer = await tell({
        hook_event_name: "BeforeTool",
        session_id: input.sessionID,
        tool_name: "bash",
        tool_input: { command },
      });
      if (answer?.deny) throw new Error(answer.deny); // the one thing that OpenCode is to notice
    },

    "tool.execute.after": silently(async (input) => {
      stale.add(input.sessionID);
    }),

    "shell.env": silently(async (input, output) => {
      const session = input.sessionID;
      if (!session) return;
      output.env.AGENTMAIL_SESSION = parents.get(session) ?? session;
      if (parents.has(session)) {
        const name = known.get(session)?.name ?? (await report("SessionStart", session))?.name;
        if (name) output.env.AGENTMAIL_AGENT = name;
      }
    }),

    "experimental.chat.messages.transform": silently(async (_, output) => {
      const last = output.messages.at(-1);
      const session = last?.info?.sessionID;
      if (!session) return;
      const before = known.get(session);
      if (stale.has(session) || !before || !("part" in before) || rings(before.bells)) {
        stale.delete(session);
        await report("Messages", session);
      }
      const part = known.get(session)?.part;
      if (!part) return;
      const now = Date.now();
      const id = `agentmail_${now}`;
      output.messages.push({
        info: { ...last.info, id: `msg_${id}`, role: "assistant", time: { created: now, completed: now } },
        parts: [
          {
            id: `prt_${id}`,
            sessionID: session,
            messageID: `msg_${id}`,
            type: "tool",
            callID: `call_${id}`,
            tool: part.tool,
            state: { ...part.state, time: { start: now, end: now } },
          },
        ],
      });
    }),
  };
};
