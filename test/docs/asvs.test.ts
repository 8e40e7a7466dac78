/** docs/asvs.md has each requirement of ASVS 5.0.0, levels 1 and 2, with a state and its reason. */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, textOf } from "./pages.ts"

/** The numbers and levels of the standard's own list, in its order. */
const requirements: ReadonlyArray<readonly [number: string, level: 1 | 2]> = JSON.parse(
  readFileSync(new URL("asvs-requirements.json", import.meta.url), "utf8")
)

const page = textOf("docs/asvs.md")

const states = ["held", "not applicable", "open"]

interface Row {
  readonly number: string
  readonly about: string
  readonly state: string
  readonly by: string
}

const rows: ReadonlyArray<Row> = page.split("\n").filter((line) =>
  /^\| \d+\.\d+\.\d+ +\|/.test(line)
)
  .map((line) => {
    const [number = "", about = "", state = "", by = ""] = line.split("|").slice(1, -1)
      .map((cell) => cell.trim())
    return { number, about, state, by }
  })

const rowsOf = (state: string): ReadonlyArray<Row> => rows.filter((row) => row.state === state)

/** The text of a cell without the tests that it names. */
const reasonIn = (by: string): string => by.replaceAll(/`test\/[^`]*`/g, "").trim()

it("has the requirements of levels 1 and 2, in their order", () => {
  expect(requirements).toHaveLength(253)
  expect(requirements.filter(([, level]) => level === 1)).toHaveLength(70)
  expect(rows.map(({ number }) => number)).toEqual(requirements.map(([number]) => number))
})

it("has each chapter's requirements under its heading", () => {
  const chapters = page.split(/^## /m).slice(1)
  expect(chapters).toHaveLength(17)
  for (const chapter of chapters) {
    const [, of] = /^Chapter (\d+): \w/.exec(chapter) ?? []
    const numbers = [...chapter.matchAll(/^\| (\d+)\.\d+\.\d+ /gm)].map(([, number]) => number)
    expect(numbers.length).toBeGreaterThan(0)
    expect(new Set(numbers)).toEqual(new Set([of]))
  }
})

it("says what each is about, and gives it a state", () => {
  for (const { about, number, state } of rows) {
    expect([number, about.length > 3, states.includes(state)]).toEqual([number, true, true])
  }
})

it("names tests that exist where a requirement is held, and only there", () => {
  for (const { by, number, state } of rows) {
    const named = [...by.matchAll(/`(test\/[^`]*)`/g)].map(([, path = ""]) => path)
    expect([number, named.length > 0]).toEqual([number, state === "held"])
    const wrong = named.filter((path) =>
      !/\.(test|long)\.ts$/.test(path) || !existsSync(join(root, path))
    )
    expect([number, wrong]).toEqual([number, []])
  }
})

it("gives the reason where one is not applicable or open, and what closes an open one", () => {
  for (const { by, number } of [...rowsOf("not applicable"), ...rowsOf("open")]) {
    expect([number, reasonIn(by).length > 10]).toEqual([number, true])
  }
  for (const { by, number } of rowsOf("open")) {
    expect([number, /\bclosed\b/.test(by)]).toEqual([number, true])
  }
})

it("counts the states in its introduction", () => {
  const [held, notApplicable, open] = states.map((state) => rowsOf(state).length)
  expect(page).toContain(
    `Of ${rows.length} requirements, ${held} are held, ${notApplicable} are not applicable, ` +
      `and ${open} are open.`
  )
})
