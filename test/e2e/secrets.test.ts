/** No log line at any level, no metric and no problem document contains a secret. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { type Answer, asAdmin, basic, childOf, expectStatus, linkOf, type Mailbox, notification,
  openMailbox, parseXml, pathOf, postXml, send } from "./client.ts"
import { adminToken, cleanUp, command, eventually, publicUrl, type Service, start,
  temporaryFolder } from "./process.ts"
import { head, sendRaw } from "./raw.ts"
import { closeReceivers, echoes, type Received, receiver } from "./receivers.ts"

let service: Service
let mailbox: Mailbox
/** Every secret of these tests, by its description. */
const secrets = new Map<string, string>([["the admin's token", adminToken]])
/** Every problem document in a response. */
const problems: Array<string> = []
/** Secrets of delivery, which no later response may contain, and the responses to search. */
const neverShown = new Map<string, string>()
const answers: Array<Answer> = []

beforeAll(async () => {
  service = await start({
    env: {
      LOG_LEVEL: "trace",
      LOG_FORMAT: "json",
      OUTBOUND_ALLOW: "127.0.0.0/8",
      RETRY_SCHEDULE: "0s,100ms,100ms"
    }
  })
})
afterAll(async () => {
  await service.kill()
  closeReceivers()
  cleanUp()
})

const secretPart = (path: string): string => path.slice(path.indexOf("~") + 1)

const request = async (
  ...request: Parameters<typeof send> extends [string, ...infer R] ? R : never
) => {
  const answer = await send(service.url, ...request)
  if (answer.status >= 400) problems.push(answer.text)
  return answer
}

const accountToken = async (): Promise<string> => {
  const document = "<account><name>bob</name></account>"
  const made = expectStatus(await postXml(service.url, "/accounts", document, asAdmin), 201)
  return childOf(parseXml(made.text), "token").text
}

const publishLocked = (): Promise<Answer> =>
  request("/content", {
    method: "POST",
    body: "locked",
    headers: { "message-password": "generate" }
  })

it("uses every kind of secret, correct and wrong", async () => {
  mailbox = await openMailbox(service.url, "alice")
  secrets.set("a mailbox's password", mailbox.password)
  secrets.set("a mailbox's shared URI", secretPart(mailbox.shared))
  const token = await accountToken()
  secrets.set("an account's token", token)
  const locked = expectStatus(await publishLocked(), 202)
  const password = locked.headers.get("message-password") ?? ""
  secrets.set("a message's password", password)
  const content = pathOf(locked.headers.get("location"))
  const edit = linkOf(locked, "edit")
  secrets.set("an edit URI", secretPart(edit))
  for (const wrong of ["wrong-password-0123456789", "wrong~secret-0123456789-abcdefgh"]) {
    secrets.set(wrong, wrong)
  }

  const bearer = { authorization: `Bearer ${token}` }
  await request("/mailboxes", { headers: bearer })
  await request("/accounts", { headers: bearer })
  await request("/mailboxes", { headers: { authorization: "Bearer wrong-password-0123456789" } })
  await request(mailbox.path, {
    headers: { authorization: basic("x", "wrong-password-0123456789") }
  })
  await request(mailbox.path, { headers: { authorization: basic("x", mailbox.password) } })
  await request(content, { headers: { "message-password": password } })
  await request(content, { headers: { "message-password": "wrong-password-0123456789" } })
  await request(content, { headers: { "message-password": "wrong~secret-0123456789-abcdefgh" } })
  await request(edit, { method: "PUT", body: "other" })
  await request(`${edit}/receipts`)
  await postXml(
    service.url,
    mailbox.path,
    notification("locked").replace("</item>", `<password>${password}</password></item>`)
  )
})

