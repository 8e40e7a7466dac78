/** docs/glossary.md names types, constants and files that exist, and each term once. */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, textOf } from "./pages.ts"

const page = textOf("docs/glossary.md")

const sources = execFileSync("git", ["ls-files", "*.ts", ":!test"], { cwd: root })
  .toString().trim().split("\n").filter((file) => existsSync(join(root, file)))
  .map((file) => readFileSync(join(root, file), "utf8")).join("\n")

const isDeclared = (name: string): boolean =>
  new RegExp(`\\b(?:interface|type|class|const|function|let) ${name}\\b`).test(sources)

/**
 * Names in backticks that look like a type, a constant or a path; others are words of the rules.
 */
const namesIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([A-Za-z][\w./-]*)`/g)].map(([, name = ""]) => name)
    .filter((name) => /^[A-Z]\w+$|^[a-z]+[A-Z]\w+$|\/.*\.ts$/.test(name))

const missingIn = (text: string): ReadonlyArray<string> =>
  namesIn(text).filter((name) =>
    name.includes("/") ? !existsSync(join(root, name)) : !isDeclared(name)
  )

it("names what exists", () => {
  expect(namesIn(page).length).toBeGreaterThan(5)
  expect(missingIn(page)).toEqual([])
})

it("notices a type and a file that do not exist", () => {
  expect(missingIn("a `Voyage`, the `Behavior`, and `runtime/cargo.ts`")).toEqual([
    "Voyage",
    "runtime/cargo.ts"
  ])
})

it("has each term once, with a meaning and a source", () => {
  const [, terms = ""] = page.split(/^## Terms$/m)
  const rows = (terms.split(/^## /m)[0] ?? "").split("\n").filter((line) => line.startsWith("| "))
    .slice(2).map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))
  expect(rows.length).toBeGreaterThan(40)
  const names = rows.flatMap(([term = ""]) => term.split(/[,:] /))
  expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([])
  expect(rows.filter((row) => row.length !== 3 || row.some((cell) => cell === ""))).toEqual([])
})
