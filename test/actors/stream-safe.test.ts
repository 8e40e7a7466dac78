/** Texts of strangers that are normalized, and their hosts. */
import { array, assert, constantFrom, property } from "fast-check"
import { describe, expect, it, vi } from "vitest"
import { combiningRunMax, hostCharsMax, hostLabelCharsMax } from "../../actors/limits.ts"
import { parseUrl } from "../../actors/parse-url.ts"
import { bridge } from "../../actors/session/bridge.ts"
import { scriptProgress } from "../../actors/session/script.ts"
import { streamSafe } from "../../actors/text/stream-safe.ts"
import { fold } from "../../http/query-engine/condition.ts"

const longRun = new RegExp(`\\p{M}{${combiningRunMax + 1}}`, "u")

/** Marks in the order that takes longest to normalize. */
const marks = "\u0345".repeat(2_000) + "\u0334".repeat(2_000)

describe("a text of a stranger", () => {
  it("keeps all but the end of long runs of marks", () => {
    const part = constantFrom("a", "\u0301", "\u0345\u0334", "\u{1d165}", "\ufdfa", " ", "가")
    assert(property(array(part, { maxLength: 100 }), (parts) => {
      const text = parts.join("")
      const safe = streamSafe(text)
      expect(longRun.test(safe)).toBe(false)
      if (!longRun.test(text) && !text.includes("\u{1d165}")) expect(safe).toBe(text)
      expect(safe.replaceAll(/\p{M}/gu, "")).toBe(text.replaceAll(/\p{M}/gu, ""))
      expect(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/.test(safe)).toBe(false)
    }))
    expect(streamSafe(`e${marks}x`)).toHaveLength(combiningRunMax + 2)
    expect(streamSafe("é e\u0301 ünïcödé")).toBe("é e\u0301 ünïcödé")
  })

  it("has no long run of marks by NFKD, either", () => {
    for (let code = 0; code <= 0x10ffff; code++) {
      if (code >= 0xd800 && code < 0xe000) continue
      const one = String.fromCodePoint(code)
      if (!/^\p{M}+$/u.test(one.normalize("NFKD"))) continue
      const safe = streamSafe(`\u0345${one}`.repeat(2 * combiningRunMax)).normalize("NFKD")
      expect([code, safe.length <= 4 * combiningRunMax]).toEqual([code, true])
    }
  })

  it("is never normalized with a long run of marks, in sessions and queries", () => {
    const normalize = vi.spyOn(String.prototype, "normalize")
    try {
      scriptProgress(bridge, { name: marks, quest: marks, hard_question: marks })
      fold(marks)
      expect(normalize.mock.contexts.length).toBeGreaterThan(2)
      for (const text of normalize.mock.contexts) expect(longRun.test(String(text))).toBe(false)
    } finally {
      normalize.mockRestore()
    }
  })
})

describe("a host", () => {
  const label = "\u4e00".repeat(hostLabelCharsMax + 1)

  it("is none if it is longer than any name, in every form that a parser reads", () => {
    const texts = [
      `http://${label}/`,
      `HTTPS:\\\\${label}`,
      `http:${label}`,
      ` \th\nttp://user:password@${label}:80/x`,
      `//${label}/x`,
      `/\\${label}`,
      `ws://a.${label}.b?x`,
      `http://${encodeURIComponent(label)}/`,
      `http://${"ab.".repeat(hostCharsMax / 2)}/`
    ]
    for (const text of texts) {
      expect([text, parseUrl(text, "https://example.org/")]).toEqual([text, undefined])
    }
  })

  it("is read beside whatever else is long, and without what a parser drops", () => {
    const long = "x".repeat(5_000)
    const texts = [
      [`http://example.org/${long}`, "example.org"],
      [`http://example.org?${long}`, "example.org"],
      [`http://example.org#${label}`, "example.org"],
      [`http://${long}:${long}@example.org/`, "example.org"],
      [`http://ex${"\u00ad".repeat(5_000)}ample.org/`, "example.org"],
      [`${long}/${label}`, "base.example"],
      [`urn:${long}`, ""]
    ] as const
    for (const [text, host] of texts) {
      expect([text, parseUrl(text, "https://base.example/")?.hostname]).toEqual([text, host])
    }
  })
})
