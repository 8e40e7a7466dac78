/** `/counters/<id>`: GET reads a counter, and POST adds 1 to it. */
import { type ActorNode, ActorUnavailable } from "@restante/runtime"
import type { IncomingMessage, ServerResponse } from "node:http"
import { counter } from "./actors/counter.ts"

interface Answer {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

const answer = async (node: ActorNode, { method, url = "" }: IncomingMessage): Promise<Answer> => {
  const [, id] = /^\/counters\/([\w=-]{1,200})(?:$|\?)/.exec(url) ?? []
  if (id === undefined) return { status: 404, body: { error: "try /counters/visits" } }
  if (method === "GET" || method === "HEAD") {
    return { status: 200, body: { id, count: await node.ask(counter(id), { _tag: "Read" }) } }
  }
  if (method === "POST") {
    return { status: 200, body: { id, count: await node.ask(counter(id), { _tag: "Add", by: 1 }) } }
  }
  return { status: 405, body: { error: "use GET or POST" }, headers: { allow: "GET, HEAD, POST" } }
}

const failure = (error: unknown): Answer => {
  if (error instanceof ActorUnavailable) {
    const seconds = Math.ceil(error.retryAfterMs / 1_000)
    const headers = { "retry-after": String(seconds) }
    return { status: 503, body: { error: `try again in ${seconds} s` }, headers }
  }
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
  return { status: 500, body: { error: "the request failed; the log of the program has why" } }
}

export const route = (node: ActorNode) =>
async (
  request: IncomingMessage,
  response: ServerResponse
): Promise<void> => {
  const { body, headers, status } = await answer(node, request).catch(failure)
  response.writeHead(status, { "content-type": "application/json", ...headers })
  response.end(`${JSON.stringify(body)}\n`)
}
