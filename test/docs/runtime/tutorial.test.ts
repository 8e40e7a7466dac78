/**
 * docs/runtime/tutorial.md up to its cluster: its files are saved and its commands are typed, in
 * their order. The packages are links to those of this repository; `tutorial.long.ts` installs
 * them.
 */
import { mkdirSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { cleanUp, temporaryFolder } from "../../e2e/process.ts"
import { root, textOf } from "../pages.ts"
import { follow, ReaderShell } from "./tutorial.ts"

const page = "docs/runtime/tutorial.md"
const folder = temporaryFolder()
const shell = new ReaderShell(folder, {})

afterAll(() => {
  shell.end()
  cleanUp()
})

const link = (name: string, target: string): void => {
  const path = join(folder, "node_modules", name)
  mkdirSync(dirname(path), { recursive: true })
  symlinkSync(join(root, target), path)
}

/** The packages that the page installs, and where this repository has them. */
const installed = [
  "typescript",
  "@types/node",
  "classic-level",
  "@nats-io/transport-node",
  "@nats-io/jetstream",
  "@nats-io/kv"
]

it("names the packages that the test links", () => {
  const words = textOf(page).match(/^npm install .*/gm)?.flatMap((line) => line.split(" ")) ?? []
  const names = words.filter((word) =>
    /^@|^[a-z-]+(@|$)/.test(word) && !/^-|^(npm|install)$/.test(word)
  )
    .map((word) => word.replace(/(?<=.)@.*/, ""))
  expect(names.toSorted()).toEqual(installed.toSorted())
})

it("shows what happens, up to the cluster", async () => {
  link("@restante/runtime", "runtime")
  for (const name of installed) link(name, `node_modules/${name}`)
  link(".bin/tsc", "node_modules/typescript/bin/tsc")
  const outputs = await follow({ folder, shell, here: (text) => text, isLong: false })
  expect(outputs.size).toBeGreaterThan(6)
  // The last printed number, and what is stored: the same, or one visit more.
  const printed = Number(outputs.get("tail -n 1 visits.txt"))
  expect(printed).toBeGreaterThanOrEqual(100)
  expect([printed, printed + 1]).toContain(Number(outputs.get("node build/read.js")))
})
