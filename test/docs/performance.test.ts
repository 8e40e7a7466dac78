/** docs/performance.md: its figures are those of RESULTS.md, and its commands name lines. */
import { describe, expect, it } from "vitest"
import { textOf } from "./pages.ts"

const page = textOf("docs/performance.md")
const results = textOf("test/bench/RESULTS.md")

/** The cells of each row of a page's tables, below their heads. */
const rowsOf = (text: string): ReadonlyArray<ReadonlyArray<string>> =>
  text.split("\n").filter((line) => line.startsWith("| "))
    .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))

/** What the first cell of a row is called in RESULTS.md. */
const names: ReadonlyArray<readonly [row: string, result: string]> = [
  ["durable deposits over 100 mailboxes", "durable deposits over 100 mailboxes, of"],
  ["p99 of these", "p99 of these at 128 connections"],
  ["durable deposits to one mailbox", "durable deposits to one, of"],
  ["listings of 50 notifications, from the cache", "listing of 50 .* answering the same bytes"],
  ["listings of 50 notifications, each made", "listing of 50 .* made from the log again"],
  ["relays of notifications", "relays of notifications .*, a second"],
  ["pushes to 1000", "pushes to 1000 .*, a second"],
  ["complete sessions", "session walks B2, B4–B7 "],
  ["memory for 100,000 idle", "memory for 100,000 known idle mailboxes"],
  ["start with a million stored", "start with .* stored .* after kill -9"],
  ["start with a million waiting", "start with 1,000,000 waiting"],
  ["a content of 1 GiB, up", "upload of 1024 MiB"],
  ["a node of three killed", "p95 of 20 kills"],
  [
    "processor time of a deposit over three",
    "processor time of a deposit on one server over three"
  ],
  ["a million customers loaded", "customers loaded from CSV over HTTP, durable"],
  ["uWebSockets.js alone, which reads", "durable deposits over 100 mailboxes, of"],
  ["uWebSockets.js alone, which answers", "listing of 50 .* answering the same bytes"],
  ["undici alone", "relays of notifications .*, of undici"],
  ["JetStream alone, one server", "deposits through one node .* compare-and-set .*R1"],
  ["JetStream alone, three replicas", "deposits through one node .* atomic batches .*R3"],
  ["SQLite in memory: a first page", "first page of agemin=21 without HTTP"],
  ["Effect Cluster: counters in memory, one", "100 counters in memory, one ask"],
  ["Effect Cluster: counters in memory, 128", "100 counters in memory, 128 asks"],
  ["Restate: counters with fsync, one", "100 counters with fsync, one ask"],
  ["Restate: counters with fsync, 128", "100 counters with fsync, 128 asks"]
]

const figuresOf = (text: string): ReadonlyArray<string> => text.match(/\d+(?:[.,]\d+)*/g) ?? []

const measured = rowsOf(page).filter((cells) => cells.at(-1)?.startsWith("`npm run bench -- "))

/** The rows below the heading that begins with this. */
const rowsBelow = (heading: string) =>
  rowsOf(page.split(`\n## ${heading}`)[1]?.split("\n## ")[0] ?? "")

const compared = rowsBelow("Compared with others").filter((cells) => cells.length === 5)
const promises = rowsBelow("What each promises")

describe("docs/performance.md", () => {
  it("has a figure of RESULTS.md in each of these rows, and in no other", () => {
    expect(
      measured.map(([what = ""]) => what).filter((what) =>
        !names.some(([row]) => what.startsWith(row))
      )
    ).toEqual([])
    expect(measured).toHaveLength(names.length)
  })

  it.each(names)("has what was measured: %s", (row, result) => {
    const [, cell = ""] = measured.find(([what]) => what?.startsWith(row)) ?? []
    const [, there = ""] = rowsOf(results).find(([what = ""]) =>
      new RegExp(`^${result}`).test(`${what} `)
    ) ?? []
    const figures = figuresOf(cell)
    expect(figures.length).toBeGreaterThan(0)
    const had = figuresOf(there)
    expect(figures.filter((figure) => !had.includes(figure))).toEqual([])
  })

  it("names lines that the bench has", () => {
    const lines = [...textOf("test/bench/README.md").matchAll(/^\| `([\w-]+)` /gm)]
      .map(([, name]) => name)
    const named = [...page.matchAll(/`npm run bench -- ([^`]+)`/g)]
      .flatMap(([, all = ""]) => all.split(" "))
    expect(new Set(named).size).toBeGreaterThan(10)
    expect(named.filter((name) => !lines.includes(name))).toEqual([])
  })

  it.each(["PostgreSQL", "Redis Streams", "Restate"])("has of %s what was measured", (store) => {
    const [, ...cells] = compared.find(([what]) => what?.startsWith(store)) ?? []
    expect(cells).toHaveLength(4)
    // The last cell is the processor time at 128 connections.
    for (const [at, connections] of [16, 128, 512, 128].entries()) {
      const name = `durable deposits at ${connections} connections, of ${store}`
      const [, there] = rowsOf(results).find(([what]) => what?.startsWith(name)) ?? []
      const cell = cells[at] ?? ""
      if (there === undefined) expect(cell).toBe("not yet run on this version")
      else {
        expect(figuresOf(cell).length).toBeGreaterThan(0)
        expect(figuresOf(there)).toEqual(expect.arrayContaining([...figuresOf(cell)]))
      }
    }
    const promised = promises.find(([what]) => what === store)
    expect(promised?.join(" ")).toMatch(/flushed|fsync/)
  })
})
