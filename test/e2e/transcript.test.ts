/**
 * Transcripts of the README and of pages, as a reader would type them: `$ ` begins a command, `…`
 * is any text.
 */
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { afterAll, expect, it } from "vitest"
import { adminToken, cleanUp, start } from "./process.ts"

afterAll(cleanUp)

const written = "http://localhost:8080"
/** Stands in the output after each command. */
const mark = "\u001e"

interface Step {
  readonly command: string
  readonly expected: string
}

/** The commands of all `sh` blocks that have any; `> ` goes on with a command. */
const stepsOf = (markdown: string): ReadonlyArray<Step> => {
  const steps: Array<{ command: string; expected: string }> = []
  for (const [, block = ""] of markdown.matchAll(/^```sh\n([\s\S]*?)^```$/gm)) {
    for (const line of block.trimEnd().split("\n")) {
      const step = steps.at(-1)
      if (line.startsWith("$ ")) steps.push({ command: line.slice(2), expected: "" })
      else if (step === undefined) throw new Error(`output before a command: ${line}`)
      else if (line.startsWith("> ") && step.expected === "") step.command += `\n${line.slice(2)}`
      else step.expected += `${line}\n`
    }
  }
  return steps
}

const patternOf = (expected: string): RegExp => {
  const parts = expected.trimEnd().split("…")
  const escaped = parts.map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"))
  return new RegExp(`^${escaped.join("[^\\n]*")}$`)
}

it.each(["README.md", "docs/interoperation.md"])("is what %s shows", async (page) => {
  const steps = stepsOf(readFileSync(new URL(`../../${page}`, import.meta.url), "utf8"))
  expect(steps.length).toBeGreaterThan(4)
  const service = await start({ env: { BASE_URL: "" } })
  const here = `http://localhost:${service.port}`
  const script = steps.map(({ command }) =>
    `${command.replaceAll(written, here)}\nprintf '${mark}%s${mark}' "$?"\n`
  )
  const { PATH = "", HOME = "" } = process.env
  const run = promisify(execFile)("bash", ["-c", script.join("")], {
    env: { PATH, HOME, TOKEN: adminToken, NO_PROXY: "*" },
    timeout: 20_000
  })
  const pieces = (await run).stdout.split(mark)
  steps.forEach(({ command, expected }, at) => {
    const output = (pieces[2 * at] ?? "").trimEnd().replaceAll(here, written)
    expect(output, command).toMatch(patternOf(expected))
    expect(pieces[2 * at + 1], `exit code of ${command}`).toBe("0")
  })
  await service.kill()
})
