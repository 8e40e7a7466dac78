/** docs/runtime: the example of its README.md, and the figures of docs/runtime/when-not.md. */
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { blocksOf, textOf } from "../pages.ts"
import { codeOf } from "./package-imports.ts"

it("shows a counter in docs/runtime/README.md that the tests of definitions run", () => {
  const counter = new URL("../../runtime/definition/examples/counter.ts", import.meta.url)
  const [block] = blocksOf("docs/runtime/README.md").filter(({ language }) => language === "ts")
  expect(block?.text).toBe(codeOf(readFileSync(counter, "utf8")))
})

/** The paragraph before each block that a reader saves, and the file's name. */
const savedOn = (page: string) => [...textOf(page).matchAll(/^(.+)\n\n<!-- file: (.+) -->$/gm)]

it.each([["tutorial", 10], ["patterns", 8]])("names on the page %s each file", (page, files) => {
  const saved = savedOn(`docs/runtime/${page}.md`)
  expect(saved).toHaveLength(files)
  // The comment with the name is not shown.
  for (const [, paragraph, name] of saved) expect(paragraph).toContain(`\`${name}\``)
})

const results = "test/bench/RESULTS.md"
const limits = "runtime/limits.ts"

/** What docs/runtime/when-not.md says, and where it is from. */
const figures: ReadonlyArray<readonly [stated: string, source: string, there: string | RegExp]> = [
  ["37,000 a second", results, /durable deposits to one, .*\(37\.0k of/],
  ["39,100", results, /durable deposits over 100 mailboxes, .*\(39\.1k of/],
  ["17,500 deposits a second on one server", results, /compare-and-set .*\(17\.5k of/],
  ["13,600 on three with three replicas", results, /atomic batches of 200 .*\(13\.6k of/],
  ["2.8 times the processor time", results, /over three nodes, of one over one node +\| 2\.8 x/],
  ["1.9 times one", results, /over three such nodes, of one +\| 1\.90 /],
  ["4.2 seconds", results, /p95 of 20 kills: .*\| 4\.2 s \(median 3\.8 s/],
  ["median 3.8", results, "median 3.8 s"],
  ["half a second with a million stored items", results, /stored .* after kill -9 +\| 0\.4 s/],
  ["10,000 actors in memory", limits, "residentActorsMax: 10_000"],
  ["16 KiB or more counts as large", limits, "largeActorBytesMin: 16 * 1024"],
  ["128 MiB of memory", limits, "largeActorsBytesMax: 128 * 1024 * 1024"],
  ["four streams by default", limits, "bucketsDefault = 4"],
  ["resolution of 10 ms", limits, "timerResolutionMs: 10"],
  ["usually 4 to 9 seconds", limits, "NATS elections take 4 to 9 s"],
  ["256 shards", "runtime/actor/address.ts", "SHARDS = 256"],
  ["up to 1 KB", "docs/how-to/size.md", "up to 1 KB besides its state"]
]

describe("docs/runtime/when-not.md", () => {
  it.each(figures)("says %s as %s has it", (stated, source, there) => {
    expect(textOf("docs/runtime/when-not.md")).toContain(stated)
    expect(textOf(source)).toMatch(there)
  })
})
