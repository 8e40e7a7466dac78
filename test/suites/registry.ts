/** The contract of the registry port (`runtime/ports/registry.ts`), run against each backend. */
import { Effect, Exit, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { RegistryApi, RegistryEntry } from "../../runtime/ports/registry.ts"
import type { Fresh, Harness } from "./harness.ts"
import { run } from "./storage-probe.ts"

/** Waits until the condition is true, at most a minute: a silent watch is begun again. */
const until = async (holds: () => boolean): Promise<void> => {
  const endMs = performance.now() + 60_000
  while (!holds()) {
    if (performance.now() > endMs) throw new Error(`never: ${holds.toString()}`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

export const registrySuite = (name: string, fresh: Fresh<RegistryApi>): void => {
  describe(`registry: ${name}`, () => {
    let harness: Harness<RegistryApi>
    let registry: RegistryApi
    beforeEach(async () => {
      harness = await fresh()
      registry = harness.api
    })
    afterEach(() => harness.close())

    const moved = async (effect: Effect.Effect<unknown, { readonly _tag: string }>) =>
      expect(await run(Effect.flip(effect))).toMatchObject({ _tag: "RegistryMoved" })
    const watched = async () => {
      const reported: Array<RegistryEntry> = []
      const scope = await run(Scope.make())
      await run(Scope.provide(registry.watch((entry) => reported.push(entry)), scope))
      return { reported, stop: () => run(Scope.close(scope, Exit.void)) }
    }

    it("returns the written value with its revision", async () => {
      expect(await run(registry.get("a"))).toEqual({ key: "a", value: undefined, revision: 0 })
      const revision = await run(registry.put("a", "1", 0))
      expect(revision).toBeGreaterThan(0)
      expect(await run(registry.get("a"))).toEqual({ key: "a", value: "1", revision })
    })

    it("changes a key only at the expected revision", async () => {
      const first = await run(registry.put("a", "1", 0))
      await moved(registry.put("a", "x", 0))
      const second = await run(registry.put("a", "2", first))
      expect(second).toBeGreaterThan(first)
      await moved(registry.put("a", "x", first))
      await moved(registry.remove("a", first))
      await moved(registry.put("b", "x", second))
      expect(await run(registry.get("a"))).toMatchObject({ value: "2", revision: second })
    })

    it("creates a key again after it was removed", async () => {
      const first = await run(registry.put("a", "1", 0))
      await run(registry.remove("a", first))
      const removed = await run(registry.get("a"))
      expect(removed.value).toBeUndefined()
      await moved(registry.put("a", "x", first))
      const second = await run(registry.put("a", "2", 0))
      expect(second).toBeGreaterThan(first)
      await run(registry.remove("a", second))
      const third = (await run(registry.get("a"))).revision
      expect(await run(registry.put("a", "3", third))).toBeGreaterThan(third)
    })

    it("lets one of many writers win", async () => {
      const puts = Array.from(
        { length: 20 },
        (_, at) => Effect.runPromiseExit(registry.put("a", String(at), 0))
      )
      const exits = await Promise.all(puts)
      expect(exits.filter(Exit.isSuccess), JSON.stringify(exits)).toHaveLength(1)
    })

    it("expires a key unless it is written again, and reports that", async () => {
      const { stop, reported } = await watched()
      const first = await run(registry.put("short", "1", 0, 1_000))
      const renewed = await run(registry.put("renewed", "1", 0, 1_000))
      await run(registry.put("renewed", "2", renewed))
      await until(() => reported.some(({ key, value }) => key === "short" && value === undefined))
      expect(await run(registry.get("short"))).toMatchObject({ value: undefined })
      expect(await run(registry.get("renewed"))).toMatchObject({ value: "2" })
      await moved(registry.put("short", "x", first))
      await run(registry.put("short", "2", 0))
      await stop()
    })

    it("reports all existing keys to a watch, then changes in their order", async () => {
      await run(registry.put("a", "1", 0))
      const b = await run(registry.put("b", "1", 0))
      const { stop, reported } = await watched()
      expect(reported.map(({ key, value }) => [key, value])).toEqual([["a", "1"], ["b", "1"]])
      const changed = await run(registry.put("b", "2", b))
      await run(registry.put("c", "1", 0))
      await run(registry.remove("b", changed))
      await until(() => reported.length === 5)
      expect(reported.slice(2).map(({ key, value }) => [key, value])).toEqual(
        [["b", "2"], ["c", "1"], ["b", undefined]]
      )
      await stop()
      await run(registry.put("d", "1", 0))
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect(reported).toHaveLength(5)
    })

    it("reports nothing of an empty registry, then new keys", async () => {
      const { stop, reported } = await watched()
      expect(reported).toEqual([])
      await run(registry.put("a", "1", 0))
      await until(() => reported.length === 1)
      await stop()
    })
  })
}
