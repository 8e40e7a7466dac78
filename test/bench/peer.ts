/**
 * The peer: uWebSockets.js alone. It reads the same body and responds with 202, or with the bytes
 * of an earlier PUT. It parses, decides and stores nothing, so no server on uWebSockets.js is
 * faster.
 *
 * As a receiver it counts requests (`/count`; `/reached/n` responds at the n-th request). It
 * echoes the challenge of a callback.
 */
import { createRequire } from "node:module"
// oxlint-disable-next-line no-restricted-imports -- the peer is this library and nothing else
import type { HttpResponse } from "uws-node-20-22"

type Native = typeof import("uws-node-20-22")

// `require` is untyped; the module's own declarations describe its result.
const native = createRequire(import.meta.url)("uws-node-20-22") as Native

let posts = 0
/** Responses that wait for a number of posts. */
let awaited: { readonly count: number; readonly answer: () => void } | undefined
let page: Buffer = Buffer.from("ready\n")

const read = (response: HttpResponse, done: (body: Buffer) => void): void => {
  const chunks: Array<Buffer> = []
  response.onAborted(() => {})
  response.onData((chunk, isLast) => {
    // The native module reuses the memory of the chunk after this function returns.
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
