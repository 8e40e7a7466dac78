/** Text before and after a notification's root: what the parser accepts and rejects. */
import { describe, expect, it } from "vitest"
import { parser } from "./document-parser.ts"

const root = "<notification><item><description>d</description><url>http://a/</url></item>" +
  "</notification>"
const usual = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>"

/** A notification, without how its item was written: only the parser of plain ones knows that. */
const meaning = (text: string) => {
  const parsed = parser.parseNotificationText(text)
  if (!parsed.ok) throw new Error("this is no notification")
  return { ...parsed.value, written: undefined }
}

describe("around the root", () => {
  it.each([
    ["", ""],
    [usual, ""],
    [`${usual}\n`, "\n"],
    [`${usual} \n\n`, " \n "],
    [`${usual}\t`, "\t\r\n"],
    ["<?xml version='1.0'?>", "\n"],
    [`${usual}<!-- a remark -->`, "<!-- another -->\n"]
  ])("%j and %j change nothing", (before, after) => {
    expect(meaning(before + root + after)).toEqual(meaning(root))
  })

  it.each([
    [usual + usual, ""],
    [`${usual}\n${usual}`, ""],
    [`${usual}<!DOCTYPE a>`, ""],
    [`${usual}x`, ""],
    ["", "x\n"],
    ["", root],
    ["", `\n${usual}\n`],
    [`${usual}<?php ?>`, ""],
    ["<?xml version=\"1.1\" encoding=\"UTF-8\"?>x", ""]
  ])("%j and %j are refused", (before, after) => {
    expect(parser.parseNotificationText(before + root + after)).toMatchObject({ ok: false })
  })

  it.each(["<\u{10000}/>", "<a \u{10000}=\"1\"/>"])("a name as in %s is refused", (inside) => {
    const text = root.replace("</item>", `${inside}</item>`)
    expect(parser.parseNotificationText(text)).toMatchObject({
      ok: false,
      fault: { _tag: "Malformed" }
    })
  })

  it.each(["", usual, `${usual}\n`, "\n"])("%j alone is no document", (text) => {
    expect(parser.parseNotificationText(text)).toMatchObject({
      ok: false,
      fault: { _tag: "Malformed" }
    })
  })
})
