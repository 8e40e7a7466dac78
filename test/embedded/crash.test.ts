/** kill -9 at any moment: nothing acknowledged is lost, nothing half-written shows. */
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { address, shardOf } from "../../runtime/address.ts"
import { engineNames, inspect } from "../../runtime/embedded/index.ts"
import { Blobs } from "../../runtime/ports/blobs.ts"
import { Storage } from "../../runtime/ports/storage.ts"
import { newFolder, openingFailure, upon } from "./folders.ts"
import { compileChild, startChild } from "./processes.ts"

const ROUNDS = 20

/** Reads all, and compares it with itself. */
const verify = (heads: Map<number, number>, blobs: Map<string, string>) =>
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
      const { wakes } = yield* storage.wakes(shardOf(to), 1_000_000)
      const wake = wakes.find(({ address: { id } }) => id === to.id)
      expect(wake?.atMs).toBe(Number(state))
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

let child = ""
beforeAll(() => {
  child = compileChild()
})

describe.each(engineNames)("kill -9, %s", (engine) => {
  it(`loses nothing in ${ROUNDS} rounds upon one folder`, { timeout: 120_000 }, async () => {
    const folder = await newFolder(engine)
    const heads = new Map<number, number>()
    const blobs = new Map<string, string>()
    for (let round = 0; round < ROUNDS; round++) {
      const running = startChild(child, folder, "commit")
      await running.said(2 + Math.floor(Math.random() * 20))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150))
      await running.kill()
      for (const line of running.lines) {
        const [what, name = "", value = ""] = line.split(" ")
        if (what === "item") heads.set(Number(name), Number(value))
        if (what === "blob") blobs.set(name, value)
      }
      await upon(folder, verify(heads, blobs))
    }
    expect(heads.size).toBe(8)
    const { counts, faults } = await Effect.runPromise(inspect(folder))
    expect(faults).toEqual([])
    expect(counts.actors).toEqual({ mailbox: 8 })
    expect(counts.blobs).toBeGreaterThanOrEqual(blobs.size)
  })

  it("refuses a second process, naming the holder, and takes over when it is gone", async () => {
    const folder = await newFolder(engine)
    const holder = startChild(child, folder, "hold")
    await holder.said(1)
    expect(await openingFailure(folder)).toMatchObject({
      _tag: "StorageLocked",
      path: folder,
      pid: holder.process.pid
    })
    await expect(Effect.runPromise(inspect(folder))).rejects.toMatchObject({
      _tag: "StorageLocked"
    })
    await holder.kill()
    expect(await openingFailure(folder)).toBeUndefined()
  })
})
