/** The examples of runtime/testing/README.md are these files, verbatim, and they run. */
import { readdirSync, readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { sellAndCrash } from "./examples/node.ts"
import { simulateConcerts } from "./examples/simulation.ts"
import { testConcert } from "./examples/table.ts"

const textOf = (path: string): string => readFileSync(new URL(path, import.meta.url), "utf8")
const readme = textOf("../../../runtime/testing/README.md")
const examples = readdirSync(new URL("examples", import.meta.url)).sort()

describe("the README of the simulator", () => {
  it.each(examples)("shows examples/%s as it is", (file) => {
    // The README's imports are relative to its own folder.
    const text = textOf(`examples/${file}`).replaceAll("../../../../runtime/testing/", "./")
      .replaceAll("../../../../runtime/", "../")
    expect(readme).toContain("```ts\n" + text + "```")
  })

  it("names every folder of the simulator", () => {
    const folders = readdirSync(new URL("../../../runtime/testing", import.meta.url), {
      withFileTypes: true
    }).filter((entry) => entry.isDirectory())
    for (const { name } of folders) expect(readme).toContain(`\`${name}/\``)
  })
})

describe("the examples of the simulator", () => {
  it("test a table", () => {
    expect(testConcert()).toBe("concert: 1 of 2 cells\n  Open x Read was never decided")
  })

  it("sell a ticket before a crash, and another one after it", async () => {
    expect(await sellAndCrash()).toBe(2)
  })

  it("pass a simulation", async () => {
    const { answered, seeds } = await simulateConcerts(3)
    expect(seeds).toBe(3)
    expect(answered).toBeGreaterThan(20)
  })
})
