/** Every page in Markdown: its blocks of code with their marks, its links and its tables. */
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("../..", import.meta.url))

/**
 * A report of types is no page; `deploy/generate/api/public-api.mjs` writes it. The template has
 * the page of another project.
 */
const isForeign = (path: string): boolean =>
  /(^|\/)((node_modules|dist|data|template|\.git)\/|public-api\.md$)/.test(path)

const folders = [
  "runtime",
  "actors",
  "http",
  "client",
  "create",
  "deploy",
  "docs",
  "examples",
  "test"
]

/** The paths of all pages from the root, such as `docs/cluster.md`. */
export const pages: ReadonlyArray<string> = [
  ...readdirSync(root),
  ...folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
      .map((path) => `${folder}/${path}`)
  )
].filter((path) => path.endsWith(".md") && !isForeign(path)).sort()

export const textOf = (page: string): string => readFileSync(join(root, page), "utf8")

/**
 * A comment before a block, which readers do not see: the reason why a command is `not run`, the
 * test that it is `run by`, or the name of the `file` that a reader saves it as.
 */
export interface Mark {
  readonly kind: "not run" | "run by" | "file"
  readonly text: string
}

/** The languages of blocks that a reader types into a shell. */
export const shells: ReadonlyArray<string> = ["sh", "console", "bash"]

/** One block of code. */
export interface Block {
  readonly page: string
  /** Of its first line, from 1. */
  readonly line: number
  readonly language: string
  readonly text: string
  readonly mark: Mark | undefined
}

const kinds: ReadonlyArray<Mark["kind"]> = ["not run", "run by", "file"]

const markIn = (line: string | undefined): Mark | undefined => {
  const [, name, text] = /^ *<!-- ([a-z ]+): (.+) -->$/.exec(line ?? "") ?? []
  const kind = kinds.find((one) => one === name)
  return kind === undefined || text === undefined ? undefined : { kind, text }
}

/** The blocks of a page in their order. */
export const blocksOf = (page: string): ReadonlyArray<Block> => {
  const blocks: Array<Block> = []
  const lines = textOf(page).split("\n")
  for (let at = 0; at < lines.length; at++) {
    const [, indent, language] = /^( *)```(\S*)$/.exec(lines[at] ?? "") ?? []
    if (indent === undefined || language === undefined) continue
    const from = at + 1
    do at++
    while (at < lines.length && lines[at] !== `${indent}\`\`\``)
    const text = lines.slice(from, at).map((line) => `${line.slice(indent.length)}\n`).join("")
    const above = lines.slice(0, from - 1).findLast((line) => line.trim() !== "")
    blocks.push({ page, line: from + 1, language, text, mark: markIn(above) })
  }
  return blocks
}

/** A page without its code, which has no links and no headings. */
export const proseOf = (page: string): string =>
  textOf(page).replace(/^( *)```\S*\n[\s\S]*?^\1```$/gm, "").replace(/<!--[\s\S]*?-->/g, "")

/** A link within the project. */
export interface Link {
  readonly page: string
  readonly written: string
  /** From the root; the page itself when only an anchor is named. */
  readonly path: string
  readonly anchor: string | undefined
}

/** The links of a page, without those to other sites. */
export const linksOf = (page: string): ReadonlyArray<Link> =>
  [...proseOf(page).replace(/`[^`\n]*`/g, "code").matchAll(/\]\(([^)\s]+)\)/g)]
    .map(([, written = ""]) => written)
    .filter((written) => !/^[a-z]+:/.test(written))
    .map((written) => {
      const [path = "", anchor] = written.split("#")
      const target = path === "" ? page : normalize(join(dirname(page), path)).replace(/\/$/, "")
      return { page, written, path: target, anchor }
    })

/** The cells of all rows of a page's tables whose first cell is `code`, without the backticks. */
export const rowsOf = (page: string): ReadonlyArray<ReadonlyArray<string>> =>
  proseOf(page).split("\n").filter((line) => line.startsWith("| `")).map((line) =>
    line.slice(1, line.lastIndexOf("|")).split(/(?<!\\)\|/).map((cell) =>
      cell.trim().replace(/^`(.*)`$/, "$1").replaceAll("\\|", "|")
    )
  )

/** A row of a table, ready to paste. */
export const rowText = (cells: ReadonlyArray<string>): string => `| ${cells.join(" | ")} |`
