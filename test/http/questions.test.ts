/** Answers by reference, and the questions without a session (B8–B11). */
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest"
import { childOf } from "../../http/formats/xml/index.ts"
import { referencesPerAccount, referencesPerNetwork } from "../../http/limits.ts"
import { type Bridge, challengeOf, startBridge, yes } from "./bridge.ts"
import { adminToken, type Answered } from "./harness.ts"

let bridge: Bridge

beforeAll(async () => {
  bridge = await startBridge({ trustedProxies: ["127.0.0.1"] })
})
afterAll(() => bridge.close())

const begin: Bridge["begin"] = (...parameters) => bridge.begin(...parameters)
const put: Bridge["put"] = (...parameters) => bridge.put(...parameters)
const send: Bridge["send"] = (...parameters) => bridge.send(...parameters)
const withAnswers: Bridge["withAnswers"] = (...parameters) => bridge.withAnswers(...parameters)

describe("href answers", () => {
  const publish = async (body: string, type: string, headers: Record<string, string> = {}) =>
    (await send("POST", "/content", { body, type, headers })).header("location")
  const refer = (path: string, href: string) => put(`${path}/name`, `<answer href="${href}"/>`)

  it("are read from content of this service, and retain their href", async () => {
    const href = await publish("Sir Robin the Not-quite-so-brave", "text/plain")
    const path = await begin()
    expect((await refer(path, href)).status).toBe(201)
    const answer = await send("GET", `${path}/name`)
    expect(answer.xml.attributes["href"]).toBe(href)
    await put(`${path}/quest`, `<answer>The Grail</answer>`)
    expect(challengeOf(await send("GET", path)).p).toContain("Assyria")
  })

  it("are read from another session's answer, and through an answer that refers on", async () => {
    const robin = await withAnswers("Sir Robin")
    const path = await begin()
    expect((await refer(path, `${robin}/name`)).status).toBe(201)
    const onwards = await publish(`<answer href="${robin}/name"/>`, "application/xml")
    expect((await refer(path, onwards)).status).toBe(200)
    await put(`${path}/quest`, `<answer href="${robin}"/>`)
    expect(challengeOf(await send("GET", path)).p).toContain("Assyria")
  })

  it("that cannot be read are 422, and change nothing", async () => {
    const locked = { "Message-Password": "generate" }
    const hrefs = [
      "/content/nothing-is-here",
      "/sessions/nothing-is-here/name",
      "/cross_bridge",
      "/content/a~secret",
      await publish("Robin", "text/plain", locked),
      await publish("\u0001", "application/octet-stream"),
      await publish("\u0001", "text/plain"),
      await publish("x".repeat(8193), "text/plain"),
      await publish("<answer", "application/xml"),
      "https://example.org/name",
      "ftp://example.org/name",
      "javascript:alert(1)",
      "name",
      ""
    ]
    const path = await begin()
    for (const href of hrefs) {
      const answered = await refer(path, href)
      expect([href, answered.status]).toEqual([href, 422])
      expect(answered.child("detail")).toMatch(/answer/)
    }
    expect(challengeOf(await send("GET", path)).p).toBe("What is your name?")
  })

  /** A service on loopback, which the operator has allowed, with the number of its requests. */
  const neighbor = async () => {
    let requests = 0
    const server = createServer((_, response) => {
      requests += 1
      response.setHeader("content-type", "text/plain")
      response.end("the secret of the operator's network")
    })
    onTestFinished(() => new Promise((resolve) => server.close(() => resolve())))
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
    const { port } = server.address() as AddressInfo // of a TCP server that listens
    return { uri: `http://127.0.0.1:${port}/`, requests: () => requests }
  }
  const asAdmin = { basic: `admin:${adminToken}` }

  it("of anonymous clients reach public addresses only, whatever is allowed", async () => {
    const { requests, uri } = await neighbor()
    const path = await begin()
    const body = `<answer href="${uri}"/>`
    const refused = await put(`${path}/name`, body)
    expect([refused.status, refused.child("detail")]).toEqual([
      422,
      "the href answer: the address is not allowed: it is not public, and OUTBOUND_ALLOW does " +
      "not permit it to clients without an account"
    ])
    expect(requests()).toBe(0)
    // An open connection of an account is not used either.
    const first = await send("PUT", `${path}/name`, { body, ...asAdmin })
    expect([first.status, requests()]).toEqual([201, 1])
    expect((await put(`${path}/name`, body)).status).toBe(422)
    expect(requests()).toBe(1)
  })

  it("never show the text that was read", async () => {
    const { uri } = await neighbor()
    const path = await begin()
    await send("PUT", `${path}/name`, { body: `<answer href="${uri}"/>`, ...asAdmin })
    for (const accept of ["application/xml", "application/json", "text/html", "text/plain"]) {
      for (const  of of[path, `${path}/name`]) {
        const shown = await send("GET", of, { accept })
        expect([of, shown.status, shown.text.includes("secret of")]).toEqual([of, 200, false])
      }
      expect((await send("GET", `${path}/name`, { accept })).text).toContain(uri)
    }
  })

  it("are few for each network and account, but for clients on this machine", async () => {
    const { uri } = await neighbor()
    const path = await begin()
    const asked = async (from: string, basic?: string) => {
      const body = `<answer href="${uri}"/>`
      const headers = { "X-Forwarded-For": from }
      const options = basic === undefined ? { body, headers } : { body, headers, basic }
      return send("PUT", `${path}/name`, options)
    }
    /** The first answer over the limit, which each node of a cluster has for itself. */
    const overAfter = async (quota: number, ask: (count: number) => Promise<Answered>) => {
      for (let count = 0; count < 4 * quota; count++) {
        const answered = await ask(count)
        if (answered.status === 429) {
          expect(count).toBeGreaterThanOrEqual(quota)
          return answered
        }
      }
      throw new Error(`${4 * quota} requests were not over the limit`)
    }
    const over = await overAfter(
      referencesPerNetwork.quota,
      (count) => asked(`198.51.100.${count}`)
    )
    expect(Number(over.header("retry-after"))).toBeGreaterThan(0)
    expect(over.child("detail")).toContain("the clients of 198.51.100.0/24 without an account")
    // Neither other networks, nor accounts there, nor clients on this machine.
    expect((await asked("198.51.101.1")).status).toBe(422)
    const overAccount = await overAfter(
      referencesPerAccount.quota,
      (count) => asked(`198.51.100.${count}`, asAdmin.basic)
    )
    expect(overAccount.child("detail")).toContain("the account admin")
    expect((await put(`${path}/name`, `<answer href="${uri}"/>`)).status).toBe(422)
  })

  it("are refused where the operator wants none", async () => {
    const closed = await startBridge({ takesReferences: false })
    onTestFinished(() => closed.close())
    const path = await closed.begin()
    for (const href of ["/sessions/nothing-is-here", "https://example.org/name"]) {
      const refused = await closed.put(`${path}/name`, `<answer href="${href}"/>`)
      expect([refused.status, refused.child("detail")]).toEqual([
        422,
        "the href answer: this service takes none (SESSION_REFERENCES): send its text"
      ])
    }
    expect((await closed.put(`${path}/name`, "<answer>Robin</answer>")).status).toBe(201)
  })

  it("that run in circles end", async () => {
    const first = await send("POST", "/content", { body: "x", type: "application/xml" })
    const path = first.header("location")
    const edit = /<([^>]+)>; rel="edit"/.exec(first.header("link"))?.[1] ?? ""
    const circle = await send("PUT", edit, { body: `<answer href="${path}"/>` })
    expect(circle.status).toBeLessThan(300)
    const answered = await refer(await begin(), path)
    expect(answered.status).toBe(422)
  })
})

