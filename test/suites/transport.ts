/** The contract of the transport port (`runtime/ports/transport.ts`), run against each backend. */
import { Cause, Effect, Exit, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { address, shardOf } from "../../runtime/actor/address.ts"
import type { TransportApi } from "../../runtime/ports/transport.ts"
import type { Fresh, Harness } from "./harness.ts"
import { run } from "./storage-probe.ts"

const alice = address("mailbox", "alice")
const bob = address("mailbox", "bob")
/** How long a hint may take to be heard, ms. */
const HINT_MS = 200

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

export const transportSuite = (name: string, fresh: Fresh<TransportApi>): void => {
  describe(`transport: ${name}`, () => {
    let harness: Harness<TransportApi>
    let transport: TransportApi
    let scope: Scope.Closeable
    beforeEach(async () => {
      harness = await fresh()
      transport = harness.api
      scope = await run(Scope.make())
    })
    afterEach(async () => {
      await run(Scope.close(scope, Exit.void))
      await harness.close()
    })

    const serve = (shard: number, answer: (to: object, text: string) => Promise<string>) =>
      run(Scope.provide(transport.serve(shard, answer), scope))
    const ask = (to = alice, text = "?", deadlineMs = 2_000) =>
      run(transport.request(to, text, deadlineMs))
    const failure = async (promise: Promise<unknown>): Promise<unknown> =>
      promise.then(() => undefined, (error: unknown) => error)

    it("brings a message to the server of its shard, and the reply back", async () => {
      await serve(shardOf(alice), async (to, text) => `${JSON.stringify(to)} ${text} 🐎`)
      expect(await ask(alice, "héllo")).toBe(`${JSON.stringify(alice)} héllo 🐎`)
    })
    it("fails with NoOwner when nobody serves the shard, before and after", async () => {
      expect(await failure(ask())).toMatchObject({ _tag: "NoOwner", key: "mailbox/alice" })
      await serve(shardOf(alice), async () => "here")
      expect(await ask()).toBe("here")
      expect(shardOf(bob)).not.toBe(shardOf(alice))
      expect(await failure(ask(bob))).toMatchObject({ _tag: "NoOwner" })
      await run(Scope.close(scope, Exit.void))
      expect(await failure(ask())).toMatchObject({ _tag: "NoOwner" })
    })
    it("fails with AskTimeout when no answer comes in time", async () => {
      await serve(shardOf(alice), () => new Promise(() => {}))
      expect(await failure(ask(alice, "?", 30))).toMatchObject({
        _tag: "AskTimeout",
        key: "mailbox/alice",
        deadlineMs: 30
      })
    })
    it("takes many at once, answered in any order", async () => {
      await serve(shardOf(alice), async (_, text) => {
        await pause(Number(text) % 7)
        return text
      })
      const texts = Array.from({ length: 200 }, (_, at) => String(at))
      expect(await Promise.all(texts.map((text) => ask(alice, text)))).toEqual(texts)
    })
    it("does not let one server's defect touch another", async () => {
      await serve(shardOf(alice), () => Promise.reject(new Error("never rejects")))
      await serve(shardOf(bob), async () => "well")
      const exit = await Effect.runPromiseExit(transport.request(alice, "?", 100))
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toBeTruthy()
      expect(await ask(bob)).toBe("well")
    })
    it("tells every watcher of the address and no other", async () => {
      const heard: Array<string> = []
      const stops = [
        transport.watch(alice, (hint) => heard.push(`1 ${hint}`)),
        transport.watch(alice, (hint) => heard.push(`2 ${hint}`)),
        transport.watch(bob, (hint) => heard.push(`bob ${hint}`))
      ]
      await pause(HINT_MS)
      transport.announce(alice, "7")
      expect(heard).toEqual([])
      await pause(HINT_MS)
      expect(heard.sort()).toEqual(["1 7", "2 7"])
      stops[0]?.()
      stops[0]?.()
      transport.announce(alice, "8")
      await pause(HINT_MS)
      expect(heard.sort()).toEqual(["1 7", "2 7", "2 8"])
      for (const stop of stops) stop()
      transport.announce(alice, "9")
      await pause(HINT_MS)
      expect(heard).toHaveLength(3)
    })
    it("counts each watch for itself, though the listener is the same", async () => {
      let heard = 0
      const listener = () => void heard++
      const stop = transport.watch(alice, listener)
      transport.watch(alice, listener)
      stop()
      await pause(HINT_MS)
      transport.announce(alice, "x")
      await pause(HINT_MS)
      expect(heard).toBe(1)
    })
  })
}
