/** The HTTP face on a node in memory: every status, and what an attacker tries. */
import * as fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { errorOf } from "../../../runtime/definition/errors.ts"
import { expose, type HttpAccess, httpFace, unauthenticated } from "../../../runtime/http/index.ts"
import { type AskFailure, AskTimeout, MessageTooLarge, NoOwner, Overloaded, Quarantined,
  StorageCorrupted, StorageFull, StorageUnavailable } from "../../../runtime/index.ts"
import { type ActorNode, memory, startNode } from "../../../runtime/main.ts"
import { counter } from "../definition/examples/counter.ts"
import { room } from "./actors.ts"

let node: ActorNode

beforeAll(async () => {
  node = await startNode({ actors: [counter, room], store: memory() })
})
afterAll(() => node.stop())

const exposedCounter = expose(counter, { commands: ["Add"], queries: ["Read"] })
const exposedRoom = expose(room, {
  commands: ["Post", "Nest", "Break", "Answer"],
  queries: ["Find", "Quiet"]
})

type Handler = (request: Request) => Promise<Response>

/** A face that all may use, of these nodes and options. */
const open = (
  of: Pick<ActorNode, "ask" | "log"> = node,
  options: { readonly onError?: (error: unknown) => void; readonly basePath?: string } = {}
): Handler =>
  httpFace(of, {
    actors: [exposedCounter, exposedRoom],
    authorize: () => true,
    refusals: { Gone: 410 },
    messageBytesMax: 10_000,
    ...options
  })

const urlOf = (path: string): string => `http://service.test${path}`

const get = (handler: Handler, path: string, method = "GET"): Promise<Response> =>
  handler(new Request(urlOf(path), { method }))

const json = { "content-type": "application/json" }

const post = (
  handler: Handler,
  path: string,
  body: string | Uint8Array | ReadableStream | object,
  headers: Readonly<Record<string, string>> = json
): Promise<Response> => {
  const isRaw = typeof body === "string" || body instanceof Uint8Array ||
    body instanceof ReadableStream
  return handler(
    new Request(urlOf(path), {
      method: "POST",
      headers,
      body: isRaw ? body : JSON.stringify(body),
      ...(body instanceof ReadableStream ? { duplex: "half" } : {})
    })
  )
}

const visits = "/actors/counter/visits"
const lobby = "/actors/chat-room/lobby"

/** Status and problem of an answer; the parts of every problem are checked. */
const problemOf = async (answer: Response) => {
  expect(answer.headers.get("content-type")).toBe("application/problem+json")
  // The next check is that it has these.
  const problem = await answer.json() as Record<"detail" | "outcome" | "title" | "type", string>
  expect(problem).toMatchObject({ status: answer.status, title: expect.any(String) })
  // What happened, to what: what to do.
  expect(problem.detail).toMatch(/^\S.{10,}[:.,] .{8,}$/)
  const { detail, outcome, type } = problem
  return { status: answer.status, name: type.replace("urn:restante:problem:", ""), outcome, detail }
}

const seen = async (answer: Response): Promise<string> => {
  const { name, outcome, status } = await problemOf(answer)
  return `${status} ${name} ${outcome}`
}

