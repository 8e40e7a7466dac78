/** No secret in a log line at any level, in /metrics, or in a problem document. */
import { afterAll, beforeAll, expect, it } from "vitest"
import {
  type Answer,
  asAdmin,
  basic,
  childOf,
  expectStatus,
  linkOf,
  type Mailbox,
  notification,
  openMailbox,
  parseXml,
  pathOf,
  postXml,
  send
} from "./client.ts"
import { adminToken, cleanUp, command, type Service, start, temporaryFolder } from "./process.ts"
import { head, speak } from "./raw.ts"

let service: Service
let mailbox: Mailbox
/** Every secret that was given out or sent, by what it is. */
const secrets = new Map<string, string>([["the admin's token", adminToken]])
/** Every problem document that came back. */
const problems: Array<string> = []

beforeAll(async () => {
  service = await start({ env: { LOG_LEVEL: "trace", LOG_FORMAT: "json" } })
})
afterAll(async () => {
  await service.kill()
  cleanUp()
})

const secretPart = (path: string): string => path.slice(path.indexOf("~") + 1)

const asked = async (
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
  asked("/content", {
    method: "POST",
    body: "locked",
    headers: { "message-password": "generate" }
  })

it("uses every kind of secret, rightly and wrongly", async () => {
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
  await asked("/mailboxes", { headers: bearer })
  await asked("/accounts", { headers: bearer })
  await asked("/mailboxes", { headers: { authorization: "Bearer wrong-password-0123456789" } })
  await asked(mailbox.path, { headers: { authorization: basic("x", "wrong-password-0123456789") } })
  await asked(mailbox.path, { headers: { authorization: basic("x", mailbox.password) } })
  await asked(content, { headers: { "message-password": password } })
  await asked(content, { headers: { "message-password": "wrong-password-0123456789" } })
  await asked(content, { headers: { "message-password": "wrong~secret-0123456789-abcdefgh" } })
  await asked(edit, { method: "PUT", body: "other" })
  await asked(`${edit}/receipts`)
  await postXml(
    service.url,
    mailbox.path,
    notification("locked").replace("</item>", `<password>${password}</password></item>`)
  )
})

it("asks for secret URIs in every wrong way", async () => {
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
      const answer = await asked(path, { headers: { accept } })
      expect(answer.headers.get("referrer-policy"), path).toBe("no-referrer")
    }
    await asked(path, { method: "PATCH" })
    await asked(path, { method: "PUT", body: "<x", headers: { "content-type": "application/xml" } })
    await asked(path, { method: "POST", body: "<x", headers: { "content-type": "text/html" } })
  }
  // Headers that are refused before anybody looks at the rest.
  await speak(service.port, [head(`GET ${shared} HTTP/1.1`, "Host: a", `X: ${"x".repeat(20_000)}`)])
  await speak(service.port, [
    head(`POST ${shared} HTTP/1.1`, "Host: a", "Content-Length: 1", "Transfer-Encoding: chunked")
  ])
  const half = head(`POST ${shared} HTTP/1.1`, "Host: a", "Content-Length: 100")
  await speak(service.port, [half, "<notif"], 50)
})

it("has told nobody", async () => {
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
      const told = problems.find((problem) => problem.includes(form))
      expect(told, `${name} in a problem document`).toBeUndefined()
    }
  }
})

it("shows the admin's first token once, and never the one that was set", async () => {
  const dataDir = temporaryFolder()
  const chosen = await start({ dataDir, env: { ADMIN_TOKEN: "" } })
  const [token = ""] = /^ {2}[A-Za-z0-9_-]{43}$/m.exec(chosen.output) ?? []
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
