/**
 * The cursor of a cabinet: no notification is missed or shown twice, with any clocks of the
 * mailboxes' nodes, any times of deposits, and any changes of rights and of the list.
 */
import { Effect } from "effect"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { CabinetQuery, CabinetView } from "../../actors/cabinet/protocol.ts"
import { encodeItem, encodeRemoval, notificationId,
  partChars } from "../../actors/mailbox/log-item.ts"
import type { MailboxView } from "../../actors/mailbox/protocol.ts"
import { cabinetScanCharsMax, cabinetScanItemsMax, cabinetTurnCharsMax,
  pageCharsMax } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { cursorKey, formatCabinetCursor,
  parseCabinetSince } from "../../http/resources/cabinets/cabinet-cursor.ts"
import { type MergedPage, readCabinet } from "../../http/resources/cabinets/cabinet-merge.ts"
import type { Address, LogItem } from "../../runtime/index.ts"
import { defaultSettings } from "../actors/mailbox-settings.ts"

const startMs = 1_800_000_000_000

/** The id of the cabinet. */
const id = "cabinet"

interface Log {
  readonly items: Array<LogItem>
  lastAtMs: number
  head: number
  readable: boolean
}

/** The part of mailboxes that a cabinet reads; `during` runs between any two reads. */
class World {
  readonly logs = new Map<string, Log>()
  during: () => void = () => {}

  deposit(name: string, nowMs: number, text: string): string {
    const log = this.log(name)
    // As in the mailbox actor: its time never runs backwards.
    log.lastAtMs = Math.max(log.lastAtMs, nowMs)
    const fragment = `<item><description>${text}</description><url>u:</url></item>`
    const part = "x".repeat(partChars)
    const n = ++log.head
    log.items.push({ n, value: encodeItem(log.lastAtMs, part, part, fragment) })
    return `${name}/${n}`
  }

  /** The log item by which a mailbox with registrations reports a removal. */
  removal(name: string): void {
    const log = this.log(name)
    const gone = notificationId(1, "x".repeat(partChars))
    log.items.push({ n: ++log.head, value: encodeRemoval(log.lastAtMs, [gone]) })
  }

  log(name: string): Log {
    const known = this.logs.get(name)
    if (known !== undefined) return known
    const log: Log = { items: [], lastAtMs: startMs, head: 0, readable: true }
    this.logs.set(name, log)
    return log
  }

  get service(): Service {
    const system = {
      ask: ({ id }: Address) =>
        Effect.sync(() => {
          this.during()
          const { head, lastAtMs, readable } = this.log(id)
          if (!readable) return { _tag: "Refused", reason: "Forbidden", detail: undefined }
          const view: MailboxView = {
            owner: "o",
            isOwner: true,
            settings: defaultSettings,
            createdAtMs: startMs,
            version: 1,
            head,
            lastAtMs,
            removed: 0,
            fetched: 0,
            notifications: head
          }
          return { _tag: "Listed", view }
        }),
      read: ({ id }: Address, from: number, limit: number) =>
        Effect.sync(() => {
          this.during()
          return this.log(id).items.filter(({ n }) => n >= from).slice(0, limit)
        })
    }
    // To read a cabinet, a service needs only the base URL and these two.
    return { settings: { baseUrl: "http://h" }, system } as unknown as Service
  }

  read(
    names: ReadonlyArray<string>,
    since: string | undefined,
    limit: number,
    query?: CabinetQuery
  ) {
    const cabinet: CabinetView = {
      owner: "o",
      createdAtMs: startMs,
      version: 1,
      mailboxes: names.map((name) => ({ name })),
      ...query === undefined ? {} : { query }
    }
    const parsed = since === undefined ? undefined : parseCabinetSince(since)
    expect(parsed === undefined).toBe(since === undefined)
    return Effect.runPromise(readCabinet(this.service, cabinet, { id, since: parsed, limit }))
  }
}

const shownOn = ({ entries }: MergedPage): ReadonlyArray<string> =>
  entries.map(({ entry, mailbox }) => `${mailbox.name}/${entry.n}`)

const name = fc.constantFrom("a", "b", "c", "d")
const skewMs = fc.integer({ min: -5_000, max: 5_000 })
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant("deposit" as const),
      name,
      skewMs,
      texts: fc.array(fc.constantFrom("x", "y", "z"), { minLength: 1, maxLength: 25 })
    })
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("poll" as const),
      limit: fc.integer({ min: 1, max: 6 })
    })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("toggle" as const), name }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("remove" as const), name, at: fc.nat(20) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("list" as const),
      names: fc.uniqueArray(name, { minLength: 1 })
    })
  }
)
const steps = fc.array(step, { maxLength: 40 })
/** The deposits during the read of a page. */
const racing = fc.array(fc.record({ name, skewMs }), { maxLength: 12 })
const queries = fc.constantFrom<CabinetQuery | undefined>(undefined, { contains: "X" })