describe("a message", () => {
  it("is sent by POST, and its reply is the answer", async () => {
    const added = await post(open(), visits, { _tag: "Add", by: 2 })
    expect([added.status, await added.json()]).toEqual([200, 2])
    const encoded = await post(open(), "/actors/counter/%76isits", { _tag: "Add", by: 3 }, {
      "content-type": "Application/JSON; charset=\"UTF-8\""
    })
    expect([encoded.status, await encoded.json()]).toEqual([200, 5])
    expect(Object.fromEntries(encoded.headers)).toEqual({
      "cache-control": "no-store",
      "content-security-policy": "sandbox; default-src 'none'",
      "content-type": "application/json",
      "x-content-type-options": "nosniff"
    })
  })

  it("that is a query is sent by GET, and by POST", async () => {
    const handler = open()
    await post(handler, "/actors/counter/read", { _tag: "Add", by: 7 })
    for (const path of ["/actors/counter/read", "/actors/counter/read?_tag=Read&utm=1"]) {
      const answer = await get(handler, path)
      expect([answer.status, await answer.json()]).toEqual([200, 7])
    }
    const posted = await post(handler, "/actors/counter/read", { _tag: "Read" })
    expect(await posted.json()).toBe(7)
  })

  it("that is a query has its fields from the query string, by the Schema", async () => {
    const find = async (query: string) => (await get(open(), `${lobby}?${query}`)).json()
    expect(await find("text=a%20b")).toEqual(
      { text: "a b", limit: 0, exact: false, tags: [], weight: 0 }
    )
    expect(await find("_tag=Find&text=1&limit=3&exact=true&tags=x&weight=1.5")).toEqual(
      { text: "1", limit: 3, exact: true, tags: ["x"], weight: 1.5 }
    )
    expect(await find("text=&tags=x&tags=y")).toMatchObject({ text: "", tags: ["x", "y"] })
  })

  it("without a reply is answered by 204, and null by null", async () => {
    const quiet = await get(open(), `${lobby}?_tag=Quiet`)
    expect([quiet.status, await quiet.text()]).toEqual([204, ""])
    const answer = await post(open(), lobby, { _tag: "Answer", reply: null })
    expect([answer.status, await answer.text()]).toEqual([200, "null"])
  })

  it("by HEAD is answered like GET, without a body", async () => {
    const answer = await get(open(), visits, "HEAD")
    expect([answer.status, answer.body]).toEqual([200, null])
    expect(answer.headers.get("content-type")).toBe("application/json")
    const wrong = await get(open(), `${visits}?_tag=Add`, "HEAD")
    expect([wrong.status, wrong.body]).toEqual([422, null])
  })
})

describe("a request for nothing", () => {
  const paths = [
    "/",
    "/actors",
    "/actors/",
    "/actors/counter",
    "/actors/counter/",
    "/actors/counter/visits/",
    "/actors/counter/visits/log",
    "/actors/counter/visits/log/x",
    "/actors//counter/visits",
    "/actors/nobody/visits",
    "/actors/__proto__/visits",
    "/actors/constructor/visits",
    "/actors/Counter/visits",
    "/actors/counter/a.b",
    "/actors/counter/a%2Fb",
    "/actors/counter/%2E%2E%2Fx",
    "/actors/counter/a%00",
    "/actors/counter/a%0Ab",
    "/actors/counter/a%",
    "/actors/counter/%2576isits",
    "/actors/counter/%ff",
    `/actors/counter/${"a".repeat(201)}`,
    "/actors/counter/../chat-room/../../etc/passwd",
    "/Actors/counter/visits",
    "/openapi.json/"
  ]

  it.each(paths)("%s is 404 by every method", async (path) => {
    expect(await seen(await get(open(), path))).toBe("404 not-found unchanged")
    expect(await seen(await post(open(), path, { _tag: "Add", by: 1 })))
      .toBe("404 not-found unchanged")
    expect(await seen(await get(open(), path, "OPTIONS"))).toBe("404 not-found unchanged")
  })

  it("is 404 outside of the base path, within which all paths are", async () => {
    const handler = open(node, { basePath: "/api/v1" })
    expect((await get(handler, `/api/v1${visits}`)).status).toBe(200)
    expect((await get(handler, "/api/v1/openapi.json")).status).toBe(200)
    for (const path of [visits, `/api${visits}`, `/api/v1/x${visits}`, "/openapi.json"]) {
      expect(await seen(await get(handler, path))).toBe("404 not-found unchanged")
    }
  })
})

