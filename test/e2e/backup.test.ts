/**
 * `restante backup --url` of a running service: the archive has everything that was acknowledged
 * before, whatever clients do meanwhile, and a restored service continues with it.
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { closedPort } from "../actors/outbound/rig.ts"
import { asAdmin, expectStatus, listMailbox, openMailbox, postXml, send } from "./client.ts"
import { History } from "./history.ts"
import { adminToken, cleanUp, command, eventually, folderWithKeyOf, publicUrl, type Service, start,
  temporaryFolder } from "./process.ts"
import { closeReceivers, receiver } from "./receivers.ts"

const token = { ADMIN_TOKEN: adminToken }

let service: Service
let base: string

beforeAll(async () => {
  service = await start()
  base = service.url
})
afterAll(() => {
  closeReceivers()
  cleanUp()
})

const deposit = async ({ path }: { readonly path: string }, about: string): Promise<void> => {
  const item = `<item><description>${about}</description><url>${publicUrl}/problems</url></item>`
  expectStatus(await postXml(service.url, path, `<notification>${item}</notification>`), 202)
}

/** A request of a reader that continues after a cursor. */
const readSince = ({ path }: { readonly path: string }, since: string) =>
  send(service.url, `${path}?since=${since}`, { headers: asAdmin })

const timeOf = async (mailbox: { readonly path: string }): Promise<string> => {
  const listing = await send(service.url, mailbox.path, { headers: asAdmin })
  return /time="([^"]*)"/.exec(listing.text)?.[1] ?? ""
}

const relayTo = async (to: string, about: string): Promise<void> => {
  const item = `<item><description>${about}</description><url>${publicUrl}/problems</url></item>`
  const document = `<notification><to>${to}</to>${item}</notification>`
  expectStatus(await postXml(base, "/outgoing/admin", document, asAdmin), 202)
}

it("contains everything acknowledged before, while clients continue", async () => {
  const history = new History()
  const box = await history.open(base, "kept")
  const relayed = await openMailbox(base, "relayed")
  if (box === undefined) throw new Error("no mailbox")
  for (let n = 0; n < 5; n++) await history.deposit(base, box, `before-${n}`)
  await history.remove(base, box)
  await history.publish(base, Buffer.alloc(300_000, "large"))
  const session = await history.begin(base)
  if (session === undefined) throw new Error("no session")
  await history.answer(base, session, "name", "Galahad")
  // In progress during the backup: the old or the restored service delivers them.
  const relays = Array.from({ length: 20 }, (_, n) => `relay-${n}`)
  await Promise.all(relays.map((about) => relayTo(`${publicUrl}/mailboxes/relayed`, about)))
  const read = await openMailbox(base, "read")
  await deposit(read, "in the backup")
  const kept = await timeOf(read)
  const file = join(temporaryFolder(), "running.gz")
  const over = new AbortController()
  const later = new History()
  const busy = async (): Promise<void> => {
    const other = await later.open(base, "later")
    if (other === undefined) throw new Error("no mailbox")
    for (let n = 0; !over.signal.aborted; n++) await later.deposit(base, other, `meanwhile-${n}`)
  }
  const clients = busy()
  const saved = await command(["backup", file, "--url", base, "--json"], token)
  over.abort()
  await clients
  expect(saved, saved.output).toMatchObject({ code: 0 })
  expect(JSON.parse(saved.output)).toMatchObject({
    location: base,
    counts: { actors: { session: 1, notification: 20 }, blobs: 1 }
  })
  await deposit(read, "lost by the restore")
  const lost = await timeOf(read)
  const dataDir = folderWithKeyOf(service.dataDir)
  const restored = await command(["restore", file, "--data-dir", dataDir])
  expect(restored, restored.output).toMatchObject({ code: 0 })
  expect((await service.stop()).code).toBe(0)
  service = await start({ dataDir })
  for (const one of history.boxes) await history.verifyBox(service.url, one)
  for (const one of history.contents) await history.verifyContent(service.url, one)
  for (const one of history.sessions) await history.verifySession(service.url, one)
  // The log grows past the lost position, whose number another notification has now.
  for (const about of ["new", "newest"]) await deposit(read, about)
  const refused = await readSince(read, lost)
  expect([refused.status, refused.text]).toEqual([
    400,
    expect.stringContaining("/problems/unknown-cursor")
  ])
  const continued = await readSince(read, kept)
  expect(continued.text.match(/<description>[^<]*/g)).toEqual([
    "<description>new",
    "<description>newest"
  ])
  await eventually(120_000, "every relay has come", async () => {
    const listed = await listMailbox(service.url, relayed)
    const descriptions = listed.map(({ description }) => description)
    return relays.every((about) => descriptions.includes(about)) ? true : undefined
  }, 100)
})

it("fails when the service ends, and leaves no file of that name", async () => {
  const folder = temporaryFolder()
  const whole = await send(service.url, "/archive", { headers: asAdmin })
  expect([whole.status, whole.headers.get("cache-control")]).toEqual([200, "no-store"])
  const lines = whole.text.split("\n")
  for (const spoiled of [whole.text.slice(0, -30), [...lines.slice(1, -2), ""].join("\n")]) {
    const origin = await receiver((_, response) => void response.writeHead(200).end(spoiled))
    const file = join(folder, "spoiled")
    const ended = await command(["backup", file, "--plain", "--url", origin], token)
    expect(ended).toMatchObject({ code: 1, output: expect.stringContaining("cannot be used") })
  }
  expect(readdirSync(folder)).toEqual([])
})

it("requires an admin, and leaves no incomplete file", async () => {
  const folder = temporaryFolder()
  const file = join(folder, "none.gz")
  const stranger = await command(["backup", file, "--url", service.url], { ADMIN_TOKEN: "wrong" })
  expect(stranger).toMatchObject({ code: 1, output: expect.stringContaining("401") })
  const nobody = await command(["backup", file, "--url", service.url], { ADMIN_TOKEN: "" })
  expect(nobody).toMatchObject({ code: 2, output: expect.stringContaining("ADMIN_TOKEN") })
  const away = `http://127.0.0.1:${await closedPort()}`
  const gone = await command(["backup", file, "--url", away], token)
  expect(gone).toMatchObject({ code: 75, output: expect.stringContaining("cannot be reached") })
  expect(readdirSync(folder)).toEqual([])
})
