import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { type Element, element, parseFragment, parseText, writeDocument,
  writeElement } from "../../http/formats/xml/index.ts"
import { parser } from "./document-parser.ts"
import { readableFragment } from "./readable-fragment.ts"

const bytes = (text: string) => new TextEncoder().encode(text)
const doc = (text: string) => parser.parseXml(bytes(text))
const note = (text: string) => parser.parseNotification(bytes(text))
const item = (inside: string) => `<notification><item>${inside}</item></notification>`
const plain = "<description>d</description><url>http://a/</url>"

describe("parseDocument", () => {
  it.each([
    ["a document type", "<!DOCTYPE a><a/>"],
    ["an entity declaration", "<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>"],
    ["an undefined entity", "<a>&constructor;</a>"],
    ["depth", "<a>".repeat(33) + "</a>".repeat(33)],
    ["no end", "<a><b></a>"],
    ["two roots", "<a/><b/>"],
    ["no root", ""],
    ["a reserved element", "<a><__proto__/></a>"],
    ["a reserved attribute", "<a constructor=\"x\"/>"],
    ["the prototype", "<prototype/>"],
    ["an undeclared prefix", "<x:a/>"],
    ["two attributes of one name", "<a b=\"1\" b=\"2\"/>"],
    ["a control character", "<a>&#1;</a>"],
    ["version 1.1", "<?xml version=\"1.1\"?><a/>"],
    ["many nodes", `<a>${"<b/>".repeat(20_001)}</a>`],
    ["a long name", `<${"a".repeat(200)}/>`]
  ])("refuses %s", (_, text) => {
    expect(doc(text)).toMatchObject({ ok: false, fault: { _tag: "Malformed" } })
  })

  it("refuses other encodings, and too large documents", () => {
    expect(parser.parseXml(new Uint8Array([0x3c, 0x61, 0xff, 0x2f, 0x3e])).ok).toBe(false)
    expect(parser.parseXml(Buffer.from("\ufeff<a/>", "utf16le")).ok).toBe(false)
    for (const charset of ["utf-16", "\"ISO-8859-1\""]) {
      expect(parser.parseXml(bytes("<a/>"), `text/xml; charset=${charset}`))
        .toMatchObject({ fault: { _tag: "OtherCharset" } })
      expect(parser.parseJson("a", bytes("{}"), `application/json;charset=${charset}`))
        .toMatchObject({ fault: { _tag: "OtherCharset" } })
    }
    expect(doc("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a/>"))
      .toMatchObject({ ok: false, fault: { _tag: "OtherCharset" } })
    expect(parser.parseXml(bytes(`\ufeff<a/>`), "text/xml; charset=\"UTF-8\"").ok).toBe(true)
    expect(doc(`<a>${" ".repeat(256 * 1024)}</a>`)).toMatchObject({ fault: { _tag: "TooLarge" } })
  })

  it("reads text, CDATA, references, attributes and line ends", () => {
    const parsed = doc("<a b=\"&lt;1&#10;\">x&amp;<![CDATA[<y>]]>\r\n<!-- c --><c/></a>")
    expect(parsed).toEqual({
      ok: true,
      value: element("a", { b: "<1\n" }, "x&<y>\n", element("c"))
    })
  })

  it("gives attributes without a prototype", () => {
    const parsed = doc("<a/>")
    expect(parsed.ok && Object.getPrototypeOf(parsed.value.attributes)).toBe(null)
  })
})

const text = fc.string({ unit: "grapheme", maxLength: 20 }).filter((s) =>
  /^[\t\n\x20-\ud7ff]*$/.test(s)
)
const name = fc.constantFrom("a", "item", "x-y", "to", "url", "_b.c")
const tree: fc.Arbitrary<Element> = fc.letrec<{ node: Element }>((tie) => ({
  node: fc.record({
    name,
    attributes: fc.dictionary(name, text, { noNullPrototype: false }),
    children: fc.array(
      fc.oneof({ depthSize: "small" }, text.filter((s) => s !== ""), tie("node")),
      {
        maxLength: 4
      }
    )
  }).map(({ name, attributes, children }) => element(name, attributes, ...merged(children)))
})).node

