import { array, assert, asyncProperty, integer, nat, property, stringMatching,
  tuple } from "fast-check"
import { describe, expect, it } from "vitest"
import { formatCursor, numberMax, parseSince, startAfter } from "../../actors/mailbox/cursor.ts"
import { parseDuration } from "../../actors/mailbox/duration.ts"
import { decodeItem, decodeRemoval, encodeItem, encodeRemoval, isRemoval, itemAtMs, itemRepeatKey,
  notificationId, parseNotificationId, repeatKey } from "../../actors/mailbox/log-item.ts"
import { covers, first, include, type Range, type Retrieval, retrieve, subtract,
  total } from "../../actors/mailbox/ranges.ts"
import { nowMs } from "./cells.ts"

const times = integer({ min: 0, max: 4_102_444_800_000 })
const numbers = integer({ min: 0, max: numberMax })
const parts = stringMatching(/^[A-Za-z0-9_-]{22}$/)

describe("a cursor", () => {
  it("is ordered as text as in time and number, and leads back to its number", () => {
    assert(
      property(times, numbers, times, numbers, (t1, n1, t2, n2) => {
        const [a, b] = [formatCursor(t1, n1), formatCursor(t2, n2)]
        expect(parseSince(a)).toEqual({ _tag: "After", n: n1, atMs: t1 })
        expect(Math.sign(a < b ? -1 : a > b ? 1 : 0)).toBe(Math.sign(t1 - t2 || n1 - n2))
      })
    )
  })
  it("is a timestamp with fifteen digits", () => {
    expect(formatCursor(Date.UTC(2026, 10, 21, 8, 0, 0, 123), 42))
      .toBe("2026-11-21T08:00:00.123000000000042Z")
  })
  it("may be any other timestamp of RFC 3339", () => {
    const at = (text: string): unknown => parseSince(text)
    const atMs = Date.UTC(2026, 10, 21, 8, 0, 0, 0)
    expect(at("2026-11-21T08:00:00Z")).toEqual({ _tag: "At", atMs })
    expect(at("2026-11-21t08:00:00.1239z")).toEqual({ _tag: "At", atMs: atMs + 123 })
    expect(at("2026-11-21T09:30:00+01:30")).toEqual({ _tag: "At", atMs })
    expect(at("2026-11-21T07:59:60.5Z")).toEqual({ _tag: "At", atMs: atMs + 500 })
    expect(at("2026-11-21T07:00:00.123000000000042-01:00")).toEqual({
      _tag: "At",
      atMs: atMs + 123
    })
    for (
      const text of ["", "yesterday", "2026-11-21", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z"]
        .concat("2026-11-21T24:00:00Z", "2026-11-21T08:00:00", "2026-11-21T08:00:00+99:00")
    ) expect(at(text), text).toBeUndefined()
  })
})

describe("a search for a time in the log", () => {
  it("begins after all that was received before, over any gaps", async () => {
    const logs = array(tuple(integer({ min: 1, max: 5 }), nat(3)), { maxLength: 40 })
    await assert(
      asyncProperty(logs, nat(130), nat(6), async (steps, time, over) => {
        let n = 0
        let atMs = 0
        const log = steps.map(([gap, later]) => ({ n: n += gap, atMs: atMs += later }))
        let reads = 0
        const from = (low: number) => {
          reads++
          return Promise.resolve(log.find((item) => item.n >= low))
        }
        const head = n + over
        const after = await startAfter({ _tag: "At", atMs: time }, head, from)
        expect(log.filter((item) => item.n > after))
          .toEqual(log.filter((item) => item.atMs >= time))
        expect(after).toBeLessThanOrEqual(head)
        expect(reads).toBeLessThanOrEqual(9)
        expect(await startAfter({ _tag: "After", n: head + 9 }, head, from)).toBe(head)
      })
    )
  })
})

describe("a stored notification", () => {
  it("is read back from its log item", () => {
    assert(
      property(times, parts, parts, (atMs, idRandom, digest) => {
        const fragment = "<item>two\nlines of text</item>"
        const value = encodeItem(atMs, idRandom, digest, fragment)
        const stored = { atMs, idRandom, digest, fragment }
        expect(decodeItem(value)).toEqual({ ...stored, network: undefined })
        const network = "2001:db8::/48"
        const strangers = encodeItem(atMs, idRandom, digest, fragment, { network })
        expect(decodeItem(strangers)).toEqual({ ...stored, network })
        expect(itemRepeatKey(strangers)).toBe(repeatKey(digest))
        expect(isRemoval(strangers)).toBe(false)
        expect(itemAtMs(value)).toBe(atMs)
        expect(itemRepeatKey(value)).toBe(repeatKey(digest))
      })
    )
    expect(() => decodeItem("<item/>")).toThrow()
    expect(() => decodeItem(`1 ${"a".repeat(22)} ${"b".repeat(22)} no line`)).toThrow()
  })
  it("is distinguished from a removal event", () => {
    assert(
      property(times, parts, parts, array(parts, { minLength: 1 }), (atMs, random, digest, ids) => {
        const event = encodeRemoval(atMs, ids)
        expect(isRemoval(event)).toBe(true)
        expect(isRemoval(encodeItem(atMs, random, digest, "<item> !</item>"))).toBe(false)
        expect(decodeRemoval(event)).toEqual(ids)
        expect(itemAtMs(event)).toBe(atMs)
        expect(itemRepeatKey(event)).toBeUndefined()
      })
    )
  })
  it("has an id that leads back to its number", () => {
    assert(
      property(integer({ min: 1, max: numberMax }), parts, (n, idRandom) => {
        expect(parseNotificationId(notificationId(n, idRandom))).toEqual({ n, idRandom })
      })
    )
    for (const id of ["", "1", "0-".padEnd(24, "a"), "01-".padEnd(25, "a"), "Z-".padEnd(24, "a")]) {
      expect(parseNotificationId(id), id).toBeUndefined()
    }
  })
})

describe("ranges", () => {
  const some = array(tuple(integer({ min: 1, max: 60 }), nat(9)), { maxLength: 20 })
    .map((all) => all.map(([from, more]): Range => ({ from, to: from + more })))
  const all = (ranges: ReadonlyArray<Range>): ReadonlyArray<number> =>
    ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at))
  const sorted = (values: Iterable<number>): ReadonlyArray<number> =>
    [...new Set(values)].toSorted((a, b) => a - b)

  it("are sets", () => {
    assert(
      property(some, some, nat(30), (left, right, count) => {
        const ranges = include(include([], left, 1000), right, 1000)
        const expected = sorted(all([...left, ...right]))
        expect(all(ranges)).toEqual(expected)
        expect(total(ranges)).toBe(expected.length)
        expect(first(ranges, count)).toEqual(expected.slice(0, count))
        const inside = new Set(expected)
        for (let n = 0; n < 75; n++) expect(covers(ranges, n)).toBe(inside.has(n))
        expect(all(subtract({ from: 1, to: 80 }, ranges)))
          .toEqual(all([{ from: 1, to: 80 }]).filter((n) => !inside.has(n)))
      })
    )
  })
  it("forget the smallest when there are too many", () => {
    const spans = [{ from: 1, to: 3 }, { from: 5, to: 5 }, { from: 8, to: 9 }]
    expect(include([], spans, 2)).toEqual([spans[0], spans[2]])
  })
  it("keep the first time of each retrieval, or one of the same step that is later", () => {
    const retrievals = array(tuple(some, nat(50)), { maxLength: 8 })
    assert(
      property(retrievals, (rounds) => {
        const firstAtMs = new Map<number, number>()
        let ranges: ReadonlyArray<Retrieval> = []
        let atMs = 0
        for (const [spans, later] of rounds) {
          atMs += later
          for (const { from, to } of spans) {
            ranges = retrieve(ranges, { from, to, atMs }, 10, 1000)
            for (let n = from; n <= to; n++) {
              firstAtMs.set(n, firstAtMs.get(n) ?? atMs)
            }
          }
        }
        expect(all(ranges)).toEqual(sorted(firstAtMs.keys()))
        for (const range of ranges) {
          for (const n of all([range])) {
            const first = firstAtMs.get(n) ?? -1
            expect(range.atMs).toBeGreaterThanOrEqual(first)
            expect(Math.floor(range.atMs / 10)).toBe(Math.floor(first / 10))
          }
        }
      })
    )
  })
  it("stay the same object when nothing is new", () => {
    const ranges = [{ from: 1, to: 9, atMs: nowMs }]
    expect(retrieve(ranges, { from: 2, to: 9, atMs: nowMs + 5 }, 10, 9)).toBe(ranges)
  })
})

describe("a duration", () => {
  it("is of ISO 8601", () => {
    const dayMs = 86_400_000
    expect(parseDuration("P30D")).toBe(30 * dayMs)
    expect(parseDuration("P2W")).toBe(14 * dayMs)
    expect(parseDuration("P1Y2M3DT4H5M6S")).toBe((365 + 60 + 3) * dayMs + 14_706_000)
    expect(parseDuration("PT0S")).toBe(0)
    for (const text of ["", "P", "PT", "P1DT", "30D", "P-1D", "P1H", "p1d", "P999999D"]) {
      expect(parseDuration(text), text).toBeUndefined()
    }
  })
})
