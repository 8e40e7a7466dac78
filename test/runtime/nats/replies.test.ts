/** Reads of many messages at once detect omitted and lost messages. */
import type { Msg, MsgHdrs } from "@nats-io/transport-node"
import { assert, asyncProperty, integer, nat, option, uniqueArray } from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listingOverlapNames } from "../../../runtime/limits.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { parseReplies } from "../../../runtime/nats/stream/reader.ts"
import { IdPager, inOrderOfId, listSubjects } from "../../../runtime/nats/stream/listing.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { alice, commitOf, run } from "../../suites/storage-probe.ts"
import { onNats } from "./backend.ts"
import { type NatsServer, startServer } from "./servers.ts"

describe("a log of more bytes than servers send in one answer", () => {
  let server: NatsServer
  beforeAll(async () => {
    // They end an answer above this; 64 MB unless configured.
    server = await startServer({ extra: "max_pending: 4MB\n" })
  })
  afterAll(() => server.close())

  it("is read completely", async () => {
    const open = onNats(Storage, natsStorage(), () => [server.url])
    const [writing, reading] = [await open(), await open()]
    const items = Array.from({ length: 120 }, (_, at) => ({
      n: at + 1,
      value: `${at} ${"v".repeat(60_000)}`
    }))
    const first = items.slice(0, 1)
    await run(writing.api.commit([commitOf({ state: "s", head: 1, append: first })]))
    const { revision: expected } = await run(writing.api.load(alice))
    for (let at = 1; at < items.length; at += 10) {
      await run(writing.api.commit([commitOf({ expected, append: items.slice(at, at + 10) })]))
    }
    const numbersOf = async ({ api }: typeof reading) =>
      (await run(api.read(alice, 1, 1_000))).map(({ n }) => n)
    const all = items.map(({ n }) => n)
    expect(await numbersOf(writing)).toEqual(all)
    expect(await numbersOf(reading)).toEqual(all)
    expect((await run(reading.api.load(alice))).head).toBe(items.length)
    await writing.close()
    await reading.close()
  })
})

const messageOf = (code: number, fields: Readonly<Record<string, number>>): Msg => {
  const headers = {
    code,
    has: (name: string) => name in fields,
    get: (name: string) => String(fields[name] ?? "")
  }
  // What is read of an answer.
  return { headers: headers as unknown as MsgHdrs } as Msg
}

const listed = [
  messageOf(0, { "Nats-Sequence": 3, "Nats-Last-Sequence": 0 }),
  messageOf(0, { "Nats-Sequence": 7, "Nats-Last-Sequence": 3 }),
  messageOf(0, { "Nats-Sequence": 8, "Nats-Last-Sequence": 7 }),
  messageOf(204, { "Nats-Last-Sequence": 8, "Nats-Num-Pending": 2, "Nats-UpTo-Sequence": 9 })
]

it("detects any lost message of an answer", () => {
  const { remaining, stored, upTo } = parseReplies(listed)
  expect(stored.map(({ seq }) => seq)).toEqual([3, 7, 8])
  expect([remaining, upTo]).toEqual([2, 9])
  for (const lost of [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]]) {
    expect(() => parseReplies(listed.filter((_, at) => !lost.includes(at)))).toThrow("were lost")
  }
})

/** A leader that lists so many names at once, of which some go between two pages. */
const PAGE = 3 * listingOverlapNames

const leader = (names: Set<string>, between: (page: number) => void) => {
  let pages = 0
  const request = async (_: string, data: Uint8Array | string) => {
    if (pages > 0) between(pages)
    pages++
    // The question, as it was made.
    const { offset } = JSON.parse(String(data)) as { offset: number }
    const some = [...names].sort().slice(offset, offset + PAGE)
    const subjects = Object.fromEntries(some.map((name) => [name, 1]))
    const answer = { total: names.size, state: { last_seq: 1, subjects } }
    return { string: () => JSON.stringify(answer) } as Msg // what is read of an answer
  }
  const requestMany = () => Promise.reject(new Error("not asked"))
  return { request, requestMany, dataBytesMax: () => Infinity, readBarrier: async () => undefined }
}

it.each([0, 1, listingOverlapNames, 2 * listingOverlapNames + 5])(
  "lists every remaining name if %i are removed between two pages",
  async (gone) => {
    const names = Array.from({ length: 4 * PAGE }, (_, at) => `s.${String(at).padStart(6, "0")}`)
    const there = new Set(names)
    const reported: Array<string> = []
    const between = (page: number) => {
      if (page === 1) { for (const name of names.slice(0, gone)) there.delete(name) }
    }
    for await (const { subjects } of listSubjects(leader(there, between), "S", "s.>")) {
      reported.push(...subjects)
    }
    expect(reported).toEqual(names)
  }
)

/** The names of a listing, as pages of candidates; counts the pages that were read. */
const countedPages = (names: ReadonlySet<string>) => {
  const counted = { pages: 0 }
  const list = async function*(_scope: string, after: string | undefined) {
    for await (const { subjects } of listSubjects(leader(new Set(names), () => {}), "S", "s.>")) {
      counted.pages++
      yield subjects.filter((subject) => after === undefined || subject > after)
    }
  }
  return { counted, list }
}

it("reads only the pages of a listing that it returns ids of", async () => {
  const names = Array.from({ length: 10 * PAGE }, (_, at) => `s.${String(at).padStart(6, "0")}`)
  const { counted, list } = countedPages(new Set(names))
  const pager = new IdPager<string>(list, async (some: ReadonlyArray<string>) => some)
  const ids = [...await pager.page("", undefined, 50)]
  expect(counted.pages).toBe(1)
  while (ids.length < names.length) {
    ids.push(...await pager.page("", ids.at(-1), 70))
    // One page ahead at most: the listing is never in memory as a whole.
    expect(counted.pages).toBeLessThanOrEqual(Math.ceil(ids.length / (2 * listingOverlapNames)) + 1)
  }
  expect(ids).toEqual(names)
})

it("continues a listing for one of two callers, and lists again for the other", async () => {
  const names = Array.from({ length: 2 * PAGE }, (_, at) => `s.${String(at).padStart(6, "0")}`)
  const { list } = countedPages(new Set(names))
  const pager = new IdPager<string>(list, async (some: ReadonlyArray<string>) => some)
  const first = await pager.page("", undefined, 10)
  const next = await Promise.all([1, 2].map(() => pager.page("", first.at(-1), PAGE)))
  expect(next).toEqual([names.slice(10, PAGE + 10), names.slice(10, PAGE + 10)])
})

it("orders a listing by id with a bounded number of ids in memory", async () => {
  await assert(
    asyncProperty(
      uniqueArray(nat(500), { maxLength: 60 }),
      integer({ min: 1, max: 12 }),
      option(nat(500), { nil: undefined }),
      async (numbers, idsMax, from) => {
        const ids = numbers.map((n) => String(n).padStart(3, "0"))
        const after = from === undefined ? undefined : String(from).padStart(3, "0")
        const list = async function*() {
          for (let at = 0; at < ids.length; at += 7) {
            yield ids.slice(at, at + 7).map((id) => ({ id }))
          }
        }
        const ordered: Array<string> = []
        for await (const page of inOrderOfId(list, after, idsMax)) {
          expect(page.length).toBeLessThanOrEqual(idsMax)
          ordered.push(...page.map(({ id }) => id))
        }
        expect(ordered)
          .toEqual(ids.filter((id) => after === undefined || id > after).toSorted())
      }
    )
  )
})
