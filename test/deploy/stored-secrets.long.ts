/**
 * No copy of a store or of an archive shows a secret: known secrets come in by every way, and every
 * byte of the data folder and of an archive is searched for them. With the key a restored store has
 * them all again; without it, everything else.
 */
import { createHmac } from "node:crypto"
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { newBrowser } from "../actors/web-push.ts"
import { asAdmin, expectStatus, openMailbox, pathOf, postXml, putXml, send } from "../e2e/client.ts"
import { cleanUp, command, eventually, folderWithKeyOf, keyFile, type Service, start,
  temporaryFolder } from "../e2e/process.ts"

const configuration = 78

const password = "a-message-password/plain"
const relayed = "the-relayed-password!"
const replacing = "the-password-of-the-replacement"
const inlinePassword = "the-password-of-inlined-content"
const hubSecret = "the-hub-secret-of-a-subscriber"
const published = "the-password-of-published-content"
const webhookSecret = "the-secret-of-webhooks"
const browserAuth = Buffer.from("the 16-byte auth").toString("base64url")

const secrets = new Map([
  ["a message password", password],
  ["a relayed password", relayed],
  ["a password of a replacement", replacing],
  ["a password of inlined content", inlinePassword],
  ["a hub.secret", hubSecret],
  ["a password of published content", published],
  ["a secret of webhooks", webhookSecret],
  ["the secret of a browser", browserAuth]
])

/** A callback that echoes challenges, and accepts pushes. */
const callbacks = createServer((request, response) => {
  const { searchParams } = new URL(request.url ?? "/", "http://callback")
  response.end(searchParams.get("hub.challenge") ?? "")
})

let service: Service
let dataDir: string
let archive: string

const notification = (text: string, more: string): string =>
  `<notification><item><description>${text}</description>` +
  `<url>http://example.com/x</url>${more}</item></notification>`

const allBytes = (): ReadonlyArray<Buffer> => {
  const files = readdirSync(dataDir, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
  return [...files, archive].map((file) => readFileSync(file))
}

/** The forms in which a secret could be stored; base64 has three, by its offset. */
const formsOf = (secret: string): ReadonlyArray<string> => {
  const bytes = Buffer.from(secret)
  const inBase64 = [0, 1, 2].map((offset) =>
    Buffer.concat([Buffer.alloc(offset), bytes]).toString("base64").slice(offset + 1, -4)
  )
  return [secret, bytes.toString("hex"), encodeURIComponent(secret), ...inBase64]
}

beforeAll(async () => {
  await new Promise<void>((resolve) => callbacks.listen(0, "127.0.0.1", resolve))
  const { port } = callbacks.address() as AddressInfo
  const callback = `http://127.0.0.1:${port}/`
  service = await start({ env: { OUTBOUND_ALLOW: "127.0.0.0/8" } })
  dataDir = service.dataDir
  await openMailbox(service.url, "alice")
  const { url } = service
  const secret = `<password hint="a">${password}</password>`
  expectStatus(await postXml(url, "/mailboxes/alice", notification("plain", secret)), 202)
  expectStatus(await postXml(url, "/mailboxes/alice", notification("without", "")), 202)
  const inline = "<notification><item><description>inline</description><url/>" +
    `<password>${inlinePassword}</password><content type="text/plain">text</content></item>` +
    "</notification>"
  expectStatus(await postXml(url, "/mailboxes/alice", inline), 202)
  const sent = notification("relayed", `<password>${relayed}</password>`).replace(
    "<item>",
    "<to>http://post.test/mailboxes/alice</to><to>http://192.0.2.1/</to><item>"
  )
  const { headers } = expectStatus(await postXml(url, "/outgoing/admin", sent, asAdmin), 202)
  const replacement = notification("relayed", `<password>${replacing}</password>`)
  const path = `${pathOf(headers.get("location"))}/replacement`
  expectStatus(await postXml(url, path, replacement, asAdmin), 202)
  const publication = await send(url, "/content", {
    method: "POST",
    body: "text",
    headers: {
      "message-password": published,
      "idempotency-key": "\"a key of 22 characters and more\""
    }
  })
  expectStatus(publication, 202)
  const taking = "<mailbox><webhook>{/title}</webhook></mailbox>"
  expectStatus(await putXml(url, "/mailboxes/alice", taking, asAdmin), 200)
  const signed = `<webhook-secret><secret>${webhookSecret}</secret></webhook-secret>`
  expectStatus(await putXml(url, "/mailboxes/alice/webhook-secret", signed, asAdmin), 204)
  const native = await postXml(
    url,
    "/mailboxes/alice/registrations",
    `<registration><callback>${callback}</callback></registration>`,
    asAdmin
  )
  expectStatus(native, 201, 202)
  const [signing = ""] = /whsec_[A-Za-z0-9+/=_-]+/.exec(native.text) ?? []
  expect(signing).not.toBe("")
  secrets.set("a signing secret", signing).set("its bytes", signing.slice("whsec_".length))
  const subscription = await send(url, "/mailboxes/alice/registrations", {
    method: "POST",
    headers: { ...asAdmin, "content-type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({
      "hub.mode": "subscribe",
      "hub.topic": "http://post.test/mailboxes/alice",
      "hub.callback": `${callback}websub`,
      "hub.secret": hubSecret
    }).toString()
  })
  expectStatus(subscription, 202)
  const browser = await send(url, "/mailboxes/alice/registrations", {
    method: "POST",
    headers: { ...asAdmin, "content-type": "application/json" },
    body: JSON.stringify({
      endpoint: `${callback}webpush`,
      expirationTime: null,
      keys: { p256dh: (await newBrowser()).p256dh, auth: browserAuth }
    })
  })
  expectStatus(browser, 201)
  await eventually(60_000, "all registrations are active, the relay has come", async () => {
    const listed = await send(url, "/mailboxes/alice/registrations", { headers: asAdmin })
    const active = listed.text.match(/status="active"/g)?.length
    const { text } = await send(url, "/mailboxes/alice", { headers: asAdmin })
    return active === 3 && text.includes(replacing) ? true : undefined
  })
  expect((await service.stop()).code).toBe(0)
  archive = join(temporaryFolder(), "archive")
  const saved = await command(["backup", archive, "--plain"], { DATA_DIR: dataDir })
  expect(saved.output).toContain("a restore needs the key of stored secrets too")
})

