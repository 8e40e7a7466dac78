/** Fuzzes every parser briefly, on the corpus of earlier runs; the seed is fixed. */
import { describe, expect, it } from "vitest"
import { corpusOf } from "./fuzz/corpus.ts"
import { fuzz, isSlow, type Target } from "./fuzz/fuzzer.ts"
import { targets } from "./fuzz/targets.ts"

const effort = { seed: 1, executions: 60, pumps: 4 }

describe("a short run finds nothing", () => {
  it.each(targets.map((target) => [target.name, target] as const))("in %s", (name, target) => {
    const inputs = corpusOf(name)
    const { corpus, executions, findings } = fuzz(target, effort, inputs)
    expect(findings).toEqual([])
    expect(executions).toBeGreaterThan(effort.executions + inputs.length)
    expect(corpus.length).toBeGreaterThan(0)
  })
})

describe("what once took the square of the time takes no more than its share", () => {
  const slow: ReadonlyArray<readonly [string, string, (chars: number) => string]> = [
    ["json-ld", "a long type", (chars) => `{"@type":"http://x.test/${"a".repeat(chars)}/b"}`],
    ["if-match", "blanks before what is no tag", (chars) => `"a",${" ".repeat(chars)}x`]
  ]
  it.each(slow)("in %s: %s", (name, _, make) => {
    const target = targets.find((one) => one.name === name)
    if (target === undefined) throw new Error(`there is no target ${name}`)
    const chars = Math.min(32 * 1024, target.bytesMax)
    expect(isSlow(target, make(chars / 4), make(chars))).toBe(false)
  })
})

describe("the fuzzer", () => {
  /** A parser with a fault behind several conditions, which random input does not reach. */
  const planted = (run: (input: string) => void): Target => ({
    name: "planted",
    bytesMax: 16 * 1024,
    seeds: ["<x>"],
    tokens: ["o", "u", "t"],
    run
  })

  it("finds an exception, and reports the smallest input", () => {
    const target = planted((input) => {
      if (input.includes("\0")) throw new TypeError("NUL")
    })
    const { findings } = fuzz(target, { seed: 7, executions: 2_000, pumps: 0 })
    expect(findings).toEqual([{ target: "planted", what: "TypeError: NUL", input: "\0" }])
  })

  it("finds a pattern with quadratic time", () => {
    const target = planted((input) => void /x+y/.test(input.replaceAll("<", "x")))
    const { findings } = fuzz(target, { seed: 7, executions: 100, pumps: 60 })
    expect(findings.map(({ what }) => what)).toEqual([expect.stringContaining("time grows")])
  })
})
