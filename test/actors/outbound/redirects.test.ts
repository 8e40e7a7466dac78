/** Redirects: which are followed, how far, and with what (protocol §1.3). */
import { Effect } from "effect"
import { describe, expect, it } from "vitest"
import type { DeliveryOutcome } from "../../../actors/outbound/protocol.ts"
import { answering, cause, client, receiver } from "./rig.ts"

/** Redirects n times with this code, counting down in the path, and takes the last request. */
const chain = (code: number) =>
  receiver((request, response) => {
    const left = Number(request.url?.slice(1))
    left > 0
      ? response.writeHead(code, { location: `/${left - 1}` }).end("moved")
      : response.writeHead(201, { location: "here" }).end("done")
  })

describe("a post", () => {
  it.each([307, 308])("follows %d with its method, headers and body", async (code) => {
    const at = await chain(code)
    const { post } = await client()
    const headers = { "idempotency-key": "k" }
    expect(await post(`${at.uri}/3`, { headers, body: "b" })).toEqual({
      _tag: "Delivered",
      code: 201,
      location: `${at.uri}/here`
    })
    expect(at.came.map(({ body, headers, method, path }) => [
      method,
      path,
      body,
      headers["idempotency-key"]
    ])).toEqual(["/3", "/2", "/1", "/0"].map((path) => ["POST", path, "b", "k"]))
  })

  it("ends after three of them", async () => {
    const at = await chain(308)
    const { post } = await client()
    const refused: DeliveryOutcome = {
      _tag: "PermanentFailure",
      code: 308,
      problem: "too many redirects"
    }
    expect(await post(`${at.uri}/4`)).toEqual(refused)
    expect(at.came).toHaveLength(4)
  })

  it("ends in a loop", async () => {
    const at = await answering(307, { location: "/" })
    const { post } = await client()
    expect(await post(at.uri)).toMatchObject({
      _tag: "PermanentFailure",
      problem: "too many redirects"
    })
    expect(at.came).toHaveLength(4)
  })

  it.each([300, 301, 302, 303, 304, 305])("does not follow %d", async (code) => {
    const target = await answering(204)
    const at = await answering(code, { location: target.uri })
    const { post } = await client()
    const problem = `answered ${code}, a redirect that is not followed`
    expect(await post(at.uri)).toEqual({ _tag: "PermanentFailure", code, problem })
    expect(target.came).toEqual([])
  })

  it.each([undefined, "http://[", "ftp://example.com/", "http://u:p@127.0.0.1/"])(
    "does not follow 307 to %s",
    async (location) => {
      const at = await answering(307, location === undefined ? {} : { location })
      const { post } = await client()
      expect(await post(at.uri)).toMatchObject({ _tag: "PermanentFailure", code: 307 })
    }
  )

  it("goes to another origin, with a permit of that origin", async () => {
    const target = await answering(503, { "retry-after": "7" })
    const at = await answering(307, { location: target.uri })
    const { post } = await client()
    expect(await post(at.uri)).toEqual({
      _tag: "RetryableFailure",
      code: 503,
      problem: "answered 503",
      retryAfterMs: 7_000
    })
  })

  it("is over when its time is over, however many hops it has", async () => {
    const at = await receiver((_, response) => {
      setTimeout(() => response.writeHead(307, { location: "/" }).end(), 150)
    })
    const { post } = await client({ limits: { attemptMs: 400, connectMs: 400 } })
    expect(await post(at.uri)).toEqual({ _tag: "RetryableFailure", problem: "no answer in time" })
  })
})

describe("a get", () => {
  it.each([301, 302, 303, 307, 308])("follows %d", async (code) => {
    const at = await chain(code)
    const { get } = await client()
    expect(await get(`${at.uri}/3`)).toMatchObject({
      _tag: "Fetched",
      fetched: { uri: `${at.uri}/0`, code: 201 }
    })
    expect(at.came.map(({ method, path }) => `${method} ${path}`))
      .toEqual(["GET /3", "GET /2", "GET /1", "GET /0"])
  })

  it("ends after three of them", async () => {
    const at = await chain(302)
    const { get } = await client()
    expect(await get(`${at.uri}/4`)).toMatchObject({ _tag: "PermanentFailure", code: 302 })
  })

  it("keeps a message's password to the origin it was meant for", async () => {
    const { Effect } = await import("effect")
    const target = await answering(200)
    const at = await receiver((request, response) => {
      const location = request.url === "/" ? "/again" : target.uri
      response.writeHead(302, { location }).end()
    })
    const { outbound } = await client()
    const headers = { "Message-Password": "sixteen characters", Accept: "text/plain" }
    await Effect.runPromise(outbound.get({ uri: at.uri, cause, headers, bytesMax: 10 }))
    const seen = [...at.came, ...target.came].map(({ headers }) => [
      headers.accept,
      headers["message-password"]
    ])
    expect(seen).toEqual([
      ["text/plain", "sixteen characters"],
      ["text/plain", "sixteen characters"],
      ["text/plain", undefined]
    ])
  })
})

it("a post of bytes keeps its Authorization to the origin it was meant for", async () => {
  const target = await answering(200)
  const at = await receiver((request, response) => {
    const location = request.url === "/" ? "/again" : target.uri
    response.writeHead(307, { location }).end()
  })
  const { post } = await client()
  await post(at.uri, { body: Buffer.from("bytes"), authorization: "vapid t=a, k=b" })
  const seen = [...at.came, ...target.came].map(({ body, headers }) => [
    body,
    headers.authorization
  ])
  expect(seen).toEqual([
    ["bytes", "vapid t=a, k=b"],
    ["bytes", "vapid t=a, k=b"],
    ["bytes", undefined]
  ])
})

it.each([307, 308])("a post that refuses redirects ends with %d", async (code) => {
  const target = await answering(200)
  const at = await answering(code, { location: target.uri })
  const { outbound } = await client()
  const problem = `answered ${code}, a redirect that is not followed`
  const post = outbound.post({ uri: at.uri, cause, headers: {}, body: "", refusesRedirects: true })
  expect(await Effect.runPromise(post)).toEqual({ _tag: "PermanentFailure", code, problem })
  expect(target.came).toEqual([])
})

it.each([301, 302, 303, 307, 308])("a get that refuses redirects ends with %d", async (code) => {
  const target = await answering(200)
  const at = await answering(code, { location: target.uri })
  const { outbound } = await client()
  const problem = `answered ${code}, a redirect that is not followed`
  const get = outbound.get({ uri: at.uri, cause, bytesMax: 1_000, refusesRedirects: true })
  expect(await Effect.runPromise(get)).toEqual({
    _tag: "PermanentFailure",
    code,
    problem
  })
  expect(target.came).toEqual([])
})
