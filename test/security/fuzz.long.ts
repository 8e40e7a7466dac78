/**
 * Fuzzes every parser for 5 minutes, or for FUZZ_MINUTES. Each round has another seed. A finding is
 * reported with its seed, which reproduces it on the stored corpus. With FUZZ_KEEP=1 the shortest
 * inputs that reached new code are added to the corpus.
 */
import { expect, it } from "vitest"
import { corpusOf, keepCorpus } from "./fuzz/corpus.ts"
import { type Finding, fuzz } from "./fuzz/fuzzer.ts"
import { targets } from "./fuzz/targets.ts"

const minutes = Number(process.env["FUZZ_MINUTES"] ?? 5)
const isKept = process.env["FUZZ_KEEP"] === "1"
const effort = { executions: 2_000, pumps: 100 }
/** Largest stored corpus of a parser: enough to start from, and small to review. */
const keptInputs = 60
const keptChars = 400
/** The inputs with which one round starts. */
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
      const inputs = [...corpusOf(name), ...short.toSorted((a, b) => a.length - b.length)]
      keepCorpus(name, [...new Set(inputs)].slice(0, keptInputs))
    }
  }
  expect(found).toEqual([])
  expect(executions).toBeGreaterThan(targets.length)
}, minutes * 60_000 + 600_000)
