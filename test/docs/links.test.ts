/** Links between pages work, every page can be reached, and pictures have descriptions. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { blocksOf, linksOf, pages, proseOf, root, textOf } from "./pages.ts"

/** As GitHub makes them from headings, and those that a page sets with `<a id>`. */
const anchorsOf = (page: string): ReadonlyArray<string> => [
  ...[...proseOf(page).matchAll(/^#{1,6} (.*)$/gm)].map(([, heading = ""]) =>
    heading.toLowerCase().replace(/\[([^\]]*)\]\([^)]*\)/g, "$1").replace(/[^\p{L}\p{N} _-]/gu, "")
      .replaceAll(" ", "-")
  ),
  ...[...proseOf(page).matchAll(/<a id="([^"]+)">/g)].map(([, id = ""]) => id)
]

/** A link to a folder shows its README.md. */
const pageAt = (path: string): string =>
  existsSync(join(root, path)) && statSync(join(root, path)).isDirectory()
    ? join(path, "README.md")
    : path

const links = pages.flatMap(linksOf)

describe("the tables of all pages", () => {
  it("have a row between their heads and bodies, without which they are no tables", () => {
    const broken = pages.flatMap((page) => {
      const lines = proseOf(page).split("\n")
      const isRow = (at: number): boolean => lines[at]?.startsWith("|") === true
      return lines.flatMap((line, at) =>
        isRow(at) && !isRow(at - 1) && !/^\|[ :|-]+\|$/.test(lines[at + 1] ?? "")
          ? [`${page}: ${line}`]
          : []
      )
    })
    expect(broken).toEqual([])
  })
})

describe("the headings of all pages", () => {
  it("leave out no level, as screen readers list them by level", () => {
    const broken = pages.flatMap((page) => {
      const levels = [...proseOf(page).matchAll(/^(#{1,6}) /gm)].map(([, marks = ""]) =>
        marks.length
      )
      return levels.flatMap((level, at) =>
        at > 0 && level > (levels[at - 1] ?? 0) + 1
          ? [`${page}: ${level} after ${levels[at - 1]}`]
          : []
      )
    })
    expect(broken).toEqual([])
  })
})

describe("the links of all pages", () => {
  it("are found", () => {
    expect(links.length).toBeGreaterThan(100)
  })

  it("lead to files that exist", () => {
    const broken = links.filter(({ path }) => !existsSync(join(root, path)))
    expect(broken).toEqual([])
  })

  it("lead to headings that exist", () => {
    const toHeadings = links.filter(({ anchor, path }) =>
      anchor !== undefined && path.endsWith(".md")
    )
    // The pages of references are long, and have hundreds of links to themselves.
    const anchors = new Map(
      [...new Set(toHeadings.map(({ path }) => path))].map((path) => [path, anchorsOf(path)])
    )
    const broken = toHeadings.filter(({ anchor = "", path }) =>
      anchors.get(path)?.includes(anchor) !== true
    )
    expect(broken).toEqual([])
  })

  it("lead from docs/README.md to every page of docs/", () => {
    const index = linksOf("docs/README.md").map(({ path }) => pageAt(path))
    const own = pages.filter((page) => page.startsWith("docs/") && page !== "docs/README.md")
    expect(own.filter((page) => !index.includes(page))).toEqual([])
  })

  it("lead from the front page, step by step, to every page", () => {
    const reached = new Set(["README.md"])
    for (const page of reached) {
      for (const { path } of existsSync(join(root, page)) ? linksOf(page) : []) {
        if (pageAt(path).endsWith(".md")) reached.add(pageAt(path))
      }
    }
    const documents = pages.filter((page) => page.startsWith("docs/"))
    expect(documents.filter((page) => !reached.has(page))).toEqual([])
  })
})

describe("the code of all pages", () => {
  it("says what language it is in", () => {
    const unnamed = pages.flatMap(blocksOf).filter(({ language }) => language === "")
    expect(unnamed.map(({ line, page }) => `${page}:${line}`)).toEqual([])
  })
})

describe("the pictures", () => {
  const folder = "docs/pictures"
  const pictures = readdirSync(join(root, folder))

  it("are shown, each by a page that tells what it shows", () => {
    const shown = pages.map(textOf).join("\n")
    for (const picture of pictures) {
      expect(shown).toMatch(new RegExp(`!\\[[^\\]]{10,}\\]\\((\\.\\./)?pictures/${picture}\\)`))
    }
  })

  // Those of pages have a text where they are shown.
  const drawings = pictures.filter((name) => name.endsWith(".svg"))

  it.each(drawings)("%s has a title and a description, and a dark side", (picture) => {
    const svg = readFileSync(join(root, folder, picture), "utf8")
    expect(svg).toMatch(/<svg [^>]*role="img" aria-labelledby="title desc"/)
    expect(svg).toMatch(/<title id="title">.{10,}<\/title>/)
    expect(svg).toMatch(/<desc id="desc">[^<]{40,}<\/desc>/)
    expect(svg).toContain("@media (prefers-color-scheme: dark)")
    expect(svg).not.toMatch(/<script|href="http|@import|url\(http/)
  })
})
