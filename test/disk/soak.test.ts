/** The soak's check and graph: it reports growth, and no mere variation. */
import { expect, it } from "vitest"
import { xml2js } from "xml-js"
import { randomOf } from "./seeds.ts"
import { faultsOf, type Sample } from "./soak/checker.ts"
import { graphOf } from "./soak/graph.ts"

const MB = 1024 * 1024
const SAMPLES = 120
const EVERY_MS = 60_000

/** `grown`: from 0 at the start to 1 at the end. */
const samplesOf = (change: (grown: number) => Partial<Sample> = () => ({})): Array<Sample> => {
  const random = randomOf("soak")
  return Array.from({ length: SAMPLES }, (_, n) => ({
    atMs: (n + 1) * EVERY_MS,
    operations: 50_000 + 5_000 * random(),
    p50Ms: 4 + random(),
    p99Ms: 20 + 30 * random(),
    rssBytes: (250 + 40 * random() + (n < 10 ? 0 : 30)) * MB,
    files: 80 + Math.floor(10 * random()),
    diskBytes: (200 + 150 * random()) * MB,
    liveBytes: 60 * MB,
    ...change(n / SAMPLES)
  }))
}

it("reports nothing for mere variation", () => {
  expect(faultsOf(samplesOf())).toEqual([])
})

it.each<readonly [string, (grown: number) => Partial<Sample>]>([
  ["memory", (grown) => ({ rssBytes: (250 + 400 * grown) * MB })],
  ["file descriptors", (grown) => ({ files: 80 + Math.floor(150 * grown) })],
  ["the disk", (grown) => ({ diskBytes: (200 + 1_000 * grown) * MB })],
  ["p99", (grown) => ({ p99Ms: 20 + 2_000 * grown ** 3 })]
])("finds growth of %s", (what, change) => {
  const faults = faultsOf(samplesOf(change))
  expect(faults).toHaveLength(1)
  expect(faults[0]).toMatch(what)
})

it("draws every sample", () => {
  const drawn = graphOf(samplesOf(), EVERY_MS, "A soak")
  expect(() => xml2js(drawn)).not.toThrow()
  const lines = [...drawn.matchAll(/points="([^"]*)"/g)].map(([, points = ""]) => points.split(" "))
  expect(lines.map(({ length }) => length)).toEqual(Array.from({ length: 7 }, () => SAMPLES))
  expect(drawn).not.toMatch(/NaN|Infinity/)
})