describe("a method", () => {
  it.each(["PUT", "PATCH", "DELETE", "PROPFIND"])("%s is 405, with Allow", async (method) => {
    for (const path of [visits, "/openapi.json"]) {
      const answer = await get(open(), path, method)
      const allow = path === visits ? "GET, HEAD, POST, OPTIONS" : "GET, HEAD, OPTIONS"
      expect(answer.headers.get("allow")).toBe(allow)
      expect(await seen(answer)).toBe("405 method-not-allowed unchanged")
    }
  })

  it("GET is 405 where an actor has no query, and POST where it has no message", async () => {
    const handler = httpFace(node, {
      actors: [expose(counter, { commands: ["Add"] }), expose(room, {})],
      authorize: () => true
    })
    expect((await get(handler, visits)).headers.get("allow")).toBe("POST, OPTIONS")
    expect((await get(handler, visits)).status).toBe(405)
    expect((await post(handler, lobby, { _tag: "Quiet" })).status).toBe(405)
  })

  it("OPTIONS is answered with Allow, and with no field of CORS", async () => {
    const answer = await get(open(), visits, "OPTIONS")
    expect(answer.status).toBe(204)
    expect(answer.headers.get("allow")).toBe("GET, HEAD, POST, OPTIONS")
    expect([...answer.headers.keys()].filter((name) => name.startsWith("access-"))).toEqual([])
  })
})

describe("a body", () => {
  const add = JSON.stringify({ _tag: "Add", by: 1 })
  const types: ReadonlyArray<Readonly<Record<string, string>>> = [
    {},
    { "content-type": "text/plain" },
    { "content-type": "application/x-www-form-urlencoded" },
    { "content-type": "text/plain; application/json" },
    { "content-type": "application/json, text/plain" },
    { "content-type": "application/json; charset=utf-16" },
    { "content-type": "application/json", "content-encoding": "gzip" }
  ]

  it.each(types)("with %j is 415", async (headers) => {
    expect(await seen(await post(open(), visits, add, headers)))
      .toBe("415 unsupported-media-type unchanged")
  })

  const malformed: ReadonlyArray<readonly [string, string | Uint8Array]> = [
    ["empty", ""],
    ["cut", "{\"_tag\":"],
    ["two values", "{}{}"],
    ["not UTF-8", new Uint8Array([0x22, 0xff, 0x22])],
    ["UTF-16", new Uint8Array([0xff, 0xfe, 0x7b, 0, 0x7d, 0])],
    ["no JSON number", "NaN"]
  ]

  it.each(malformed)("that is %s is 400", async (_, body) => {
    expect(await seen(await post(open(), visits, body))).toBe("400 malformed-message unchanged")
  })

  it("that ends early is 400", async () => {
    const body = new ReadableStream({ pull: (controller) => controller.error(new Error("reset")) })
    expect(await seen(await post(open(), visits, body))).toBe("400 malformed-message unchanged")
  })

  it("that is too large is 413, however it says so, and is not read to its end", async () => {
    const long = JSON.stringify({ _tag: "Post", text: "x".repeat(10_000) })
    expect(await seen(await post(open(), lobby, long))).toBe("413 message-too-large unchanged")
    const claims = { ...json, "content-length": "10001" }
    expect(await seen(await post(open(), lobby, add, claims)))
      .toBe("413 message-too-large unchanged")
    let parts = 0
    const endless = new ReadableStream({
      pull: (controller) => {
        parts++
        controller.enqueue(new Uint8Array(1_000))
      }
    })
    expect(await seen(await post(open(), lobby, endless))).toBe("413 message-too-large unchanged")
    expect(parts).toBeLessThan(20)
  })

  it("of as many bytes as it may have is read", async () => {
    const empty = JSON.stringify({ _tag: "Post", text: "" }).length
    const whole = { _tag: "Post", text: "x".repeat(10_000 - empty) }
    expect((await post(open(), lobby, whole)).status).toBe(200)
  })

  const invalid: ReadonlyArray<readonly [string, string]> = [
    ["null", "null"],
    ["a list", "[]"],
    ["a text", "\"Add\""],
    ["without a tag", "{}"],
    ["of an unknown tag", "{\"_tag\":\"Subtract\",\"by\":1}"],
    ["of a tag of all objects", "{\"_tag\":\"constructor\"}"],
    ["without a field", "{\"_tag\":\"Post\"}"],
    ["with a field of another type", "{\"_tag\":\"Post\",\"text\":7}"],
    ["with a number out of range", "{\"_tag\":\"Post\",\"text\":\"a\",\"level\":1e999}"],
    ["with a word for a number", "{\"_tag\":\"Post\",\"text\":\"a\",\"level\":\"NaN\"}"],
    ["of the timer", "{\"_tag\":\"Due\"}"],
    ["of an effect", "{\"_tag\":\"Sent\"}"],
    ["nested too deeply", `{"_tag":"Nest","tree":${"[".repeat(4_000)}${"]".repeat(4_000)}}`]
  ]

  it.each(invalid)("that is %s is 422", async (_, body) => {
    const { detail, name, outcome, status } = await problemOf(await post(open(), lobby, body))
    expect([status, name, outcome]).toEqual([422, "invalid-message", "unchanged"])
    expect(detail).toMatch(/^chat-room does not take this message: .+\. Send one of its/)
    expect(detail.length).toBeLessThan(700)
    // What is not exposed is not named.
    expect(detail).not.toMatch(/Due|Sent/)
  })

  it("changes no prototype, and its unknown fields are ignored", async () => {
    const body = "{\"_tag\":\"Answer\",\"reply\":{\"a\":1,\"__proto__\":{\"polluted\":1}},\"x\":1}"
    const answer = await post(open(), lobby, body)
    expect(await answer.text()).toContain("\"a\":1")
    expect(Object.hasOwn(Object.prototype, "polluted")).toBe(false)
  })
})