function merged(children: ReadonlyArray<Element | string>): Array<Element | string> {
  const out: Array<Element | string> = []
  for (const child of children) {
    const last = out[out.length - 1]
    if (typeof child === "string" && typeof last === "string") out[out.length - 1] = last + child
    else out.push(child)
  }
  return out
}

describe("writing", () => {
  it("parses its own output", () => {
    fc.assert(fc.property(tree, (root) => {
      const parsed = parseText(writeDocument(root))
      if (!parsed.ok) return parsed.fault.detail.includes("nested deeper")
      expect(parsed.value).toEqual(root)
      expect(parseFragment(writeElement(root))).toEqual([root])
      return true
    }))
  })

  it("refuses a tree that XML cannot represent", () => {
    expect(() => writeElement(element("a", {}, "\u0000"))).toThrow()
    expect(() => writeElement(element("a b"))).toThrow()
    expect(() => writeElement(element("a", { "b>": "1" }))).toThrow()
    expect(() => writeElement(element("a", {}, "\ud800"))).toThrow()
    expect(writeElement(element("a", { b: "\"\n" }, "\r<"))).toBe(
      "<a b=\"&quot;&#10;\">&#13;&lt;</a>"
    )
  })
})

describe("parseNotification", () => {
  it("reads every field and preserves unknown elements", () => {
    const parsed = note(
      `<?xml version="1.0"?>\n<notification xmlns:dc="urn:dc" from="true"><to> http://b/ </to>`
        + `<item><description>A &lt; B</description><url> http://a/ </url><password>p</password>`
        + `<dc:x  y='1'>é😀<z/></dc:x\n><description2/></item><dc:y/></notification>`
    )
    expect(parsed).toMatchObject({
      ok: true,
      value: {
        to: ["http://b/"],
        from: true,
        description: "A < B",
        url: "http://a/",
        password: "p",
        extra: "<dc:x  y='1'>é😀<z/></dc:x\n><description2/>",
        rootExtra: "<dc:y xmlns:dc=\"urn:dc\"/>"
      }
    })
    if (!parsed.ok) return
    expect(readableFragment({ ...parsed.value, sender: "http://out/" })).toBe(
      "<item xmlns:dc=\"urn:dc\"><description>A &lt; B</description><url>http://a/</url>"
        + "<password>p</password><from>http://out/</from>"
        + "<dc:x  y='1'>é😀<z/></dc:x\n><description2/></item><dc:y xmlns:dc=\"urn:dc\"/>"
    )
  })

  it.each([
    ["root", "<note/>"],
    ["item", "<notification/>"],
    ["one-item", `<notification><item>${plain}</item><item>${plain}</item></notification>`],
    ["description", item("<url>http://a/</url>")],
    ["url", item("<description>d</description>")],
    ["url", item("<description>d</description><url/>")],
    ["duplicate", item(`${plain}<url>http://b/</url>`)],
    ["duplicate", item(`${plain}<password>a</password><password>b</password>`)],
    ["stray-text", item(`${plain}hello`)],
    ["stray-text", `<notification>x<item>${plain}</item></notification>`],
    ["text-only", item("<description><b/></description><url>http://a/</url>")],
    ["uri", item("<description>d</description><url>not a uri</url>")],
    ["uri", `<notification><to></to><item>${plain}</item></notification>`],
    ["content-type", item(`${plain}<content>x</content>`)],
    ["content-encoding", item(`${plain}<content type="a/b" encoding="base64">x</content>`)],
    ["content-encoding", item(`${plain}<content type="a/b" encoding="gzip">x</content>`)],
    [
      "recipients",
      `<notification>${"<to>http://a/</to>".repeat(1001)}<item>${plain}</item></notification>`
    ]
  ])("says which rule is broken: %s", (rule, text) => {
    expect(note(text)).toMatchObject({ ok: false, fault: { _tag: "RuleBroken", rule } })
  })

  it.each([
    ["<notification><item>"],
    ["<!DOCTYPE notification><notification/>"],
    [item(`${plain}<x:y/>`)],
    [item(`${plain}<__proto__/>`)],
    [item(`${plain}<a constructor=""/>`)],
    [item(`${plain}${"<a>".repeat(31)}${"</a>".repeat(31)}`)],
    ["not xml"]
  ])("is malformed: %s", (text) => {
    expect(note(text)).toMatchObject({ ok: false, fault: { _tag: "Malformed" } })
  })

  it.each([
    item(`${plain}<?xml-stylesheet href="http://evil.test/x.xsl" type="text/xsl"?>`),
    `<?x?><notification><item>${plain}</item></notification>`,
    item(`${plain}<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>`),
    item(`${plain}<h:script xmlns:h="http://www.w3.org/1999/&#x78;html">alert(1)</h:script>`),
    item(`${plain}<svg xmlns='http://www.w3.org/2000/svg' onload="alert(1)"/>`),
    item(`${plain}<m:math xmlns:m="http://www.w3.org/1998/Math/MathML"/>`),
    item(`${plain}<t:stylesheet xmlns:t="http://www.w3.org/1999/XSL/Transform"/>`),
    `<notification xmlns="http://www.w3.org/1999/xhtml"><item>${plain}</item></notification>`,
    item(`${plain}<a><b xmlns:x="http://www.w3.org/1999/xhtml"/></a>`)
  ])("holds nothing that a browser would run: %s", (text) => {
    expect(note(text)).toMatchObject({ ok: false, fault: { _tag: "ActiveMarkup" } })
  })

  it("may name such a namespace in a text or another attribute", () => {
    const namespace = "http://www.w3.org/1999/xhtml"
    expect(note(item(`${plain}<a xmlns:d="urn:d" about="${namespace}">${namespace}</a>`)).ok)
      .toBe(true)
  })

  it("is refused in another encoding", () => {
    expect(note("<?xml version=\"1.0\" encoding=\"utf-16\"?>" + item(plain)))
      .toMatchObject({ ok: false, fault: { _tag: "OtherCharset" } })
  })

  it("accepts inlined content instead of a url, also after a refusal", () => {
    expect(note("<a")).toMatchObject({ ok: false })
    const inlined = note(item(
      "<description/><content type=\"text/plain\" encoding=\"base64\">aGk\n=</content>"
    ))
    expect(inlined).toMatchObject({
      ok: true,
      value: { url: "", content: { type: "text/plain", encoding: "base64", text: "aGk=" } }
    })
  })

  it("survives any bytes, and agrees with the other parser on well-formedness", () => {
    fc.assert(fc.property(fc.uint8Array({ maxLength: 200 }), (input) => {
      parser.parseNotification(input)
      parser.parseXml(input)
      parser.fromJson("a", input)
    }))
  })

  it("survives mutated documents; what it accepts can be stored and read again", () => {
    const seed = `<notification xmlns:d="urn:d"><to>http://b/</to><item><description>x &amp; y`
      + `</description><url>http://a/</url><d:e f="g"><![CDATA[h]]></d:e><content type="a/b">i`
      + `</content></item></notification>`
    const cut = fc.tuple(
      fc.nat(seed.length),
      fc.nat(12),
      fc.oneof(
        fc.constantFrom(
          "<",
          ">",
          "&",
          "\"",
          "/",
          "<item>",
          "</item>",
          "<!--",
          "]]>",
          "xmlns=",
          "\r"
        ),
        fc.string({ unit: "binary", maxLength: 4 })
      )
    )
    fc.assert(
      fc.property(fc.array(cut, { minLength: 1, maxLength: 4 }), (cuts) => {
        let text = seed
        for (const [at, length, put] of cuts) {
          text = text.slice(0, at) + put + text.slice(at + length)
        }
        const hot = note(text)
        const cold = doc(text)
        if (hot.ok) {
          expect(cold.ok).toBe(true)
          const stored = readableFragment(hot.value)
          const repeated = note(`<notification>${stored}</notification>`)
          expect(repeated.ok && readableFragment(repeated.value)).toBe(stored)
          expect(doc(`<notification>${stored}</notification>`).ok).toBe(true)
        } else if (hot.fault._tag === "Malformed") expect(cold.ok).toBe(false)
      }),
      { numRuns: 2000 }
    )
  })
})
