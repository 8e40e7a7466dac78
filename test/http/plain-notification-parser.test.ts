/** The plain notification parser returns the same results as the full parser. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { storedFragment } from "../../http/formats/xml/notification-document.ts"
import { parsePlainNotification } from "../../http/formats/xml/plain-notification-parser.ts"
import { parser } from "./document-parser.ts"

const blank = fc.constantFrom("", "", "\n", "  ", "\t\n ")
const text = fc.oneof(
  fc.constantFrom("d", "http://a/b?c=d", " http://a/ ", "", " ", "a > b", "é€", "it's \"so\""),
  fc.constantFrom(
    "a&amp;b",
    "a ]]> b",
    "a]",
    "\r",
    "<b/>",
    "<b>c</b>",
    "\u0001",
    "\ufffe",
    "\u{1f600}"
  ),
  fc.string({ maxLength: 6 })
)
const name = fc.constantFrom(
  ...["description", "url", "description", "url", "password", "subject", "Sub", "x"],
  ...["to", "from", "item", "notification", "content", "constructor", "prototype", "valueOf"],
  ...["a b", "a:b", "1", "", "é", "a".repeat(40), "description x=\"1\"", "!--", "/x"]
)
const element = fc.tuple(name, text, blank).map(([of, inside, after]) =>
  `<${of}>${inside}</${of}>${after}`
)
const plainElements = fc.constantFrom(
  "<description>The minutes</description>",
  "<url>http://content.example/</url>\n"
)
const document = fc.tuple(
  fc.array(fc.oneof(plainElements, plainElements, element), { maxLength: 6 }),
  blank,
  blank,
  fc.constantFrom("", "", "", "", "<to>x</to>", "x", "<!-- y -->")
).map(([children, before, after, more]) =>
  `<notification>${before}<item>${after}${children.join("")}</item>${more}${before}</notification>`
)

type Parsed = ReturnType<typeof parser.parseNotificationText>

/** Without what only the plain parser knows: how the client wrote the item. */
const meaning = (parsed: Parsed): Parsed =>
  parsed.ok ? { ...parsed, value: { ...parsed.value, written: undefined } } : parsed

const byPlain = (source: string): Parsed => meaning(parser.parseNotificationText(source))

/** A comment before the root makes a notification not plain, and does not change its meaning. */
const byParser = (source: string) => parser.parseNotificationText(`<!---->${source}`)

/** The stored form of a document, with its password between brackets. */
const stored = (parsed: Parsed): string | undefined =>
  parsed.ok ? storedFragment(parsed.value, (text) => `[${text}]`) : undefined

const usual = "<notification><item><description>d</description><url> http://a/ </url>" +
  "<password>p</password><subject>s</subject><tag>t</tag></item></notification>"

const fields = "<description>d</description><url>http://a/</url>"

describe("a plain notification", () => {
  it("is read without the parser", () => {
    expect(parsePlainNotification(usual)).toMatchObject({
      description: "d",
      url: "http://a/",
      password: "p",
      extra: "<subject>s</subject><tag>t</tag>"
    })
  })

  it("equals the result of the full parser", () => {
    expect(byPlain(usual)).toEqual(byParser(usual))
    fc.assert(
      fc.property(document, (source) => {
        expect(byPlain(source)).toEqual(byParser(source))
      }),
      { numRuns: 3_000 }
    )
  })

  it("is none when it is cut or changed at any place", () => {
    for (let at = 0; at <= usual.length; at++) {
      const cut = usual.slice(0, at)
      expect(parser.parseNotificationText(cut).ok).toBe(at === usual.length)
      for (const piece of ["<", ">", "/", "&", "]", " ", "\u0000"]) {
        const changed = cut + piece + usual.slice(at + 1)
        expect(byPlain(changed)).toEqual(byParser(changed))
      }
    }
  })

  it("is stored as the full parser's result is", () => {
    fc.assert(
      fc.property(document, (source) => {
        expect(stored(parser.parseNotificationText(source))).toBe(stored(byParser(source)))
      }),
      { numRuns: 3_000 }
    )
  })

  it.each([
    ["its elements in order", "<description>d</description><url>http://a/</url><x>y</x>", true],
    ["a password", `${fields}<password>p</password><x>y</x>`, true],
    ["an empty password", `${fields}<password></password>`, true],
    ["a blank before the first element", ` ${fields}`, false],
    ["a blank between elements", `${fields}\n<x>y</x>`, false],
    ["a blank after the last element", `${fields} `, false],
    ["a blank around the password", `${fields}<password> p</password>`, false],
    ["a blank around the URL", "<description>d</description><url>http://a/ </url>", false],
    ["another order", "<url>http://a/</url><description>d</description>", false],
    ["an unknown element first", `<x>y</x>${fields}`, false],
    ["the password last", `${fields}<x>y</x><password>p</password>`, false],
    ["a mark in a text", "<description>a > b</description><url>http://a/</url>", false],
    ["a mark in an unknown element", `${fields}<x>a > b</x>`, false]
  ])("with %s: its item is stored as it is written: %s", (_, children, isAsWritten) => {
    const source = `<notification><item>${children}</item></notification>`
    const plain = parsePlainNotification(source)
    expect(plain?.written !== undefined).toBe(isAsWritten)
    expect(stored(parser.parseNotificationText(source))).toBe(stored(byParser(source)))
  })
})
