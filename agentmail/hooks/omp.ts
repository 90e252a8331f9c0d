const AGENTMAIL: string[] = ["agentmail"];

// oh-my-pi's extension for agentmail: tells it of sessions and turns, and puts the mail that it answers with into the
// context. It never fails oh-my-pi: whatever goes wrong, nothing is shown. Documented for 18.3 (its extension types),
// not run. Sub-agents share the process, and so the identity, of their parent.

import { spawn } from "node:child_process";
import { readdirSync, statSync } from "node:fs";

type Answer = { bells?: string; text?: string; deny?: string } | null;

/** Calls `agentmail hook omp` with an event; its answer, or null. */
function tell(event: Record<string, unknown>): Promise<Answer> {
  return new Promise((resolve) => {
    try {
      const [program, ...words] = [...AGENTMAIL, "hook", "omp"];
      const child = spawn(program, words, { stdio: ["pipe", "pipe", "ignore"], timeout: 10000 });
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
function rings(bells: string | undefined): boolean {
  try {
    return readdirSync(bells ?? "").some((name) => statSync(`${bells}/${name}`).size > 0);
  } catch {
    return true;
  }
}

export default function agentmail(pi: any) {
  let bells: string | undefined;

  async function report(name: string, context: any, more: Record<string, unknown> = {}): Promise<Answer> {
    const session = context.sessionManager.getSessionId();
    // What the bash tool starts inherits this: it tells agentmail whose call it is.
    process.env.OMPCODE = "1";
    process.env.AGENTMAIL_SESSION = session;
    const answer = await tell({ hook_event_name: name, session_id: session, cwd: context.cwd, ...more });
    bells = answer?.bells ?? bells;
    return answer;
  }

  pi.on("session_start", async (_: any, context: any) => {
    await report("SessionStart", context, { source: "startup" });
  });

  pi.on("before_agent_start", async (_: any, context: any) => {
    const answer = await report("UserPrompt", context);
    if (answer?.text) return { message: { customType: "agentmail", content: answer.text, display: true } };
  });

  pi.on("tool_call", async (event: any, context: any) => {
    const command = event.input?.command;
    if (event.toolName !== "bash" || typeof command !== "string" || !command.includes("agentmail")) return;
    const answer = await report("BeforeTool", context, { tool_name: "bash", tool_input: { command } });
    if (answer?.deny) return { block: true, reason: answer.deny };
  });

  pi.on("tool_result", async (event: any, context: any) => {
    if (!rings(bells)) return;
    const answer = await report("AfterTool", context);
    if (answer?.text) return { content: [...event.content, { type: "text", text: answer.text }] };
  });

  pi.on("agent_end", async (_: any, context: any) => {
    await report("AgentEnd", context);
  });

  pi.on("session_shutdown", async (_: any, context: any) => {
    await report("SessionEnd", context);
  });
}
