/** Answers by reference, and the questions without a session (B8–B11). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf } from "../../http/formats/xml/index.ts"
import { type Bridge, challengeOf, startBridge, yes } from "./bridge.ts"

let bridge: Bridge

beforeAll(async () => {
  bridge = await startBridge()
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
