/** The plain notification parser returns the same results as the full parser. */
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
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

/** A comment before the root makes a notification not plain, and does not change its meaning. */
const byParser = (source: string) => parser.parseNotificationText(`<!---->${source}`)

const usual = "<notification><item><description>d</description><url> http://a/ </url>" +
  "<password>p</password><subject>s</subject><tag>t</tag></item></notification>"

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
    expect(parser.parseNotificationText(usual)).toEqual(byParser(usual))
    fc.assert(
      fc.property(document, (source) => {
        expect(parser.parseNotificationText(source)).toEqual(byParser(source))
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
        expect(parser.parseNotificationText(changed)).toEqual(byParser(changed))
      }
    }
  })
})
