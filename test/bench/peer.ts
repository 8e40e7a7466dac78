/**
 * The peer: uWebSockets.js alone. It reads the same body and responds with 202, or with the bytes
 * of an earlier PUT. It parses, decides and stores nothing, so no server on uWebSockets.js is
 * faster.
 *
 * As a receiver it counts requests (`/count`; `/reached/n` responds at the n-th request). It
 * echoes the challenge of a callback.
 */
import { listen, native, read } from "./native.ts"

let posts = 0
/** Responses that wait for a number of posts. */
let awaited: { readonly count: number; readonly answer: () => void } | undefined
let page: Buffer = Buffer.from("ready\n")

const app = native.App()
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

listen(app, Number(process.argv[2]))
