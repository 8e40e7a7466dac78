/** Two programs that show manual pages understand every line of restante(1) and the others. */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root } from "./sources.ts"
import { run, toolOf } from "./tools.ts"

const folder = join(root, "dist/man")

const pages = readdirSync(folder)

// A date would differ from build to build of the same sources.
it.each(pages)("%s is a page for mandoc, which warns of the missing date alone", (page) => {
  const args = ["-T", "lint", "-W", "warning", join(folder, page)]
  const { output } = run(toolOf("mandoc"), args)
  expect(output.trimEnd().split("\n")).toEqual([expect.stringContaining("missing date")])
})

it.each(pages)("%s is a page for groff, which shows its commands", (page) => {
  const args = ["-man", "-ww", "-Tutf8", "-P-cbou", join(folder, page)]
  const { code, output } = run(toolOf("groff"), args)
  const command = page === "restante.1"
    ? "restante account add"
    : page.replace(/-|\.1/g, " ").trim()
  expect([code, output]).toEqual([0, expect.stringContaining(command)])
  expect(output).not.toContain("warning:")
})
