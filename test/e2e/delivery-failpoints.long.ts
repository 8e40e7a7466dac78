/**
 * The process dies at each step of the actors that deliver: outgoing notifications, registrations
 * and background tasks. The next process completes everything that the service accepted.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { asAdmin, expectStatus, listMailbox, type Mailbox, mailboxOf, notification, openMailbox,
  parseXml, pathOf, postXml, send } from "./client.ts"
import { cleanUp, command, eventually, launch, start, temporaryFolder } from "./process.ts"
import { closeReceivers, descriptionOf, echoes, pushed, receiver,
  takesReceipts } from "./receivers.ts"

const endsWithinMs = 120_000
const steps = ["decided", "committed", "replied", "performed"]
/** How often a step is reached until the process dies there. */
const times = [1, 2, 3]
const dataDir = temporaryFolder()
const env = {
  OUTBOUND_ALLOW: "127.0.0.0/8",
  RETRY_SCHEDULE: ["0s", ...Array.from({ length: 30 }, () => "200ms")].join(",")
}

/** The received ids: keys of relays, ids of pushes, and the number of each receipt. */
const relays = new Map<string, Array<string>>()
const pushes = new Map<string, Array<string>>()
const receipts = new Map<string, number>()

const note = (all: Map<string, Array<string>>, what: string, id: unknown): void => {
  all.set(what, [...all.get(what) ?? [], String(id)])
}

let origin: string
let inner: Mailbox
let eager: Mailbox
let pushing: Mailbox

beforeAll(async () => {
  origin = await receiver((received, response) => {
    const { body, headers, method, path } = received
    if (echoes(received, response) || takesReceipts(received, response)) return
    if (path.startsWith("/message/") && method === "GET") {
      response.writeHead(200, { "content-type": "text/plain" }).end(`all of ${path}`)
      return
    }
    if (path.startsWith("/message/")) receipts.set(path, (receipts.get(path) ?? 0) + 1)
    else if (path === "/inbox") note(relays, descriptionOf(body), headers["idempotency-key"])
    else {
      for (const one of pushed(body)) {
        note(pushes, `${path} ${one.attributes["href"]}`, headers["webhook-id"])
      }
    }
    response.writeHead(202).end()
  })
  const first = await start({ dataDir, env })
  inner = await openMailbox(first.url, "inner")
  pushing = await openMailbox(first.url, "pushing")
  const settings = "<mailbox><name>eager</name><fetch>eager</fetch><receipts>received</receipts>" +
    "</mailbox>"
  eager = mailboxOf(expectStatus(await postXml(first.url, "/mailboxes", settings, asAdmin), 201))
  // On a slow machine each process dies before it takes another one.
  expectStatus(await postXml(first.url, pushing.path, notification("before")), 202)
  await first.stop()
})

afterAll(() => {
  closeReceivers()
  cleanUp()
})

/** Everything that the service accepted before the process died. */
interface Accepted {
  readonly name: string
  /** Paths from responses with 201 or 202. */
  relay?: string
  registration?: string
  deposit?: string
  fetched?: string
}

/** The path of the response; undefined when the process died first. */
const accepted = async (request: Promise<Awaited<ReturnType<typeof postXml>>>) => {
  const answer = await request.catch(() => undefined)
  return answer === undefined
    ? undefined
    : pathOf(expectStatus(answer, 201, 202).headers.get("location"))
}

const act = async (base: string, all: Accepted): Promise<void> => {
  const keep = (
    key: "relay" | "registration" | "deposit" | "fetched",
    path: string | undefined
  ) => {
    if (path !== undefined) all[key] = path
  }
  const { name } = all
  const message = notification(name).replace("http://sender.test", `${origin}/message`)
  const relayed = notification(name).replace(
    "<item>",
    `<to>${origin}/inbox</to><to>http://post.test${inner.path}</to><item>`
  )
  const callback = `<registration><callback>${origin}/hook/${name}</callback></registration>`
  keep("fetched", await accepted(postXml(base, eager.path, message, asAdmin)))
  keep("relay", await accepted(postXml(base, "/outgoing/admin", relayed, asAdmin)))
  const registrations = `${pushing.path}/registrations`
  keep("registration", await accepted(postXml(base, registrations, callback, asAdmin)))
  keep("deposit", await accepted(postXml(base, pushing.path, notification(name))))
}

