/** docs/protocol.md has each section and each endpoint that comments, pages and tests cite. */
import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { proseOf, root, textOf } from "./pages.ts"

const page = textOf("docs/protocol.md")

const sections = new Set(
  [...page.matchAll(/^## (§\d+(?:\.\d+)?) /gm)].map(([, section = ""]) => section)
)

const endpoints = new Set(
  [...page.matchAll(/<a id="([abc]\d+)"><\/a>([ABC]\d+) /g)].map(([, , name = ""]) => name)
)

/** Endpoints of the specification: A1 to A12, B1 to B11, C1 to C4. */
const counts = { A: 12, B: 11, C: 4 }

const sourceFiles = execFileSync("git", ["ls-files", "*.ts", "*.mjs", "*.md"], { cwd: root })
  .toString().trim().split("\n")
  .filter((file) =>
    !/^(docs\/protocol\.md|test\/docs\/protocol\.test\.ts|test\/security\/fuzz\/)/.test(file)
  )

/** What people read in a file: prose of a page; comments and titles of tests in code. */
const proseIn = (file: string): string => {
  if (file.endsWith(".md")) return proseOf(file)
  const text = readFileSync(join(root, file), "utf8")
  const comments = text.match(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/ .*$/gm) ?? []
  const titles = text.match(/\b(?:it|test|describe)(?:\.\w+)*\(\s*"[^"\n]*"/g) ?? []
  return [...comments, ...titles].join("\n")
}

/** Every section and endpoint that a text cites. */
const citationsIn = (text: string): ReadonlyArray<string> => {
  const flat = text.replace(/\n\s*\*?\s*/g, " ")
  const cited = [...flat.matchAll(/\bprotocol §[\d.]*\d(?:(?:,| and| to) §[\d.]*\d)*/gi)]
    .flatMap(([all]) => all.match(/§[\d.]*\d/g) ?? [])
  const rows = [...flat.matchAll(/(?<![\w%&#])[ABC]\d{1,2}(?![\w%])/g)].map(([name]) => name)
  return [...cited, ...rows]
}

const missingIn = (text: string): ReadonlyArray<string> =>
  citationsIn(text).filter((name) => !sections.has(name) && !endpoints.has(name))

describe("docs/protocol.md", () => {
  it("has sections 0 to 7 and every endpoint once, each with an anchor of its name", () => {
    for (const number of ["0", "1", "1.1", "1.2", "1.3", "1.4", "1.5", "2", "3", "4", "5", "6"]) {
      expect(sections).toContain(`§${number}`)
    }
    const wanted = Object.entries(counts)
      .flatMap(([area, count]) => Array.from({ length: count }, (_, n) => `${area}${n + 1}`))
    expect([...endpoints].sort()).toEqual(wanted.sort())
    for (const [, anchor, name = ""] of page.matchAll(/<a id="(\w+)"><\/a>(\w+) /g)) {
      expect(anchor).toBe(name.toLowerCase())
    }
  })

  it("has further rules, none of which is only planned", () => {
    const [, further = ""] = page.split(/^## §7 .*$/m)
    const rows = further.split("\n").filter((line) => line.startsWith("| ")).slice(2)
    expect(rows.length).toBeGreaterThan(15)
    expect(rows.filter((row) => /\bplanned\b/i.test(row))).toEqual([])
  })

  it("has every section and endpoint that sources, pages and tests cite", () => {
    const missing = sourceFiles.flatMap((file) =>
      missingIn(proseIn(file)).map((name) => `${file}: ${name}`)
    )
    expect(missing).toEqual([])
    const cited = sourceFiles.flatMap((file) => citationsIn(proseIn(file)))
    expect(cited.length).toBeGreaterThan(200)
  })

  it("is cited in one form", () => {
    const odd = sourceFiles.filter((file) => /PROTOCOL §|seed §/.test(proseIn(file)))
    expect(odd).toEqual([])
  })
})

describe("a citation of what is not there is found", () => {
  it.each([
    ["/** Reads a mailbox (protocol §1.9). */", ["§1.9"]],
    ["/** Protocol §1.2, §8: both. */", ["§8"]],
    ["/** Deposits (A2), then A13. */", ["A13"]],
    ["/** The bridge (B0, C5). */", ["B0", "C5"]],
    ["/** Rules of protocol\n * §9 hold. */", ["§9"]]
  ])("in %j", (text, missing) => {
    expect(missingIn(text)).toEqual(missing)
  })

  it("and one of what is there is not", () => {
    expect(missingIn("A12 (protocol §1.4, §5) and B8–B11, RFC 9110 §14.2")).toEqual([])
  })
})
