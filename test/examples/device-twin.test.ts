/** The device twin: its simulation on a few seeds, and its cells. */
import { expect, it } from "vitest"
import { deviceTwin } from "../../examples/device-twin/index.ts"
import { twinSimulation } from "../../examples/device-twin/simulation.ts"
import { simulate, testTable } from "../../runtime/testing/index.ts"

it("keeps versions in their order, whatever happens to the nodes", async () => {
  const { answered, coverage } = await simulate({ ...twinSimulation, seeds: 5 })
  expect(answered).toBeGreaterThan(50)
  expect(coverage[0]?.missing).toEqual([])
})

it("takes a change of the version that was read, and each report once", () => {
  const tests = testTable(deviceTwin)
  const dim = { brightness: 40 }
  const none = { version: 0, settings: {} }
  const desired = { version: 1, settings: dim }
  const changed = { _tag: "Twin", desired, reported: none, sequence: 0 } as const
  tests.given().when({ _tag: "Desire", settings: dim, ifVersion: 0 })
    .then({ become: changed, reply: { desired, reported: none, isInSync: false } })
  tests.given(changed).when({ _tag: "Desire", settings: {}, ifVersion: 0 })
    .then({ refuse: "Changed" })
  const report = { _tag: "Report", settings: dim, version: 1, sequence: 1 } as const
  const inSync = { ...changed, reported: desired, sequence: 1 }
  const reply = { desired, reported: desired, isInSync: true }
  tests.given(changed).when(report).then({ become: inSync, reply })
  tests.given(inSync).when(report).then({ reply })
  tests.given(changed).when({ ...report, version: 2 }).then({ refuse: "Unknown" })
  tests.given(inSync).when({ ...report, version: 0, sequence: 2 }).then({ refuse: "Older" })
  tests.given(inSync).when({ _tag: "Read" }).then({ reply })
  expect(tests.coverage().missing).toEqual([])
})
