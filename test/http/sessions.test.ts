/** Sessions by their protocol (protocol §2, B1–B6): status, header and parsed body. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, childrenOf, type Element } from "../../http/formats/xml/index.ts"
import { type Bridge, challengeOf, formType, startBridge, yes } from "./bridge.ts"
import { adminToken } from "./harness.ts"

const problemXml = "application/problem+xml; charset=utf-8"

let bridge: Bridge

beforeAll(async () => {
  bridge = await startBridge()
})
afterAll(() => bridge.close())

const begin: Bridge["begin"] = (...parameters) => bridge.begin(...parameters)
const put: Bridge["put"] = (...parameters) => bridge.put(...parameters)
const send: Bridge["send"] = (...parameters) => bridge.send(...parameters)
const statusOf: Bridge["statusOf"] = (...parameters) => bridge.statusOf(...parameters)
const withAnswers: Bridge["withAnswers"] = (...parameters) => bridge.withAnswers(...parameters)

const hrefOf = (root: Element, name: string): string | undefined =>
  childOf(root, name)?.attributes["href"]

describe("the entry", () => {
  it("B1: names POST to /sessions", async () => {
    const answered = await send("GET", "/cross_bridge")
    expect(answered.status).toBe(200)
    expect(answered.header("content-type")).toBe("application/xml; charset=utf-8")
    expect(answered.header("vary")).toContain("Accept")
    expect(challengeOf(answered)).toEqual({
      session: undefined,
      p: "Stop! Who would cross the Bridge of Death must answer me these questions three, " +
        "ere the other side he see.",
      method: "POST",
      uri: "/sessions"
    })
  })

  it("honors If-None-Match, HEAD and OPTIONS, and refuses other methods", async () => {
    const { etag } = await send("GET", "/cross_bridge")
    const headers = { "If-None-Match": etag }
    expect((await send("GET", "/cross_bridge", { headers })).status).toBe(304)
    const head = await send("HEAD", "/cross_bridge")
    expect([head.status, head.text, head.etag]).toEqual([200, "", etag])
    const options = await send("OPTIONS", "/cross_bridge")
    expect([options.status, options.header("allow")]).toEqual([204, "GET, HEAD, OPTIONS"])
    const post = await send("POST", "/cross_bridge", { body: yes })
    expect([post.status, post.header("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  })

  it("is a page with a form, JSON and text by Accept", async () => {
    const page = await send("GET", "/cross_bridge", { accept: "text/html,*/*;q=0.8" })
    expect(page.header("content-type")).toBe("text/html; charset=utf-8")
    expect(page.text).toContain(`<form action="/sessions" method="post">`)
    const json = await send("GET", "/cross_bridge", { accept: "application/json" })
    expect(json.json).toMatchObject({ method: "POST", uri: "/sessions" })
    const text = await send("GET", "/cross_bridge", { accept: "text/plain" })
    expect(text.text).toContain("Stop! Who would cross")
    const none = await send("GET", "/cross_bridge", { accept: "image/png" })
    expect([none.status, none.header("content-type")]).toEqual([406, problemXml])
  })
})

describe("B2: beginning a session", () => {
  it("answers 201, Location and the first question", async () => {
    const answered = await send("POST", "/sessions", { body: yes })
    expect(answered.status).toBe(201)
    const path = answered.header("location").slice(bridge.base.length)
    expect(answered.header("location")).toMatch(/^http.*\/sessions\/[A-Za-z0-9_-]{22}$/)
    expect(challengeOf(answered)).toEqual({
      session: path,
      p: "What is your name?",
      method: "PUT",
      uri: `${path}/name`
    })
  })

  it.each([
    ["confused", `<answer continue="confused">what?</answer>`],
    ["missing", "<answer>yes</answer>"]
  ])("continue %s: 406 with p, and nothing is created", async (_, body) => {
    const before = childrenOf((await send("GET", "/sessions?limit=1000")).xml).length
    const answered = await send("POST", "/sessions", { body })
    expect([answered.status, answered.xml.name]).toEqual([406, "p"])
    expect(answered.headers.get("location")).toBeNull()
    expect(childrenOf((await send("GET", "/sessions?limit=1000")).xml).length).toBe(before)
  })

  it("accepts JSON and a form; a browser's form redirects to the session", async () => {
    const body = JSON.stringify({ continue: "true" })
    expect((await send("POST", "/sessions", { body, type: "application/json" })).status).toBe(201)
    const form = { body: "continue=true", type: formType }
    expect((await send("POST", "/sessions", form)).status).toBe(201)
    const browser = await send("POST", "/sessions", { ...form, accept: "text/html" })
    expect(browser.status).toBe(303)
    const page = await send("GET", browser.header("location"), { accept: "text/html" })
    expect(page.text).toMatch(/<form action="\/sessions\/[^/"]+\/name" method="post">/)
  })

  it("refuses other documents than an answer", async () => {
    const status = async (body: string, type?: string) =>
      (await send("POST", "/sessions", { body, ...type === undefined ? {} : { type } })).status
    expect(await status("<answer")).toBe(400)
    expect(await status("<question/>")).toBe(422)
    expect(await status("yes", "text/plain")).toBe(415)
    expect(await status(`<!DOCTYPE a [<!ENTITY x "y">]><answer continue="true">&x;</answer>`)).toBe(
      400
    )
  })

  it("creates one session for one Idempotency-Key", async () => {
    const headers = { "Idempotency-Key": `"the key of one session"` }
    const first = await send("POST", "/sessions", { body: yes, headers })
    const repeated = await send("POST", "/sessions", { body: yes, headers })
    expect(repeated.header("location")).toBe(first.header("location"))
    const other = await send("POST", "/sessions", { body: "<answer continue='true'/>", headers })
    expect(other.status).toBe(422)
  })
})

