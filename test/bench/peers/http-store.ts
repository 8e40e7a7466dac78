/**
 * Mailboxes over HTTP before another store, as lean as possible: uWebSockets.js reads a body, all
 * that come in a turn of the event loop are one group, and each is answered with 202 when its group
 * is on the disk. It neither parses a document nor checks who sends it.
 * `node http-store.js <port> <store> <address of the store> <folder of its client>`.
 */
import { listen, native, read } from "../native.ts"
import { openPostgresql } from "./postgresql-store.ts"
import { openRedis } from "./redis-store.ts"
import type { Deposit, Store } from "./store.ts"

interface Waiting extends Deposit {
  readonly answer: (status: string) => void
}

const [port = "", name = "", address = "", modules = ""] = process.argv.slice(2)

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  postgresql: () => openPostgresql(address, modules),
  redis: () => openRedis(address)
}

const open = stores[name]
if (open === undefined) throw new Error(`no store ${name}`)
const store = await open()

const waiting: Array<Waiting> = []
let groups = 0
let isFlushing = false

const write = async (group: ReadonlyArray<Waiting>): Promise<void> => {
  groups += 1
  let status = "202 Accepted"
  try {
    await store.write(group)
  } catch (error) {
    process.stderr.write(`${String(error)}\n`)
    status = "503 Service Unavailable"
  }
  groups -= 1
  for (const { answer } of group) answer(status)
  flushSoon()
}

const flush = (): void => {
  isFlushing = false
  while (waiting.length > 0 && groups < store.groupsInFlight) {
    void write(waiting.splice(0, store.groupMax))
  }
}

/** At the end of this turn, when all that has come in it is there. */
const flushSoon = (): void => {
  if (isFlushing || waiting.length === 0) return
  isFlushing = true
  setImmediate(flush)
}

const app = native.App()
  .post("/mailboxes/*", (response, request) => {
    const mailbox = request.getUrl().slice("/mailboxes/".length)
    let isOpen = true
    const answer = (status: string): void => {
      if (isOpen) response.cork(() => response.writeStatus(status).end())
    }
    read(response, (body) => {
      waiting.push({ mailbox, body, answer })
      flushSoon()
    }, () => isOpen = false)
  })
  .get("/count", (response) => {
    let isOpen = true
    response.onAborted(() => isOpen = false)
    const end = (text: string): void => {
      if (isOpen) response.cork(() => response.end(text))
    }
    store.count().then((count) => end(String(count)), (error: unknown) => end(String(error)))
  })
  .get("/*", (response) => {
    response.end("ready\n")
  })

listen(app, Number(port))
