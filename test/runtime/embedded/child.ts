/**
 * A process on a store, for tests that kill it: `child.js <folder> commit|hold`. It prints a line
 * for each acknowledged write, before it continues.
 */
import { Effect, ManagedRuntime } from "effect"
import { writeSync } from "node:fs"
import { address } from "../../../runtime/actor/address.ts"
import { embedded } from "../../../runtime/embedded/index.ts"
import { commitOf } from "../../suites/commit.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { type Commit, Storage } from "../../../runtime/ports/storage.ts"

const MAILBOXES = 8

const BLOB_BYTES = 100_000

const [, , folder = "", mode = ""] = process.argv

const print = (line: string): void => void writeSync(1, `${line}\n`)

async function* blob(): AsyncIterable<Uint8Array> {
  for (let at = 0; at < BLOB_BYTES; at += 1_000) yield Buffer.alloc(1_000, at)
}

const commitForever = Effect.gen(function*() {
  const storage = yield* Storage
  const blobs = yield* Blobs
  const actors = new Map<number, { revision: number; head: number }>()
  for (let at = 0; at < MAILBOXES; at++) {
    actors.set(at, yield* storage.load(address("mailbox", `m${at}`)))
  }
  print("open")
  for (let round = 0;; round++) {
    const group = [...actors].map(([at, { head, revision }]): Commit => {
      const append = [1, 2, 3].map((more) => ({ n: head + more, value: `${at} ${head + more}` }))
      const writes = round % 3 === 0
      return commitOf({
        address: address("mailbox", `m${at}`),
        expected: revision,
        state: writes ? String(head + 3) : undefined,
        head: head + 3,
        append,
        timer: writes ? head + 3 : undefined
      })
    })
    const outcomes = yield* storage.commit(group)
    for (const [at, outcome] of outcomes.entries()) {
      if (outcome._tag !== "Committed") throw new Error("a conflict without another writer")
      const head = group[at]?.head ?? 0
      actors.set(at, { revision: outcome.revision, head })
      print(`item ${at} ${head}`)
    }
    if (round % 5 === 0) {
      const id = `b${process.pid}-${round}`
      const { digest } = yield* blobs.put(id, blob(), BLOB_BYTES)
      print(`blob ${id} ${digest}`)
    }
  }
})

const hold = Effect.andThen(Storage, () => {
  print("open")
  return Effect.never
})

await ManagedRuntime.make(embedded(folder)).runPromise(mode === "hold" ? hold : commitForever)
