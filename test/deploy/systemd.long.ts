/** Validates the unit of docs/how-to/alone.md by systemd itself. */
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { blocksOf } from "../docs/pages.ts"
import { run, toolOf } from "./tools.ts"

const analyze = toolOf("systemd-analyze", "systemd")
const folder = mkdtempSync(join(tmpdir(), "restante-unit-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const unit = blocksOf("docs/how-to/alone.md")
  .find(({ mark }) => mark?.text === "restante.service")?.text ?? ""

/** Writes the unit, possibly modified, with an existing program. */
const written = (text: string): string => {
  const program = join(folder, "node")
  writeFileSync(program, "#!/bin/sh\n")
  chmodSync(program, 0o755)
  const file = join(folder, "restante.service")
  writeFileSync(file, text.replace("/usr/bin/node", program))
  return file
}

it("is understood by systemd, every line of it", () => {
  expect(unit).toContain("[Service]")
  expect(run(analyze, ["verify", written(unit)])).toEqual({ code: 0, output: "" })
  const misspelled = unit.replace("ProtectHome=yes", "ProtectHomes=yes")
  expect(run(analyze, ["verify", written(misspelled)]).output).toContain("ProtectHomes")
})

it("lets the service do little: systemd calls its exposure OK", () => {
  const { code, output } = run(analyze, ["security", "--offline=yes", written(unit)])
  expect([code, output]).toEqual([0, expect.stringMatching(/exposure level for .*: [\d.]+ OK/)])
})
