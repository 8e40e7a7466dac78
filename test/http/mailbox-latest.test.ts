/** Pages of the newest, compared with a plain list, over logs with any removals. */
import { Effect } from "effect"
import fc from "fast-check"
import { expect, it } from "vitest"
import { encodeItem, encodeRemoval } from "../../actors/mailbox/log-item.ts"
import type { MailboxView } from "../../actors/mailbox/protocol.ts"
import { latestScannedMax, searchScannedMax } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { mailboxRefNamed } from "../../http/resources/mailboxes/mailbox-access.ts"
import { type MailboxFilter, readLatest } from "../../http/resources/mailboxes/listing/index.ts"
import { firstChars } from "../../runtime/ports/storage.ts"
import { defaultSettings } from "../actors/mailbox-settings.ts"

interface Item {
  readonly n: number
  readonly value: string
}

const part = "x".repeat(22)
const notificationAt = (n: number): Item => ({ n, value: encodeItem(n, part, part, "<item/>") })
const removalAt = (n: number): Item => ({ n, value: encodeRemoval(n, ["1-x"]) })

/** A service in which every mailbox has this log, ascending, and this view. */
const serviceOf = (log: ReadonlyArray<Item>, view: MailboxView): Service =>
  ({
    settings: { baseUrl: "http://post.test" },
    system: {
      ask: () => Effect.succeed({ _tag: "Described", view }),
      read: (_to: unknown, from: number, limit: number, charsMax?: number) =>
        Effect.succeed(firstChars(log.filter(({ n }) => n >= from).slice(0, limit), charsMax))
    }
    // The tested function uses nothing else of a service.
  }) as unknown as Service

/** How many notifications the mailbox has counted, and whether that may be wrong. */
type Counted = number | { readonly notifications: number; readonly isEstimate: true }

const viewOf = (head: number, log: ReadonlyArray<Item>, notifications: Counted): MailboxView => ({
  owner: "admin",
  isOwner: true,
  settings: defaultSettings,
  createdAtMs: 0,
  version: 1,
  head,
  lastAtMs: head,
  removed: head - log.length,
  fetched: 0,
  ...typeof notifications === "number" ? { notifications } : notifications
})

/** The numbers on each page, newest first. */
const pagesOf = (
  head: number,
  log: ReadonlyArray<Item>,
  notifications: Counted,
  limit: number,
  filter?: MailboxFilter
) => {
  const view = viewOf(head, log, notifications)
  const service = serviceOf(log, view)
  const place = mailboxRefNamed(service, "log")
  const pages: Array<ReadonlyArray<number>> = []
  for (let before: number | undefined; pages.length < 2000;) {
    const query = { since: undefined, before, limit, read: true, filter }
    const page = Effect.runSync(
      readLatest(service, place, view, query)
    )
    pages.push(page.entries.map(({ n }) => n).toReversed())
    expect(page.more).toBe(page.older !== undefined)
    if (page.older === undefined) return pages
    if (before !== undefined) expect(page.older).toBeLessThan(before)
    before = page.older
  }
  throw new Error("the pages do not end")
}

it("shows each notification once, newest first, and ends", () => {
  const kinds = fc.array(fc.constantFrom("kept", "gone", "event"), { maxLength: 120 })
  fc.assert(fc.property(kinds, fc.integer({ min: 1, max: 9 }), (all, limit) => {
    const log = all.flatMap((kind, at) =>
      kind === "kept" ? [notificationAt(at + 1)] : kind === "event" ? [removalAt(at + 1)] : []
    )
    const remaining = all.flatMap((kind, at) => kind === "kept" ? [at + 1] : [])
    const pages = pagesOf(all.length, log, remaining.length, limit)
    expect(pages.flat()).toEqual(remaining.toReversed())
    expect(pages.every((page) => page.length <= limit)).toBe(true)
    // Only the last page may be empty: when all earlier entries are removed.
    expect(pages.slice(0, -1).every((page) => page.length === limit)).toBe(true)
  }))
})

it("shows each notification once, whatever their sizes", () => {
  const kinds = fc.array(fc.constantFrom(0, 10, 300_000, 2_000_000), { maxLength: 40 })
  fc.assert(
    fc.property(kinds, fc.integer({ min: 1, max: 30 }), (sizes, limit) => {
      const log = sizes.flatMap((size, at) => {
        const value = encodeItem(at + 1, part, part, "x".repeat(size))
        return size === 0 ? [] : [{ n: at + 1, value }]
      })
      const pages = pagesOf(sizes.length, log, log.length, limit)
      expect(pages.flat()).toEqual(log.map(({ n }) => n).toReversed())
    }),
    { numRuns: 50 }
  )
})

it("scans a bounded part of a log for each page, and the next page continues", () => {
  const log = [notificationAt(1), notificationAt(3 * latestScannedMax)]
  const pages = pagesOf(3 * latestScannedMax + 5, log, 2, 10)
  expect(pages.flat()).toEqual([3 * latestScannedMax, 1])
  expect(pages.length).toBeGreaterThan(2)
})

it("searches a bounded part of a log for each page, and the next page continues", () => {
  const count = searchScannedMax + 2
  const log = Array.from({ length: count }, (_, at) => notificationAt(at + 1))
  const first = { n: 2, value: encodeItem(2, part, part, "<item>found</item>") }
  const pages = pagesOf(count, log.with(1, first), count, 10, {
    isUnread: false,
    text: "found",
    tag: undefined,
    priority: undefined
  })
  expect(pages).toEqual([[], [2]])
})

it("does not read further when it has every notification", () => {
  const head = 3 * latestScannedMax
  expect(pagesOf(head, [notificationAt(head)], 1, 10)).toEqual([[head]])
  expect(pagesOf(head, [], 0, 10)).toEqual([[]])
})

it("shows what is there where the mailbox may have counted wrongly", () => {
  const log = Array.from({ length: 5 }, (_, at) => notificationAt(at + 11))
  expect(pagesOf(15, log, { notifications: 0, isEstimate: true }, 3).flat())
    .toEqual([15, 14, 13, 12, 11])
})
