/** docs/security.md has every item of the checklist, and its tests exist under their titles. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, textOf } from "./pages.ts"

/** The least number of items, whatever the page says. */
const items = 37

const rows = textOf("docs/security.md").split("\n").filter((line) => /^\| +\d+ +\|/.test(line))
  .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))

/** The tests that a row names, each with the file that it is in. */
const testsOf = (cell: string): ReadonlyArray<readonly [file: string, title: string]> =>
  cell.split("; ").flatMap((part) => {
    const [, file = "", titles = ""] = /^`(test\/[\w./-]+\.(?:test|long)\.ts)`: (.+)$/.exec(part) ??
      []
    return [...titles.matchAll(/“([^”]+)”/g)].map(([, title = ""]) => [file, title] as const)
  })

it("has every item once, in order", () => {
  const numbers = rows.map(([n]) => Number(n))
  expect(numbers).toEqual([...new Set(numbers)].sort((one, other) => one - other))
  expect(numbers.length).toBeGreaterThanOrEqual(items)
})

it("names a test of each that is there, by its own name", () => {
  for (const [n, what = "", cell = ""] of rows) {
    const tests = testsOf(cell)
    expect([n, what, tests.length]).toEqual([n, what, cell.match(/“/g)?.length])
    for (const [file, title] of tests) {
      const path = join(root, file)
      const text = existsSync(path) ? readFileSync(path, "utf8") : ""
      // The whole title, as the argument of `it`, `test` or `describe`, or of the call after a
      // table.
      const quoted = JSON.stringify(title).slice(1, -1)
      const isNamed = text.replaceAll(/\(\s+"/g, "(\"").includes(`("${quoted}"`)
      expect([n, file, title, isNamed]).toEqual([n, file, title, true])
    }
  }
})
