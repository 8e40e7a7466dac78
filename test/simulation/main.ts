/**
 * `npm run simulate -- --seed N [--runs N] [--minutes M] [--fault name] [--trace]`: plays seeds,
 * and shows the first that fails, made as small as it can be, with all that happened.
 */
import { parseArgs } from "node:util"
import { type Planted, planted } from "./planted.ts"
import { planOf } from "./plan.ts"
import { minutesDefault, play } from "./report.ts"
import { simulate } from "./run.ts"

const { values } = parseArgs({
  options: {
    seed: { type: "string", default: "1" },
    runs: { type: "string", default: "1" },
    minutes: { type: "string", default: String(minutesDefault) },
    fault: { type: "string" },
    trace: { type: "boolean", default: false }
  }
})

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const numberOf = (name: "seed" | "runs" | "minutes"): number => {
  const value = Number(values[name])
  if (!(value > 0)) throw new TypeError(`--${name} is a number above 0`)
  return value
}

const faultOf = (name: string | undefined): Planted => {
  if (name === undefined) return {}
  const fault = planted[name]
  if (fault === undefined) {
    throw new TypeError(`--fault is one of ${Object.keys(planted).join(", ")}`)
  }
  return fault
}

const counted = (counts: ReadonlyMap<string, number>): string =>
  [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([what, count]) => `${what} ${count}`)
    .join(", ")

const main = async (): Promise<void> => {
  const [first, runs, minutes] = [numberOf("seed"), numberOf("runs"), numberOf("minutes")]
  const seams = faultOf(values.fault)
  const faults = new Map<string, number>()
  let operations = 0
  const began = process.hrtime.bigint()
  for (let seed = first; seed < first + runs; seed++) {
    if (values.trace) {
      const { trace } = await simulate(planOf(seed, { minutes }), { seams, keepsTrace: true })
      say(trace.join("\n"))
    }
    const { report, result } = await play(seed, minutes, seams)
    operations += result.operations
    for (const [what, count] of result.faults) faults.set(what, (faults.get(what) ?? 0) + count)
    if (report !== undefined) {
      say(report)
      process.exitCode = 1
      return
    }
    if (runs === 1) say(`seed ${seed}: ${result.hash}`)
  }
  const seconds = Number(process.hrtime.bigint() - began) / 1e9
  say(`${runs} runs, ${operations} operations, ${Math.round(runs / seconds)} runs a second`)
  say(`faults: ${counted(faults)}`)
}

await main()
