/** A million customers (Area C): loading them, and first pages by agemin. */
import { atLeast, atMost, type Bench, type Line, type Row, untold } from "../line.ts"
import { authorization } from "../mailboxes.ts"
import { type Running, runScript } from "../process.ts"
import type { Compared, Tables } from "../tables.ts"

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

const shown = (ms: number): string => ms.toFixed(3)

const pageRows = (
  what: string,
  least: number | undefined,
  pages: ReadonlyArray<{ readonly age: number; readonly compared: Compared }>
): ReadonlyArray<Row> =>
  pages.map(({ age, compared: { own, sqlite } }) => {
    const name = `${what} of agemin=${age} without HTTP, to SQLite's in memory`
    const took = `${shown(own.medianMs)} ms`
    if (sqlite === undefined) return untold(name, `${took}; this Node has no node:sqlite`)
    const ratio = sqlite.medianMs / own.medianMs
    const detail = `${shown(sqlite.medianMs)} ms to ${took}`
    return least === undefined
      ? untold(name, `${ratio.toFixed(2)} (${detail})`)
      : atLeast(name, ratio, least, detail)
  })

const withoutHttp = ({ iterator, pages }: Tables): ReadonlyArray<Row> => {
  const elsewhere = pages.map((page) => ({ age: page.age, compared: page.elsewhere }))
  const first = pages.map((page) => ({ age: page.age, compared: page.first }))
  const read = elsewhere[0]?.compared.own.medianMs ?? Number.NaN
  return [
    untold(
      "page elsewhere of agemin=21 without HTTP: RocksDB's own iterator for as many rows, to it",
      `${(iterator.medianMs / read).toFixed(2)} (${shown(iterator.medianMs)} ms to ${
        shown(read)
      } ms)`
    ),
    ...pageRows("first page", 1, first),
    ...pageRows("page elsewhere, read once,", undefined, elsewhere)
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
  const script = await runScript("tables.js", [folder], process.env["BENCH_SQLITE_NODE"])
  const tables = JSON.parse(script) as Tables
  return [...rows, ...withoutHttp(tables)]
}

export const queries: Line = { name: "queries", run: measure }
