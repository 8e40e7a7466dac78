/** The table of the suites: on the terminal, and as a part of a page. */
import type { ForeignSuite, Verdict } from "./suite.ts"

/** One line of the table. */
export interface Row {
  readonly suite: ForeignSuite
  readonly verdict: Verdict
}

const begin = "<!-- the suites: written by `npm run test:suites -- --write` -->"
const end = "<!-- the suites end here -->"

type Cells = ReadonlyArray<string>

const cellsOf = ({ suite, verdict }: Row): Cells => [
  `\`${suite.name}\``,
  `${suite.source.name} ${suite.source.version} (${suite.source.registry})`,
  suite.checks,
  String(verdict.passed),
  String(verdict.explained),
  String(verdict.failed.length)
]

const head: Cells = ["suite", "package", "checks", "passed", "explained", "failed"]

/** A table in the formatter's style: every cell has the width of its column. */
const tableOf = (head: Cells, rows: ReadonlyArray<Cells>): string => {
  const lines = [head, ...rows]
  const widths = head.map((_, at) =>
    Math.max(3, ...lines.map((line) => [...line[at] ?? ""].length))
  )
  const [first = "", ...body] = lines.map((line) =>
    `| ${line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`
  )
  return [first, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...body].join("\n")
}

/** The table of these suites. */
export const table = (rows: ReadonlyArray<Row>): string => tableOf(head, rows.map(cellsOf))

/** Each reason of the suites, with what it explains. */
const reasons = (suites: ReadonlyArray<ForeignSuite>): string =>
  suites.flatMap(({ name, reasons }) =>
    reasons.map(({ what, why }) => `- \`${name}\`: ${what}. ${why}`)
  ).join("\n")

/** The rows of the page's table, by the name of the suite. */
const rowsIn = (part: string): ReadonlyMap<string, Cells> =>
  new Map(
    part.split("\n").filter((line) => line.startsWith("| `")).map((line) => {
      const cells = line.split("|").slice(1, -1).map((cell) => cell.trim())
      return [cells[0] ?? "", cells]
    })
  )

/**
 * A page with the table of `rows` and the reasons of all suites in its marked part. A suite without
 * a row keeps the one that the page has.
 */
export const rewritten = (
  page: string,
  suites: ReadonlyArray<ForeignSuite>,
  rows: ReadonlyArray<Row>
): string => {
  const [before, part, after] = partsOf(page)
  const earlier = rowsIn(part)
  const cells = suites.flatMap((suite) => {
    const row = rows.find((one) => one.suite === suite)
    const kept = earlier.get(`\`${suite.name}\``)
    return row === undefined ? kept === undefined ? [] : [kept] : [cellsOf(row)]
  })
  const why = reasons(suites)
  const texts = [tableOf(head, cells), ...why === "" ? [] : ["What stays, and why:", why]]
  return `${before}${begin}\n\n${texts.join("\n\n")}\n\n${end}${after}`
}

/** What stands before, in and after the marked part of a page. */
const partsOf = (page: string): readonly [before: string, part: string, after: string] => {
  const from = page.indexOf(begin)
  const to = page.indexOf(end)
  if (from === -1 || to < from) throw new Error(`the page has no part from ${begin} to ${end}`)
  return [page.slice(0, from), page.slice(from + begin.length, to), page.slice(to + end.length)]
}
