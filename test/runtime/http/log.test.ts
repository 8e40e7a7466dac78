/** Logs of actors as Server-Sent Events. */
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { afterEach, beforeEach, expect, it } from "vitest"
import { expose, type HttpAccess, httpFace } from "../../../runtime/http/index.ts"
import { type ActorNode, memory, startNode } from "../../../runtime/main.ts"
import { room } from "./actors.ts"

let node: ActorNode

beforeEach(async () => {
  node = await startNode({ actors: [room], store: memory() })
})
afterEach(() => node.stop())

const faceOf = (
  { authorize = () => true, ...options }: {
    readonly logStreamsMax?: number
    readonly authorize?: (request: Request, access: HttpAccess) => boolean
    readonly onError?: (error: unknown) => void
  } = {},
  of: Pick<ActorNode, "ask" | "log"> = node
) => httpFace(of, { actors: [expose(room, { log: true })], authorize, ...options })

const post = (text: string) => node.ask(room("lobby"), { _tag: "Post", text })

const requestFor = (query = "", headers: Readonly<Record<string, string>> = {}, method = "GET") =>
  new Request(`http://service.test/actors/chat-room/lobby/log${query}`, { method, headers })

/** With it the head of the answer is sent. */
const greeting = ": the log follows\n\n"

const readerOf = ({ body }: Response) => {
  if (body === null) throw new Error("the answer has no body")
  const decoder = new TextDecoder()
  const reader = body.getReader()
  const part = async (): Promise<string> => {
    const { done, value } = await reader.read()
    return done ? "end" : decoder.decode(value)
  }
  return {
    next: async () => {
      const text = await part()
      return text === greeting ? part() : text
    },
    cancel: () => reader.cancel()
  }
}

it("is read, and followed, with the numbers of its items", async () => {
  await post("one")
  await post("two\nlines")
  const answer = await faceOf()(requestFor())
  expect([answer.status, answer.headers.get("content-type"), answer.headers.get("cache-control")])
    .toEqual([200, "text/event-stream", "no-store"])
  const events = readerOf(answer)
  expect(await events.next()).toBe("id: 1\ndata: {\"text\":\"one\"}\n\n")
  expect(await events.next()).toBe("id: 2\ndata: {\"text\":\"two\\nlines\"}\n\n")
  const third = events.next()
  await post("three")
  expect(await third).toBe("id: 3\ndata: {\"text\":\"three\"}\n\n")
  await events.cancel()
})

it("goes on behind the last event that its reader has", async () => {
  await post("one")
  await post("two")
  const face = faceOf()
  for (
    const request of [requestFor("", { "last-event-id": "1" }), requestFor("?from=2")]
  ) {
    const events = readerOf(await face(request))
    expect(await events.next()).toMatch(/^id: 2\n/)
    await events.cancel()
  }
  // As the browser connects again: its header is newer than its URL.
  const again = readerOf(await face(requestFor("?from=1", { "last-event-id": "1" })))
  expect(await again.next()).toMatch(/^id: 2\n/)
  await again.cancel()
})

it.each(["0", "-1", "1.5", "x", "", "1e3", "9".repeat(16)])("from %j is 422", async (from) => {
  expect((await faceOf()(requestFor(`?from=${from}`))).status).toBe(422)
})

it("is not there where it is not exposed", async () => {
  const face = httpFace(node, { actors: [expose(room, {})], authorize: () => true })
  expect((await face(requestFor())).status).toBe(404)
})

it("is authorized, and has the methods of what is only read", async () => {
  const accesses: Array<HttpAccess> = []
  const face = faceOf({
    authorize: (_, access) => {
      accesses.push(access)
      return false
    }
  })
  expect((await face(requestFor())).status).toBe(403)
  expect(accesses).toEqual([{ _tag: "Log", kind: "chat-room", id: "lobby" }])
  const post = await faceOf()(requestFor("", {}, "POST"))
  expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  const head = await faceOf({ logStreamsMax: 0 })(requestFor("", {}, "HEAD"))
  expect([head.status, head.body]).toEqual([200, null])
})

it("is followed by so many at once, and by others when one has gone", async () => {
  await post("one")
  const face = faceOf({ logStreamsMax: 1 })
  const first = readerOf(await face(requestFor()))
  const full = await face(requestFor())
  expect([full.status, full.headers.get("retry-after")]).toEqual([503, "5"])
  expect(await full.json()).toMatchObject({ outcome: "unchanged" })
  await first.next()
  // It waits for an item that does not come.
  const waiting = first.next()
  await first.cancel()
  expect(await waiting).toBe("end")
  const second = readerOf(await face(requestFor()))
  expect(await second.next()).toMatch(/^id: 1\n/)
  await second.cancel()
})

it("ends when its request is aborted, before and after it began", async () => {
  await post("one")
  const face = faceOf({ logStreamsMax: 1 })
  const gone = new AbortController()
  const events = readerOf(await face(new Request(requestFor(), { signal: gone.signal })))
  await events.next()
  const end = events.next()
  gone.abort()
  expect(await end).toBe("end")
  const late = readerOf(await face(new Request(requestFor(), { signal: AbortSignal.abort() })))
  expect(await late.next()).toBe("end")
  const next = readerOf(await face(requestFor()))
  expect(await next.next()).toMatch(/^id: 1\n/)
  await next.cancel()
})

it("ends when its request is aborted after the request itself was collected", async () => {
  setFlagsFromString("--expose-gc")
  // The flag gives it to new contexts only.
  const collect = runInNewContext("gc") as () => void
  await post("one")
  const face = faceOf({ logStreamsMax: 1 })
  const gone = new AbortController()
  const events = readerOf(await face(new Request(requestFor(), { signal: gone.signal })))
  await events.next()
  const end = events.next()
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  gone.abort()
  expect(await end).toBe("end")
  const next = readerOf(await face(requestFor()))
  expect(await next.next()).toMatch(/^id: 1\n/)
  await next.cancel()
})

it("ends with its node, and when it cannot be read", async () => {
  await post("one")
  const events = readerOf(await faceOf()(requestFor()))
  await events.next()
  const end = events.next()
  await node.stop()
  expect(await end).toBe("end")
  const errors: Array<unknown> = []
  let returned = 0
  const log = async function*() {
    try {
      yield { n: 1, item: "one" as never }
      if (returned === 0) throw new Error("no disk")
      // JSON has no such number.
      yield { n: 2, item: 1n as never }
    } finally {
      returned++
    }
  }
  const face = faceOf({ onError: (error) => errors.push(error), logStreamsMax: 1 }, {
    ask: node.ask,
    log
  })
  for (let time = 0; time < 2; time++) {
    const broken = readerOf(await face(requestFor()))
    expect(await broken.next()).toMatch(/^id: 1\n/)
    expect(await broken.next()).toBe("end")
  }
  expect([errors, returned]).toEqual([[new Error("no disk"), expect.any(TypeError)], 2])
})