const resourceOf = async (base: string, path: string) =>
  parseXml(expectStatus(await send(base, path, { headers: asAdmin }), 200).text)

/** Expects that all accepted work is done, and that repetitions have one id. */
const expectDone = async (base: string, all: Accepted): Promise<void> => {
  const { deposit, fetched, name, registration, relay } = all
  if (relay !== undefined) {
    await eventually(
      endsWithinMs,
      `${name} is relayed`,
      async () => (await resourceOf(base, relay)).attributes["status"] === "sent" ? true : undefined
    )
    expect(new Set(relays.get(name)).size).toBe(1)
    const there = await listMailbox(base, inner)
    expect(there.filter(({ description }) => description === name)).toHaveLength(1)
  }
  if (fetched !== undefined) {
    await eventually(endsWithinMs, `${name} is fetched`, async () => {
      const item = await resourceOf(base, fetched)
      return item.children.some((child) => child.name === "cached") ? true : undefined
    })
    await eventually(
      endsWithinMs,
      `${name} has its receipt`,
      () => receipts.get(`/message/${name}`)
    )
  }
  if (registration !== undefined) {
    await eventually(
      endsWithinMs,
      `${name} is active`,
      async () =>
        (await resourceOf(base, registration)).attributes["status"] === "active" ? true : undefined
    )
  }
  if (registration !== undefined && deposit !== undefined) {
    const what = `/hook/${name} http://post.test${deposit}`
    const ids = await eventually(endsWithinMs, `${name} is pushed`, () => pushes.get(what))
    expect(new Set(ids).size).toBe(1)
  }
}

/** Sends requests until the process has died, as the number of steps per request varies. */
const actUntilDeath = async (failpoint: string, name: string): Promise<ReadonlyArray<Accepted>> => {
  const doomed = launch({ dataDir, env: { ...env, RESTANTE_FAILPOINT: failpoint } })
  const done: Array<Accepted> = []
  try {
    // Recovered work may reach the failpoint before this process is ready.
    await doomed.ready().catch(() => doomed.end(endsWithinMs))
    await eventually(endsWithinMs, `${failpoint} is reached`, async () => {
      if (doomed.isOver) return true
      const all: Accepted = { name: `${name}-${done.length}` }
      done.push(all)
      await act(doomed.url, all)
      return undefined
    }, 300)
    expect((await doomed.end(endsWithinMs)).signal).toBe("SIGKILL")
  } finally {
    await doomed.kill()
  }
  return done
}

describe.each(steps)("dying when %s", (step) => {
  it.each(["notification", "registration", "background-task"])("%s", async (kind) => {
    for (const n of times) {
      const done = await actUntilDeath(`${step}:${kind}:${n}`, `${step}-${kind}-${n}`)
      const service = await start({ dataDir, env })
      try {
        for (const all of done) await expectDone(service.url, all)
      } finally {
        await service.kill()
      }
    }
  })
})

it("leaves a valid store, and no unfinished delivery", async () => {
  const service = await start({ dataDir, env })
  const list = await resourceOf(service.url, "/outgoing/admin?status=waiting")
  expect(list.children).toEqual([])
  const { text } = expectStatus(await send(service.url, pushing.path, { headers: asAdmin }), 200)
  expect(text).toContain("<description>before</description>")
  expect((await service.stop()).code).toBe(0)
  const checked = await command(["check", "--data-dir", dataDir])
  expect(checked.output).toContain(`${dataDir}: ok`)
})