describe("a query string", () => {
  const invalid = [
    "_tag=Find",
    "text=a&text=b",
    "text=a&limit=",
    "text=a&limit=1.5",
    "text=a&limit=x",
    "text=a&limit=1&limit=2",
    "text=a&exact=1",
    "text=a&weight=NaN",
    "text=a&weight=Infinity",
    "text=a&weight=1e999",
    "_tag=Find&_tag=Quiet&text=a",
    "_tag=Post&text=a",
    "_tag=Due",
    "_tag=Sent",
    "_tag=",
    "_tag=constructor"
  ]

  it.each(invalid)("%s is 422", async (query) => {
    expect(await seen(await get(open(), `${lobby}?${query}`)))
      .toBe("422 invalid-message unchanged")
  })

  it("that is too long is 414", async () => {
    const query = `text=${"a".repeat(10_000)}`
    expect(await seen(await get(open(), `${lobby}?${query}`)))
      .toBe("414 query-too-long unchanged")
  })
})

describe("a refusal", () => {
  it("is 409 with its reason, or what the options say", async () => {
    const empty = await post(open(), lobby, { _tag: "Post", text: "" })
    expect(await empty.clone().json()).toMatchObject({ reason: "Empty" })
    expect(await problemOf(empty)).toMatchObject({
      status: 409,
      name: "refused",
      outcome: "refused",
      detail: "chat-room/lobby refused Post, Empty: its state does not allow it. Read its state " +
        "before you send it again"
    })
    expect(await problemOf(await post(open(), lobby, { _tag: "Post", text: "gone" })))
      .toMatchObject({
        status: 410,
        detail: "chat-room/lobby refused Post, Gone: the room is closed: post to another one"
      })
  })

  it("whose reason is called like a method of objects is 409", async () => {
    expect(await seen(await post(open(), lobby, { _tag: "Post", text: "odd" })))
      .toBe("409 refused refused")
  })

  it("is what `refuse` made, not a value that looks like one", async () => {
    const reply = { _tag: "Refused", reason: "Gone", detail: "of a user" }
    expect(await seen(await post(open(), lobby, { _tag: "Answer", reply })))
      .toBe("500 failed unchanged")
  })
})

