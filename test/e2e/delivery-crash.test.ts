/**
 * kill -9 during relays and pushes: every recipient and subscriber receives everything that the
 * service accepted, repetitions have the same id, and every status is correct in the end.
 */
import { afterAll, expect, it } from "vitest"
import { asAdmin, childOf, expectStatus, type Mailbox, notification, openMailbox, parseXml, pathOf,
  postXml, send } from "./client.ts"
import { cleanUp, eventually, pause, publicUrl, type Service, start,
  temporaryFolder } from "./process.ts"
import { closeReceivers, descriptionOf, echoes, misbehave, pushed, receiver } from "./receivers.ts"

const long = process.env["TEST_LONG"] === "1"
const rounds = long ? 100 : 3
const sentEachRound = 50
const depositedEachRound = 8
const mailboxCount = 4
const registrationsEach = 5
/** More attempts than a flaky receiver has failures, so that all succeed in the end. */
const waits = ["0s", ...Array.from({ length: 30 }, () => "200ms")].join(",")
const env = { OUTBOUND_ALLOW: "127.0.0.0/8", RETRY_SCHEDULE: waits }
const endsWithinMs = long ? 600_000 : 120_000

afterAll(() => {
  closeReceivers()
  cleanUp()
})

/** The requests of a receiver: the ids of each notification, in the order of receipt. */
class Inbox {
  readonly ids = new Map<string, Array<string>>()
  readonly order: Array<string> = []
  private turns = 0
  readonly flaky: boolean

  constructor(flaky: boolean) {
    this.flaky = flaky
  }

  take(what: string, id: string): void {
    const ids = this.ids.get(what)
    if (ids === undefined) {
      this.ids.set(what, [id])
      this.order.push(what)
    } else ids.push(id)
  }

  get turn(): number {
    return this.turns++
  }
}

const startReceivers = async (): Promise<ReadonlyArray<{ uri: string; inbox: Inbox }>> => {
  const all: Array<{ uri: string; inbox: Inbox }> = []
  for (const flaky of [false, false, false, true, true]) {
    const inbox = new Inbox(flaky)
    const origin = await receiver(({ body, headers }, response) => {
      if (inbox.flaky && misbehave(inbox.turn, response)) return
      inbox.take(descriptionOf(body), String(headers["idempotency-key"]))
      response.writeHead(202, { Location: "/stored" }).end()
    })
    all.push({ uri: `${origin}/inbox`, inbox })
  }
  return all
}

const startSubscribers = async () => {
  const inboxes = new Map<string, Inbox>()
  const origin = await receiver((received, response) => {
    if (echoes(received, response)) return
    const inbox = inboxes.get(received.path)
    if (inbox === undefined) return void response.writeHead(404).end()
    if (inbox.flaky && misbehave(inbox.turn, response)) return
    for (const one of pushed(received.body)) {
      inbox.take(one.attributes["href"] ?? "", String(received.headers["webhook-id"]))
    }
    response.writeHead(204).end()
  })
  return { origin, inboxes }
}

const register = async (service: Service, { path }: Mailbox, callback: string): Promise<string> => {
  const document = `<registration><callback>${callback}</callback></registration>`
  const made = await postXml(service.url, `${path}/registrations`, document, asAdmin)
  return pathOf(expectStatus(made, 201).headers.get("location"))
}

const isActive = async (service: Service, path: string): Promise<true | undefined> => {
  const answer = expectStatus(await send(service.url, path, { headers: asAdmin }), 200)
  return parseXml(answer.text).attributes["status"] === "active" ? true : undefined
}

/** The response, or undefined when the outcome is indeterminate. */
const tried = async <A>(request: Promise<A>): Promise<A | undefined> => {
  try {
    return await request
  } catch {
    return undefined
  }
}

interface Sent {
  readonly path: string
  readonly description: string
}

/** Queues notifications to all receivers until the service ends, and records accepted ones. */
const sendAll = async (
  service: Service,
  round: number,
  to: ReadonlyArray<string>,
  accepted: Array<Sent>
): Promise<void> => {
  const one = async (n: number): Promise<void> => {
    const description = `r${round}n${n}`
    const document = notification(description).replace(
      "<item>",
      `${to.map((uri) => `<to>${uri}</to>`).join("")}<item>`
    )
    const answer = await tried(postXml(service.url, "/outgoing/admin", document, asAdmin))
    if (answer === undefined) return
    const path = pathOf(expectStatus(answer, 202).headers.get("location"))
    accepted.push({ path, description })
  }
  for (let n = 0; n < sentEachRound; n += 10) {
    await Promise.all(Array.from({ length: 10 }, (_, at) => one(n + at)))
  }
}

const depositAll = async (
  service: Service,
  round: number,
  boxes: ReadonlyArray<Mailbox>
): Promise<ReadonlyArray<{ readonly box: Mailbox; readonly href: string }>> => {
  const accepted: Array<{ box: Mailbox; href: string }> = []
  for (let n = 0; n < depositedEachRound; n++) {
    for (const box of boxes) {
      const answer = await tried(postXml(service.url, box.path, notification(`r${round}d${n}`)))
      const href = answer === undefined ? null : expectStatus(answer, 202).headers.get("location")
      if (href !== null) accepted.push({ box, href })
    }
  }
  return accepted
}