it("requests secret URIs in every wrong way", async () => {
  const shared = mailbox.shared
  const encoded = shared.replace("~", "%7E")
  const edit = [...secrets].find(([name]) => name === "an edit URI")?.[1] ?? ""
  const paths = [
    shared,
    encoded,
    encoded.replace("%7E", "%7e"),
    `${shared}x`,
    `${encoded}x`,
    `${shared}/nowhere`,
    `${encoded}/nowhere`,
    `${shared}?since=yesterday`,
    `${shared}/notifications/1-aaaaaaaaaaaaaaaaaaaaaa`,
    `/content/aaaaaaaaaaaaaaaaaaaaaa~${edit}`,
    `/nowhere~${secretPart(shared)}`,
    `/sessions/a~${secretPart(shared)}`,
    `/accounts/bob~${secretPart(shared)}`
  ]
  for (const path of paths) {
    for (const accept of ["application/xml", "application/json", "text/html", "text/plain"]) {
      const answer = await request(path, { headers: { accept } })
      expect(answer.headers.get("referrer-policy"), path).toBe("no-referrer")
    }
    await request(path, { method: "PATCH" })
    await request(path, {
      method: "PUT",
      body: "<x",
      headers: { "content-type": "application/xml" }
    })
    await request(path, { method: "POST", body: "<x", headers: { "content-type": "text/html" } })
  }
  // The server refuses these headers before it routes the request.
  await sendRaw(service.port, [
    head(`GET ${shared} HTTP/1.1`, "Host: a", `X: ${"x".repeat(20_000)}`)
  ])
  await sendRaw(service.port, [
    head(`POST ${shared} HTTP/1.1`, "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked")
  ])
  const half = head(`POST ${shared} HTTP/1.1`, "Host: a", "Content-Length: 100")
  await sendRaw(service.port, [half, "<notif"], 50)
})

/** A peer that responds according to the path, and echoes the request in its responses. */
const echoingPeer = (requests: Array<Received>): Promise<string> =>
  receiver((received, response) => {
    requests.push(received)
    if (received.path.startsWith("/good") && echoes(received, response)) return
    const status = received.path.startsWith("/good") ? 202 : 500
    const back = JSON.stringify(received).replace(/[^ -~]/g, "")
    response.writeHead(status, { "x-back": back }).end(back)
  })

const registered = async (fields: Readonly<Record<string, string>>): Promise<Answer> =>
  expectStatus(
    await send(service.url, `${mailbox.path}/registrations`, {
      method: "POST",
      headers: { ...asAdmin, "content-type": "application/x-www-form-urlencoded" },
      body: new URLSearchParams(fields).toString()
    }),
    201,
    202
  )

const forget = (name: string, secret: string): void => {
  secrets.set(name, secret)
  neverShown.set(name, secret)
}

/** Registers good and bad callbacks in both forms, and rotates secrets. */
const registerAll = async (peer: string): Promise<void> => {
  for (const end of ["good", "bad"]) {
    const native = await registered({ callback: `${peer}/${end}?native` })
    forget(`the secret (${end})`, childOf(parseXml(native.text), "secret").text)
    const path = `${pathOf(native.headers.get("location"))}/secret`
    const rotated = await send(service.url, path, { method: "POST", headers: asAdmin })
    forget(
      `the rotated secret (${end})`,
      childOf(parseXml(expectStatus(rotated, 200).text), "secret").text
    )
    const secret = `hub-secret-of-a-subscriber-${end}`
    forget(`hub.secret (${end})`, secret)
    await registered({
      "hub.mode": "subscribe",
      "hub.topic": `${publicUrl}${mailbox.path}`,
      "hub.callback": `${peer}/${end}?websub`,
      "hub.secret": secret
    })
  }
}

