/**
 * The blocks of our modules that ran, and how often, by V8's precise coverage. The fuzzer learns
 * from it whether an input is new, and how many steps it took, independent of the machine.
 */
import { type Profiler, Session } from "node:inspector"

/** Our modules, as sources or built; neither tests nor dependencies. */
const own = /\/(?:http|actors|client|runtime|deploy)\/(?!.*node_modules)[\w./-]+\.[jt]s$/
const foreign = /\/(?:node_modules|test)\//

/** The blocks that ran since the last call. */
export interface Ran {
  /** Each block that ran. */
  readonly blocks: ReadonlySet<string>
  /** Each block, with the power of two of its count. */
  readonly magnitudes: ReadonlySet<string>
  /** The sum of the counts of all blocks. */
  readonly steps: number
}

export class Coverage {
  private readonly session = new Session()

  start(): void {
    this.session.connect()
    this.session.post("Profiler.enable")
    this.session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true })
    this.take()
  }

  stop(): void {
    this.session.post("Profiler.stopPreciseCoverage")
    this.session.post("Profiler.disable")
    this.session.disconnect()
  }

  /** The blocks that ran since the last call. */
  take(): Ran {
    let found: ReadonlyArray<Profiler.ScriptCoverage> | undefined
    // On the same thread, `post` returns after the answer.
    this.session.post("Profiler.takePreciseCoverage", (error, answer) => {
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
