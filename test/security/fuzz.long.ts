/**
 * Every parser under the fuzzer for an hour, or for FUZZ_MINUTES. Each round has another seed, told
 * with what it found: that seed finds it again on the corpus that is kept. With FUZZ_KEEP=1 the
 * shortest inputs that ran something new go into the corpus.
 */
import { expect, it } from "vitest"
import { corpusOf, keepCorpus } from "./fuzz/corpus.ts"
import { type Finding, fuzz } from "./fuzz/fuzzer.ts"
import { targets } from "./fuzz/targets.ts"

const minutes = Number(process.env["FUZZ_MINUTES"] ?? 60)
const isKept = process.env["FUZZ_KEEP"] === "1"
const effort = { executions: 2_000, pumps: 100 }
/** What is kept of a corpus: enough to begin with, and little to read. */
const keptInputs = 60
const keptChars = 400
/** What one round goes on from. */
const carriedInputs = 500

it("a long run finds nothing", () => {
  const endMs = performance.now() + minutes * 60_000
  const carried = new Map(targets.map(({ name }) => [name, corpusOf(name)]))
  const found: Array<Finding & { readonly seed: number }> = []
  let executions = 0
  let seed = 1
  for (; performance.now() < endMs; seed += 1) {
    for (const target of targets) {
      if (performance.now() >= endMs) break
      const { name } = target
      const fuzzed = fuzz(target, { seed, ...effort }, carried.get(name)?.slice(-carriedInputs))
      carried.set(name, fuzzed.corpus)
      executions += fuzzed.executions
      found.push(...fuzzed.findings.map((finding) => ({ seed, ...finding })))
    }
  }
  console.log(`fuzzed ${targets.length} parsers with ${executions} inputs, ${seed - 1} rounds`)
  if (isKept) {
    for (const [name, corpus] of carried) {
      const short = corpus.filter(({ length }) => length <= keptChars)
      const kept = [...corpusOf(name), ...short.toSorted((a, b) => a.length - b.length)]
      keepCorpus(name, [...new Set(kept)].slice(0, keptInputs))
    }
  }
  expect(found).toEqual([])
  expect(executions).toBeGreaterThan(targets.length)
}, minutes * 60_000 + 600_000)