const hasEnded = async (service: Service, { path }: Sent): Promise<true | undefined> => {
  const answer = await send(service.url, path, { headers: asAdmin })
  return parseXml(expectStatus(answer, 200).text).attributes["status"] === "waiting"
    ? undefined
    : true
}

it(`relays and pushes all that it accepted through ${rounds} kills`, async () => {
  const receivers = await startReceivers()
  const { inboxes, origin } = await startSubscribers()
  const dataDir = temporaryFolder()
  let service = await start({ dataDir, env })
  const boxes: Array<Mailbox> = []
  const subscribed = new Map<string, Array<Inbox>>()
  for (let at = 0; at < mailboxCount; at++) {
    const box = await openMailbox(service.url, `box${at}`)
    boxes.push(box)
    const paths: Array<string> = []
    for (let n = 0; n < registrationsEach; n++) {
      const inbox = new Inbox(n === 0)
      inboxes.set(`/box${at}/${n}`, inbox)
      subscribed.set(box.path, [...subscribed.get(box.path) ?? [], inbox])
      paths.push(await register(service, box, `${origin}/box${at}/${n}`))
    }
    for (const path of paths) {
      await eventually(endsWithinMs, `${path} is active`, () => isActive(service, path))
    }
  }
  const to = receivers.map(({ uri }) => uri)
  const sent: Array<Sent> = []
  const deposited: Array<{ box: Mailbox; href: string }> = []
  for (let round = 0; round < rounds; round++) {
    const before = sent.length
    const load = Promise.all([
      depositAll(service, round, boxes),
      sendAll(service, round, to, sent)
    ])
    await pause(200 + (round * 97) % 500)
    // Long enough for a busy machine.
    const isUnderWay = () => sent.length - before > sentEachRound / 10 ? true : undefined
    await eventually(endsWithinMs, "some are accepted", isUnderWay)
    await service.kill()
    const [deposits] = await load
    deposited.push(...deposits)
    service = await start({ dataDir, env })
  }
  for (const one of sent) {
    await eventually(endsWithinMs, `${one.path} ends`, () => hasEnded(service, one), 200)
    const document = parseXml((await send(service.url, one.path, { headers: asAdmin })).text)
    expect(document.attributes["status"]).toBe("sent")
    for (const { inbox } of receivers) {
      const ids = inbox.ids.get(one.description)
      expect(ids, `${one.description} did not come`).toBeDefined()
      expect(new Set(ids).size, `${one.description} came under several keys`).toBe(1)
    }
  }
  for (const { box, href } of deposited) {
    for (const inbox of subscribed.get(box.path) ?? []) {
      const ids = await eventually(endsWithinMs, `${href} is pushed`, () => inbox.ids.get(href))
      expect(new Set(ids).size, `${href} was pushed under several ids`).toBe(1)
    }
  }
  for (const box of boxes) {
    const listing = await send(service.url, `${box.path}?limit=1000`, { headers: asAdmin })
    const listed = parseXml(expectStatus(listing, 200).text).children
      .filter(({ name }) => name === "notification")
      .map(({ attributes }) => attributes["href"])
    for (const { order } of subscribed.get(box.path) ?? []) {
      // One whose answer a kill cut off is listed, too, and was not waited for above.
      const isComplete = () => order.length >= listed.length ? true : undefined
      await eventually(endsWithinMs, `all that ${box.path} lists is pushed`, isComplete)
      expect(order).toEqual(listed)
    }
  }
  expect(sent.length).toBeGreaterThan(rounds * sentEachRound / 10)
  expect((await service.stop()).code).toBe(0)
  // Each kill is followed by a start, which a busy machine makes in seconds.
}, rounds * 20_000 + 300_000)

it("repeats an attempt that a kill interrupted, with the same key", async () => {
  const keys: Array<string> = []
  const origin = await receiver(({ headers }, response) => {
    keys.push(String(headers["idempotency-key"]))
    // The first attempt hangs until the sending process ends.
    if (keys.length > 1) response.writeHead(202).end()
  })
  const dataDir = temporaryFolder()
  const first = await start({ dataDir, env })
  const document = notification("once").replace("<item>", `<to>${origin}/x</to><item>`)
  const queued = expectStatus(await postXml(first.url, "/outgoing/admin", document, asAdmin), 202)
  await eventually(endsWithinMs, "the first attempt", () => keys.length > 0 ? true : undefined)
  await first.kill()
  const second = await start({ dataDir, env })
  const path = pathOf(queued.headers.get("location"))
  await eventually(endsWithinMs, "it ends", () => hasEnded(second, { path, description: "" }))
  const resource = parseXml((await send(second.url, path, { headers: asAdmin })).text)
  expect(childOf(resource, "recipient").attributes).toMatchObject({
    status: "success",
    code: "202"
  })
  expect(keys).toHaveLength(2)
  expect(new Set(keys).size).toBe(1)
  expect(queued.headers.get("location")).toContain(publicUrl)
  await second.stop()
})
