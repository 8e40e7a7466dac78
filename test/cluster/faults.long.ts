/**
 * Everything that may happen to a cluster, each under load, and nothing that was acknowledged is
 * lost, doubled or out of order: nodes that are killed, paused and cut off; servers that are
 * killed, one or all, and cut off from each other; nodes that come and go.
 */
import { afterAll, afterEach, describe, expect, it } from "vitest"
import { cleanUp, pause } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { healedWithinMs, nodeServedWithinMs, told } from "./bounds.ts"
import { Load, loadEnv } from "./load.ts"
import { rollingRestart, stop } from "./restarts.ts"
import { allKilled, cutFromServers, killed, still, suffer } from "./server-faults.ts"
import { type ClusterNode, World } from "./world.ts"

const testMs = 400_000
/** Longer than a membership lasts: others have the node's shards by then. */
const longMs = 30_000
const stream = "KV_actors-0"

let world: World | undefined
afterEach(async () => {
  await world?.close()
  world = undefined
})
afterAll(() => {
  closeReceivers()
  cleanUp()
})

interface Scene {
  readonly world: World
  readonly load: Load
  /** One of the nodes, which is no longer asked by the load when it is `left out`. */
  readonly victim: ClusterNode
  /** The load goes by it from here on, as by a balancer that finds it unready; or not any more. */
  readonly leaveOut: (isOut: boolean) => void
}

/** A cluster of three under load; what `act` does to it, and everything looked over at the end. */
const under = async (
  act: (scene: Scene) => Promise<void>,
  names: ReadonlyArray<string> = ["a", "b", "c"]
): Promise<void> => {
  const here = world = await World.start(names, loadEnv)
  const [victim] = here.nodes
  if (victim === undefined) throw new Error("there is no node")
  const out = { isOut: false }
  const load = await Load.start(() => out.isOut ? here.urls(victim) : here.urls())
  await pause(1_000)
  const leaveOut = (isOut: boolean) => {
    out.isOut = isOut
  }
  await act({ world: here, load, victim, leaveOut })
  await pause(1_000)
  await load.end()
  await load.verify(here.urls())
}

describe("a node", () => {
  it("is killed and comes back", () =>
    under(async ({ load, victim, world: here }) => {
      await victim.service.kill()
      told("a node was killed", await load.servedAgain(here.urls(), nodeServedWithinMs))
      await here.restart(victim)
      told("it came back", await load.servedAgain(here.urls(), healedWithinMs))
    }), testMs)

  it(
    "stands still for longer than its membership lasts, and goes on",
    () =>
      under(async ({ leaveOut, load, victim, world: here }) => {
        victim.service.child.kill("SIGSTOP")
        // What it was asked at that moment stays with it.
        leaveOut(true)
        told("a node stood still", await load.servedAgain(here.urls(victim), nodeServedWithinMs))
        await pause(longMs)
        victim.service.child.kill("SIGCONT")
        leaveOut(false)
        told("it went on", await load.servedAgain(here.urls(), healedWithinMs))
      }),
    testMs
  )

  it.each(["cut", "stall"] as const)(
    "is cut off from NATS (%s), and healed",
    (how) =>
      under(async ({ load, victim, world: here }) => {
        for (const link of victim.links) link[how]()
        told(
          `a node was cut off (${how})`,
          await load.servedAgain(here.urls(victim), nodeServedWithinMs)
        )
        // It is asked all the time, and tells nobody what the others have changed meanwhile.
        await pause(longMs)
        for (const link of victim.links) link.heal()
        told("it was healed", await load.servedAgain(here.urls(), healedWithinMs))
      }),
    testMs
  )
})

describe("the servers", () => {
  it(
    "lose the leader of a stream to kill -9",
    () => under((scene) => suffer(scene, async () => killed(await scene.world.leaderOf(stream)))),
    testMs
  )

  it(
    "are killed all at once, and start again",
    () => under((scene) => suffer(scene, async () => allKilled(scene.world, 2_000))),
    testMs
  )

  it(
    "are cut in two, the leader of a stream on the smaller side, and healed",
    () =>
      under(({ load, world: here }) =>
        suffer(
          { load, world: here },
          async () => cutFromServers(here, await here.leaderOf(stream), longMs)
        )
      ),
    testMs
  )

  it(
    "have one that stands still, the leader of a stream, and goes on",
    () =>
      under((scene) =>
        suffer(scene, async () => still(await scene.world.leaderOf(stream), longMs))
      ),
    testMs
  )
})

describe("nodes that stop in good order", () => {
  it(
    "are restarted one after the other, twice, and nobody is refused",
    () =>
      under(async ({ load, world: here }) => {
        await rollingRestart(here)
        await rollingRestart(here)
        expect(load.refusals, here.logs).toEqual([])
      }),
    testMs
  )

  it(
    "stand still while they hand over, and nobody is refused",
    () =>
      under(async ({ load, world: here }) => {
        await rollingRestart(here, true)
        await rollingRestart(here, true)
        expect(load.refusals, here.logs).toEqual([])
      }),
    testMs
  )

  it(
    "become three of one, and two of three, and nobody is refused",
    () =>
      under(async ({ load, victim, world: here }) => {
        await here.join("b")
        await here.join("c")
        await pause(3_000)
        await stop(victim)
        here.forget(victim)
        await pause(3_000)
        expect(here.urls()).toHaveLength(2)
        expect(load.refusals, here.logs).toEqual([])
      }, ["a"]),
    testMs
  )
})
