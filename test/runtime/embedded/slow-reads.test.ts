/** Reads that take longer than one slice of the event loop still find their keys. */
import { expect, it } from "vitest"
import { firstKey } from "../../../runtime/embedded/engine/spans.ts"
import { openRocksdb } from "../../../runtime/embedded/engine/rocksdb.ts"
import type { BatchChange } from "../../../runtime/embedded/engine/write-batch.ts"
import { newFolder } from "./folders.ts"

/** So many that skipping them takes longer than a slice. */
const REMOVED = 1_500_000

const STEP = 10_000

const MEMTABLE_BYTES = 1024 * 1024

const keyOf = (n: number) => Buffer.from(`log ${String(n).padStart(12, "0")}`)

const putOf = (n: number): BatchChange => ({
  type: "put",
  key: keyOf(n),
  value: Buffer.from("item")
})

it("finds a key behind many removed ones", async () => {
  const folder = await newFolder()
  const filled = await openRocksdb(folder, true, MEMTABLE_BYTES)
  for (let at = 1; at < REMOVED; at += STEP) {
    const gone = Array.from({ length: STEP }, (_, n) => keyOf(at + n))
    await filled.write(gone.map((key) => ({ type: "del", key })))
  }
  await filled.write([putOf(0), putOf(2 * REMOVED)])
  await filled.close()

  // Each read opens the database, since the blocks of the first would be in memory.
  const backwards = await openRocksdb(folder, false, MEMTABLE_BYTES)
  const behind = keyOf(2 * REMOVED).toString()
  expect(backwards.lastKey("log ", behind)).toBe(keyOf(0).toString())
  await backwards.close()

  const forwards = await openRocksdb(folder, false, MEMTABLE_BYTES)
  expect(await firstKey(() => forwards, { gte: keyOf(1).toString(), lt: "log!" })).toBe(behind)
  await forwards.close()
})