describe("a cabinet's cursor", () => {
  it("misses nothing and repeats nothing in any interleaving", async () => {
    await fc.assert(
      fc.asyncProperty(steps, racing, queries, async (steps, meanwhile, query) => {
        const world = new World()
        const queue = [...meanwhile]
        const there = new Set<string>()
        const seen: Array<string> = []
        let nowMs = startMs
        let names: ReadonlyArray<string> = ["a", "b", "c"]
        let time: string | undefined
        const put = (to: string, byMs: number, text: string) => {
          const key = world.deposit(to, nowMs += byMs, text)
          if (query === undefined || text === "x") there.add(key)
        }
        const poll = async (limit: number) => {
          const isQuiet = queue.length === 0
          const page = await world.read(names, time, limit, query)
          expect(page.entries.length).toBeLessThanOrEqual(limit)
          expect(page.entries.length === limit || !page.hasMore).toBe(true)
          const order = page.entries.map(({ entry, mailbox }) =>
            `${entry.received} ${mailbox.name} ${String(entry.n).padStart(9)}`
          )
          if (isQuiet) expect(order).toEqual(order.toSorted())
          seen.push(...shownOn(page))
          time = page.time
          return page.hasMore
        }
        world.during = () => {
          const next = queue.pop()
          if (next !== undefined) put(next.name, next.skewMs, "x")
        }
        for (const one of steps) {
          if (one.do === "deposit") {
            for (const text of one.texts) put(one.name, one.skewMs, text)
          } else if (one.do === "poll") await poll(one.limit)
          else if (one.do === "list") names = one.names
          else if (one.do === "toggle") world.log(one.name).readable = !world.log(one.name).readable
          else {
            const [gone] = world.log(one.name).items.splice(one.at, 1)
            world.removal(one.name)
            if (gone !== undefined) there.delete(`${one.name}/${gone.n}`)
          }
        }
        queue.length = 0
        for (const log of world.logs.values()) log.readable = true
        while (await poll(3));
        const missed = [...there].filter((key) =>
          names.includes(key.split("/")[0] ?? "") && !seen.includes(key)
        )
        expect(missed).toEqual([])
        // A mailbox that left the list has no position: only then it starts from its beginning.
        if (!steps.some((one) => one.do === "list")) expect(new Set(seen).size).toBe(seen.length)
        expect(await poll(3)).toBe(false)
      }),
      { numRuns: 400 }
    )
  })

  it("decodes an encoded cursor, and rejects a truncated or invented one", () => {
    const positions = fc.uniqueArray(
      fc.tuple(fc.stringMatching(/^[a-z0-9]{1,12}$/), fc.integer({ min: 0, max: 999_999_999_999 })),
      { selector: ([mailbox]) => cursorKey(mailbox), maxLength: 100 }
    )
    fc.assert(
      fc.property(positions, fc.integer({ min: 0, max: 4e12 }), (list, atMs) => {
        const text = formatCabinetCursor(id, atMs, list)
        const since = parseCabinetSince(text)
        expect(since).toEqual({
          _tag: "Behind",
          cabinet: cursorKey(id),
          positions: new Map(list.map(([mailbox, n]) => [cursorKey(mailbox), n])),
          atMs
        })
        expect(text.length).toBeLessThan(2_000)
        // A cursor cut within a position is invalid; one cut between two has the first ones.
        const cut = parseCabinetSince(text.slice(0, -1))
        if (cut?._tag === "Behind") expect(cut.positions.size).toBeLessThan(list.length)
      })
    )
    fc.assert(
      fc.property(fc.string(), (text) => void parseCabinetSince(`2030-01-01T00:00:00Z~${text}`))
    )
  })

  it("uses the smaller of two positions under one key", () => {
    const text = formatCabinetCursor(id, startMs, [["a", 7], ["a", 3]])
    expect(parseCabinetSince(text)).toEqual({
      _tag: "Behind",
      cabinet: cursorKey(id),
      positions: new Map([[cursorKey("a"), 3]]),
      atMs: startMs
    })
  })
})

