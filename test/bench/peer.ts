/**
 * The peer: uWebSockets.js alone. It reads the same body and answers 202, or answers the bytes that
 * were PUT to it. Nothing is parsed, decided or stored, so that no server built on it is faster.
 *
 * As a receiver of what the service sends it counts (`/count`, and `/reached/n`, which is answered
 * when it has so many), and echoes a callback's challenge.
 */
import { createRequire } from "node:module"
// oxlint-disable-next-line no-restricted-imports -- the peer is this library and nothing else
import type { HttpResponse } from "uWebSockets.js"

type Native = typeof import("uWebSockets.js")

// `require` has no types; the module's own describe what it returns.
const native = createRequire(import.meta.url)("uWebSockets.js") as Native

let posts = 0
/** Who waits until there are so many posts. */
let awaited: { readonly count: number; readonly answer: () => void } | undefined
let page: Buffer = Buffer.from("ready\n")

const read = (response: HttpResponse, done: (body: Buffer) => void): void => {
  const chunks: Array<Buffer> = []
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    // The memory of a chunk is the native module's again when this returns.
    chunks.push(Buffer.from(chunk.slice(0)))
    if (isLast) done(chunks.length === 1 ? chunks[0] ?? Buffer.alloc(0) : Buffer.concat(chunks))
  })
}

native.App()
  .post("/*", (response) =>
    read(response, () => {
      posts += 1
      if (awaited !== undefined && posts >= awaited.count) awaited.answer()
      response.cork(() => response.writeStatus("202 Accepted").end())
    }))
  .put("/*", (response) =>
    read(response, (body) => {
      page = body
      response.cork(() => response.writeStatus("204 No Content").endWithoutBody())
    }))
  .get("/count", (response) => {
    response.end(String(posts))
  })
  .get("/reached/*", (response, request) => {
    const count = Number(request.getUrl().split("/").at(-1))
    let isOpen = true
    response.onAborted(() => isOpen = false)
    const answer = (): void => {
      awaited = undefined
      if (isOpen) response.cork(() => response.end(String(posts)))
    }
    if (posts >= count) answer()
    else awaited = { count, answer }
  })
  .get("/*", (response, request) => {
    const challenge = request.getQuery("hub.challenge")
    if (challenge !== undefined) return void response.end(challenge)
    response.writeHeader("Content-Type", "application/xml; charset=utf-8").end(page)
  })
  .listen("127.0.0.1", Number(process.argv[2]), (socket) => {
    if (socket === false) process.exit(1)
  })
