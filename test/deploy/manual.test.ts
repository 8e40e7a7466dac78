/** The manual page that the build writes has every command and every flag of `--help`. */
import { expect, it } from "vitest"
import { command } from "../e2e/process.ts"
import { textOf } from "./sources.ts"

const page = textOf("dist/man/restante.1").replaceAll("\\-", "-").replaceAll("\\e", "\\")

/** The part of the page about a command, such as `account add`. */
const partOf = (path: ReadonlyArray<string>): string => {
  const parts = page.split(/^\.S[SH] /m)
  return parts.find((part) => part.startsWith(`${["restante", ...path].join(" ")}\n`)) ?? ""
}

/** The lines of a section of the help, without its indentation. */
const linesOf = (help: string, section: string): ReadonlyArray<string> => {
  const [, text = ""] = new RegExp(`^${section}\n((?: .*\n)*)`, "m").exec(help) ?? []
  return text.split("\n").map((line) => line.trim()).filter((line) => line !== "")
}

/** The names of all commands below a path, whose flags the page must have. */
const checkBelow = async (path: ReadonlyArray<string>): Promise<number> => {
  const { output } = await command([...path, "--help"])
  const part = path.length === 0 ? page : partOf(path)
  const flags = linesOf(output, "FLAGS").map((line) => line.split(/[ ,]/)[0] ?? "")
  for (const flag of flags) expect([path, part]).toEqual([path, expect.stringContaining(flag)])
  for (const line of linesOf(output, "DESCRIPTION")) expect(part).toContain(line)
  const names = linesOf(output, "SUBCOMMANDS").map((line) => line.split(/[ ,]/)[0] ?? "")
  const counts = await Promise.all(names.map((name) => checkBelow([...path, name])))
  return counts.reduce((sum, count) => sum + count, flags.length)
}

it("has every command and every flag of --help", async () => {
  expect(await checkBelow([])).toBeGreaterThan(100)
})