describe("a page", () => {
  it("scans a bounded number of notifications, and the next page continues", async () => {
    const world = new World()
    for (let at = 0; at < cabinetScanItemsMax; at++) {
      world.deposit(at % 2 ? "a" : "b", startMs + at, "no")
    }
    world.removal("a")
    const wanted = world.deposit("a", startMs + cabinetScanItemsMax, "the Grail")
    const query = { contains: "grail" }
    const first = await world.read(["a", "b"], undefined, 100, query)
    expect([first.entries, first.hasMore]).toEqual([[], true])
    const second = await world.read(["a", "b"], first.time, 100, query)
    expect([shownOn(second), second.hasMore]).toEqual([[wanted], false])
  })

  it("gets past any number of items that are no notifications", async () => {
    const world = new World()
    for (let at = 0; at <= cabinetScanItemsMax; at++) world.removal("a")
    const wanted = world.deposit("a", startMs, "x")
    const first = await world.read(["a"], undefined, 9)
    expect([first.entries, first.hasMore]).toEqual([[], true])
    expect(shownOn(await world.read(["a"], first.time, 9))).toEqual([wanted])
  })

  it("scans a bounded amount of text, and at least one notification", async () => {
    const world = new World()
    const text = "x".repeat(cabinetScanCharsMax / 4)
    for (let at = 0; at < 6; at++) world.deposit("a", startMs, text)
    const first = await world.read(["a"], undefined, 100, { contains: "y" })
    expect([first.entries.length, first.hasMore]).toEqual([0, true])
    const shown = await world.read(["a"], undefined, 100)
    expect([shownOn(shown), shown.hasMore]).toEqual([["a/1"], true])
    expect(shownOn(await world.read(["a"], shown.time, 100))).toEqual(["a/2"])
  })

  it("shows a bounded amount of text, and on its next pages the rest, each once", async () => {
    const length = fc.oneof(fc.constant(1), fc.integer({ min: 1, max: 1.5 * pageCharsMax }))
    const deposits = fc.array(fc.record({ name, length }), { minLength: 1, maxLength: 20 })
    const filters = fc.constantFrom<CabinetQuery | undefined>(undefined, { contains: "Y" })
    await fc.assert(
      fc.asyncProperty(deposits, filters, async (all, query) => {
        const world = new World()
        const wanted = new Set<string>()
        all.forEach(({ length, name }, at) => {
          const isWanted = query === undefined || at % 3 !== 0
          const key = world.deposit(name, startMs, `${"x".repeat(length)}${isWanted ? "y" : ""}`)
          if (isWanted) wanted.add(key)
        })
        const seen: Array<string> = []
        let time: string | undefined
        for (let hasMore = true; hasMore;) {
          const page: MergedPage = await world.read(["a", "b", "c", "d"], time, 100, query)
          const chars = page.entries.reduce((sum, { entry }) => sum + entry.fragment.length, 0)
          expect(page.entries.length === 1 || chars <= pageCharsMax).toBe(true)
          seen.push(...shownOn(page))
          ;({ hasMore, time } = page)
        }
        expect(seen.length).toBe(wanted.size)
        expect(new Set(seen)).toEqual(wanted)
      }),
      { numRuns: 30 }
    )
  })

  it("lets other work go on while it looks for a text", async () => {
    const world = new World()
    const count = 12
    const text = "x".repeat(cabinetTurnCharsMax)
    for (let at = 0; at < count; at++) world.deposit("a", startMs, text)
    let turns = 0
    let isDone = false
    const nextTurn = () => {
      turns++
      if (!isDone) setImmediate(nextTurn)
    }
    setImmediate(nextTurn)
    await world.read(["a"], undefined, 100, { contains: "y" })
    isDone = true
    expect(turns).toBeGreaterThanOrEqual(count - 1)
  })

  it("reports the shown entries as runs, without those that the query excludes", async () => {
    const world = new World()
    for (const text of ["x", "x", "no", "x", "no", "no", "x", "x"]) {
      world.deposit("a", startMs, text)
    }
    world.log("a").items.splice(0, 1)
    const page = await world.read(["a"], undefined, 100, { contains: "x" })
    const runs = page.shown.flatMap((one) => one.runs.map((run) => run.map(({ n }) => n)))
    expect(runs).toEqual([[2], [4], [7, 8]])
  })

  it("begins at the start of the query, and applies the query after a cursor too", async () => {
    const world = new World()
    for (let at = 0; at < 20; at++) world.deposit("a", startMs + at * 1000, "x")
    const query = { since: new Date(startMs + 15_000).toISOString() }
    expect(shownOn(await world.read(["a"], undefined, 100, query))).toHaveLength(5)
    const early = formatCabinetCursor(id, startMs + 1000, [["a", 2]])
    expect(shownOn(await world.read(["a"], early, 100, query))).toHaveLength(5)
    const later = new Date(startMs + 18_000).toISOString()
    expect(shownOn(await world.read(["a"], later, 100, query))).toEqual(["a/19", "a/20"])
  })
})
