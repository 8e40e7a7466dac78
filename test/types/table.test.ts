/** The compiler holds the tables to their states and messages. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, expect, it } from "vitest"
import * as tables from "./table.ts"

const root = fileURLToPath(new URL("../..", import.meta.url))
const folder = mkdtempSync(join(tmpdir(), "restante-types-"))
writeFileSync(join(folder, "package.json"), "{\"type\":\"module\"}")
afterAll(() => rmSync(folder, { recursive: true }))

/** Compiles a text in the place of `table.ts`; the lines with an error. */
const errorsOf = (text: string): ReadonlyArray<number> => {
  writeFileSync(join(folder, "table.ts"), text.replace("../../runtime", join(root, "runtime")))
  const options = {
    extends: join(root, "tsconfig.base.json"),
    compilerOptions: {
      noEmit: true,
      composite: false,
      incremental: false,
      declaration: false,
      rewriteRelativeImportExtensions: false,
      allowImportingTsExtensions: true,
      typeRoots: [join(root, "node_modules/@types")]
    },
    files: ["table.ts"]
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(options))
  const { stdout } = spawnSync(join(root, "node_modules/.bin/tsc"), [
    "-p",
    folder,
    "--pretty",
    "false"
  ], {
    encoding: "utf8"
  })
  return [...stdout.matchAll(/table\.ts\((\d+),/g)].map(([, line]) => Number(line))
}

it("a table without a cell, a state or the right types does not compile", () => {
  expect(Object.keys(tables).sort()).toEqual(["strangers", "whole", "withoutCell", "withoutState"])
  const text = readFileSync(new URL("table.ts", import.meta.url), "utf8")
  expect(errorsOf(text)).toEqual([])
  const lines = text.split("\n")
  const bare = lines.map((line) => line.includes("@ts-expect-error") ? "//" : line).join("\n")
  const expected = lines.flatMap((line, at) => line.includes("@ts-expect-error") ? [at + 2] : [])
  expect(expected.length).toBe(6)
  expect([...new Set(errorsOf(bare))]).toEqual(expected)
})
