/**
 * `npm run simulate -- --seed N [--runs N] [--minutes M] [--fault name] [--trace]`: runs seeds,
 * and shows the first failing one, shrunk, with all events. Exits with 0 without findings, 1 with a
 * finding, 2 for a wrong command line.
 */
import { type Asked, read } from "./arguments.ts"
import { planOf } from "./plan.ts"
import { play } from "./report.ts"
import { simulate } from "./run.ts"

/** The exit code for a wrong command line. */
const WRONG = 2

const say = (line: string): void => void process.stdout.write(`${line}\n`)

const counted = (counts: ReadonlyMap<string, number>): string =>
  [...counts].sort(([a], [b]) => a.localeCompare(b)).map(([what, count]) => `${what} ${count}`)
    .join(", ")

const main = async (asked: Asked): Promise<void> => {
  const { isTraced, minutes, runs, seams, seed: first, store } = asked
  const faults = new Map<string, number>()
  let operations = 0
  const began = process.hrtime.bigint()
  for (let seed = first; seed < first + runs; seed++) {
    if (isTraced) {
      const { trace } = await simulate(planOf(seed, { minutes, store }), {
        seams,
        keepsTrace: true
      })
      say(trace.join("\n"))
    }
    const { report, result } = await play(seed, { minutes, seams, store })
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

// The reader of the output may close it early.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error
  process.exit()
})
const asked = read(process.argv.slice(2))
if (asked._tag === "Asked") await main(asked)
else {
  process[asked.isWrong ? "stderr" : "stdout"].write(`${asked.text}\n`)
  if (asked.isWrong) process.exitCode = WRONG
}
