/**
 * docs/walks.md is true: the files and functions of each walk exist, and a real request visits them
 * in that order. The compiled service runs with a recorder in each function (`trace/`); the traces
 * are kept in test-results/walk-*.txt, from which a changed walk can be written again.
 */
import { randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { adminToken, cleanUp, eventually, pause, publicUrl, type Service, start,
  temporaryFolder } from "../e2e/process.ts"
import { closeReceivers, receiver } from "../e2e/receivers.ts"
import { type ServerProcess, startServer } from "../runtime/nats/servers.ts"
import { root, textOf } from "./pages.ts"

interface Stop {
  /** The node that makes the call; "-" where there is one. */
  readonly node: string
  readonly file: string
  readonly name: string
}

const page = textOf("docs/walks.md")

/** The stops of the walk below a heading: rows of `| n | (node |) file | function | … |`. */
const stopsOf = (heading: string): ReadonlyArray<Stop> => {
  const section = page.split(/^## /m).find((one) => one.startsWith(`${heading}\n`)) ?? ""
  return section.split("\n").flatMap((line) => {
    const [, node = "-", file, name] =
      /^\| +\d+ +\| (?:(old|new) +\| )?`([\w./-]+)` +\| `([\w.]+)` +\|/.exec(line) ?? []
    return file === undefined || name === undefined ? [] : [{ node, file, name }]
  })
}

/**
 * The most files that a walk may list, and the most that its request may enter: helpers included,
 * which the page leaves out. The last two run beside other work of the service.
 */
const walks = [
  { heading: "A deposit", filesMax: 30, filesEnteredMax: 57 },
  // A listing counts the admin's token as a guess of it until it is checked, in a file of its own.
  { heading: "A listing", filesMax: 22, filesEnteredMax: 62 },
  { heading: "A relay attempt", filesMax: 22 },
  { heading: "A handoff", filesMax: 22 }
]

/** What a node alone enters every few seconds, whatever is requested: membership and history. */
const enteredBeside = [
  "runtime/memory/transport.ts",
  "http/history/node-history.ts",
  "http/history/sample.ts",
  "http/history/time-line.ts"
]

const isDeclared = ({ file, name }: Stop): boolean => {
  const text = readFileSync(join(root, file), "utf8")
  return name.split(".").every((part) => new RegExp(`\\b${part}\\b`).test(text))
}

/** How often a walk enters each file; stops in a row are one entry. */
const entriesOf = (stops: ReadonlyArray<Stop>): ReadonlyMap<string, number> => {
  const entries = new Map<string, number>()
  stops.forEach(({ file, node }, at) => {
    if (stops[at - 1]?.file === file && stops[at - 1]?.node === node) return
    entries.set(`${node} ${file}`, (entries.get(`${node} ${file}`) ?? 0) + 1)
  })
  return entries
}

/** The first stop that the trace does not visit after the ones before it; undefined for none. */
const missedIn = (trace: ReadonlyArray<string>, stops: ReadonlyArray<Stop>): string | undefined => {
  let at = 0
  for (const { file, name, node } of stops) {
    const found = trace.indexOf(`${node} ${file} ${name}`, at)
    if (found === -1) return `${node} ${file} ${name}`
    at = found + 1
  }
  return undefined
}

const traceFile = join(temporaryFolder(), "trace.txt")

const script = [
  "--import",
  join(root, "test/docs/trace/register.mjs"),
  join(root, "dist/deploy/main.js"),
  "serve"
]

const startTraced = (env: Readonly<Record<string, string>>): Promise<Service> =>
  start({ script, env: { TRACE_FILE: traceFile, ...env } })

/** The calls that are made while something is done. */
const traceOf = async (name: string, act: () => Promise<void>): Promise<ReadonlyArray<string>> => {
  const from = statSync(traceFile).size
  await act()
  const text = readFileSync(traceFile).subarray(from).toString()
  mkdirSync(join(root, "test-results"), { recursive: true })
  writeFileSync(
    join(root, `test-results/walk-${name.toLowerCase().replaceAll(" ", "-")}.txt`),
    text
  )
  return text.trimEnd().split("\n")
}

/** The last call of a request. What a listing has shown is recorded later, in a turn of its own. */
const answeredCall = "http/pipeline/http-metrics.ts countRequest"

/** The files that a request enters until it is answered, and what runs beside it. */
const filesIn = (trace: ReadonlyArray<string>): ReadonlySet<string> => {
  const end = trace.findIndex((line) => line.endsWith(answeredCall))
  if (end === -1) throw new Error("the request has no answer in its trace")
  return new Set(trace.slice(0, end + 1).flatMap((line) => line.split(" ")[1] ?? []))
}

/**
 * The trace that enters the fewest files, of one for each mailbox: timers are looked for at
 * intervals, beside any of them.
 */
const leastTraceOf = async (
  name: string,
  mailboxes: ReadonlyArray<string>,
  act: (mailbox: string) => Promise<unknown>
): Promise<ReadonlyArray<string>> => {
  const attempts: Array<ReadonlyArray<string>> = []
  for (const mailbox of mailboxes) {
    await untilIdle()
    attempts.push(
      await traceOf(name, async () => {
        await act(mailbox)
        // The client has the answer before the last calls are in the file.
        await untilIdle()
      })
    )
  }
  const [first = []] = attempts
  return attempts.reduce((a, b) => filesIn(b).size < filesIn(a).size ? b : a, first)
}

/** Resolves when the traced service has done nothing for a while. */
const untilIdle = async (): Promise<void> => {
  let size = -1
  await eventually(60_000, "the service is idle", async () => {
    await pause(500)
    const before = size
    size = statSync(traceFile).size
    return size === before ? true : undefined
  })
}

/** A document that differs from all others: a mailbox recognizes a repeated one. */
const notification = (to = ""): string => {
  const item = `<description>${randomUUID()}</description><url>http://keys.test/</url>`
  return `<notification>${to}<item>${item}</item></notification>`
}

const authorization = `Basic ${Buffer.from(`admin:${adminToken}`).toString("base64")}`

const request = async (url: string, init: RequestInit, status: number): Promise<Response> => {
  const response = await fetch(url, init)
  expect(response.status).toBe(status)
  await response.arrayBuffer()
  return response
}

const post = (url: string, body: string): Promise<Response> =>
  request(
    url,
    { method: "POST", body, headers: { authorization, "content-type": "text/xml+rss" } },
    202
  )

const createMailbox = (service: Service, slug: string): Promise<Response> =>
  request(
    `${service.url}/mailboxes`,
    { method: "POST", headers: { authorization, slug } },
    201
  )

const traces = new Map<string, ReadonlyArray<string>>()

const walkAlone = async (): Promise<void> => {
  const recipient = await receiver((_, response) => response.writeHead(202).end())
  const service = await startTraced({ OUTBOUND_ALLOW: "127.0.0.0/8" })
  const mailboxes = ["alice", "bess", "cleo"]
  for (const mailbox of mailboxes) {
    await createMailbox(service, mailbox)
    // A first deposit activates the mailbox; an idle service has nothing else to do.
    await post(`${service.url}/mailboxes/${mailbox}`, notification())
  }
  const deposit = (mailbox: string) =>
    request(
      `${service.url}/mailboxes/${mailbox}`,
      { method: "POST", body: notification(), headers: { "content-type": "text/xml+rss" } },
      202
    )
  traces.set("A deposit", await leastTraceOf("A deposit", mailboxes, deposit))
  const list = (mailbox: string) =>
    request(`${service.url}/mailboxes/${mailbox}`, { headers: { authorization } }, 200)
  traces.set("A listing", await leastTraceOf("A listing", mailboxes, list))
  await untilIdle()
  traces.set(
    "A relay attempt",
    await traceOf("A relay attempt", async () => {
      const to = `<to>${recipient}/inbox</to>`
      const sent = await post(`${service.url}/outgoing/admin`, notification(to))
      const path = (sent.headers.get("location") ?? "").slice(publicUrl.length)
      await eventually(20_000, "the notification is sent", async () => {
        const response = await fetch(`${service.url}${path}`, { headers: { authorization } })
        return (await response.text()).includes("status=\"success\"") ? true : undefined
      }, 200)
    })
  )
  await service.stop()
}

const walkHandoff = async (server: ServerProcess): Promise<void> => {
  // A node looks at its 256 shards again and again.
  const env = { NATS_URL: server.url, TRACE_QUIET_MS: "20" }
  const old = await startTraced({ ...env, NODE_ID: "old", TRACE_NODE: "old" })
  await createMailbox(old, "alice")
  traces.set(
    "A handoff",
    await traceOf("A handoff", async () => {
      const added = await startTraced({ ...env, NODE_ID: "new", TRACE_NODE: "new" })
      const listed = `${added.url}/mailboxes/alice`
      await eventually(20_000, "the new node owns shards", async () => {
        const { text } = { text: await (await fetch(`${added.url}/metrics`)).text() }
        return /^restante_shards_owned [1-9]/m.test(text) ? true : undefined
      })
      await request(listed, { headers: { authorization } }, 200)
      await added.stop()
    })
  )
  await old.stop()
}

let server: ServerProcess | undefined

beforeAll(async () => {
  server = await startServer()
  await walkAlone()
  await walkHandoff(server)
}, 240_000)

afterAll(async () => {
  cleanUp()
  closeReceivers()
  await server?.close()
})

describe.each(walks)("$heading", ({ filesEnteredMax, filesMax, heading }) => {
  const stops = stopsOf(heading)

  it("names files and functions that exist", () => {
    expect(stops.length).toBeGreaterThan(15)
    expect(stops.filter(({ file }) => !existsSync(join(root, file)))).toEqual([])
    expect(stops.filter((stop) => !isDeclared(stop))).toEqual([])
  })

  it("visits few files, none of them more than twice", () => {
    const entries = entriesOf(stops)
    expect(entries.size).toBeLessThanOrEqual(filesMax)
    expect([...entries].filter(([, count]) => count > 2)).toEqual([])
  })

  it("is the way of a real request", () => {
    const trace = traces.get(heading) ?? []
    expect(missedIn(trace, stops)).toBe(undefined)
    if (filesEnteredMax === undefined) return
    const entered = new Set(filesIn(trace))
    for (const file of enteredBeside) entered.delete(file)
    expect(entered.size).toBeLessThanOrEqual(filesEnteredMax)
  })
})

it("notices a stop that the request does not visit, or visits earlier", () => {
  const trace = ["- a.ts one", "- b.ts two"]
  const one = { node: "-", file: "a.ts", name: "one" }
  const two = { node: "-", file: "b.ts", name: "two" }
  expect(missedIn(trace, [one, two])).toBe(undefined)
  expect(missedIn(trace, [two, one])).toBe("- a.ts one")
  expect(missedIn(trace, [one, { ...two, name: "three" }])).toBe("- b.ts three")
})
