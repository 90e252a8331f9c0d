const AGENTMAIL: string[] = ["agentmail"];

// oh-my-pi's extension for agentmail. It tells of sessions and turns, and puts what it is answered before the model:
// with the user's prompt, with a tool's result, and at the end of a turn, which then goes on. It never fails oh-my-pi:
// if anything goes wrong, nothing is said.
//
// Seen with oh-my-pi 18.2.3: all of it but what follows. Documented only (18.3): `ctx.agent`, `session_switch`,
// `session_compact`. Extensions are loaded once in a process, and called for every session in it: a sub-agent's too.

import { spawn } from "node:child_process";
import { statSync } from "node:fs";

type Answer = { name?: string; bell?: string; text?: string; deny?: string; command?: string };
type Session = { id: string; root?: string; title: string; source: string; greeted: boolean; bell?: string };

let main: string | undefined; // the session that the user talks to
let over = false; // it has ended: what its sub-agents still do would bring it back

/** Calls `agentmail hook omp` with an event; its answer, {} if there is none. */
function ask(event: Record<string, unknown>): Promise<Answer> {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = [...AGENTMAIL, "hook", "omp"];
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
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
function rings(bell: string | undefined): boolean {
  try {
    return bell !== undefined && statSync(bell).size > 0;
  } catch {
    return false;
  }
}

/** The session of a context: a sub-agent's file is in a directory that is named after the main session. */
function identify(context: any): Session {
  const id: string = context.sessionManager.getSessionId();
  const file: string = context.sessionManager.getSessionFile?.() ?? "";
  const isSub = context.agent ? context.agent.kind === "sub" : main !== undefined && file.includes(`_${main}/`);
  const title = context.agent?.id ?? file.split("/").at(-1)?.replace(/\.jsonl$/, "") ?? "";
  const resumed = context.sessionManager.getBranch?.().some((entry: any) => entry.type === "message");
  return { id, root: isSub ? main : undefined, title, source: resumed ? "resume" : "startup", greeted: false };
}

export default function agentmail(pi: any) {
  let session: Session | undefined;
  let continuation = ""; // what prolonged the turn comes back as a prompt, which is none of the user's

  async function tell(name: string, context: any, more: Record<string, unknown> = {}): Promise<Answer> {
    if (over || !session) return {};
    const whose = session.root ? { session_id: session.root, agent_id: session.id } : { session_id: session.id };
    const title = session.root ? { agent_type: session.title } : {};
    const answer = await ask({ hook_event_name: name, cwd: context.cwd, ...whose, ...title, ...more });
    if (answer.bell && session) session.bell = answer.bell;
    return answer;
  }

  /** Begins the session, also after another in the same process. */
  async function enter(context: any): Promise<Session> {
    if (session && session.id === context.sessionManager.getSessionId()) return session;
    if (session && !session.root) await tell("SessionEnd", context, { reason: "clear" });
    const begun = identify(context);
    session = begun;
    if (!begun.root) {
      main = begun.id;
      over = false;
      process.env.AGENTMAIL_SESSION = main; // for what the bash tool starts
    }
    await tell("SessionStart", context, { source: begun.source });
    return begun;
  }

  const on = (event: string, handler: (event: any, context: any) => Promise<unknown>) =>
    pi.on(event, async (given: any, context: any) => {
      try {
        return await handler(given, context);
      } catch {}
    });

  on("session_start", async (_, context) => void (await enter(context)));
  on("session_switch", async (_, context) => void (await enter(context)));

  on("session_compact", async (_, context) => {
    const current = await enter(context);
    current.greeted = false;
    current.source = "compact";
  });

  /** What to say at the first prompt of a session, and at the first after its context was compacted. */
  async function greet(current: Session, context: any): Promise<string | undefined> {
    if (current.greeted) return undefined;
    current.greeted = true;
    return (await tell("FirstPrompt", context, { source: current.source })).text;
  }

  on("before_agent_start", async (event, context) => {
    const current = await enter(context);
    if (event.prompt === continuation) return;
    const texts = [await greet(current, context), (await tell("UserPrompt", context)).text].filter(Boolean);
    if (texts.length) return { message: { customType: "agentmail", content: texts.join("\n\n"), display: true } };
  });

  on("tool_call", async (event, context) => {
    const command = event.input?.command;
    if (event.toolName !== "bash" || typeof command !== "string" || !command.includes("agentmail")) return;
    const current = await enter(context);
    if (over && current.root) return { block: true, reason: "The session has ended, and its sub-agents with it." };
    const answer = await tell("BeforeTool", context, { tool_name: "bash", tool_input: { command } });
    if (answer.deny) return { block: true, reason: answer.deny };
    if (answer.command) return { input: { ...event.input, command: answer.command } };
  });

  on("tool_result", async (event, context) => {
    const current = await enter(context);
    const again = current.source === "compact" ? await greet(current, context) : undefined;
    const news = rings(current.bell) ? (await tell("AfterTool", context)).text : undefined;
    const text = [again, news].filter(Boolean).join("\n\n");
    if (text) return { content: [...event.content, { type: "text", text }] };
  });

  on("session_stop", async (_, context) => {
    await enter(context);
    const { text } = await tell("SessionStop", context);
    continuation = text ?? "";
    if (text) return { continue: true, additionalContext: text };
  });

  on("agent_end", async (event, context) => {
    const current = await enter(context);
    if (!event.willContinue && !current.root) await tell("AgentEnd", context);
  });

  on("session_shutdown", async (_, context) => {
    if (session?.root) return void (await tell("AgentEnd", context));
    await tell("SessionEnd", context);
    over = true;
  });
}
