/** A million customers (Area C): loading them, and first pages by agemin. */
import { atLeast, atMost, type Bench, type Line, type Row } from "../line.ts"
import { authorization } from "../mailboxes.ts"
import { type Running, runScript } from "../process.ts"
import type { Tables } from "../tables.ts"

const customers = 1_000_000
const rowsInChunk = 5_000
const requestsEach = 200
const rateLeast = 20_000
const pageMsMost = 20
/** Every age up to 89 has 1.1 % of the rows; from 110 on there are 10 rows. */
const ages = [0, 21, 60, 85, 89, 100, 110]
const memoryMbMost = 600

/** Row n of the file, the same in every run. */
const rowOf = (n: number): string => {
  const age = n % 100_000 === 7 ? 110 + (n / 100_000 | 0) % 10 : Math.imul(n, 2_654_435_761) >>> 16
  const shown = age >= 110 && age < 120 ? age : age % 90
  return `c${String(n).padStart(7, "0")},Somebody ${n},${shown},` +
    `somebody${n}@example.org,City ${n % 500},GB\n`
}

async function* file(): AsyncGenerator<Uint8Array> {
  yield Buffer.from("id,name,age,email,city,country\n")
  for (let from = 0; from < customers; from += rowsInChunk) {
    yield Buffer.from(Array.from({ length: rowsInChunk }, (_, at) => rowOf(from + at)).join(""))
  }
}

const load = async (node: Running): Promise<number> => {
  const startedMs = performance.now()
  const answer = await fetch(`${node.origin}/customers`, {
    method: "PUT",
    headers: { Authorization: authorization(node.token), "Content-Type": "text/csv" },
    body: file(),
    duplex: "half"
  })
  const text = await answer.text()
  if (answer.status !== 200 || !text.includes(`created="${customers}"`)) {
    throw new Error(`loading was answered ${answer.status}: ${text.slice(0, 300)}`)
  }
  return customers / (performance.now() - startedMs) * 1000
}

const pageRow = async (node: Running, age: number): Promise<Row> => {
  const times: Array<number> = []
  for (let at = 0; at < requestsEach; at++) {
    const startedMs = performance.now()
    const answer = await fetch(`${node.origin}/customers?agemin=${age}&return=name+age`)
    const text = await answer.text()
    if (answer.status !== 200) throw new Error(`a page was answered ${answer.status}: ${text}`)
    times.push(performance.now() - startedMs)
  }
  const sorted = times.toSorted((a, b) => a - b)
  const at = (part: number) => sorted[Math.floor(sorted.length * part)] ?? 0
  const what = `first page of agemin=${age} of a million customers, p99`
  return atMost(what, at(0.99), pageMsMost, "ms", `median ${at(0.5).toFixed(1)} ms`)
}

const withoutHttp = ({ iterator, pages }: Tables): ReadonlyArray<Row> => {
  const own = pages.map((page) => page.own.medianMs)
  const all = (times: ReadonlyArray<number>) => times.reduce((sum, ms) => sum + ms, 0)
  const each = (times: ReadonlyArray<number>) => times.map((ms) => ms.toFixed(2)).join(", ")
  const names = pages.map(({ age }) => age).join(", ")
  const [first = Number.NaN] = own
  const sqlite = pages.flatMap((page) => page.sqlite === undefined ? [] : [page.sqlite.medianMs])
  return [
    {
      what: "first page of agemin=21 without HTTP: RocksDB's own iterator for as many rows, to it",
      measured: `${(iterator.medianMs / first).toFixed(2)} (${iterator.medianMs.toFixed(2)} ms to ${
        first.toFixed(2)
      } ms)`,
      target: "none",
      met: undefined
    },
    sqlite.length === 0
      ? {
        what: "first pages without HTTP, to SQLite's",
        measured: `${each(own)} ms for agemin ${names}; this Node has no node:sqlite`,
        target: "≥ 1.00",
        met: undefined
      }
      : atLeast(
        `first pages of agemin ${names} without HTTP, to SQLite's in memory`,
        all(sqlite) / all(own),
        1,
        `${each(sqlite)} ms to ${each(own)} ms`
      )
  ]
}

const measure = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const folder = bench.folder("customers")
  const node = await bench.serve(folder)
  const rate = await load(node)
  const { peak } = node.memory()
  const rows: Array<Row> = [
    {
      what: "customers loaded from CSV over HTTP, durable, all of them or nothing",
      measured: `${Math.round(rate).toLocaleString("en")} a second`,
      target: `≥ ${rateLeast.toLocaleString("en")} a second`,
      met: rate >= rateLeast
    },
    atMost("peak memory while a million customers are loaded", peak, memoryMbMost, "MB")
  ]
  for (const age of ages) rows.push(await pageRow(node, age))
  await node.stop()
  // What `tables.ts` prints.
  const tables = JSON.parse(await runScript("tables.js", [folder])) as Tables
  return [...rows, ...withoutHttp(tables)]
}

export const queries: Line = { name: "queries", run: measure }
