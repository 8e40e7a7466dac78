/** Documents as JSON. */
import { describe, expect, it } from "vitest"
import { element, toJson } from "../../http/formats/xml/index.ts"
import { parser } from "./document-parser.ts"

describe("JSON", () => {
  it("maps elements, attributes and repeated elements both ways", () => {
    const read = parser.fromJson("notification", {
      from: true,
      to: ["http://a/", "http://b/"],
      item: { description: "d", url: "u", content: { type: "text/plain", text: "hi" } }
    })
    expect(read).toEqual({
      ok: true,
      value: element(
        "notification",
        { from: "true" },
        element("to", {}, "http://a/"),
        element("to", {}, "http://b/"),
        element(
          "item",
          {},
          element("description", {}, "d"),
          element("url", {}, "u"),
          element("content", { type: "text/plain" }, "hi")
        )
      )
    })
    if (read.ok) {
      expect(toJson(read.value)).toEqual({
        from: "true",
        to: ["http://a/", "http://b/"],
        item: { description: "d", url: "u", content: { type: "text/plain", text: "hi" } }
      })
    }
  })

  it("keeps apart what others name as the text or as an attribute", () => {
    const foreign = element(
      "item",
      { text: "attribute", a: "1" },
      element("a", {}, "2"),
      element("text", {}, "element"),
      "own"
    )
    const json = { "@text": "attribute", "@a": "1", a: "2", text: ["element"], "#text": "own" }
    expect(toJson(foreign)).toEqual(json)
    expect(parser.fromJson("item", json)).toEqual({ ok: true, value: foreign })
    expect(toJson(element("item", {}, element("text", {}, "element")))).toEqual({
      text: ["element"]
    })
    const own = { value: element("price", { currency: "EUR" }, "5.0") }
    expect(parser.fromJson("price", { "@currency": "EUR", text: "5.0" })).toMatchObject(own)
  })

  it("reads numbers digit by digit, and none within strings", () => {
    const text =
      "{\"a\":12.50,\"b\":[-0,1e400,12345678901234567890],\"c\":\"1.50 \\\"2.50\\\" \\\\\"}"
    expect(parser.parseJson("r", Buffer.from(text))).toMatchObject({
      value: {
        children: [
          element("a", {}, "12.50"),
          element("b", {}, "-0"),
          element("b", {}, "1e400"),
          element("b", {}, "12345678901234567890"),
          element("c", {}, "1.50 \"2.50\" \\")
        ]
      }
    })
  })

  it("unwraps a root, shows empty lists, and refuses bad names and depth", () => {
    expect(parser.fromJson("answer", { answer: { continue: true } })).toMatchObject({
      value: { attributes: { continue: "true" } }
    })
    expect(parser.fromJson("answer", "yes")).toMatchObject({ value: { children: ["yes"] } })
    expect(toJson(element("sessions"))).toEqual({ session: [] })
    expect(parser.fromJson("a", JSON.parse("{\"__proto__\":1}")).ok).toBe(false)
    expect(parser.fromJson("a", { "b c": 1 }).ok).toBe(false)
    expect(parser.fromJson("a", { b: "\u0000" }).ok).toBe(false)
    expect(parser.fromJson("a", [1]).ok).toBe(false)
    let deep: unknown = 1
    for (let level = 0; level < 40; level += 1) deep = { a: deep }
    expect(parser.fromJson("r", deep).ok).toBe(false)
  })
})