describe("a failure", () => {
  /** A node whose asks fail so. */
  const failing = (failure: AskFailure): Pick<ActorNode, "ask" | "log"> => ({
    ask: () => Promise.reject(errorOf("counter/visits", failure)),
    log: node.log
  })
  const key = "counter/visits"
  const secret = "/srv/secret/folder"
  const commands: ReadonlyArray<readonly [AskFailure, string]> = [
    [new Overloaded({ key, retryAfterMs: 1_500 }), "503 unavailable unchanged"],
    [new NoOwner({ key, retryAfterMs: 10 }), "503 unavailable unchanged"],
    [new Quarantined({ key, retryAfterMs: 60_000 }), "503 unavailable unchanged"],
    [new AskTimeout({ key, deadlineMs: 10 }), "504 outcome-unknown indeterminate"],
    [new StorageUnavailable({ detail: secret }), "504 outcome-unknown indeterminate"],
    [new MessageTooLarge({ key, bytesMax: 10 }), "504 outcome-unknown indeterminate"],
    [new StorageFull({ detail: secret }), "507 not-stored unchanged"],
    [new StorageCorrupted({ detail: secret }), "507 not-stored unchanged"],
    [
      new StorageFull({ detail: secret, mayBeStored: true }),
      "504 outcome-unknown indeterminate"
    ],
    [
      new StorageCorrupted({ detail: secret, mayBeStored: true }),
      "504 outcome-unknown indeterminate"
    ]
  ]

  it.each(commands)("%j is $1", async (failure, expected) => {
    const answer = await post(open(failing(failure)), visits, { _tag: "Add", by: 1 })
    const retry = answer.headers.get("retry-after")
    const retries = "retryAfterMs" in failure ? Math.ceil(failure.retryAfterMs / 1_000) : undefined
    expect(retry).toBe(retries === undefined ? null : String(retries))
    const text = await answer.clone().text()
    expect(text).not.toContain(secret)
    if (expected.endsWith("indeterminate")) {
      expect(text).toContain("It may have, so repeat the message only if the actor recognizes")
      expect(text).not.toContain("nothing changed")
    }
    expect(await seen(answer)).toBe(expected)
  })

  it("of a query without an answer says that it may be repeated", async () => {
    const answer = await get(open(failing(new AskTimeout({ key, deadlineMs: 10 }))), visits)
    const { detail, outcome, status } = await problemOf(answer)
    expect([status, outcome]).toEqual([504, "indeterminate"])
    expect(detail).toContain("Ask again, since a query changes nothing")
  })

  it("of any other kind is indeterminate", async () => {
    const unknown = { ask: () => Promise.reject(new Error(secret)), log: node.log }
    const answer = await post(open(unknown), visits, { _tag: "Add", by: 1 })
    expect(await answer.clone().text()).not.toContain(secret)
    expect(await seen(answer)).toBe("504 outcome-unknown indeterminate")
  })

  it("of a cell is 500, without its text", async () => {
    const answer = await post(open(), lobby, { _tag: "Break" })
    expect(await answer.clone().text()).not.toContain("planted")
    expect(await seen(answer)).toBe("500 failed unchanged")
  })

  it("to write the reply says that the message is processed", async () => {
    const errors: Array<unknown> = []
    const odd = { ask: () => Promise.resolve(1n as never), log: node.log }
    const handler = open(odd, { onError: (error) => errors.push(error) })
    expect(await seen(await post(handler, visits, { _tag: "Add", by: 1 })))
      .toBe("500 failed committed")
    expect(errors).toHaveLength(1)
  })

  it("of a node that has stopped is 503", async () => {
    const stopped = await startNode({ actors: [counter], store: memory() })
    await stopped.stop()
    expect(await seen(await post(open(stopped), visits, { _tag: "Add", by: 1 })))
      .toBe("503 unavailable unchanged")
  })
})

describe("any request", () => {
  const segment = fc.oneof(
    fc.constantFrom("actors", "counter", "chat-room", "fuzz", "log", "openapi.json", "..", "%2e"),
    fc.string({ unit: "binary", maxLength: 8 }).map((text) => encodeURIComponent(text)),
    fc.webPath()
  )
  const value = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.string({ unit: "binary" }),
    fc.record({
      _tag: fc.constantFrom("Add", "Read", "Post", "Find", "Nest", "Due", "Sent", "__proto__"),
      by: fc.oneof(fc.integer(), fc.string(), fc.jsonValue()),
      text: fc.oneof(fc.string(), fc.jsonValue())
    }).map((message) => JSON.stringify(message))
  )
  const anyRequest = fc.record({
    path: fc.oneof(
      fc.constantFrom("/actors/counter/fuzz", "/actors/chat-room/fuzz"),
      fc.array(segment, { maxLength: 5 }).map((segments) => `/${segments.join("/")}`)
    ),
    query: fc.oneof(fc.constant(""), fc.webQueryParameters()),
    method: fc.constantFrom("GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE"),
    type: fc.constantFrom("application/json", "text/plain", ""),
    body: value
  })

  it("is answered, and one that changed nothing is a problem in three parts", async () => {
    const handler = open()
    const read = async () => node.ask(counter("fuzz"), { _tag: "Read" })
    await fc.assert(
      fc.asyncProperty(anyRequest, async ({ body, method, path, query, type }) => {
        const before = await read()
        const hasBody = !["GET", "HEAD"].includes(method)
        const request = new Request(urlOf(`${path}?${query}`), {
          method,
          headers: { "content-type": type },
          body: hasBody ? body : null
        })
        const answer = await handler(request)
        expect(answer.headers.get("cache-control")).toBe("no-store")
        if (answer.status < 300) return
        expect([400, 404, 405, 409, 415, 422, 500]).toContain(answer.status)
        if (method !== "HEAD") await problemOf(answer)
        expect(await read()).toBe(before)
      }),
      { numRuns: 300 }
    )
    expect(Object.keys(Object.prototype)).toEqual([])
  })
})

