/**
 * A service under 60 % of its maximal load, for 10 minutes. Memory, file descriptors and p99 stay
 * flat, the store compacts, and nothing is lost. SOAK_MINUTES sets the time (120 for a
 * release); TEST_LONG=soak runs only this test. The graph is test-results/soak.svg, and its samples
 * are in soak.json.
 */
import { mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { afterAll, expect, it } from "vitest"
import { cleanUp, command, start } from "../e2e/process.ts"
import { closeReceivers } from "../e2e/receivers.ts"
import { note } from "../results.ts"
import { faultsOf, type Sample } from "./soak/checker.ts"
import { graphOf } from "./soak/graph.ts"
import { Load } from "./soak/load.ts"
import { maximumOf, steady } from "./soak/run.ts"

const MINUTE_MS = 60_000
const MINUTES = Number(process.env["SOAK_MINUTES"] ?? 10)
const LOAD = 0.6
const SAMPLES = 120
/** The time for measuring the maximal load: a minute, or less in a short run. */
const MAXIMUM_MS = Math.min(MINUTE_MS, MINUTES * MINUTE_MS / 5)
const results = resolve(import.meta.dirname, "../../test-results")

afterAll(() => {
  closeReceivers()
  cleanUp()
})

it(`is stable for ${MINUTES} minutes`, { timeout: (MINUTES + 15) * MINUTE_MS }, async () => {
  const service = await start({ env: { OUTBOUND_ALLOW: "127.0.0.0/8" } })
  const load = new Load(service.url)
  await load.prepare()
  const maximum = await maximumOf(load, MAXIMUM_MS)
  const forMs = MINUTES * MINUTE_MS
  const everyMs = forMs / SAMPLES
  const perSecond = maximum * LOAD
  const samples: Array<Sample> = []
  await steady(load, service, { perSecond, forMs, everyMs }, (sample) => samples.push(sample))

  mkdirSync(results, { recursive: true })
  const rates = `${Math.round(perSecond)} of ${Math.round(maximum)} operations a second`
  const title = `${MINUTES} minutes at ${rates}, RocksDB`
  writeFileSync(join(results, "soak.svg"), graphOf(samples, everyMs, title))
  const record = { minutes: MINUTES, maximum, perSecond, everyMs, samples }
  writeFileSync(join(results, "soak.json"), `${JSON.stringify(record, null, 2)}\n`)

  expect(load.wrong).toEqual([])
  expect(load.pushes).toBeGreaterThan(0)
  expect(await load.verify()).toEqual([])
  expect(faultsOf(samples)).toEqual([])
  await load.close()
  expect((await service.stop()).code).toBe(0)
  const checked = await command(["check", "--data-dir", service.dataDir])
  expect(checked.output).toContain(": ok")
  note({ name: `soak, ${MINUTES} minutes`, runs: 1, faults: 0, operations: load.operations })
})
