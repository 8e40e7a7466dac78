/** Counts the faults and the operations of runs, for docs/guarantees.md. */
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Contradiction } from "../../runtime/testing/index.ts"
import { note } from "../results.ts"
import type { Recorder } from "./recorder.ts"

const folder = fileURLToPath(new URL("../../test-results/", import.meta.url))

export class RunStatistics {
  private readonly name: string
  private readonly seed: string
  private readonly faults = new Map<string, number>()
  private readonly operations = new Map<string, number>()
  private runs = 0
  private acknowledged = 0
  private indeterminate = 0
  private keyed = 0
  private resources = 0
  /** Number of faults at the end of the last run. */
  private reportedFaults = 0

  constructor(name: string, seed: string) {
    this.name = name
    this.seed = seed
  }

  /** Number of faults so far. */
  get faultCount(): number {
    return [...this.faults.values()].reduce((sum, count) => sum + count, 0)
  }

  /** Counts a fault. */
  countFault(what: string): void {
    this.faults.set(what, (this.faults.get(what) ?? 0) + 1)
  }

  /** Counts a run that has ended without loss; a loss would have failed it. */
  countRun({ acknowledged, histories, keyed, indeterminate }: Recorder): void {
    const name = `real processes, ${this.name.replace(/-long$/, "")}`
    note({ name, runs: 1, faults: this.faultCount - this.reportedFaults, operations: acknowledged })
    this.reportedFaults = this.faultCount
    this.runs += 1
    this.acknowledged += acknowledged
    this.indeterminate += indeterminate
    this.keyed += keyed
    for (const [kind, operations] of Object.entries(histories)) {
      this.operations.set(kind, (this.operations.get(kind) ?? 0) + operations.length)
      this.resources += new Set(
        operations.map(({ resource }: { readonly resource: string }) => resource)
      ).size
    }
    this.write()
  }

  /** Writes a whole contradictory history to a file, for analysis. */
  writeContradiction(error: unknown): void {
    if (!(error instanceof Contradiction)) return
    const lines = error.operations.map((one) => JSON.stringify(one)).join("\n")
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `faults-${this.name}-broken.jsonl`), `${lines}\n`)
  }

  /** Writes the counts to a file for the page, and prints them as a table. */
  private write(): void {
    const counts = {
      name: this.name,
      seed: this.seed,
      runs: this.runs,
      faults: Object.fromEntries(this.faults),
      acknowledged: this.acknowledged,
      unknown: this.indeterminate,
      keyed: this.keyed,
      resources: this.resources,
      operations: Object.fromEntries(this.operations),
      lost: 0
    }
    mkdirSync(folder, { recursive: true })
    writeFileSync(join(folder, `faults-${this.name}.json`), `${JSON.stringify(counts, null, 2)}\n`)
    const rows: ReadonlyArray<readonly [string, number]> = [
      ["runs", this.runs],
      ...this.faults,
      ["requests answered", this.acknowledged],
      ["requests of unknown outcome", this.indeterminate],
      ["requests with a key, repeated", this.keyed],
      ["resources", this.resources],
      ...[...this.operations].map(([kind, count]) => [`operations of ${kind}`, count] as const),
      ["lost, doubled, out of order or contradicted", 0]
    ]
    const lines = rows.map(([what, count]) => `${String(count).padStart(8)}  ${what}`)
    console.info(`${this.name}, seed ${this.seed}\n${lines.join("\n")}`)
  }
}
