/**
 * Three nodes on three servers under load. First a rolling restart without failed requests, then a
 * node is killed. The responses to all clients never contradict each other. The long form chooses
 * random faults of every kind.
 */
import { afterAll, expect, it } from "vitest"
import { asAdmin, expectStatus, postXml } from "../e2e/client.ts"
import { cleanUp } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { faultsNamed } from "./fault.ts"
import { seed } from "./run-options.ts"
import { RunStatistics } from "./run-statistics.ts"
import { runCluster, TestCluster } from "./test-cluster.ts"

const testMs = 400_000
/** `cluster/containers.long.ts` kills a leader; `embedded.test.ts` sets clocks. */
const names = ["rolledRestart", "nodeKilled"]

afterAll(() => {
  closeReceivers()
  cleanUp()
})

/** Sends one keyed request to each node: all nodes seal responses with the same secret. */
const expectOneSecret = async (urls: ReadonlyArray<string>): Promise<void> => {
  const body = "<mailbox><name>keyed</name></mailbox>"
  const headers = { ...asAdmin, "idempotency-key": "\"once\"" }
  const answers: Array<string> = []
  for (const url of urls) {
    answers.push(expectStatus(await postXml(url, "/mailboxes", body, headers), 201).text)
  }
  expect(answers).toHaveLength(3)
  expect(new Set(answers).size).toBe(1)
}

it("never contradicts a response of any node", async () => {
  const cluster = await TestCluster.start()
  await expectOneSecret(cluster.world.urls())
  const statistics = new RunStatistics("cluster", seed)
  await runCluster({ cluster, seed, statistics, choices: faultsNamed(cluster.faults, names) })
  expect(statistics.faultCount).toBe(names.length)
}, testMs)
