/** A million customers (Area C): loading them, and first pages by agemin. */
import { startServer } from "../../runtime/nats/servers.ts"
import { atLeast, atMost, type Bench, type Line, type Row, withoutTarget } from "../line.ts"
import { authorization } from "../mailboxes.ts"
import { requireNats, type Running, runScript } from "../process.ts"
import type { Compared, Tables } from "../tables.ts"

const customers = 1_000_000
const rowsInChunk = 5_000
const requestsEach = 200
const rateLeast = 20_000
const customersOnNats = 100_000
const ratioLeast = 1
const pageMsMost = 20
/** Each age below 90 has 1.1 % of the rows; from 110 on there are 10 rows. */
const ages = [0, 21, 60, 85, 89, 100, 110]
const memoryMbMost = 600

/** Row n of the file, the same in every run. */
const rowOf = (n: number): string => {
  const age = n % 100_000 === 7 ? 110 + (n / 100_000 | 0) % 10 : Math.imul(n, 2_654_435_761) >>> 16
  const cappedAge = age >= 110 && age < 120 ? age : age % 90
  return `c${String(n).padStart(7, "0")},Somebody ${n},${cappedAge},` +
    `somebody${n}@example.org,City ${n % 500},GB\n`
}

async function* file(rows: number): AsyncGenerator<Uint8Array> {
  yield Buffer.from("id,name,age,email,city,country\n")
  for (let from = 0; from < rows; from += rowsInChunk) {
    yield Buffer.from(Array.from({ length: rowsInChunk }, (_, at) => rowOf(from + at)).join(""))
  }
}

/** Rows per second; `what` describes them: created or replaced. */
const load = async (node: Running, rows: number, what: string): Promise<number> => {
  const startedMs = performance.now()
  const answer = await fetch(`${node.origin}/customers`, {
    method: "PUT",
    headers: { Authorization: authorization(node.token), "Content-Type": "text/csv" },
    body: file(rows),
    duplex: "half"
  })
  const text = await answer.text()
  if (answer.status !== 200 || !text.includes(`${what}="${rows}"`)) {
    throw new Error(`loading was answered ${answer.status}: ${text.slice(0, 300)}`)
  }
  return rows / (performance.now() - startedMs) * 1000
}

const perSecond = (rate: number): string => Math.round(rate).toLocaleString("en")

/** The same rows on NATS, where each is two messages that the node's own view also reads. */
const onNats = async (bench: Bench): Promise<Row> => {
  await requireNats()
  const nats = await startServer()
  const node = await bench.serve(bench.folder("customers-on-nats"), {
    env: { NATS_URL: nats.url }
  })
  const before = node.cpuMs()
  const created = await load(node, customersOnNats, "created")
  const cpuUs = (node.cpuMs() - before) * 1000 / customersOnNats
  const replaced = await load(node, customersOnNats, "replaced")
  await node.stop()
  await nats.close()
  return withoutTarget(
    "customers loaded from CSV over HTTP on NATS, one server",
    `${perSecond(created)} new ones a second, ${perSecond(replaced)} replaced (${
      cpuUs.toFixed(0)
    } µs of the node's processor time for each new one)`
  )
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

const msText = (ms: number): string => ms.toFixed(3)

const pageRows = (
  what: string,
  pages: ReadonlyArray<{ readonly age: number; readonly compared: Compared }>
): ReadonlyArray<Row> =>
  pages.map(({ age, compared: { own, sqlite } }) => {
    const name = `${what} of agemin=${age} without HTTP, to SQLite's in memory`
    const timeText = `${msText(own.medianMs)} ms`
    if (sqlite === undefined) {
      return withoutTarget(name, `${timeText}; this Node has no node:sqlite`)
    }
    const detail = `${msText(sqlite.medianMs)} ms to ${timeText}; ${msText(sqlite.cpuMs)} to ${
      msText(own.cpuMs)
    } ms of processor time`
    return atLeast(name, sqlite.medianMs / own.medianMs, ratioLeast, detail)
  })

const withoutHttp = ({ cache, iterator, pages }: Tables): ReadonlyArray<Row> => {
  const elsewhere = pages.map((page) => ({ age: page.age, compared: page.elsewhere }))
  const first = pages.map((page) => ({ age: page.age, compared: page.first }))
  const read = pages[0]?.elsewhere.own.medianMs ?? Number.NaN
  return [
    withoutTarget(
      "rows of a million customers in memory, after the first question",
      `${cache.mb.toFixed(0)} MB, all there after ${cache.seconds.toFixed(1)} s`
    ),
    withoutTarget(
      "page elsewhere of agemin=21 without HTTP: RocksDB's own iterator for as many rows, to it",
      `${(iterator.medianMs / read).toFixed(2)} (${msText(iterator.medianMs)} ms to ${
        msText(read)
      } ms)`
    ),
    ...pageRows("first page", first),
    ...pageRows("page elsewhere, read once,", elsewhere),
    withoutTarget(
      "pages elsewhere of agemin 21, 60, 85, 89, 110 without HTTP, of rows that are not in memory",
      `${pages.map(({ stored }) => msText(stored.medianMs)).join(", ")} ms`
    )
  ]
}

const measure = async (bench: Bench): Promise<ReadonlyArray<Row>> => {
  const folder = bench.folder("customers")
  const node = await bench.serve(folder)
  const rate = await load(node, customers, "created")
  const { peak } = node.memory()
  const rows: Array<Row> = [
    {
      what: "customers loaded from CSV over HTTP, durable, all of them or nothing",
      measured: `${perSecond(rate)} a second`,
      target: `≥ ${perSecond(rateLeast)} a second`,
      met: rate >= rateLeast
    },
    atMost("peak memory while a million customers are loaded", peak, memoryMbMost, "MB")
  ]
  for (const age of ages) rows.push(await pageRow(node, age))
  await node.stop()
  // The output of `tables.ts`.
  const script = await runScript("tables.js", [folder], process.env["BENCH_SQLITE_NODE"])
  const tables = JSON.parse(script) as Tables
  return [...rows, ...withoutHttp(tables), await onNats(bench)]
}

export const queries: Line = { name: "queries", run: measure }
