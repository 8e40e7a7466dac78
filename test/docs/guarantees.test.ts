/** docs/guarantees.md names tests that there are, and none of the dangerous ones is left out. */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, textOf } from "./pages.ts"

const page = textOf("docs/guarantees.md")
const named = new Set([...page.matchAll(/`(test\/[\w./-]+\.ts)`/g)].map(([, path = ""]) => path))

it("names tests that exist", () => {
  expect(named.size).toBeGreaterThan(30)
  expect([...named].filter((path) => !existsSync(join(root, path)))).toEqual([])
})

it("names every test that kills, damages, cuts off or deceives", () => {
  const suites = ["test/e2e", "test/embedded", "test/cluster", "test/nats", "test/runtime"]
  const dangerous = suites.flatMap((folder) =>
    readdirSync(join(root, folder))
      .filter((file) => /crash|fail|fault|damage|full|fence|hostile|outbound|secrets/.test(file))
      .filter((file) => /\.(test|long)\.ts$/.test(file))
      .map((file) => `${folder}/${file}`)
  )
  expect(dangerous.length).toBeGreaterThan(12)
  expect(dangerous.filter((file) => !named.has(file))).toEqual([])
})
