/** The README's examples are these files, verbatim, and they run as described. */
import { Effect } from "effect"
import { readdirSync, readFileSync } from "node:fs"
import { afterEach, describe, expect, it } from "vitest"
import { address, isRefusal } from "../../runtime/index.ts"
import { makeMemoryStorage } from "../../runtime/memory/storage.ts"
import { limiter } from "./examples/limiter.ts"
import { program } from "./examples/run.ts"
import { dropAll, type Rig, start, turns } from "./rig.ts"

afterEach(dropAll)

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")
const readme = textOf("../../runtime/README.md")
const examples = readdirSync(new URL("examples", import.meta.url)).sort()

describe("the README", () => {
  it.each(examples)("shows examples/%s as it is", (file) => {
    // The README's imports are relative to its own folder.
    const text = textOf(`examples/${file}`).replaceAll("../../../runtime/", "./")
    expect(readme).toContain("```ts\n" + text + "```")
  })

  it("names every file of the runtime", () => {
    const files = readdirSync(new URL("../../runtime", import.meta.url))
    for (const file of files.filter((name) => name.endsWith(".ts"))) {
      expect(readme).toContain(`\`${file}\``)
    }
  })
})

describe("the examples", () => {
  it("run", async () => {
    expect(await Effect.runPromise(program)).toBe("5 visits, 3 tokens")
  })

  it("the limiter refills by its timer, and removes itself when it is full", async () => {
    const storage = makeMemoryStorage()
    const rig: Rig = await start({ behaviors: [limiter] }, { storage, virtualTime: true })
    const alice = address("limiter", "alice")
    const take = () => Effect.runPromise(rig.system.ask(alice, { _tag: "Take" }))
    for (const left of [2, 1, 0]) expect(await take()).toBe(left)
    expect(isRefusal(await take())).toBe(true)
    const pass = async (ms: number): Promise<void> => {
      await rig.pass(ms)
      await turns()
    }
    await pass(1_010)
    expect(await take()).toBe(0)
    for (let second = 0; second < 3; second++) {
      await pass(990)
      await pass(10)
    }
    await pass(20)
    const { state } = await Effect.runPromise(storage.load(alice))
    expect(state).toBeUndefined()
    expect(rig.system.snapshot().timers).toBe(0)
  })
})