describe("an actor with too many messages", () => {
  it("is 503, and has processed only what was answered by 200", async () => {
    const busy = await startNode({ actors: [counter], store: memory(), limits: { inboxMax: 3 } })
    const handler = httpFace(busy, { actors: [exposedCounter], authorize: () => true })
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => post(handler, visits, { _tag: "Add", by: 1 }))
    )
    const added = answers.filter(({ status }) => status === 200)
    const refused = answers.filter(({ status }) => status === 503)
    expect(added.length + refused.length).toBe(20)
    expect(refused.length).toBeGreaterThan(0)
    for (const answer of refused) {
      expect(answer.headers.get("retry-after")).toBe("1")
      expect(await seen(answer)).toBe("503 unavailable unchanged")
    }
    expect(await busy.ask(counter("visits"), { _tag: "Read" })).toBe(added.length)
    await busy.stop()
  })
})

describe("authorize", () => {
  const withAuthorize = (
    authorize: (request: Request, access: HttpAccess) => boolean | Response | Promise<boolean>,
    onError?: (error: unknown) => void
  ) => httpFace(node, { actors: [exposedCounter], authorize, ...(onError && { onError }) })

  it("gets the checked message, with its types, and decides", async () => {
    const accesses: Array<unknown> = []
    const handler = httpFace(node, {
      actors: [exposedCounter, exposedRoom],
      authorize: async (_, access) => {
        accesses.push(access)
        if (access._tag !== "Ask" || access.message?._tag !== "Add") return true
        // The type of the message has the field.
        return access.message.by < 10
      }
    })
    const path = "/actors/counter/small"
    expect((await post(handler, path, { _tag: "Add", by: 9, x: 1 })).status).toBe(200)
    expect(await seen(await post(handler, path, { _tag: "Add", by: 10 })))
      .toBe("403 forbidden unchanged")
    expect(await (await get(handler, path)).json()).toBe(9)
    await get(handler, "/openapi.json")
    const ask = { _tag: "Ask", kind: "counter", id: "small" }
    expect(accesses).toEqual([
      { ...ask, message: { _tag: "Add", by: 9 } },
      { ...ask, message: { _tag: "Add", by: 10 } },
      { ...ask, message: { _tag: "Read" } },
      { _tag: "Document" }
    ])
  })

  it("answers with a Response, such as 401 with a challenge", async () => {
    const handler = withAuthorize(() => unauthenticated("Bearer realm=\"a\""))
    for (const path of [visits, "/openapi.json"]) {
      const answer = await get(handler, path)
      expect(answer.headers.get("www-authenticate")).toBe("Bearer realm=\"a\"")
      expect(await seen(answer)).toBe("401 unauthenticated unchanged")
    }
    const head = await get(handler, visits, "HEAD")
    expect([head.status, head.body]).toEqual([401, null])
  })

  it("may return one Response many times", async () => {
    const denied = unauthenticated("Bearer")
    const handler = withAuthorize(() => denied)
    for (let time = 0; time < 2; time++) {
      expect(await seen(await get(handler, visits))).toBe("401 unauthenticated unchanged")
    }
  })

  it("is asked before anybody learns what is wrong with a message", async () => {
    const accesses: Array<unknown> = []
    const handler = withAuthorize((_, access) => {
      accesses.push(access)
      return false
    })
    const invalid = await post(handler, visits, { _tag: "Add", by: "x" })
    expect(await invalid.clone().text()).not.toMatch(/Add|by|integer/)
    expect(await seen(invalid)).toBe("403 forbidden unchanged")
    expect(await seen(await get(handler, `${visits}?_tag=x`))).toBe("403 forbidden unchanged")
    const noMessage = { "content-type": "text/plain" }
    expect((await post(handler, visits, "x", noMessage)).status).toBe(403)
    expect((await post(handler, visits, "{")).status).toBe(403)
    expect((await post(handler, visits, `"${"x".repeat(100_000)}"`)).status).toBe(403)
    const ask = { _tag: "Ask", kind: "counter", id: "visits", message: undefined }
    expect(accesses).toEqual([ask, ask, ask, ask, ask])
  })

  it("refuses by all values but true", async () => {
    for (const value of [false, undefined, null, 1, "yes", {}, []]) {
      // A program without types may return anything.
      const handler = withAuthorize(() => value as boolean)
      expect((await post(handler, visits, { _tag: "Add", by: 1 })).status).toBe(403)
    }
  })

  it("that throws or rejects is 500, and reaches no actor and no caller", async () => {
    const before = await node.ask(counter("visits"), { _tag: "Read" })
    const failures = [
      () => {
        throw new Error("secret of authorize")
      },
      () => Promise.reject(new Error("secret of authorize"))
    ]
    for (const authorize of failures) {
      const errors: Array<unknown> = []
      const answers = withAuthorize(authorize, (error) => {
        errors.push(error)
        throw new Error("the report fails, too")
      })
      const answer = await post(answers, visits, { _tag: "Add", by: 1 })
      expect(await answer.clone().text()).not.toContain("secret")
      expect(await seen(answer)).toBe("500 failed unchanged")
      expect(errors).toEqual([new Error("secret of authorize")])
    }
    expect(await node.ask(counter("visits"), { _tag: "Read" })).toBe(before)
  })
})

