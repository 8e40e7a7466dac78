/** The contract of the transport port (`runtime/ports/transport.ts`), run against each backend. */
import { Cause, Effect, Exit, Scope } from "effect"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { address, shardOf } from "../../runtime/actor/address.ts"
import type { TransportApi } from "../../runtime/ports/transport.ts"
import type { Fresh, Harness } from "./harness.ts"
import { run } from "./storage-probe.ts"
import { requestOf } from "./request.ts"

const alice = address("mailbox", "alice")
const bob = address("mailbox", "bob")
/** How long a hint may take to arrive. */
const hintMs = 200

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
    const ask = (to = alice, text = "?", deadlineMs = 60_000) =>
      run(requestOf(transport, to, text, deadlineMs))
    const failure = async (promise: Promise<unknown>): Promise<unknown> =>
      promise.then(() => undefined, (error: unknown) => error)

    it("delivers a message to the server of its shard, and returns the reply", async () => {
      await serve(shardOf(alice), async (to, text) => `${JSON.stringify(to)} ${text} 🐎`)
      expect(await ask(alice, "héllo")).toBe(`${JSON.stringify(alice)} héllo 🐎`)
    })
    it("fails with NoOwner while no server serves the shard, before and after", async () => {
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
    it("carries many concurrent messages, answered in any order", async () => {
      await serve(shardOf(alice), async (_, text) => {
        await pause(Number(text) % 7)
        return text
      })
      const texts = Array.from({ length: 200 }, (_, at) => String(at))
      expect(await Promise.all(texts.map((text) => ask(alice, text)))).toEqual(texts)
    })
    it("isolates a server from the defect of another", async () => {
      await serve(shardOf(alice), () => Promise.reject(new Error("never rejects")))
      await serve(shardOf(bob), async () => "well")
      const exit = await Effect.runPromiseExit(requestOf(transport, alice, "?", 100))
      expect(Exit.isFailure(exit) && Cause.pretty(exit.cause)).toBeTruthy()
      expect(await ask(bob)).toBe("well")
    })
    it("announces to every watcher of the address and no other", async () => {
      const received: Array<string> = []
      const stops = [
        transport.watch(alice, (hint) => received.push(`1 ${hint}`)),
        transport.watch(alice, (hint) => received.push(`2 ${hint}`)),
        transport.watch(bob, (hint) => received.push(`bob ${hint}`))
      ]
      await pause(hintMs)
      transport.announce(alice, "7")
      expect(received).toEqual([])
      await pause(hintMs)
      expect(received.sort()).toEqual(["1 7", "2 7"])
      stops[0]?.()
      stops[0]?.()
      transport.announce(alice, "8")
      await pause(hintMs)
      expect(received.sort()).toEqual(["1 7", "2 7", "2 8"])
      for (const stop of stops) stop()
      transport.announce(alice, "9")
      await pause(hintMs)
      expect(received).toHaveLength(3)
    })
    it("counts watches separately, also for the same listener", async () => {
      let received = 0
      const listener = () => void received++
      const stop = transport.watch(alice, listener)
      transport.watch(alice, listener)
      stop()
      await pause(hintMs)
      transport.announce(alice, "x")
      await pause(hintMs)
      expect(received).toBe(1)
    })
  })
}
