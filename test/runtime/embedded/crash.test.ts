/** kill -9 at any moment: no acknowledged write is lost, and no partial write is visible. */
import { Effect } from "effect"
import { beforeAll, describe, expect, it } from "vitest"
import { engineNames, inspect } from "../../../runtime/embedded/index.ts"
import { newFolder, openingFailure, withStore } from "./folders.ts"
import { compileChild, startChild } from "./processes.ts"
import { acknowledgedIn, verify } from "./acknowledged.ts"

const ROUNDS = process.env["TEST_LONG"] === "1" ? 20 : 4

let child = ""

beforeAll(() => {
  child = compileChild()
})

describe.each(engineNames)("kill -9, %s", (engine) => {
  it(`loses nothing in ${ROUNDS} rounds on one folder`, async () => {
    const folder = await newFolder(engine)
    const heads = new Map<number, number>()
    const blobs = new Map<string, string>()
    for (let round = 0; round < ROUNDS; round++) {
      const running = startChild(child, folder, "commit")
      await running.printed(2 + Math.floor(Math.random() * 20))
      await new Promise((resolve) => setTimeout(resolve, Math.random() * 150))
      await running.kill()
      const acknowledged = acknowledgedIn(running.lines)
      for (const [name, head] of acknowledged.heads) heads.set(name, head)
      for (const [id, digest] of acknowledged.blobs) blobs.set(id, digest)
      await withStore(folder, verify(heads, blobs))
    }
    expect(heads.size).toBe(8)
    const { counts, faults } = await Effect.runPromise(inspect(folder))
    expect(faults).toEqual([])
    expect(counts.actors).toEqual({ mailbox: 8 })
    expect(counts.blobs).toBeGreaterThanOrEqual(blobs.size)
  })

  it("refuses a second process and names the first, and opens when that has ended", async () => {
    const folder = await newFolder(engine)
    const holder = startChild(child, folder, "hold")
    await holder.printed(1)
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
