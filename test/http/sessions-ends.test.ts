/** How sessions end (B7), with documents and with the forms of the pages. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Bridge, challengeOf, formType, startBridge } from "./bridge.ts"
import type { Answered } from "./harness.ts"

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

describe("B7: the last question", () => {
  const swallows = "What do you mean? An African or a European swallow?"

  it("right: 201, Location and the closing challenge; then all is read-only", async () => {
    const path = await withAnswers("Arthur", "The Grail")
    const last = await put(`${path}/hard_question`, `<answer>${swallows}</answer>`)
    expect(last.status).toBe(201)
    expect(last.header("location")).toBe(`${bridge.base}${path}/hard_question`)
    expect(challengeOf(last)).toEqual({
      session: path,
      p: "Right. Off you go.",
      method: "GET",
      uri: path
    })
    expect(await statusOf(path)).toBe("crossed")
    for (const step of ["name", "quest", "hard_question"]) {
      const late = await put(`${path}/${step}`, "<answer>Arthur</answer>")
      expect([late.status, late.header("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
      expect((await send("GET", `${path}/${step}`)).status).toBe(200)
    }
    expect(challengeOf(await send("GET", path)).p).toBe("Right. Off you go.")
  })

  it("has ended for any PUT, with any body and conditions", async () => {
    const path = await withAnswers("Arthur", "The Grail")
    await put(`${path}/hard_question`, `<answer>${swallows}</answer>`)
    for (
      const [body, options] of [
        ["<reply/>", {}],
        ["<answer", {}],
        ["<answer/>", {}],
        ["Arthur", { type: "text/plain" }],
        ["<answer>Arthur</answer>", { headers: { "If-Match": "\"another\"" } }],
        ["<answer>Arthur</answer>", { headers: { "If-None-Match": "*" } }]
      ] as const
    ) {
      const late = await send("PUT", `${path}/name`, { body, ...options })
      expect([late.status, late.header("allow")], body).toEqual([405, "GET, HEAD, OPTIONS"])
    }
    await send("DELETE", path)
    expect((await put(`${path}/name`, "<reply/>")).status).toBe(410)
  })

  it.each([
    ["application/xml", (answered: Answered) => answered.xml.children.join("")],
    ["application/json", (answered: Answered) => (answered.json as { p: string }).p],
    ["text/plain", (answered: Answered) => answered.text.trim()],
    ["text/html", (answered: Answered) => /<p>(Wrong[^<]*)<\/p>/.exec(answered.text)?.[1]],
    ["image/png", (answered: Answered) => answered.xml.children.join("")]
  ])("wrong: 406 with the cry as %s, and the session is over", async (accept, cryOf) => {
    const path = await withAnswers("Arthur", "The Grail")
    const body = "<answer>I don't know that!</answer>"
    const wrong = await send("PUT", `${path}/hard_question`, { body, accept })
    expect(wrong.status).toBe(406)
    expect(wrong.header("vary")).toContain("Accept")
    expect(cryOf(wrong)).toContain("Aaaaaa")
    expect(await statusOf(path)).toBe("cast")
    expect(challengeOf(await send("GET", path))).toMatchObject({ method: "GET", uri: path })
    const late = await put(`${path}/hard_question`, `<answer>${swallows}</answer>`)
    expect([late.status, late.header("allow")]).toEqual([405, "GET, HEAD, OPTIONS"])
  })

  it.each([
    ["Sir Robin", "Nineveh", 201],
    ["Sir Robin", "I don't know that!", 406],
    ["Sir Lancelot", "Blue.", 201],
    ["Sir Galahad", "Blue. No, yellow!", 406],
    ["Bors", "24 mph", 201],
    ["Bors", "11 m/s", 201],
    ["Bors", "900 mph", 406]
  ])("%s says %s: %d", async (name, answer, status) => {
    const path = await withAnswers(name, "The Grail")
    expect((await put(`${path}/hard_question`, `<answer>${answer}</answer>`)).status).toBe(status)
  })

  it("DELETE: 204, then 410, and gone from the listing", async () => {
    const path = await withAnswers("Arthur")
    expect((await send("DELETE", path)).status).toBe(204)
    expect((await send("GET", path)).status).toBe(410)
    expect((await send("GET", `${path}/name`)).status).toBe(410)
    expect((await put(`${path}/quest`, "<answer>x</answer>")).status).toBe(410)
    expect((await send("DELETE", path)).status).toBe(410)
    expect(await statusOf(path)).toBeUndefined()
  })
})

describe("the forms", () => {
  const post = (path: string, body: string) =>
    send("POST", path, { body, type: formType, accept: "text/html" })

  it("carry a browser to the other side", async () => {
    const path = await begin()
    const name = await post(`${path}/name`, "answer=Sir+Robin&continue=true")
    expect([name.status, name.header("location")]).toEqual([303, bridge.base + path])
    await post(`${path}/quest`, "answer=To+seek+the+Grail&continue=true")
    const page = await send("GET", path, { accept: "text/html" })
    expect(page.text).toContain(`<form action="${path}/hard_question" method="post">`)
    expect(page.text).toContain("Assyria")
    const last = await post(`${path}/hard_question`, "answer=Assur&continue=true")
    expect(last.status).toBe(303)
    const other = await send("GET", path, { accept: "text/html" })
    expect(other.text).toContain("Right. Off you go.")
    expect(other.text).not.toContain("<form")
    expect((await post(`${path}/name`, "answer=Arthur")).status).toBe(405)
  })

  it("show the cry as a page, and take nothing but forms", async () => {
    const path = await withAnswers("Sir Robin", "The Grail")
    const document = await send("POST", `${path}/hard_question`, { body: "<answer>x</answer>" })
    expect([document.status, document.header("accept-post")]).toEqual([415, formType])
    const wrong = await post(`${path}/hard_question`, "answer=Rome&continue=true")
    expect([wrong.status, wrong.header("content-type")]).toEqual([406, "text/html; charset=utf-8"])
    expect(wrong.text).toContain("Into the gorge with you!")
    const page = await send("GET", path, { accept: "text/html" })
    expect(page.text).toContain("cast into the Gorge")
  })

  it("refuse control characters", async () => {
    const path = await begin()
    expect((await post(`${path}/name`, "answer=%00")).status).toBe(400)
    expect((await post(`${path}/name`, "answer=%ff")).status).toBe(400)
  })
})