describe("B8–B11: without a session", () => {
  const hard = "/questions/hard_question"

  it("B8, B9, B10: each uri holds the answers so far", async () => {
    const name = await send("GET", "/questions/name_question")
    expect(name.status).toBe(200)
    expect(challengeOf(name)).toEqual({
      session: undefined,
      p: "What is your name?",
      method: "GET",
      uri: "/questions/quest_question?name="
    })
    expect(childOf(name.xml, "uri")?.attributes["parameter"]).toBe("name")
    const quest = await send("GET", `${name.child("uri")}Bors%20%26%20Sons%3F`)
    expect(challengeOf(quest)).toMatchObject({
      p: "What is your quest?",
      method: "GET",
      uri: `${hard}?name=Bors%20%26%20Sons%3F&quest=`
    })
    expect(childOf(quest.xml, "uri")?.attributes["parameter"]).toBe("quest")
    const last = await send("GET", `${quest.child("uri")}The+Grail`)
    expect(challengeOf(last)).toMatchObject({
      method: "GET",
      uri: `${hard}?name=Bors%20%26%20Sons%3F&quest=The%20Grail&air_speed=`
    })
    expect(childOf(last.xml, "uri")?.attributes["parameter"]).toBe("air_speed")
    const right = await send("GET", `${last.child("uri")}11%20m/s`)
    expect(right.status).toBe(200)
    expect(challengeOf(right)).toMatchObject({ p: "Right. Off you go.", method: "GET" })
  })

  it("B11 wrong: 406 with p in each representation", async () => {
    const path = `${hard}?name=Robin&quest=Grail&air_speed=Rome`
    const wrong = await send("GET", path)
    expect([wrong.status, wrong.xml.name]).toEqual([406, "p"])
    const json = await send("GET", path, { accept: "application/json" })
    expect(json.json).toMatchObject({ p: expect.stringContaining("Aaaa") })
    expect((await send("HEAD", path)).status).toBe(406)
  })

  it.each([
    "/questions/quest_question",
    "/questions/quest_question?name=",
    `${hard}?name=Arthur`,
    `${hard}?quest=Grail`,
    `${hard}?name=Arthur&air_speed=11`,
    "/questions/quest_question?name=%ff",
    "/questions/quest_question?name=%01"
  ])("%s is malformed", async (path) => {
    expect((await send("GET", path)).status).toBe(400)
  })

  it("has GET forms, which hold the answers so far", async () => {
    const page = await send("GET", `${hard}?name=Ga%22la&quest=Grail`, { accept: "text/html" })
    expect(page.text).toContain(`<form action="${hard}" method="get">`)
    expect(page.text).toContain(`<input type="hidden" name="name" value="Ga&quot;la">`)
    expect(page.text).toContain(`name="air_speed"`)
  })

  it("accepts no other method", async () => {
    const post = await send("POST", hard, { body: yes })
    expect([post.status, post.header("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  })
})
