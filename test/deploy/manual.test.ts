/** The manual pages that the build writes have every command and every flag of `--help`. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { command } from "../e2e/process.ts"
import { root, textOf } from "./sources.ts"

const readPage = (name: string): string =>
  textOf(`dist/man/${name}`).replaceAll("\\-", "-").replaceAll("\\e", "\\")

const names = readdirSync(join(root, "dist/man")).sort()

const page = readPage("restante.1")

/** The part of a page about a command, such as `account add`. */
const partOf = (text: string, path: ReadonlyArray<string>): string => {
  const parts = text.split(/^\.S[SH] /m)
  return parts.find((part) => part.startsWith(`${["restante", ...path].join(" ")}\n`)) ?? ""
}

/** What a command's own page says of it: the whole page, or a part of that of `account`. */
const ownPart = ([first, ...below]: ReadonlyArray<string>): string => {
  const text = readPage(`restante-${first}.1`)
  return below.length === 0 ? text : partOf(text, [first ?? "", ...below])
}

/** The lines of a section of the help, without its indentation. */
const linesOf = (help: string, section: string): ReadonlyArray<string> => {
  const [, text = ""] = new RegExp(`^${section}\n((?: .*\n)*)`, "m").exec(help) ?? []
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "")
}

/** The names of all commands below a path, whose flags the page must have. */
const checkBelow = async (path: ReadonlyArray<string>): Promise<number> => {
  const { output } = await command([...path, "--help"])
  const parts = path.length === 0 ? [page] : [partOf(page, path), ownPart(path)]
  const flags = linesOf(output, "FLAGS").map((line) => line.split(/[ ,]/)[0] ?? "")
  for (const part of parts) {
    for (const flag of flags) expect([path, part]).toEqual([path, expect.stringContaining(flag)])
    for (const line of linesOf(output, "DESCRIPTION")) expect(part).toContain(line)
  }
  const names = linesOf(output, "SUBCOMMANDS").map((line) => line.split(/[ ,]/)[0] ?? "")
  const counts = await Promise.all(names.map((name) => checkBelow([...path, name])))
  return counts.reduce((sum, count) => sum + count, flags.length)
}

it("has every command and every flag of --help", async () => {
  expect(await checkBelow([])).toBeGreaterThan(100)
})

it("is a page for each command, and they name each other", async () => {
  const { output } = await command(["--help"])
  const commands = linesOf(output, "SUBCOMMANDS").map((line) => line.split(/[ ,]/)[0] ?? "")
  expect(names).toEqual(["restante.1", ...commands.map((name) => `restante-${name}.1`)].sort())
  for (const name of commands) {
    expect(page).toContain(`\\fBrestante-${name}\\fR(1)`)
    const text = readPage(`restante-${name}.1`)
    expect(text).toContain(`.SH NAME\nrestante-${name} - `)
    expect(text).toContain("\\fBrestante\\fR(1)")
  }
})
