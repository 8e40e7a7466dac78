/** Requests whose messages a node of an earlier version does not know. */
import { Effect, Fiber, ManagedRuntime } from "effect"
import { TestClock } from "effect/testing"
import { expect, it, onTestFinished } from "vitest"
import { configuredSecretFormat } from "../../actors/mailbox/index.ts"
import { failureReportsFormat, followUpsFormat, pausesFormat, readSecretsFormat,
  relayAttemptsFormat, replayEndsFormat, replaysFormat, serviceFormat,
  testEventsFormat } from "../../actors/index.ts"
import { formatAwaitMs } from "../../http/limits.ts"
import { requireFormat } from "../../http/pipeline/service.ts"

/** A node of a cluster whose format is raised after so many looks. */
const raisedAfter = (looks: number) => {
  let looked = 0
  return { system: { format: () => looked++ < looks ? 1 : 2 } }
}

it("go on once a cluster has found out that all nodes know them", async () => {
  for (const looks of [0, 3]) await Effect.runPromise(requireFormat(raisedAfter(looks), 2))
})

it("are refused while such a node is in the cluster, and say what to do", async () => {
  const runtime = ManagedRuntime.make(TestClock.layer())
  onTestFinished(() => runtime.dispose())
  const never = raisedAfter(Number.POSITIVE_INFINITY)
  const refused = runtime.runFork(Effect.flip(requireFormat(never, 2)))
  await runtime.runPromise(TestClock.adjust(formatAwaitMs))
  const { headers, problem } = await runtime.runPromise(Fiber.join(refused))
  expect(problem).toMatchObject({
    status: 503,
    detail: expect.stringContaining("send it again when all nodes are updated")
  })
  expect(headers).toEqual([["Retry-After", "60"]])
})

it("need no later format than this version reads", () => {
  for (
    const format of [
      configuredSecretFormat,
      failureReportsFormat,
      followUpsFormat,
      pausesFormat,
      readSecretsFormat,
      relayAttemptsFormat,
      replayEndsFormat,
      replaysFormat,
      testEventsFormat
    ]
  ) {
    expect(format).toBeLessThanOrEqual(serviceFormat)
  }
})
