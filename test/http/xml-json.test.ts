/** Documents as JSON. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { childOf, type Element, element, parseText, toJson,
  writeElement } from "../../http/formats/xml/index.ts"
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

  it("writes a single member of a list as an array", () => {
    const waiting = element("waiting", {}, element("message", { name: "Deposit", count: "1" }))
    expect(toJson(element("actor", {}, waiting))).toEqual({
      waiting: { message: [{ name: "Deposit", count: "1" }] }
    })
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

  it("writes what others add to a notification so that it can be read", () => {
    const attributes = { "xmlns:dc": "urn:dc", "xml:lang": "en", xmlns: "urn:x", type: "t" }
    const item = element(
      "item",
      { "xmlns:dc": "urn:dc" },
      element("description", { "xml:lang": "en" }, "d"),
      element("url", {}, "u"),
      element("content", { type: "text/plain", "dc:y": "1" }, "hi"),
      element("dc:creator", attributes, "A"),
      element("query", { on: "1" }, element("where", {}, element("field", {}, "f")))
    )
    const root = element("notification", {}, item, element("beside", { a: "1" }))
    const json = toJson(root)
    expect(json).toEqual({
      item: {
        "@xmlns:dc": "urn:dc",
        description: { "@xml:lang": "en", text: "d" },
        url: "u",
        content: { type: "text/plain", "@dc:y": "1", text: "hi" },
        "dc:creator": {
          "@xmlns:dc": "urn:dc",
          "@xml:lang": "en",
          "@xmlns": "urn:x",
          "@type": "t",
          text: "A"
        },
        query: { "@on": "1", where: [{ field: "f" }] }
      },
      beside: { "@a": "1" }
    })
    expect(parser.fromJson("notification", json)).toEqual({ ok: true, value: root })
    const listed = element("mailbox", { time: "1" }, root)
    const page = { time: "1", notification: [json] }
    expect(toJson(listed)).toEqual(page)
  })

  it("reads what it writes of any element that others add", () => {
    const name = fc.constantFrom(
      "a",
      "b",
      "text",
      "query",
      "on",
      "where",
      "content",
      "notification",
      "item",
      "toString",
      "p:c"
    )
    const attribute = fc.oneof(
      name.filter((one) => one !== "p:c"),
      fc.constantFrom("xml:lang", "xmlns", "p:c", "type", "href")
    )
    const value = fc.string({ unit: fc.constantFrom("a", " ", "&", "<", "\n", "é", "😀", "1") })
    // JSON keeps elements of one name together, and the text behind them.
    const inOrder = (children: ReadonlyArray<Element>): ReadonlyArray<Element> => {
      const names = [...new Set(children.map((child) => child.name))]
      return names.flatMap((one) => children.filter((child) => child.name === one))
    }
    const { tree } = fc.letrec<{ tree: Element }>((tie) => ({
      tree: fc.tuple(
        name,
        fc.dictionary(attribute, value, { maxKeys: 3 }),
        fc.oneof(
          { depthSize: "small" },
          fc.constant([]),
          fc.array(tie("tree"), { maxLength: 3 })
        ),
        value
      ).map(([tag, attributes, children, text]) => {
        const isText = text !== "" && (children.length === 0 || text.trim() !== "")
        return element(tag, attributes, ...inOrder(children), isText ? text : undefined)
      })
    }))
    fc.assert(
      fc.property(tree, fc.boolean(), (added, isBeside) => {
        const known = ["content", "item", "to"].includes(added.name)
        const foreign = known ? { ...added, name: "a" } : added
        const item = element(
          "item",
          { "xmlns:p": "urn:p" },
          element("description", {}, "d"),
          element("url", {}, "u"),
          isBeside ? undefined : foreign
        )
        const root = element(
          "notification",
          { "xmlns:p": "urn:p" },
          item,
          isBeside ? foreign : undefined
        )
        const parsed = parseText(writeElement(root))
        if (!parsed.ok) throw new Error(parsed.fault.detail)
        const json: unknown = JSON.parse(JSON.stringify(toJson(parsed.value)))
        const read = parser.fromJson("notification", json)
        const place = (all: Element) => isBeside ? all : childOf(all, "item") ?? all
        expect(read.ok ? childOf(place(read.value), foreign.name) : read)
          .toEqual(childOf(place(parsed.value), foreign.name))
      }),
      { numRuns: 500 }
    )
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

  it.each([
    { "@xmlns:h": "http://www.w3.org/1999/xhtml", "h:script": "alert(1)" },
    { b: [{ svg: { "@xmlns": "http://www.w3.org/2000/svg", "@onload": "alert(1)" } }] }
  ])("holds nothing that a browser would run: %j", (value) => {
    expect(parser.fromJson("a", value)).toMatchObject({ fault: { _tag: "ActiveMarkup" } })
  })

  it("unwraps a root, shows empty lists, and refuses bad names and depth", () => {
    expect(parser.fromJson("answer", { answer: { continue: true } })).toMatchObject({
      value: { attributes: { continue: "true" } }
    })
    expect(parser.fromJson("answer", "yes")).toMatchObject({ value: { children: ["yes"] } })
    expect(toJson(element("sessions"))).toEqual({ session: [] })
    expect(parser.fromJson("a", JSON.parse("{\"__proto__\":1}")).ok).toBe(false)
    expect(parser.fromJson("a", { "b c": 1 }).ok).toBe(false)
    for (const value of [{ ":": { d: "" } }, { "x:y": "" }, { "@x:y": "", b: "" }]) {
      expect(parser.fromJson("a", value)).toMatchObject({ fault: { _tag: "Malformed" } })
    }
    expect(parser.fromJson("a", { "@xmlns:x": "urn:x", "x:y": "1" }).ok).toBe(true)
    expect(parser.fromJson("a", { b: "\u0000" }).ok).toBe(false)
    expect(parser.fromJson("a", [1]).ok).toBe(false)
    let deep: unknown = 1
    for (let level = 0; level < 40; level += 1) deep = { a: deep }
    expect(parser.fromJson("r", deep).ok).toBe(false)
  })
})
