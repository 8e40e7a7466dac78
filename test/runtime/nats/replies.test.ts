/** Reads of many messages at once detect omitted and lost messages. */
import type { Msg, MsgHdrs } from "@nats-io/transport-node"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listingOverlapNames } from "../../../runtime/limits.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { parseReplies } from "../../../runtime/nats/stream/reader.ts"
import { listSubjects } from "../../../runtime/nats/stream/listing.ts"
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
  return { request, requestMany, readBarrier: async () => undefined }
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
