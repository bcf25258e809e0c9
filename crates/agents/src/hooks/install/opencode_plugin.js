
// Tells nono what OpenCode is about to do, so that there is a checkpoint from before. Whatever goes wrong
// is shown once, and the tool runs; only a call that would remove nono's own history is refused.

import { spawn } from "node:child_process"

const TIMEOUT = 60_000

function tell(event, payload) {
  return new Promise((resolve) => {
    const failed = (why) => resolve({ message: `nono cannot be asked for a checkpoint: ${why}` })
    let said = ""
    try {
      const child = spawn(COMMAND[0], [...COMMAND.slice(1), "hook", "opencode", event], {
        stdio: ["pipe", "pipe", "ignore"],
        timeout: TIMEOUT,
        killSignal: "SIGKILL",
      })
      child.on("error", (error) => failed(error.message))
      child.stdin.on("error", () => {})
      child.stdout.setEncoding("utf8")
      child.stdout.on("data", (text) => (said += text))
      child.on("close", (code) => {
        try {
          resolve(JSON.parse(said) ?? {})
        } catch {
          failed(`it answered with code ${code} and no JSON`)
        }
      })
      child.stdin.end(JSON.stringify({ hook_event_name: event, ...payload }))
    } catch (error) {
      failed(String(error))
    }
  })
}

export const Nono = async ({ client, directory }) => {
  const turns = new Map()
  const shown = new Set()
  const base = (session) => ({ session_id: session, message_id: turns.get(session), cwd: directory })

  // For the person. The same words once: a hook that is broken is broken at every call.
  const show = (message) => {
    if (!message || shown.has(message)) return
    shown.add(message)
    const body = { message, variant: "warning", title: "nono", duration: 10_000 }
    Promise.resolve(client?.tui?.showToast?.({ body })).catch(() => {})
    const log = { service: "nono", level: "warn", message }
    Promise.resolve(client?.app?.log?.({ body: log })).catch(() => {})
  }

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      if (event.type !== "session.created" && event.type !== "session.idle") return
      const reply = await tell(event.type, base(session))
      show(reply.message)
      if (event.type === "session.idle") turns.delete(session)
    },

    "chat.message": async (input, output) => {
      const message = output.message?.id ?? input.messageID
      turns.set(input.sessionID, message)
      const first = output.parts?.find((part) => part.type === "text" && typeof part.id === "string")
      const reply = await tell("chat.message", { ...base(input.sessionID), prompt: first?.text })
      show(reply.message)
      if (reply.context && first) {
        const id = `${first.id.slice(0, -4)}nono`
        output.parts.push({ ...first, id, text: reply.context, synthetic: true })
      }
    },

    "tool.execute.before": async (input, output) => {
      const call = { tool_name: input.tool, call_id: input.callID, tool_input: output.args }
      const reply = await tell("tool.execute.before", { ...base(input.sessionID), ...call })
      show(reply.message)
      if (reply.refuse) throw new Error(`${reply.refuse}. The user can do it in a terminal.`)
    },

    "tool.execute.after": async (input, output) => {
      const call = { tool_name: input.tool, call_id: input.callID, tool_input: input.args }
      const exit = output?.metadata?.exit
      const end = { tool_output: output?.output, ...(Number.isInteger(exit) ? { exit } : {}) }
      const reply = await tell("tool.execute.after", { ...base(input.sessionID), ...call, ...end })
      show(reply.message)
      if (reply.context && typeof output?.output === "string") output.output += `\n\n${reply.context}`
    },
  }
}
