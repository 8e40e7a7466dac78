/** When a process agrees to the removal of a node whose witness it is, and when it answers it. */
import { Context, Effect, Exit } from "effect"
import { expect, it } from "vitest"
import { Members, type ObservedMember } from "../../runtime/cluster/members.ts"
import { memberKey, memberText } from "../../runtime/cluster/member-entry.ts"
import { Witness } from "../../runtime/cluster/witnesses.ts"
import { defaultPlacementLimits } from "../../runtime/limits.ts"
import { makeMemoryRegistry } from "../../runtime/memory/registry.ts"
import { PingUnanswered } from "../../runtime/ports/pings.ts"

const limits = defaultPlacementLimits
const { removeAfterMs, witnessCheckMs } = limits

/** The process `w`, a witness of node `a` beside `v`, which agrees to nothing. */
const start = () => {
  let nowMs = 0
  let isConnected = true
  let timers: ReadonlyArray<{ readonly atMs: number; readonly run: () => void }> = []
  const later = (ms: number, run: () => void) => {
    const timer = { atMs: nowMs + ms, run }
    timers = [...timers, timer]
    return () => void (timers = timers.filter((one) => one !== timer))
  }
  const registry = makeMemoryRegistry(later)
  const time = { fork: Effect.runForkWith(Context.empty()), later, nowMs: () => nowMs }
  const members = new Members(registry, time, limits)
  const witness: Witness = new Witness({
    node: "b",
    witness: "w",
    registry,
    members,
    time,
    limits,
    pings: {
      send: (name, text) => {
        if (name === "w" && isConnected) return Effect.sync(() => witness.answer(text))
        return name === "v" ? Effect.succeed("alive") : Effect.fail(new PingUnanswered({ name }))
      },
      listen: () => Effect.void
    },
    onRemoved: () => {}
  })
  witness.start()
  const pass = async (ms: number) => {
    for (const endMs = nowMs + ms; nowMs < endMs;) {
      nowMs += witnessCheckMs
      for (const timer of timers.filter(({ atMs }) => atMs <= nowMs)) {
        timers = timers.filter((one) => one !== timer)
        timer.run()
      }
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  /** The node writes its membership; resolves to its revision. */
  const writeMembership = async () => {
    const member: Omit<ObservedMember, "node" | "revision"> = {
      incarnation: "a1",
      leaving: false,
      format: 1,
      witness: "a",
      witnesses: ["v", "w"]
    }
    const key = memberKey("a")
    const { revision } = await Effect.runPromise(registry.get(key))
    const exit = await Effect.runPromiseExit(registry.put(key, memberText(member), revision))
    if (Exit.isFailure(exit)) throw new Error("the membership was not written")
    members.observe(await Effect.runPromise(registry.get(key)))
    return exit.value
  }
  return { witness, pass, writeMembership, disconnect: () => void (isConnected = false) }
}

it("agrees after silence, and answers no ping until the membership is written", async () => {
  const { pass, witness, writeMembership } = start()
  const revision = await writeMembership()
  await pass(witnessCheckMs)
  expect(witness.answer("ping a1")).toBe("alive")
  await pass(removeAfterMs - witnessCheckMs)
  expect(witness.answer(`remove a1 ${revision}`)).toBe("alive")
  await pass(3 * witnessCheckMs)
  expect(witness.answer(`remove a1 ${revision}`)).toBe("agreed")
  expect(witness.answer("ping a1")).toBe("agreed")
  await pass(removeAfterMs)
  expect(witness.answer("ping a1")).toBe("agreed")
  await writeMembership()
  await pass(2 * witnessCheckMs)
  expect(witness.answer("ping a1")).toBe("alive")
})

it("agrees to nothing while its own pings are not answered", async () => {
  const { disconnect, pass, witness, writeMembership } = start()
  const revision = await writeMembership()
  await pass(2 * witnessCheckMs)
  disconnect()
  await pass(4 * removeAfterMs)
  expect(witness.answer(`remove a1 ${revision}`)).toBe("alive")
})
