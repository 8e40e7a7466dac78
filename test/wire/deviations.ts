/** Where the service answers otherwise than suites of others ask, as a part of a page. */
import type { WireCase } from "./cases/index.ts"

const statusesOfToken = (token: string): RegExp =>
  new RegExp(`^${token.replace("!", "").replaceAll("x", "\\d")}$`)

/** Whether the answer to a row is one of those that a suite asks for. */
export const isAsAsked = (
  { isDropped, isOpen, rest, statuses }: WireCase,
  asked: string
): boolean =>
  asked.split("|").some((alternative) => {
    const [token = "", close] = alternative.split("+")
    const [first] = statuses
    if (token === "wait" && (rest !== undefined || first === 408)) return true
    if (first === undefined) return token === (isDropped === true ? "close" : "wait")
    if (close !== undefined && isOpen === true) return false
    return token.startsWith("!") !== statusesOfToken(token).test(String(first))
  })

const askedText = (asked: string): string =>
  asked.replaceAll("|", " or ").replaceAll("+", " and ").replaceAll("close", "end")

const answerText = ({ statuses }: WireCase): string =>
  statuses.length === 0 ? "none" : statuses.join(", ")

type Cells = ReadonlyArray<string>

const cellsOf = (row: WireCase): ReadonlyArray<Cells> => {
  const asked = Object.entries(row.asked ?? {}).filter(([, asked]) => !isAsAsked(row, asked))
  return asked.length === 0
    ? [[row.name, "our own", "", answerText(row)]]
    : asked.map(([id, asked]) => [row.name, `\`${id}\``, askedText(asked), answerText(row)])
}

const lineOf = (cells: Cells): string => `| ${cells.join(" | ")} |`

const tableOf = (rows: ReadonlyArray<WireCase>): string =>
  [
    lineOf(["request", "case", "asked", "answer"]),
    lineOf(["---", "---", "---", "---"]),
    ...rows.flatMap(cellsOf).map(lineOf)
  ].join("\n")

/** Each reason with the rows that it explains. */
export const deviationsText = (cases: ReadonlyArray<WireCase>): string => {
  const reasons = new Set(cases.flatMap(({ reason }) => reason === undefined ? [] : [reason]))
  return [...reasons].map((reason) =>
    `${reason}\n\n${tableOf(cases.filter((row) => row.reason === reason))}`
  ).join("\n\n")
}

const begin = "<!-- the deviations: written by test/wire/suites.test.ts with WRITE_PAGES=1 -->"
const end = "<!-- the deviations end here -->"

/** The page with this text between its marks. */
export const withDeviations = (page: string, text: string): string => {
  const [before, rest] = page.split(begin)
  const [, after] = (rest ?? "").split(end)
  if (before === undefined || after === undefined) throw new Error("the page has no marks")
  return `${before}${begin}\n\n${text}\n\n${end}${after}`
}

/** A page without what the formatter adds to its tables. */
export const unformatted = (page: string): string =>
  page.replaceAll(/ +\|/g, " |").replaceAll(/-{3,}/g, "---")