describe("the options", () => {
  it("that contradict each other throw", () => {
    const authorize = () => true
    expect(() => httpFace(node, { actors: [exposedCounter, exposedCounter], authorize }))
      .toThrow("two actors of a face have the same kind: expose each kind once")
    for (const basePath of ["api", "/api/", "/", "/a b", "/%2e", "//x"]) {
      expect(() => httpFace(node, { actors: [], authorize, basePath })).toThrow("the base path is")
    }
    for (const max of [Number.NaN, -1, 1.5, Infinity]) {
      expect(() => httpFace(node, { actors: [], authorize, messageBytesMax: max }))
        .toThrow(`messageBytesMax of a face is ${max}: use an integer from 0`)
      expect(() => httpFace(node, { actors: [], authorize, logStreamsMax: max }))
        .toThrow(`logStreamsMax of a face is ${max}: use an integer from 0`)
    }
    for (const status of [399, 500, 200, 404.5, Number.NaN]) {
      expect(() => httpFace(node, { actors: [], authorize, refusals: { Gone: status } }))
        .toThrow(`a refusal for Gone has the status ${status}: use one from 400 to 499`)
    }
  })

  it("expose only messages of the definition that somebody may send, each once", () => {
    // @ts-expect-error no such message
    expect(() => expose(counter, { commands: ["Subtract"] })).toThrow(
      "counter has no message Subtract with a Schema of its own: name one that it has"
    )
    // @ts-expect-error only the timer sends it
    expect(() => expose(room, { commands: ["Due"] })).toThrow(
      "Due of chat-room comes from its timer only: expose another message"
    )
    expect(() => expose(counter, { commands: ["Read"], queries: ["Read"] }))
      .toThrow("Read of counter is exposed twice: name it once, as command or query")
    expect(() => expose(room, { queries: ["Nest"] })).toThrow(
      "the query Nest of chat-room has a field tree that no query string can have"
    )
  })
})
