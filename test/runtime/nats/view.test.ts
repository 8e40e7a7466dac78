/** Nodes with their view of the records in a folder: restarts, corruption, resuming. */
import { Effect, Layer, Schedule } from "effect"
import fc from "fast-check"
import { readdir, rm, truncate } from "node:fs/promises"
import { join } from "node:path"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { embeddedView, engineNames } from "../../../runtime/embedded/index.ts"
import { viewResumeMaxMs } from "../../../runtime/limits.ts"
import { connection } from "../../../runtime/nats/connection/connection.ts"
import { decodeProgress, encodeProgress } from "../../../runtime/nats/records/record-view.ts"
import { natsRecordsWith } from "../../../runtime/nats/records/records.ts"
import { Records, type RecordsApi } from "../../../runtime/ports/records.ts"
import { fromLayer, type Harness } from "../../suites/harness.ts"
import { recordsSuite } from "../../suites/records.ts"
import { run } from "../../suites/storage-probe.ts"
import { openView } from "../../suites/view.ts"
import { newFolder } from "../embedded/folders.ts"
import { onNats, removeStreams } from "./backend.ts"
import { type NatsServer, startServer } from "./servers.ts"

let server: NatsServer

beforeAll(async () => {
  server = await startServer()
})

afterAll(() => server.close())

afterEach(() => removeStreams([server.url]))

for (const engine of engineNames) {
  recordsSuite(`JetStream, a view in ${engine}`, async () => {
    const open = embeddedView(join(await newFolder(), "view"), engine)
    return onNats(Records, natsRecordsWith(Effect.orDie(open)), () => [server.url])()
  })
}

const start = (folder: string): Promise<Harness<RecordsApi>> =>
  fromLayer(
    Records,
    Layer.provide(
      natsRecordsWith(Effect.orDie(embeddedView(folder))),
      connection({ servers: [server.url], name: "test" })
    ),
    async () => {}
  )

const all = async ({ api }: Harness<RecordsApi>, table = "t") =>
  (await run(api.range(table, { limit: 10_000 }))).map(({ key, value }) => [key, value])

describe("several nodes", () => {
  const key = fc.constantFrom("a", "b", "c/1", "c/2", "é", "d")
  const step = fc.oneof(
    {
      weight: 8,
      arbitrary: fc.record({ do: fc.constant("write" as const), node: fc.nat(1), key })
    },
    {
      weight: 3,
      arbitrary: fc.record({ do: fc.constant("remove" as const), node: fc.nat(1), key })
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constantFrom("restart", "lose"), node: fc.nat(1) }) }
  )

  it("each read the same as a map, after restarts and lost folders", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 15, maxLength: 25 }), async (steps) => {
        const folders = [join(await newFolder(), "view"), join(await newFolder(), "view")]
        const nodes = await Promise.all(folders.map(start))
        const known = new Map<string, string>()
        for (const [at, made] of steps.entries()) {
          const node = nodes[made.node]
          const folder = folders[made.node] ?? ""
          if (node === undefined) throw new Error("no node")
          if ("key" in made) {
            const value = made.do === "write" ? String(at) : null
            await run(node.api.write([{ table: "t", key: made.key, value }]))
            if (value === null) known.delete(made.key)
            else known.set(made.key, value)
          } else {
            await node.close()
            if (made.do === "lose") await rm(folder, { recursive: true, force: true })
            nodes[made.node] = await start(folder)
          }
          const sorted = [...known].sort(([one], [other]) =>
            Buffer.compare(Buffer.from(one), Buffer.from(other))
          )
          for (const reader of nodes) expect(await all(reader)).toEqual(sorted)
        }
        await Promise.all(nodes.map(({ close }) => close()))
        await removeStreams([server.url])
      }),
      { numRuns: 4 }
    )
  })
})

/** Asks until the view has got to where the stream is. */
const filled = async ({ api }: Harness<RecordsApi>): Promise<void> => {
  await run(api.range("t", { limit: 1 }))
  await run(Effect.retry(api.health, { schedule: Schedule.spaced("20 millis") }))
}

/** A view in its folder with a record of its own that the stream does not know. */
const planted = async (change: (note: string) => string = (note) => note) => {
  const folder = join(await newFolder(), "view")
  const first = await start(folder)
  await run(first.api.write([{ table: "t", key: "a", value: "1" }]))
  await filled(first)
  await first.close()
  const { close, view } = await openView(embeddedView(folder))
  const note = await view.note()
  await view.write([{ table: "t", key: "ghost", value: "" }], change(note ?? ""))
  await close()
  return folder
}

const changed = (change: object) => (text: string): string => {
  const note = decodeProgress(text)
  if (note === undefined) throw new Error(`no note: ${text}`)
  return encodeProgress({ ...note, ...change })
}

describe("a view that was closed", () => {
  it("resumes from its progress", async () => {
    const folder = await planted()
    const other = await start(join(await newFolder(), "view"))
    await run(other.api.write([{ table: "t", key: "b", value: "2" }]))
    const node = await start(folder)
    await filled(node)
    // The ghost record is visible, because the view was not filled again.
    expect(await all(node)).toEqual([["a", "1"], ["b", "2"], ["ghost", ""]])
    await Promise.all([node.close(), other.close()])
  })

  it.each([
    ["it was fed too long ago", changed({ completeAtMs: Date.now() - viewResumeMaxMs - 60_000 })],
    ["it is of another stream", changed({ created: "2020-01-01T00:00:00Z" })],
    ["it is ahead of the stream", changed({ seq: 1_000 })],
    ["the stream has another message there", changed({ writtenMs: 1 })],
    ["its note cannot be read", () => "{"]
  ])("is filled again where %s", async (_, change) => {
    const node = await start(await planted(change))
    expect(await all(node)).toEqual([["a", "1"]])
    await node.close()
  })

  it("is filled again when a read finds it corrupted", async () => {
    const folder = join(await newFolder(), "view")
    const first = await start(folder)
    const keys = Array.from({ length: 900 }, (_, at) => `key ${String(at).padStart(4, "0")}`)
    await run(first.api.write(keys.map((key) => ({ table: "t", key, value: key.repeat(20) }))))
    await filled(first)
    await first.close()
    // Its rows go from the log into a table.
    await (await openView(embeddedView(folder))).close()
    const node = await start(folder)
    await filled(node)
    for (const name of (await readdir(folder)).filter((one) => one.endsWith(".sst"))) {
      await truncate(join(folder, name), 3_000)
    }
    for (let round = 0; round < 2; round++) {
      const rows = await all(node)
      expect(rows.map(([key]) => key)).toEqual(keys)
    }
    await node.close()
  })
})

describe("a view while its node runs", () => {
  it("is filled again when the stream is another one", async () => {
    const node = await start(join(await newFolder(), "view"))
    await run(node.api.write([{ table: "t", key: "a", value: "1" }]))
    expect(await all(node)).toEqual([["a", "1"]])
    await removeStreams([server.url])
    const other = await start(join(await newFolder(), "view"))
    await run(other.api.write([{ table: "t", key: "b", value: "2" }]))
    await run(other.api.write([{ table: "t", key: "c", value: "3" }]))
    expect(await all(other)).toEqual([["b", "2"], ["c", "3"]])
    expect(await all(node)).toEqual([["b", "2"], ["c", "3"]])
    await Promise.all([node.close(), other.close()])
  })
})
