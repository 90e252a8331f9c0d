const AGENTMAIL = ["agentmail"];

// OpenCode's plugin for agentmail. It tells of sessions and turns, and puts what it is answered before the model: mail
// at the end of every request, as the result of a synthetic `broadcast` call that OpenCode does not store; other news
// as text with the user's prompt or a tool's output. It never fails OpenCode: if anything goes wrong, nothing is said.
//
// Seen with OpenCode 1.18.33: every hook below, also that `dispose` is waited for, and that a tool call is refused by
// throwing. Documented only: `session.compacted`, `session.deleted`.

import { spawn } from "node:child_process";
import { statSync } from "node:fs";

const LIMIT_MS = 10000;

/** Calls `agentmail hook opencode` with an event; its answer, {} if there is none. */
function ask(event) {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = [...AGENTMAIL, "hook", "opencode"];
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], timeout: LIMIT_MS });
      let text = "";
      child.stdout.setEncoding("utf8");
      child.stdout.on("data", (data) => (text += data));
      child.on("error", () => resolve({}));
      child.on("close", () => {
        try {
          resolve(JSON.parse(text));
        } catch {
          resolve({});
        }
      });
      child.stdin.on("error", () => {});
      child.stdin.end(JSON.stringify(event));
    } catch {
      resolve({});
    }
  });
}

/** Whether there may be mail: asks nobody, and costs microseconds. */
function rings(bell) {
  try {
    return statSync(bell).size > 0;
  } catch {
    return false;
  }
}

/** Whether the model thinks aloud: then its provider may want each of its turns to begin with a thought. */
function thinks(messages) {
  const { variant, model } = messages.at(-1).info;
  const chosen = variant ?? model?.variant ?? "default";
  return !["default", "none"].includes(chosen) || messages.some((each) => each.parts.some((p) => p.type === "reasoning"));
}

/** Puts a tool result last, for this request only. */
function inject(messages, result) {
  const { info, parts } = messages.at(-1);
  const now = Date.now();
  const time = { start: now, end: now, created: now, completed: now };
  const of = (message) => ({ id: `prt_agentmail_${now}`, sessionID: info.sessionID, messageID: message });
  const call = { type: "tool", callID: `call_agentmail_${now}`, tool: result.tool, state: { ...result.state, time } };
  if (info.role === "assistant") {
    parts.push({ ...of(info.id), ...call });
  } else if (thinks(messages)) {
    parts.push({ ...of(info.id), type: "text", synthetic: true, text: JSON.stringify(result) });
  } else {
    const id = `msg_agentmail_${now}`;
    messages.push({ info: { ...info, id, role: "assistant", parentID: info.id, time }, parts: [{ ...of(id), ...call }] });
  }
}

export const AgentmailPlugin = async ({ client, directory }) => {
  const sessions = new Map(); // id → what is known of it, here and by agentmail

  /** A session from now on known. A sub-agent's belongs to the session at the root of all that called it. */
  function begin(id, parent, title, source) {
    const root = parent && (sessions.get(parent)?.root ?? parent);
    const session = { id, root, title, stale: true, news: "", turn: Promise.resolve({}) };
    sessions.set(id, session);
    session.begun = tell(session, "SessionStart", { source });
    return session;
  }

  /** The session with that id; one that was not seen to begin is resumed. */
  async function find(id) {
    if (!sessions.has(id)) {
      const found = await client.session.get({ path: { id } }).catch(() => undefined);
      if (!sessions.has(id)) begin(id, found?.data?.parentID, found?.data?.title, "resume");
    }
    const session = sessions.get(id);
    await session.begun;
    return session;
  }

  /** Tells agentmail of an event, after those before it in the same session, and keeps what it answers. */
  function tell(session, event, more = {}) {
    const { id, root, title } = session;
    const whose = root ? { session_id: root, agent_id: id, agent_type: title } : { session_id: id };
    session.turn = session.turn.then(async () => {
      const { text, ...known } = await ask({ hook_event_name: event, cwd: directory, ...whose, ...more });
      Object.assign(session, known);
      if (text) session.news += `${session.news && "\n\n"}${text}`;
      return known;
    });
    return session.turn;
  }

  /** The news that are to be shown now. */
  function take(session) {
    const news = session.news;
    session.news = "";
    return news;
  }

  const silently = (hook) => async (...given) => {
    try {
      await hook(...given);
    } catch {}
  };

  return {
    event: silently(async ({ event: { type, properties } }) => {
      const id = properties?.sessionID ?? properties?.info?.id;
      if (type === "session.created" && !sessions.has(id)) {
        await begin(id, properties.info?.parentID, properties.info?.title, "startup").begun;
      } else if (type === "session.idle" && sessions.has(id)) {
        await tell(sessions.get(id), "SessionIdle");
      } else if (type === "session.compacted" && sessions.has(id)) {
        await tell(sessions.get(id), "SessionStart", { source: "compact" });
      } else if (type === "session.deleted" && sessions.has(id)) {
        const session = sessions.get(id);
        sessions.delete(id);
        await tell(session, session.root ? "SessionIdle" : "SessionEnd");
      }
    }),

    dispose: silently(async () => {
      const roots = [...sessions.values()].filter((session) => !session.root);
      await Promise.all(roots.map((session) => tell(session, "SessionEnd")));
    }),

    "chat.message": silently(async (input, output) => {
      const session = await find(input.sessionID);
      session.stale = true;
      await tell(session, "UserPrompt");
      const text = take(session);
      if (!text) return;
      const id = `${output.parts.at(-1)?.id ?? `prt_${Date.now()}`}z`; // parts are shown in the order of their ids
      const of = { id, sessionID: input.sessionID, messageID: output.message.id };
      output.parts.push({ ...of, type: "text", synthetic: true, text });
    }),

    "tool.execute.before": async (input, output) => {
      const command = output.args?.command;
      if (input.tool !== "bash" || typeof command !== "string" || !command.includes("agentmail")) return;
      const event = { hook_event_name: "BeforeTool", session_id: input.sessionID, tool_name: "bash" };
      const answer = await ask({ ...event, tool_input: { command } });
      if (answer.deny) throw new Error(answer.deny); // the one thing that OpenCode is to notice
    },

    "tool.execute.after": silently(async (input, output) => {
      const session = await find(input.sessionID);
      if (`${input.args?.command}`.includes("agentmail")) session.stale = true; // perhaps it has answered a message
      if (rings(session.bell)) await tell(session, "AfterTool");
      if (typeof output.output === "string" && session.news) output.output += `\n\n${take(session)}`;
    }),

    "shell.env": silently(async (input, output) => {
      if (!input.sessionID) return;
      const session = await find(input.sessionID);
      output.env.AGENTMAIL_SESSION = session.root ?? session.id;
      if (session.root && session.name) output.env.AGENTMAIL_AGENT = session.name;
    }),

    "experimental.chat.messages.transform": silently(async (_, output) => {
      const id = output.messages.at(-1)?.info?.sessionID;
      if (!id) return;
      const session = await find(id);
      if (session.stale || rings(session.bell)) session.stale = !(await tell(session, "Messages")).part;
      if (session.part) inject(output.messages, session.part);
    }),
  };
};
