/**
 * A fuzzer with coverage feedback. It keeps an input that runs a new block, or runs a block more
 * often by a power of two, and mutates it further. An error of a target is a finding. So is an
 * input whose steps or time grow too fast when a part of it is repeated.
 *
 * Not jazzer.js: its binary needs glibc 2.38, and Debian 12 has 2.36.
 */
import { Coverage } from "./coverage.ts"
import { Chance, mutated, pumped } from "./mutate.ts"

/** A parser and its properties. */
export interface Target {
  readonly name: string
  /** The longest input that can reach it, in bytes. */
  readonly bytesMax: number
  readonly seeds: ReadonlyArray<string>
  /** Tokens of its language. */
  readonly tokens: ReadonlyArray<string>
  /** Throws when a property is violated. Every character of the input is one byte. */
  readonly run: (input: string) => void
}

/** A finding, with the smallest input that shows it. */
export interface Finding {
  readonly target: string
  readonly what: string
  readonly input: string
}

export interface Fuzzed {
  readonly executions: number
  readonly features: number
  /** The inputs that ran a new block. */
  readonly corpus: ReadonlyArray<string>
  readonly findings: ReadonlyArray<Finding>
}

export interface Effort {
  readonly seed: number
  /** The number of inputs to try. */
  readonly executions: number
  /** The number of inputs whose parts are repeated. */
  readonly pumps: number
}

/** Inputs for each reading of the coverage, because a reading costs more than an input. */
const batchInputs = 100
const inputCharsMax = 2_048

/** Growth limit of steps and time when the input grows by four; quadratic growth would be 16. */
const growth = 4
const growthMax = 10
const pumpedCharsMax = 32 * 1024
/** Inputs below this are not measured further. */
const stepsMin = 20_000
const suspectMs = 50
const measurements = 3

