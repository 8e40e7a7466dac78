/** The writes that `child.ts` reported as acknowledged, and a check that a store has them. */
import { Effect } from "effect"
import { createHash } from "node:crypto"
import { expect } from "vitest"
import { address, shardOf } from "../../../runtime/actor/address.ts"
import { Blobs } from "../../../runtime/ports/blobs.ts"
import { Storage } from "../../../runtime/ports/storage.ts"

/** In its lines of output: the heads of mailboxes by number, and the digests of blobs by id. */
export const acknowledgedIn = (lines: ReadonlyArray<string>) => {
  const heads = new Map<number, number>()
  const blobs = new Map<string, string>()
  for (const line of lines) {
    const [what, name = "", value = ""] = line.split(" ")
    if (what === "item") heads.set(Number(name), Number(value))
    if (what === "blob") blobs.set(name, value)
  }
  return { heads, blobs }
}

/** Checks that a store has all of them, and nothing else in the logs. */
export const verify = (heads: ReadonlyMap<number, number>, blobs: ReadonlyMap<string, string>) =>
  Effect.gen(function*() {
    const storage = yield* Storage
    for (const [at, acknowledged] of heads) {
      const to = address("mailbox", `m${at}`)
      const { head, state } = yield* storage.load(to)
      expect(head).toBeGreaterThanOrEqual(acknowledged)
      const items = yield* storage.read(to, 1, 1_000_000)
      expect(items.map(({ value }) => value)).toEqual(
        Array.from({ length: head }, (_, n) => `${at} ${n + 1}`)
      )
      expect(head % 3).toBe(0)
      expect(Number(state)).toBeLessThanOrEqual(head)
      const { timers } = yield* storage.timers(shardOf(to), 1_000_000)
      const timer = timers.find(({ address: { id } }) => id === to.id)
      expect(timer?.atMs).toBe(Number(state))
    }
    const files = yield* Blobs
    for (const [id, digest] of blobs) {
      const hash = createHash("sha256")
      const bytes = yield* files.open(id)
      yield* Effect.promise(async () => {
        for await (const chunk of bytes) hash.update(chunk)
      })
      expect(hash.digest("base64url")).toBe(digest)
    }
  })
