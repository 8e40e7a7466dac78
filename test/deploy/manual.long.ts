/** Two programs that show manual pages understand every line of restante(1). */
import { join } from "node:path"
import { expect, it } from "vitest"
import { root } from "./sources.ts"
import { run, toolOf } from "./tools.ts"

const page = join(root, "dist/man/restante.1")

// A date would differ from build to build of the same sources.
it("is a page for mandoc, which warns of the missing date alone", () => {
  const { output } = run(toolOf("mandoc"), ["-T", "lint", "-W", "warning", page])
  expect(output.trimEnd().split("\n")).toEqual([expect.stringContaining("missing date")])
})

it("is a page for groff, which shows the commands", () => {
  const { code, output } = run(toolOf("groff"), ["-man", "-ww", "-Tutf8", "-P-cbou", page])
  expect([code, output]).toEqual([0, expect.stringContaining("restante account add")])
  expect(output).not.toContain("warning:")
})
