/** docs/guarantees.md names tests that exist, and every test of a fault. */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { shownIn, tableOf } from "../results.ts"
import { root, textOf } from "./pages.ts"

const page = textOf("docs/guarantees.md")
const named = new Set([...page.matchAll(/`(test\/[\w./-]+\.ts)`/g)].map(([, path = ""]) => path))

it("names tests that exist", () => {
  expect(named.size).toBeGreaterThan(30)
  expect([...named].filter((path) => !existsSync(join(root, path)))).toEqual([])
})

it("names every test that kills, corrupts, cuts off or deceives", () => {
  const suites = [
    "test/e2e",
    "test/disk",
    "test/runtime/embedded",
    "test/cluster",
    "test/runtime/nats",
    "test/runtime"
  ]
  const all = ["embedded.test.ts", "embedded.long.ts", "cluster.test.ts", "cluster.long.ts"]
  const dangerous = suites.flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((file) =>
        /crash|fail|fault|corrupt|power|full|fence|hostile|outbound|secrets/.test(file)
      )
      .filter((file) => /\.(test|long)\.ts$/.test(file))
      .map((file) => `${folder}/${file}`)
  )
  dangerous.push(...all.map((file) => `test/faults/${file}`))
  expect(dangerous.length).toBeGreaterThan(12)
  expect(dangerous.filter((file) => !named.has(file))).toEqual([])
})

it("has the table of what is kept of the last long run, in which nothing was lost", () => {
  const shown = shownIn(textOf("test/long-run.jsonl"))
  expect(shown.length).toBeGreaterThan(5)
  expect(shown.filter(({ lost }) => lost !== 0)).toEqual([])
  for (const { faults, name, operations, runs } of shown) {
    expect([name, runs > 0, operations > 0, faults >= 0]).toEqual([name, true, true, true])
  }
  const [, table = ""] = /<!-- long run -->\n([\s\S]*)\n<!-- \/long run -->/.exec(page) ?? []
  // On a failure, paste the expected table into the page.
  expect(table.trim()).toBe(tableOf(shown))
})