describe("a session that an account began", () => {
  const asAdmin = { basic: `admin:${adminToken}` }
  const accountNamed = async (name: string) => {
    const body = `<account><name>${name}</name></account>`
    const made = await send("POST", "/accounts", { body, ...asAdmin })
    expect(made.status).toBe(201)
    return { basic: `${name}:${made.child("token")}` }
  }

  it("is changed by it or an admin alone, and read by anybody", async () => {
    const patsy = await accountNamed("patsy")
    const tim = await accountNamed("tim")
    const begun = await send("POST", "/sessions", { body: yes, ...patsy })
    const path = begun.header("location").slice(bridge.base.length)
    const body = "<answer>Patsy</answer>"
    const status = async (method: string, uri: string, who?: { readonly basic: string }) =>
      (await send(method, uri, { ...method === "PUT" ? { body } : {}, ...who })).status
    expect(await status("PUT", `${path}/name`)).toBe(401)
    expect(await status("PUT", `${path}/name`, tim)).toBe(403)
    expect(await status("PUT", `${path}/name`, { basic: "patsy:wrong" })).toBe(401)
    expect(await status("PUT", `${path}/name`, patsy)).toBe(201)
    expect(await status("PUT", `${path}/quest`, asAdmin)).toBe(201)
    expect(await status("GET", path)).toBe(200)
    expect(await status("GET", `${path}/name`, tim)).toBe(200)
    expect(await statusOf(path)).toBe("hard_question")
    expect(await status("DELETE", path)).toBe(401)
    expect(await status("DELETE", path, tim)).toBe(403)
    expect(await status("DELETE", path, patsy)).toBe(204)
  })

  it("is not begun with wrong credentials, and an anonymous one is anybody's", async () => {
    const wrong = await send("POST", "/sessions", { body: yes, basic: "admin:wrong" })
    expect(wrong.status).toBe(401)
    const path = await begin()
    const body = "<answer>Robin</answer>"
    expect((await send("PUT", `${path}/name`, { body, ...asAdmin })).status).toBe(201)
    expect((await put(`${path}/name`, body)).status).toBe(200)
    expect((await send("DELETE", path)).status).toBe(204)
  })
})

describe("B3: the listing", () => {
  it("is newest first, with status and start, and paged", async () => {
    const paths: Array<string> = []
    for (let count = 0; count < 3; count++) {
      paths.unshift(await begin())
      await new Promise((resolve) => setTimeout(resolve, 3))
    }
    const first = await send("GET", "/sessions?limit=2")
    expect(first.status).toBe(200)
    expect(first.xml.name).toBe("sessions")
    const entries = childrenOf(first.xml, "session")
    expect(entries.map(({ attributes }) => attributes["href"])).toEqual(paths.slice(0, 2))
    expect(entries[0]?.attributes["status"]).toBe("name")
    expect(Date.parse(entries[0]?.attributes["started"] ?? "")).toBeGreaterThan(0)
    const next = /<([^>]+)>; rel="next"/.exec(first.header("link"))?.[1] ?? ""
    const second = await send("GET", next)
    expect(childrenOf(second.xml)[0]?.attributes["href"]).toBe(paths[2])
  })

  it.each(["limit=0", "limit=x", "limit=1001", "after=nowhere"])(
    "%s is malformed",
    async (query) => {
      expect((await send("GET", `/sessions?${query}`)).status).toBe(400)
    }
  )

  it("is an array in JSON", async () => {
    const { json } = await send("GET", "/sessions?limit=1", { accept: "application/json" })
    expect(json).toMatchObject({ session: [{ status: expect.any(String) }] })
  })
})

