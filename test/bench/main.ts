/**
 * `npm run bench [line …]`: runs all lines or these, and writes a table here and to RESULTS.md.
 * It uses only loopback, and ends every process that it started.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Bench, exitCodeOf, type LargeStore, type Line, type Row } from "./line.ts"
import { clustered } from "./lines/cluster.ts"
import { deposits } from "./lines/deposits.ts"
import { earlier, earlierBuild } from "./lines/earlier.ts"
import { idle } from "./lines/idle.ts"
import { listing } from "./lines/listing.ts"
import { pages } from "./lines/pages.ts"
import { peers } from "./lines/peers.ts"
import { queries } from "./lines/queries.ts"
import { pushes, relaying } from "./lines/relays.ts"
import { runtimeAlone } from "./lines/runtime.ts"
import { scaleOut } from "./lines/scale-out.ts"
import { sessions } from "./lines/sessions.ts"
import { start } from "./lines/start.ts"
import { takeover } from "./lines/takeover.ts"
import { transfer } from "./lines/transfer.ts"
import { waitingMillion } from "./lines/waiting.ts"
import { fillLarge } from "./mailboxes.ts"
import { endAll, serve, servePeer } from "./process.ts"
import { writeResults } from "./results.ts"
import { requireWrk } from "./wrk.ts"

const lines: ReadonlyArray<Line> = [
  deposits,
  listing,
  sessions,
  relaying,
  pushes,
  waitingMillion,
  idle,
  pages,
  start,
  transfer,
  clustered,
  scaleOut,
  takeover,
  queries,
  runtimeAlone,
  peers,
  earlier
]

const removalRetriesMax = 10

const say = (text: string): void => {
  process.stderr.write(`${text}\n`)
}

const picked = (names: ReadonlyArray<string>): ReadonlyArray<Line> => {
  const lineNames = lines.map(({ name }) => name)
  const unknown = names.filter((name) => !lineNames.includes(name))
  if (unknown.length > 0) {
    throw new Error(`no line ${unknown.join(", ")}; there are ${lineNames.join(", ")}`)
  }
  const measurable = lines.filter((line) => line !== earlier || earlierBuild() !== undefined)
  return names.length === 0 ? measurable : lines.filter(({ name }) => names.includes(name))
}

const run = async (
  workspace: string,
  chosen: ReadonlyArray<Line>,
  isComplete: boolean
): Promise<ReadonlyArray<Row>> => {
  let large: Promise<LargeStore> | undefined
  const bench: Bench = {
    folder: (name) => {
      const folder = join(workspace, name)
      mkdirSync(folder)
      return folder
    },
    serve,
    peer: servePeer,
    large: () => large ??= fillLarge(bench),
    say
  }
  const rows: Array<Row> = []
  for (const line of chosen) {
    say(`# ${line.name}`)
    for (const row of await line.run(bench)) {
      rows.push(row)
      say(`${row.what}: ${row.measured}, target ${row.target}`)
    }
  }
  process.stdout.write(`${writeResults(rows, isComplete)}\n`)
  return rows
}

const workspace = mkdtempSync(join(process.env["BENCH_DIR"] ?? tmpdir(), "restante-bench-"))
process.once("exit", () => {
  endAll()
  // The processes of a server that was killed may write until they notice.
  rmSync(workspace, { recursive: true, force: true, maxRetries: removalRetriesMax })
})
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130))

try {
  const names = process.argv.slice(2)
  const chosen = picked(names)
  requireWrk()
  process.exitCode = exitCodeOf(await run(workspace, chosen, names.length === 0))
} catch (error) {
  say(String(error))
  // A process of the line would keep this process alive.
  process.exit(2)
}
