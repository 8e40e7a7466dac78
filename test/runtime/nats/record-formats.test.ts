/**
 * Two versions of a program in one cluster on a NATS server, which change the same records: the
 * later one has another field, and another form. Nothing is lost, refused or misread.
 */
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Records, type RecordsApi } from "../../../runtime/index.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { natsRecords } from "../../../runtime/nats/records/records.ts"
import { natsStorage } from "../../../runtime/nats/storage/storage.ts"
import { decodeRecord, encodeRecord, recordsUpTo } from "../../../runtime/ports/record-format.ts"
import { fromLayer } from "../../suites/harness.ts"
import { type Node, settled, start } from "./nodes.ts"
import { type ServerProcess, startServer } from "./servers.ts"

let server: ServerProcess
beforeAll(async () => void (server = await startServer()))
afterAll(() => server.close())

const table = "counters"
const ids = Array.from({ length: 30 }, (_, at) => `c${at}`)

/** A counter in format 1, and in format 2, where it is frozen. */
interface Counter {
  readonly count: number
}
interface LabeledCounter extends Counter {
  readonly label?: string
}

const parse = (value: string) => JSON.parse(value) as Counter

/** A node and its records; `add` counts one in a record, as this version does. */
interface Program {
  readonly node: Node
  readonly records: RecordsApi
  readonly add: (id: string) => Promise<void>
  readonly end: () => Promise<void>
}

const program = async (
  name: string,
  format: number,
  added: (before: string | undefined, nodeFormat: number) => string
): Promise<Program> => {
  const node = await start({ name, url: server.url, storage: natsStorage(), format })
  const layer = recordsUpTo(format).pipe(
    Layer.provide(natsRecords),
    Layer.provide(connection({ servers: [server.url], name }))
  )
  const { api: records, close } = await fromLayer(Records, layer, async () => {})
  const add = async (id: string): Promise<void> => {
    const before = await Effect.runPromise(records.get(table, id))
    const value = added(before, node.system.format())
    const isWritten = await Effect.runPromise(records.writeIf(
      [{ table, key: id, value: before ?? null }],
      [{ table, key: id, value }]
    ))
    return isWritten ? undefined : add(id)
  }
  const end = async () => {
    await close()
    await node.leave()
  }
  return { node, records, add, end }
}

const earlier = (name: string) =>
  program(name, 1, (before) => {
    const counter = before === undefined ? { count: 0 } : parse(before)
    return JSON.stringify({ ...counter, count: counter.count + 1 })
  })

const later = (name: string) =>
  program(name, 2, (before, nodeFormat) => {
    const { format, text } = before === undefined
      ? { format: 1, text: `{"count":0}` }
      : decodeRecord(before)
    const counter: LabeledCounter = format === 1 ? parse(text) : { count: Number(text) }
    const count = counter.count + 1
    return nodeFormat === 1
      ? JSON.stringify({ ...counter, count, label: "of the later version" })
      : encodeRecord({ format: 2, text: String(count) })
  })

/** Each program adds `times` to each record, all at once; returns the number added to each. */
const addAll = async (programs: ReadonlyArray<Program>, times: number): Promise<number> => {
  await Promise.all(programs.flatMap(({ add }) =>
    ids.map(async (id) => {
      for (let at = 0; at < times; at++) await add(id)
    })
  ))
  return programs.length * times
}

it("two versions change the same records, and lose neither fields nor changes", async () => {
  const [old, first] = [await earlier("a"), await later("b")]
  await settled([old.node, first.node])
  let count = await addAll([old, first], 5)
  // The earlier version is the last to write each record.
  count += await addAll([old], 1)
  const values = await Effect.runPromise(first.records.getMany(table, ids))
  for (const value of values) {
    expect(JSON.parse(value ?? "")).toEqual({ count, label: "of the later version" })
  }
  expect(first.node.system.format()).toBe(1)
  // A form that the earlier version cannot read waits until none is left.
  await old.end()
  await expect.poll(() => first.node.system.format(), { timeout: 60_000 }).toBe(2)
  count += await addAll([first], 1)
  expect(await Effect.runPromise(first.records.getMany(table, ids))).toEqual(
    ids.map(() => `@2 ${count}`)
  )
  await expect(earlier("a")).rejects.toMatchObject({ _tag: "StoreFormatUnsupported" })
  // Alone, as a command line is, the earlier version refuses the records, and changes none.
  const layer = recordsUpTo(1).pipe(
    Layer.provide(natsRecords),
    Layer.provide(connection({ servers: [server.url], name: "c" }))
  )
  const { api, close } = await fromLayer(Records, layer, async () => {})
  expect(await Effect.runPromise(Effect.flip(api.range(table, { limit: 9 })))).toMatchObject({
    _tag: "StorageUnavailable",
    detail: "the record counters/c0 is stored in format 2, and this node reads up to 1: " +
      "update this node"
  })
  await close()
  expect(await Effect.runPromise(first.records.keys(table, [{ limit: 99 }]))).toHaveLength(1)
  await first.end()
})