const described = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}`.slice(0, 300) : String(error)

/** The error of the target, without the text of the input. */
const failureOf = ({ run }: Target, input: string): string | undefined => {
  try {
    run(input)
    return undefined
  } catch (error) {
    return described(error)
  }
}

const kindOf = (failure: string): string => failure.slice(0, 40)

/** The smallest part of the input that still fails. */
const shrunk = (target: Target, input: string, failure: string): string => {
  let least = input
  for (let size = Math.ceil(least.length / 2); size >= 1; size = Math.floor(size / 2)) {
    for (let at = 0; at < least.length;) {
      const without = least.slice(0, at) + least.slice(at + size)
      const still = failureOf(target, without)
      if (still !== undefined && kindOf(still) === kindOf(failure)) least = without
      else at += size
    }
  }
  return least
}

/** CPU time of this process, ms; other processes on the machine hardly change it. */
const timed = (run: () => void): number => {
  const before = process.cpuUsage()
  run()
  const { system, user } = process.cpuUsage(before)
  return (user + system) / 1_000
}

const isGrown = (small: number, large: number): boolean => large > growthMax * small

/** Whether a target takes far more than four times the time for an input four times as long. */
export const isSlow = (target: Target, short: string, long: string): boolean => {
  const [shortMs = 0, longMs = 0] = [short, long].map((input) =>
    Math.min(
      ...Array.from({ length: measurements }, () => timed(() => failureOf(target, input)))
    )
  )
  return longMs > suspectMs && isGrown(shortMs, longMs)
}

class Fuzzer {
  private readonly target: Target
  private readonly chance: Chance
  private readonly coverage: Coverage
  private readonly seen = new Set<string>()
  private readonly corpus: Array<string> = []
  private readonly findings = new Map<string, Finding>()
  private executions = 0

  constructor(target: Target, seed: number, coverage: Coverage) {
    this.target = target
    this.chance = new Chance(seed)
    this.coverage = coverage
  }

  private found(what: string, input: string): void {
    const { name } = this.target
    const kind = kindOf(what)
    if (!this.findings.has(kind)) this.findings.set(kind, { target: name, what, input })
  }

  private try(input: string): void {
    this.executions += 1
    const failure = failureOf(this.target, input)
    if (failure !== undefined && !this.findings.has(kindOf(failure))) {
      this.found(failure, shrunk(this.target, input, failure))
    }
  }

  /** Keeps all initial inputs, new or not. */
  private begin(inputs: ReadonlyArray<string>): void {
    for (const input of inputs) this.try(input)
    const { blocks, magnitudes } = this.coverage.take()
    for (const one of [...blocks, ...magnitudes]) this.seen.add(one)
    this.corpus.push(...inputs)
  }

  private isNew(some: ReadonlySet<string>): boolean {
    for (const one of some) if (!this.seen.has(one)) return true
    return false
  }

  /**
   * Tries a batch of inputs. If it ran a new block, both halves are tried, down to the input that
   * did, which is kept.
   */
  private learn(inputs: ReadonlyArray<string>): void {
    for (const input of inputs) this.try(input)
    const { blocks, magnitudes } = this.coverage.take()
    const [only] = inputs
    if (inputs.length > 1 || only === undefined) {
      if (!this.isNew(blocks)) return
      const half = Math.ceil(inputs.length / 2)
      this.learn(inputs.slice(0, half))
      return this.learn(inputs.slice(half))
    }
    // Counts are meaningful for a single input only.
    if (!this.isNew(blocks) && !this.isNew(magnitudes)) return
    for (const one of [...blocks, ...magnitudes]) this.seen.add(one)
    this.corpus.push(only)
  }

  private batch(): void {
    const { tokens } = this.target
    const inputs = Array.from({ length: batchInputs }, () => {
      const from = this.chance.of(this.corpus, "")
      const other = this.chance.of(this.corpus, "")
      return mutated(this.chance, from, tokens, other).slice(0, inputCharsMax)
    })
    this.learn(inputs)
  }

  /** The cost of one input: steps and CPU time. */
  private cost(input: string): { readonly steps: number; readonly ms: number } {
    const ms = timed(() => this.try(input))
    return { steps: this.coverage.take().steps, ms }
  }

  private pump(): void {
    const text = this.chance.of(this.corpus, "")
    const from = this.chance.below(text.length + 1)
    const to = Math.min(text.length, from + this.chance.below(5))
    const chars = Math.min(this.target.bytesMax, pumpedCharsMax)
    const short = pumped(text, from, to, chars / growth)
    const long = pumped(text, from, to, chars)
    const [little, much] = [this.cost(short), this.cost(long)]
    if (much.steps > stepsMin && isGrown(little.steps, much.steps)) {
      this.found(`steps grow from ${little.steps} to ${much.steps} over ${chars} bytes`, long)
    }
    // Regular expressions have no steps.
    if (much.ms < suspectMs) return
    if (isSlow(this.target, short, long)) {
      this.found(`time grows too fast over ${chars} bytes`, long)
    }
    this.coverage.take()
  }

  run({ executions, pumps }: Effort, corpus: ReadonlyArray<string>): Fuzzed {
    this.begin([...new Set([...this.target.seeds, ...corpus])])
    const before = this.executions
    while (this.executions - before < executions) this.batch()
    for (let n = 0; n < pumps && this.findings.size === 0; n += 1) this.pump()
    return {
      executions: this.executions,
      features: this.seen.size,
      corpus: this.corpus,
      findings: [...this.findings.values()]
    }
  }
}

/** Fuzzes a target; deterministic for one effort. `corpus` has the inputs of earlier runs. */
export const fuzz = (
  target: Target,
  effort: Effort,
  corpus: ReadonlyArray<string> = []
): Fuzzed => {
  const coverage = new Coverage()
  coverage.start()
  try {
    return new Fuzzer(target, effort.seed, coverage).run(effort, corpus)
  } finally {
    coverage.stop()
  }
}
