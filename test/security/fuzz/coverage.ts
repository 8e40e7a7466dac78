/**
 * Which blocks of our own modules ran, and how often, from V8's precise coverage: what tells a
 * fuzzer that an input is a new one, and how many steps it took, on whatever machine.
 */
import { type Profiler, Session } from "node:inspector"

/** Our modules, as sources or as built; not the tests, nor what they are made of. */
const own = /\/(?:http|actors|client|runtime|deploy)\/(?!.*node_modules)[\w./-]+\.[jt]s$/
const foreign = /\/(?:node_modules|test)\//

/** What ran since the last look. */
export interface Ran {
  /** Each block that ran. */
  readonly blocks: ReadonlySet<string>
  /** Each with the power of two of how often it ran. */
  readonly magnitudes: ReadonlySet<string>
  /** How often blocks ran, all together. */
  readonly steps: number
}

export class Coverage {
  readonly #session = new Session()

  start(): void {
    this.#session.connect()
    this.#session.post("Profiler.enable")
    this.#session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })
    this.take()
  }

  stop(): void {
    this.#session.post("Profiler.stopPreciseCoverage")
    this.#session.post("Profiler.disable")
    this.#session.disconnect()
  }

  /** What ran since this was asked last. */
  take(): Ran {
    let found: ReadonlyArray<Profiler.ScriptCoverage> | undefined
    // On one's own thread the answer comes before `post` returns.
    this.#session.post("Profiler.takePreciseCoverage", (error, answer) => {
      if (error === null) found = answer.result
    })
    if (found === undefined) throw new Error("V8 reported no coverage")
    const blocks = new Set<string>()
    const magnitudes = new Set<string>()
    let steps = 0
    for (const { functions, scriptId, url } of found) {
      if (!own.test(url) || foreign.test(url)) continue
      for (const { ranges } of functions) {
        for (const { count, endOffset, startOffset } of ranges) {
          if (count === 0) continue
          steps += count
          const block = `${scriptId}:${startOffset}:${endOffset}`
          blocks.add(block)
          magnitudes.add(`${block}:${Math.ceil(Math.log2(count))}`)
        }
      }
    }
    return { blocks, magnitudes, steps }
  }
}
