/**
 * kill -9 in a loop under load: whatever was acknowledged is there after every restart, once, whole
 * and in order, and nothing shows that nobody sent.
 */
import { createHash } from "node:crypto"
import { afterAll, expect, it } from "vitest"
import { asAdmin, expectStatus, postXml } from "./client.ts"
import { History } from "./history.ts"
import { cleanUp, eventually, pause, type Service, start, temporaryFolder } from "./process.ts"

const long = process.env["TEST_LONG"] === "1"
const busyWithinMs = 60_000
const rounds = { rocksdb: long ? 200 : 20, leveldb: long ? 200 : 6 } as const
const operationsMax = 60
const loadMs = { least: 150, most: 700 }
/** An attempt that a crash cut off holds its key for a minute. */
const keyFreeWithinMs = 5_000

afterAll(cleanUp)

/** Random numbers that are the same in every run. */
const sequence = (seed: string) => {
  let count = 0
  return (below: number): number =>
    createHash("sha256").update(`${seed} ${count++}`).digest().readUInt32BE(0) % below
}

/** Bytes that follow from a name; sizes on both sides of what is kept inside the database. */
const bytesOf = (name: string, random: (below: number) => number): Buffer => {
  const length = random(2) === 0 ? random(2_000) : 65_537 + random(60_000)
  const block = createHash("sha512").update(name).digest()
  return Buffer.alloc(length, block)
}

type Client = (base: string, name: string, random: (below: number) => number) => Promise<unknown>

const clients = (history: History): ReadonlyArray<Client> => {
  const boxOf = (random: (below: number) => number) =>
    history.boxes[Math.max(0, history.boxes.length - 1 - random(3))]
  const deposit: Client = async (base, name, random) => {
    const box = boxOf(random)
    return box === undefined ? undefined : history.deposit(base, box, name)
  }
  const remove: Client = async (base, _, random) => {
    const box = boxOf(random)
    return box === undefined ? undefined : history.remove(base, box)
  }
  const publish: Client = async (base, name, random) => {
    const content = await history.publish(base, bytesOf(name, random))
    if (content === undefined) return
    if (random(2) === 0) await history.overwrite(base, content, bytesOf(`${name}b`, random))
    if (random(4) === 0) await history.unpublish(base, content)
  }
  const walk: Client = async (base, name) => {
    const session = await history.begin(base)
    if (session === undefined) return
    if (!await history.answer(base, session, "name", `Galahad ${name}`)) return
    if (!await history.answer(base, session, "quest", `the Grail ${name}`)) return
    await history.answer(base, session, "hard_question", "blue")
  }
  const open: Client = (base, name) => history.open(base, name)
  const once: Client = async (base, name, random) => {
    const document = `<mailbox><name>k${name}</name></mailbox>`
    const kind = random(3)
    if (kind === 0) return history.once(base, "/mailboxes", document, name)
    const box = boxOf(random)
    if (kind === 1 && box !== undefined) return history.deposit(base, box, name, true)
    return history.once(base, "/sessions", `<answer continue="true">${name}</answer>`, name)
  }
  const fleet: Client = (base, name, random) =>
    history.fleet(
      base,
      random(2) === 0
        ? postXml(base, "/mailboxes", `<mailbox><name>f${name}</name></mailbox>`, asAdmin)
        : postXml(base, "/sessions", `<answer continue="true">${name}</answer>`)
    )
  return [deposit, deposit, deposit, remove, publish, publish, walk, open, fleet, once]
}

const verify = async (history: History, base: string, from: Readonly<Record<string, number>>) => {
  const { boxes, contents, fleeting, sessions, unknownBoxes } = history
  for (const box of boxes.slice(from["boxes"])) await history.verifyBox(base, box)
  for (const one of contents.slice(from["contents"])) await history.verifyContent(base, one)
  for (const one of sessions.slice(from["sessions"])) await history.verifySession(base, one)
  for (const one of fleeting.slice(from["fleeting"])) await history.verifyFleeting(base, one)
  for (const name of unknownBoxes.splice(0)) await history.verifyUnknownBox(base, name)
}

/** Every keyed request again: the same answer where one came, one resource where none came. */
const repeatKeyed = async (history: History, base: string): Promise<number> => {
  const made = new Set<string>()
  for (const { answer, body, headers, path } of history.keyed) {
    const again = await eventually(keyFreeWithinMs, `${path} may be repeated`, async () => {
      const answered = await postXml(base, path, body, headers)
      return answered.status === 409 ? undefined : expectStatus(answered, 201, 202)
    }, 500)
    const location = again.headers.get("location") ?? ""
    expect(made, "a key made something of another key").not.toContain(location)
    made.add(location)
    const third = expectStatus(await postXml(base, path, body, headers), 201, 202)
    expect(third.headers.get("location")).toBe(location)
    expect(third.text).toBe(again.text)
    if (answer === undefined) continue
    expect(location).toBe(answer.headers.get("location"))
    expect(again.text).toBe(answer.text)
  }
  return made.size
}

const survive = async (store: keyof typeof rounds): Promise<void> => {
  const history = new History()
  const dataDir = temporaryFolder()
  const random = sequence("kills")
  const env = { STORE: store }
  let service: Service = await start({ dataDir, env })
  await history.open(service.url, "first")
  for (let round = 0; round < rounds[store]; round += 1) {
    const { boxes, contents, fleeting, sessions } = history
    const from = {
      boxes: Math.max(0, boxes.length - 3),
      contents: contents.length,
      fleeting: fleeting.length,
      sessions: sessions.length
    }
    const { url } = service
    const before = history.acknowledged
    const loads = clients(history).map(async (client, at) => {
      const own = sequence(`client ${round} ${at}`)
      for (let n = 0; n < operationsMax && !service.isOver; n += 1) {
        await client(url, `r${round}c${at}n${n}`, own)
      }
    })
    await pause(loadMs.least + random(loadMs.most - loadMs.least))
    // However slow the machine is, the kill strikes a service that has done something.
    await eventually(
      busyWithinMs,
      "the service is under load",
      async () => history.acknowledged > before + 50 ? true : undefined
    )
    await service.kill()
    await Promise.all(loads)
    service = await start({ dataDir, env })
    await verify(history, service.url, from)
  }
  await verify(history, service.url, {})
  const keyed = await repeatKeyed(history, service.url)
  expect(keyed).toBe(history.keyed.length)
  for (const box of history.boxes) await history.verifyBox(service.url, box)
  expect(history.acknowledged).toBeGreaterThan(rounds[store] * 50)
  expect(history.unknown).toBeGreaterThan(rounds[store] / 2)
  expect((await service.stop()).code).toBe(0)
}

it.each(["rocksdb", "leveldb"] as const)(
  "keeps what it acknowledged through many kills under load, on %s",
  { timeout: long ? 1_800_000 : 240_000 },
  survive
)
