/**
 * A process of its own upon a store, to be killed: `child.js <folder> commit|hold`. It tells on
 * standard output what was acknowledged, a line each, before anything else may happen.
 */
import { Effect, ManagedRuntime } from "effect"
import { writeSync } from "node:fs"
import { address } from "../../../runtime/actor/address.ts"
import { embedded } from "../../../runtime/embedded/index.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { type Commit, Storage } from "../../../runtime/ports/storage.ts"

const MAILBOXES = 8

const BLOB_BYTES = 100_000

const [, , folder = "", mode = ""] = process.argv

const tell = (line: string): void => void writeSync(1, `${line}\n`)

async function* blob(): AsyncIterable<Uint8Array> {
  for (let at = 0; at < BLOB_BYTES; at += 1_000) yield Buffer.alloc(1_000, at)
}

const commitForever = Effect.gen(function*() {
  const storage = yield* Storage
  const blobs = yield* Blobs
  const known = new Map<number, { revision: number; head: number }>()
  for (let at = 0; at < MAILBOXES; at++) {
    known.set(at, yield* storage.load(address("mailbox", `m${at}`)))
  }
  tell("open")
  for (let round = 0;; round++) {
    const group = [...known].map(([at, { head, revision }]): Commit => {
      const append = [1, 2, 3].map((more) => ({ n: head + more, value: `${at} ${head + more}` }))
      const writes = round % 3 === 0
      return {
        address: address("mailbox", `m${at}`),
        expected: revision,
        state: writes ? String(head + 3) : undefined,
        head: head + 3,
        append,
        remove: [],
        timer: writes ? head + 3 : undefined,
        signals: [],
        consumedSignal: undefined
      }
    })
    const outcomes = yield* storage.commit(group)
    for (const [at, outcome] of outcomes.entries()) {
      if (outcome._tag !== "Committed") throw new Error("a conflict with nobody")
      const head = group[at]?.head ?? 0
      known.set(at, { revision: outcome.revision, head })
      tell(`item ${at} ${head}`)
    }
    if (round % 5 === 0) {
      const id = `b${process.pid}-${round}`
      const { digest } = yield* blobs.put(id, blob(), BLOB_BYTES)
      tell(`blob ${id} ${digest}`)
    }
  }
})

const hold = Effect.andThen(Storage, () => {
  tell("open")
  return Effect.never
})

await ManagedRuntime.make(embedded(folder)).runPromise(mode === "hold" ? hold : commitForever)
