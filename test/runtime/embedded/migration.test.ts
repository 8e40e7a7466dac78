/** Backup and restore from one database to the other. */
import { Effect, Result } from "effect"
import { join } from "node:path"
import { expect, it } from "vitest"
import { backUp, restore } from "../../../deploy/archive/transfer.ts"
import { exitCodes } from "../../../deploy/command-failure.ts"
import { loadSettings, type NodeSettings } from "../../../deploy/settings/settings.ts"
import { address } from "../../../runtime/actor/address.ts"
import { type EngineName, inspect } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Records } from "../../../runtime/ports/records.ts"
import { Storage } from "../../../runtime/ports/storage.ts"
import { commitOf, itemsOf } from "../../suites/storage-probe.ts"
import { newFolder, withStore } from "./folders.ts"

const ACTORS = 300

const settingsOf = (dataDir: string, store: EngineName): NodeSettings =>
  Result.getOrThrow(loadSettings({ DATA_DIR: dataDir, STORAGE_ENGINE: store })).settings

async function* bytes(length: number) {
  for (let at = 0; at < length; at += 10_000) yield Buffer.alloc(Math.min(10_000, length - at), at)
}

/** Actors with and without records, logs with gaps, timers, records and blobs. */
const filled = Effect.gen(function*() {
  const [storage, blobs, records] = [yield* Storage, yield* Blobs, yield* Records]
  const ids = Array.from({ length: ACTORS }, (_, at) => at)
  const actorOf = (at: number) => address(at % 2 === 0 ? "mailbox" : "session", `a${at}`)
  yield* storage.commit(ids.map((at) => {
    const head = at % 50 === 0 ? 400 : at % 7
    const common = { address: actorOf(at), append: itemsOf(1, head), head }
    return commitOf(
      at % 5 === 0 && head > 0 ? { ...common, head: 0 } : { ...common, state: `s${at}`, timer: at }
    )
  }))
  for (const at of ids.filter((one) => one % 50 === 0)) {
    const { head, revision } = yield* storage.load(actorOf(at))
    const removal = { state: "s", head, remove: [2, 3, 399] }
    yield* storage.commit([commitOf({ address: actorOf(at), expected: revision, ...removal })])
  }
  yield* records.write(
    Array.from({ length: 500 }, (_, at) => ({ table: "t", key: `é/${at}`, value: `v\n${at}` }))
  )
  for (const length of [0, 10, 70_000, 300_000]) yield* blobs.put(`b${length}`, bytes(length), 1e6)
})

it.each<readonly [EngineName, EngineName]>([["rocksdb", "leveldb"], ["leveldb", "rocksdb"]])(
  "migrates everything from %s to %s",
  async (from, to) => {
    const [source, target] = [await newFolder(), await newFolder()]
    const file = join(await newFolder(), "archive")
    const run = <A, E>(effect: Effect.Effect<A, E>) => Effect.runPromise(effect)
    await withStore(source, filled, from)
    const { counts } = await run(
      backUp(settingsOf(source, from), file, { isPlain: false, withKey: false }, () => {})
    )
    expect(counts.actors["mailbox"]).toBeGreaterThan(100)
    expect(counts).toMatchObject({ records: 500, blobs: 4 })
    const restored = await run(restore(settingsOf(target, to), file, false, () => {}))
    expect(restored.rows.filter(({ same }) => !same)).toEqual([])
    expect(restored.isSame).toBe(true)
    const [before, after] = [await run(inspect(source)), await run(inspect(target))]
    expect(before).toMatchObject({ engine: from, faults: [] })
    expect(after).toMatchObject({ engine: to, faults: [] })
    expect({ ...after.counts, commits: 0 }).toEqual({ ...before.counts, commits: 0 })
    const twice = await run(Effect.flip(restore(settingsOf(target, to), file, false, () => {})))
    expect(twice).toMatchObject({
      exitCode: exitCodes.unavailable,
      message: expect.stringMatching(/ cannot be used: /)
    })
  }
)
