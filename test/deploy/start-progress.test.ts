/** The log of a start that takes long. */
import { Layer, Logger, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { afterAll, expect, it } from "vitest"
import { reportSlowStart, slowStartMs } from "../../deploy/node/start-progress.ts"

const lines: Array<string> = []
const logger = Logger.make(({ message }) => void lines.push([message].flat().join(" ")))
const runtime = ManagedRuntime.make(Layer.merge(TestClock.layer(), Logger.layer([logger])))

afterAll(() => runtime.dispose())

it("names what the node does, until the start has ended", async () => {
  const progress = { step: "opens the store" }
  const reporting = runtime.runFork(reportSlowStart(progress))
  const passes = (ms: number) => runtime.runPromise(TestClock.adjust(ms))
  await passes(slowStartMs - 1)
  expect(lines).toEqual([])
  await passes(1)
  progress.step = "adds the account admin"
  await passes(slowStartMs)
  expect(lines).toEqual([
    "the node is still starting: it opens the store",
    "the node is still starting: it adds the account admin"
  ])
  reporting.interruptUnsafe()
  await passes(4 * slowStartMs)
  expect(lines).toHaveLength(2)
})
