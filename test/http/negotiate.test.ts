import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { bodyKind, negotiate, parseAccept } from "../../http/formats/negotiation.ts"
import { feedTypes, linkedDataType, notificationTypes,
  standardTypes } from "../../http/formats/representations.ts"

const firefox =
  "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8"

describe("choose", () => {
  it.each<[string | undefined, string | undefined]>([
    [undefined, "application/xml"],
    ["", "application/xml"],
    ["*/*", "application/xml"],
    [firefox, "text/html"],
    ["text/html", "text/html"],
    ["TEXT/HTML", "text/html"],
    ["text/plain", "text/plain"],
    ["text/xml", "text/xml"],
    ["application/json", "application/json"],
    ["application/json, text/plain, */*", "application/json"],
    ["text/*", "text/html"],
    ["application/*", "application/xml"],
    ["text/plain;q=0.5, application/json;q=0.4", "text/plain"],
    ["text/plain;q=0.5, */*;q=0.6", "application/xml"],
    ["application/xml;q=0, */*", "text/html"],
    ["application/xml;q=0, text/*;q=0, */*;q=0.1", "application/json"],
    ["*/*;q=0", undefined],
    ["image/png", undefined],
    ["text/html;q=0", undefined],
    ["text/html;level=1", undefined],
    ["text/html;charset=utf-8", "text/html"],
    ["text/html;charset=latin1, text/plain", "text/plain"],
    ["text/html; q=\"0.1\", text/plain;q=0.05", "text/html"],
    ["text/html;q=1.001, text/plain", "text/plain"],
    [",, text/plain ,", "text/plain"],
    ["text/plain;x=\"a,b;c\\\"\", text/html;q=0.1", "text/html"],
    ["nonsense", "application/xml"],
    ["*/html", "application/xml"],
    ["text/plain; q=.5", "application/xml"],
    ["application/atom+xml", undefined]
  ])("%s -> %s", (accept, expected) => {
    expect(negotiate(accept, standardTypes)).toBe(expected)
    expect(negotiate(accept, standardTypes)).toBe(expected)
  })

  it("knows notifications and feeds", () => {
    expect(negotiate("text/xml+rss", notificationTypes)).toBe("text/xml+rss")
    expect(negotiate("application/atom+xml", feedTypes)).toBe("application/atom+xml")
    expect(negotiate("application/rss+xml;q=0.9, application/atom+xml", feedTypes)).toBe(
      "application/atom+xml"
    )
    expect(negotiate("text/xml+rss", standardTypes)).toBe(undefined)
  })

  it("skips a profile of JSON-LD, and of nothing else", () => {
    const offered = [...standardTypes, linkedDataType]
    expect(negotiate("application/ld+json; profile=\"http://a.example/p\"", offered))
      .toBe(linkedDataType)
    expect(negotiate("application/json; profile=x, text/plain;q=0.1", offered)).toBe("text/plain")
    expect(negotiate("application/ld+json; version=2", offered)).toBe(undefined)
  })

  it("gives each type that is offered when it alone is asked for, and obeys q", () => {
    for (const offered of [standardTypes, notificationTypes, feedTypes]) {
      for (const first of offered) {
        expect(negotiate(first, offered)).toBe(first)
        for (const second of offered) {
          if (first === second) continue
          expect(negotiate(`${first};q=0.3, ${second};q=0.7`, offered)).toBe(second)
          expect(negotiate(`${first};q=0, ${second}`, offered)).toBe(second)
          expect(negotiate(`*/*;q=0.1, ${second};q=0.2`, offered)).toBe(second)
        }
      }
    }
  })

  it("never throws, only chooses offered types, and stays fast", () => {
    fc.assert(fc.property(fc.string({ maxLength: 3000 }), (accept) => {
      const chosen = negotiate(accept, standardTypes)
      expect(chosen === undefined || standardTypes.includes(chosen)).toBe(true)
    }))
    expect(parseAccept("a/b,".repeat(1000)).length).toBeLessThanOrEqual(64)
  })
})

describe("bodyKind", () => {
  it.each<[string | undefined, string | undefined]>([
    ["text/xml+rss", "xml"],
    ["application/xml; charset=utf-8", "xml"],
    ["Application/RSS+XML", "xml"],
    ["application/vnd.x+xml", "xml"],
    ["application/json", "json"],
    ["application/activity+json", undefined],
    ["application/x-www-form-urlencoded", "form"],
    ["multipart/form-data", undefined],
    ["text/plain", undefined],
    ["+xml", undefined],
    [undefined, undefined]
  ])("%s -> %s", (contentType, expected) => {
    expect(bodyKind(contentType)).toBe(expected)
  })
})