afterAll(() => {
  callbacks.close()
  cleanUp()
})

/** What is in the mailbox, and the public key by which browsers have subscribed. */
const listing = async (folder: string): Promise<string> => {
  const restored = await start({ dataDir: folder })
  const { text } = expectStatus(
    await send(restored.url, "/mailboxes/alice", { headers: asAdmin }),
    200
  )
  const key = await applicationServerKeyOf(restored)
  expect((await restored.stop()).code).toBe(0)
  return `${text} ${key}`
}

const applicationServerKeyOf = async ({ url }: Service): Promise<string> => {
  const { text } = await send(url, "/mailboxes/alice/registrations", { headers: asAdmin })
  const [, key = ""] = /applicationServerKey="([^"]{87})"/.exec(text) ?? []
  expect(key).not.toBe("")
  return key
}

/** The statuses of an unsigned and a signed webhook. */
const webhookStatuses = async (url: string): Promise<ReadonlyArray<number>> => {
  const body = JSON.stringify({ title: crypto.randomUUID() })
  const post = (headers: Readonly<Record<string, string>>) =>
    send(url, "/mailboxes/alice", {
      method: "POST",
      body,
      headers: { "content-type": "application/json", ...headers }
    })
  const unsigned = await post({})
  const hmac = createHmac("sha256", webhookSecret).update(body).digest("hex")
  const signed = await post({ "x-hub-signature-256": `sha256=${hmac}` })
  return [unsigned.status, signed.status]
}

it("shows no secret in any byte of the data folder and of an archive", () => {
  const all = allBytes()
  // What is stored in plain form is found, so that the search works.
  expect(all.some((bytes) => bytes.includes("http://example.com/x"))).toBe(true)
  for (const [what, secret] of secrets) {
    for (const form of formsOf(secret)) {
      expect([what, form, all.some((bytes) => bytes.includes(form))]).toEqual([what, form, false])
    }
  }
})

it("serves every message password to the readers of the mailbox", async () => {
  const text = await listing(dataDir)
  expect(text).toContain(`<url>http://example.com/x</url><password hint="a">${password}</password>`)
  expect(text).toContain(`<password>${replacing}</password>`)
  expect(text).not.toContain(relayed)
  expect(text).toContain(`<password>${inlinePassword}</password>`)
})