it("delivers with every kind of secret", async () => {
  const requests: Array<Received> = []
  const peer = await echoingPeer(requests)
  await registerAll(peer)
  const key = "idempotency-key-of-a-sender"
  const password = "password-of-a-relayed-message"
  forget("an Idempotency-Key", key)
  forget("a relayed password", password)
  for (const at of ["a-capability-in-a-path", "a-capability-in-a-query"]) secrets.set(at, at)
  const document = [
    `${peer}/good/in~a-capability-in-a-path`,
    `${peer}/bad/in?token=a-capability-in-a-query`,
    `${publicUrl}${mailbox.path}`
  ].map((uri) => `<to>${uri}</to>`).join("")
  const sent = notification("relayed").replace("<item>", `${document}<item>`)
    .replace("</item>", `<password>${password}</password></item>`)
  const headers = { ...asAdmin, "idempotency-key": `"${key}"` }
  const queued = expectStatus(await postXml(service.url, "/outgoing/admin", sent, headers), 202)
  const path = pathOf(queued.headers.get("location"))
  expectStatus(await postXml(service.url, "/outgoing/admin", notification("other"), headers), 422)
  await eventually(20_000, "it ends, and is pushed", async () => {
    const { text } = await send(service.url, path, { headers: asAdmin })
    const pushes = requests.filter(({ body, path }) => path.startsWith("/good") && body !== "")
    return parseXml(text).attributes["status"] === "failed" && pushes.length >= 3 ? true : undefined
  })
  for (const { headers, path } of requests) {
    const challenge = new URL(path, peer).searchParams.get("hub.challenge")
    if (challenge !== null) forget(`a challenge ${path.slice(0, 20)}`, challenge)
    const relayKey = headers["idempotency-key"]
    if (relayKey !== undefined) secrets.set("a relay's key", String(relayKey))
  }
  expect([...secrets.keys()].filter((name) => name.startsWith("a challenge")).length).toBe(4)
  const registrations = `${mailbox.path}/registrations`
  const list = parseXml((await send(service.url, registrations, { headers: asAdmin })).text)
  const paths = list.children.map(({ attributes }) => pathOf(attributes["href"] ?? null))
  for (const one of [path, "/outgoing/admin", registrations, ...paths]) {
    for (const accept of ["application/xml", "application/json", "text/html", "text/plain"]) {
      answers.push(await request(one, { headers: { ...asAdmin, accept } }))
    }
    await request(one)
    await request(`${one}/nowhere`, { method: "POST", headers: asAdmin, body: sent })
  }
  expect(answers.every(({ status }) => status === 200)).toBe(true)
})

it("has leaked to nobody", async () => {
  for (const [name, secret] of neverShown) {
    const leaking = answers.find(({ text }) => text.includes(secret))
    expect(leaking?.text, `${name} in another resource`).toBeUndefined()
  }
  expect(problems.length).toBeGreaterThan(50)
  const { text: metrics } = await send(service.url, "/metrics")
  await service.stop()
  const { output } = service
  expect(output.split("\n").filter((line) => line.startsWith("{")).length).toBeGreaterThan(20)
  const encodings = (secret: string): ReadonlyArray<string> => [
    secret,
    encodeURIComponent(secret),
    Buffer.from(secret).toString("base64").replace(/=+$/, "").slice(0, -1)
  ]
  for (const [name, secret] of secrets) {
    expect(secret.length, name).toBeGreaterThan(15)
    for (const form of encodings(secret)) {
      expect(output.includes(form), `${name} in the log`).toBe(false)
      expect(metrics.includes(form), `${name} in /metrics`).toBe(false)
      const leaking = problems.find((problem) => problem.includes(form))
      expect(leaking, `${name} in a problem document`).toBeUndefined()
    }
  }
})

it("shows the generated admin token once, and never a configured one", async () => {
  const dataDir = temporaryFolder()
  const chosen = await start({ dataDir, env: { ADMIN_TOKEN: "" } })
  const [token = ""] = /^ {2}rst_[A-Za-z0-9_-]{43}$/m.exec(chosen.output) ?? []
  expect(token).not.toBe("")
  const headers = { authorization: basic("admin", token.trim()) }
  expectStatus(await send(chosen.url, "/mailboxes", { headers }), 200)
  await chosen.stop()
  const again = await start({ dataDir, env: { ADMIN_TOKEN: "" } })
  expectStatus(await send(again.url, "/mailboxes", { headers }), 200)
  await again.stop()
  expect(chosen.output.split(token.trim())).toHaveLength(2)
  expect(again.output).not.toContain(token.trim())
  const config = await command(["config"], { ADMIN_TOKEN: adminToken })
  expect(config.code).toBe(0)
  expect(config.output).not.toContain(adminToken)
})
