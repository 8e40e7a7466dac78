/** The view in a folder: its contract, and corruption of every kind. */
import { Effect } from "effect"
import { readdir, rm, truncate, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { embeddedView, type EngineName, engineNames } from "../../../runtime/embedded/index.ts"
import { makeMemoryView } from "../../../runtime/ports/view.ts"
import { openView, viewSuite } from "../../suites/view.ts"
import { newFolder } from "./folders.ts"

for (const engine of engineNames) {
  viewSuite(engine, async () => embeddedView(join(await newFolder(), "view", "a"), engine), true)
}

viewSuite("memory", async () => Effect.sync(makeMemoryView), false)

const filled = async (engine?: EngineName) => {
  const folder = join(await newFolder(), "view")
  const { close, view } = await openView(embeddedView(folder, engine))
  const keys = Array.from({ length: 500 }, (_, at) => `key ${at}`)
  await view.write(keys.map((key) => ({ table: "t", key, value: key.repeat(50) })), "1")
  await close()
  // The second opening writes the rows from the log into a table.
  await (await openView(embeddedView(folder, engine))).close()
  return folder
}

const corruptions: Readonly<Record<string, (folder: string) => Promise<void>>> = {
  "a manifest that is gone": async (folder) => {
    for (const name of await readdir(folder)) {
      if (name.startsWith("MANIFEST")) await rm(join(folder, name))
    }
  },
  "tables that were cut": async (folder) => {
    const tables = (await readdir(folder)).filter((name) => /\.(sst|ldb)$/.test(name))
    expect(tables).not.toEqual([])
    for (const name of tables) await truncate(join(folder, name), 20)
  },
  "a file in place of the pointer to the manifest": (folder) =>
    writeFile(join(folder, "CURRENT"), "what?\n"),
  "a folder that is gone": (folder) => rm(folder, { recursive: true })
}

describe.each(engineNames)("a corrupted view in %s", (engine) => {
  it.each(Object.keys(corruptions))("is replaced by an empty one: %s", async (name) => {
    const folder = await filled(engine)
    await corruptions[name]?.(folder)
    const { close, view } = await openView(embeddedView(folder, engine))
    expect(await view.note()).toBeUndefined()
    expect(await view.range("t", { limit: 9 })).toEqual([])
    await view.write([{ table: "t", key: "a", value: "b" }], "2")
    expect(await view.get("t", "a")).toBe("b")
    await close()
  })

  it("is refused while another has it open", async () => {
    const folder = await filled(engine)
    const open = embeddedView(folder, engine)
    const { close, view } = await openView(open)
    const failure = await Effect.runPromise(Effect.flip(Effect.scoped(open)))
    expect(failure._tag).toBe("StorageLocked")
    expect(await view.note()).toBe("1")
    await close()
  })

  it("fails where no folder can be made", async () => {
    const folder = await newFolder()
    await writeFile(join(folder, "view"), "")
    const under = embeddedView(join(folder, "view", "a"), engine)
    const failure = await Effect.runPromise(Effect.flip(Effect.scoped(under)))
    expect(failure._tag).toBe("StorageUnavailable")
  })
})

describe("a view of another database", () => {
  it.each([["rocksdb", "leveldb"], ["leveldb", "rocksdb"]] as const)(
    "is whole or empty: of %s, opened with %s",
    async (before, after) => {
      const folder = await filled(before)
      const { close, view } = await openView(embeddedView(folder, after))
      const note = view.note()
      expect([undefined, "1"]).toContain(note)
      const rows = await view.range("t", { limit: 9_999 })
      expect(rows).toHaveLength(note === undefined ? 0 : 500)
      await view.write([{ table: "u", key: "a", value: "b" }], "2")
      await close()
      const again = await openView(embeddedView(folder, after))
      expect([again.view.note(), await again.view.get("u", "a")]).toEqual(["2", "b"])
      await again.close()
    }
  )
})