describe("B4–B6: questions and answers", () => {
  it("leads from the name to the quest to the last question", async () => {
    const path = await begin()
    const name = await put(`${path}/name`, "<answer>Arthur</answer>")
    expect([name.status, name.header("location")]).toEqual([201, `${bridge.base}${path}/name`])
    expect(challengeOf(name)).toEqual({
      session: path,
      p: "What is your quest?",
      method: "PUT",
      uri: `${path}/quest`
    })
    expect(hrefOf(name.xml, "name")).toBe(`${path}/name`)
    expect(await statusOf(path)).toBe("quest")
    const quest = await put(`${path}/quest`, "<answer>To seek the Holy Grail</answer>")
    expect([quest.status, quest.header("location")]).toEqual([201, `${bridge.base}${path}/quest`])
    expect(challengeOf(quest)).toMatchObject({ method: "PUT", uri: `${path}/hard_question` })
    expect(hrefOf(quest.xml, "name")).toBe(`${path}/name`)
    expect(hrefOf(quest.xml, "quest")).toBe(`${path}/quest`)
    expect((await send("GET", path)).xml).toEqual(quest.xml)
    expect(await statusOf(path)).toBe("hard_question")
  })

  it("returns a recorded answer, 404 before there is one", async () => {
    const path = await begin()
    expect((await send("GET", `${path}/name`)).status).toBe(404)
    await put(`${path}/name`, "<answer>Bors &amp; Sons &lt;3</answer>")
    const answer = await send("GET", `${path}/name`)
    expect([answer.status, answer.xml.name, answer.xml.children.join("")])
      .toEqual([200, "answer", "Bors & Sons <3"])
    const page = await send("GET", `${path}/name`, { accept: "text/html" })
    expect(page.text).toContain("Bors &amp; Sons &lt;3")
  })

  it("overwrites with 200, and the name changes the third question", async () => {
    const path = await withAnswers("Arthur", "The Grail")
    const swallow = challengeOf(await send("GET", path)).p
    expect(swallow).toContain("swallow")
    const robin = await put(`${path}/name`, "<answer>Sir Robin</answer>")
    expect([robin.status, robin.header("location")]).toEqual([200, `${bridge.base}${path}/name`])
    expect(challengeOf(robin).p).toContain("Assyria")
    await put(`${path}/name`, "<answer>Sir Lancelot</answer>")
    expect(challengeOf(await send("GET", path)).p).toContain("colour")
  })

  it("refuses answers out of order with 409", async () => {
    const path = await begin()
    const early = await put(`${path}/quest`, "<answer>The Grail</answer>")
    expect([early.status, early.header("content-type")]).toEqual([409, problemXml])
    await put(`${path}/name`, "<answer>Arthur</answer>")
    expect((await put(`${path}/hard_question`, "<answer>11 m/s</answer>")).status).toBe(409)
  })

  it("continue=confused: 406 with p, the state stays", async () => {
    const path = await begin()
    const before = await send("GET", path)
    const confused = await put(`${path}/name`, `<answer continue="confused">Err</answer>`)
    expect([confused.status, confused.xml.name]).toEqual([406, "p"])
    expect((await send("GET", path)).text).toBe(before.text)
  })

  it("refuses blank, endless and doubtful answers, and other bodies", async () => {
    const path = await begin()
    const status = async (body: string) => (await put(`${path}/name`, body)).status
    expect(await status("<answer/>")).toBe(422)
    expect(await status("<answer>  </answer>")).toBe(422)
    expect(await status(`<answer>${"x".repeat(8193)}</answer>`)).toBe(422)
    expect(await status(`<answer href="/cross_bridge">Arthur</answer>`)).toBe(422)
    expect(await status("<answer><b/></answer>")).toBe(422)
    expect(await status("<answer>Arthur")).toBe(400)
    const form = await send("PUT", `${path}/name`, { body: "answer=Arthur", type: formType })
    expect(form.status).toBe(415)
    expect(challengeOf(await send("GET", path)).p).toBe("What is your name?")
  })

  it("404 where no session is", async () => {
    for (const path of ["/sessions/unknown", "/sessions/unknown/name", "/sessions/a.b"]) {
      expect((await send("GET", path)).status).toBe(404)
    }
    expect((await put("/sessions/unknown/name", "<answer>Arthur</answer>")).status).toBe(404)
    expect((await send("DELETE", "/sessions/unknown")).status).toBe(404)
  })

  it("accepts JSON answers", async () => {
    const path = await begin()
    const body = JSON.stringify({ answer: "Arthur" })
    const json = await send("PUT", `${path}/name`, {
      body,
      type: "application/json",
      accept: "application/json"
    })
    expect(json.status).toBe(201)
    expect(json.json).toMatchObject({ session: path, name: { href: `${path}/name` } })
    expect((await send("GET", `${path}/name`)).xml.children).toEqual(["Arthur"])
  })

  it("honors the conditions of PUT and DELETE", async () => {
    const path = await begin()
    const body = "<answer>Arthur</answer>"
    const conditional = (headers: Record<string, string>, method = "PUT", at = `${path}/name`) =>
      send(method, at, { headers, ...method === "PUT" ? { body } : {} })
    expect((await conditional({ "If-Match": "*" })).status).toBe(412)
    expect((await conditional({ "If-None-Match": "*" })).status).toBe(201)
    expect((await conditional({ "If-None-Match": "*" })).status).toBe(412)
    const json = await send("GET", `${path}/name`, { accept: "application/json" })
    expect((await conditional({ "If-Match": json.etag })).status).toBe(200)
    expect((await conditional({ "If-Match": `"other"` })).status).toBe(412)
    const { etag } = await send("GET", path)
    expect((await conditional({ "If-Match": `"other"` }, "DELETE", path)).status).toBe(412)
    expect((await conditional({ "If-Match": etag }, "DELETE", path)).status).toBe(204)
  })
})
