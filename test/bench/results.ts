/** Prints the table, and writes RESULTS.md. */
import { readFileSync, writeFileSync } from "node:fs"
import { arch, availableParallelism, cpus, release, totalmem, type } from "node:os"
import type { Row } from "./line.ts"
import { root } from "./process.ts"
import { wrkVersion } from "./wrk.ts"

const verdict = ({ isMissing, met }: Row): string => {
  if (isMissing) return "**not measured**"
  return met === undefined ? "–" : met ? "met" : "**missed**"
}

/** A table in the formatter's style: every cell has the width of its column. */
const table = (rows: ReadonlyArray<Row>): string => {
  const lines = [
    ["line", "measured", "target", ""],
    ...rows.map((row) => [row.what, row.measured, row.target, verdict(row)])
  ]
  const widths = [0, 1, 2, 3].map((at) =>
    Math.max(3, ...lines.map((line) => line[at]?.length ?? 0))
  )
  const [head = "", ...body] = lines.map((line) =>
    `| ${line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`
  )
  return [head, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body].join("\n")
}

const versionOf = (name: string): string => {
  const text = readFileSync(`${root}node_modules/${name}/package.json`, "utf8")
  // Every package.json has a version.
  return (JSON.parse(text) as { readonly version: string }).version
}

const machine = (): string => {
  const model = cpus()[0]?.model.trim() ?? "unknown"
  const memory = `${(totalmem() / 2 ** 30).toFixed(0)} GiB`
  return `${availableParallelism()} × ${model}, ${memory}, ${type()} ${release()} ${arch()}`
}

const software = (): string =>
  `Node ${process.version}, uWebSockets.js (@uwsjs/core ${versionOf("uws-node-20-22")}), ` +
  `@nxtedition/rocksdb ${versionOf("@nxtedition/rocksdb")}, wrk ${wrkVersion()}`

/** The table as text; a run of every line also writes RESULTS.md. */
export const writeResults = (rows: ReadonlyArray<Row>, complete: boolean): string => {
  const text = table(rows)
  if (complete) {
    const page = `# Results

Written by \`npm run bench\`; what the lines mean is in [README.md](README.md).

- ${new Date().toISOString().slice(0, 10)}
- ${machine()}
- ${software()}

${text}
`
    writeFileSync(`${root}test/bench/RESULTS.md`, page)
  }
  return text
}