describe("a restore", () => {
  it("without the key is refused, and changes nothing", async () => {
    const folder = join(temporaryFolder(), "new")
    const refused = await command(["restore", archive, "--data-dir", folder])
    expect(refused.code).toBe(configuration)
    expect(refused.output).toMatch(/has secrets under the key \S{8}, which \S+secret-key does not/)
    expect(existsSync(join(folder, "store"))).toBe(false)
    const other = { SECRET_KEY_FILE: keyFile(Buffer.alloc(32, "x").toString("base64")) }
    expect((await command(["restore", archive, "--data-dir", folder], other)).code)
      .toBe(configuration)
  })

  it("with the key has every secret again", async () => {
    const folder = folderWithKeyOf(dataDir)
    const restored = await command(["restore", archive, "--data-dir", folder])
    expect(restored, restored.output).toMatchObject({ code: 0 })
    expect((await command(["check", "--data-dir", folder])).output).toContain(": ok")
    expect(await listing(folder)).toBe(await listing(dataDir))
  })

  it("encrypts everything under a new key, after which the old one is not needed", async () => {
    const next = Buffer.alloc(32, "next").toString("base64")
    const old = readFileSync(join(dataDir, "secret-key"), "utf8")
    const folder = join(temporaryFolder(), "new")
    const both = { SECRET_KEY_FILE: keyFile(next, old) }
    expect((await command(["restore", archive, "--data-dir", folder], both)).code).toBe(0)
    const env = { SECRET_KEY_FILE: keyFile(next) }
    expect((await command(["check", "--data-dir", folder], env)).code).toBe(0)
    const checked = await command(["check", "--data-dir", dataDir], env)
    expect(checked.code).toBe(1)
    expect(checked.output).toMatch(
      /secrets that SECRET_KEY_FILE does not open \(under the key \S{8}\)/
    )
    const restored = await start({ dataDir: folder, env })
    const { text } = await send(restored.url, "/mailboxes/alice", { headers: asAdmin })
    expect(text).toContain(`<password hint="a">${password}</password>`)
    expect(await webhookStatuses(restored.url)).toEqual([403, 202])
    // Browsers have subscribed by the public key: another one would end all subscriptions.
    expect(await listing(dataDir)).toContain(await applicationServerKeyOf(restored))
    await restored.stop()
  })

  it("without secrets has everything else, and lists what is lost", async () => {
    const folder = join(temporaryFolder(), "new")
    const args = ["restore", archive, "--data-dir", folder, "--without-secrets"]
    const restored = await command(args)
    expect(restored, restored.output).toMatchObject({ code: 0 })
    for (
      const lost of [
        "lost: 5 message passwords",
        "lost: 3 push registrations are suspended",
        "lost: 1 secrets of webhooks",
        "lost: 1 answers to requests with an Idempotency-Key",
        "lost: 1 service key"
      ]
    ) {
      expect(restored.output).toContain(lost)
    }
    expect((await command(["check", "--data-dir", folder])).output).toContain(": ok")
    const again = await start({ dataDir: folder })
    const { text } = await send(again.url, "/mailboxes/alice", { headers: asAdmin })
    for (const what of ["plain", "without", "inline", "relayed"]) {
      expect(text).toContain(`<description>${what}</description>`)
    }
    expect(text).not.toContain("password")
    const { text: listed } = await send(again.url, "/mailboxes/alice/registrations", {
      headers: asAdmin
    })
    expect(listed.match(/status="suspended"/g)).toHaveLength(3)
    const [, lost = ""] = /href="[^"]*(\/mailboxes\/[^"]+)"[^>]*form="webpush"/.exec(listed) ?? []
    const lifted = await send(again.url, lost, { method: "PUT", headers: asAdmin })
    expect([lifted.status, lifted.text]).toEqual([
      422,
      expect.stringContaining("subscribe it again")
    ])
    expect(await webhookStatuses(again.url)).toEqual([503, 503])
    expect((await again.stop()).code).toBe(0)
  })
})

describe("an archive with the key", () => {
  it("is made when the operator asks, and restores without a key file", async () => {
    const file = join(temporaryFolder(), "with-key")
    const saved = await command(["backup", file, "--with-key"], { DATA_DIR: dataDir })
    expect(saved.output).toContain("the archive has the key of stored secrets")
    const folder = join(temporaryFolder(), "new")
    expect((await command(["restore", file, "--data-dir", folder])).code).toBe(0)
    expect(readFileSync(join(folder, "secret-key"), "utf8"))
      .toBe(readFileSync(join(dataDir, "secret-key"), "utf8"))
    expect(await listing(folder)).toContain(password)
  })

  it("is not made by a running service", async () => {
    const refused = await command(["backup", "x", "--with-key", "--url", "http://127.0.0.1:9"])
    expect(refused.code).toBe(2)
  })
})
