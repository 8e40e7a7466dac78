/** Every refusal names the check or limit that it was, and tells a stranger no secret. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, type Sending, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
let service: Harness
let bob: string

beforeAll(async () => {
  service = await startService(resourceTable, { trustedProxies: ["127.0.0.0/8"] })
  const create = (name: string) =>
    service.send("POST", "/accounts", {
      basic: admin,
      body: `<account><name>${name}</name></account>`
    })
  const alice = `alice:${(await create("alice")).child("token")}`
  bob = `bob:${(await create("bob")).child("token")}`
  await service.send("POST", "/mailboxes", {
    basic: alice,
    headers: { Slug: "alices" },
    body: "<mailbox><deposit>accounts</deposit></mailbox>"
  })
})
afterAll(() => service.close())

const notification = "<notification><item><description>d</description>" +
  "<url>http://example.org/</url></item></notification>"

type Refused = readonly [
  what: string,
  method: string,
  path: string,
  options: (bob: string) => Sending,
  status: number,
  detail: RegExp
]

const refused: ReadonlyArray<Refused> = [
  ["a listing of accounts", "GET", "/accounts", () => ({}), 401, /account's name and token/],
  ["it with another role", "GET", "/accounts", (basic) => ({ basic }), 403, /the role admin/],
  ["another account", "GET", "/accounts/alice", (basic) => ({ basic }), 403, /account itself/],
  ["another's mailbox", "GET", "/mailboxes/alices", (basic) => ({ basic }), 403, /does not own/],
  ["its removal", "DELETE", "/mailboxes/alices", (basic) => ({ basic }), 403, /does not own/],
  [
    "its removal on a condition",
    "DELETE",
    "/mailboxes/alices",
    (basic) => ({ basic, headers: { "If-Match": "\"x\"" } }),
    403,
    /only the owner of the mailbox/
  ],
  [
    "its secrets",
    "POST",
    "/mailboxes/alices/password",
    (basic) => ({ basic }),
    403,
    /does not own/
  ],
  [
    "a deposit without an account",
    "POST",
    "/mailboxes/alices",
    () => ({ body: notification }),
    401,
    /takes notifications of accounts only/
  ],
  [
    "another's outgoing mailbox",
    "POST",
    "/outgoing/alice",
    (basic) => ({ basic, body: notification }),
    403,
    /only the account itself sends/
  ],
  [
    "a document that is too large",
    "POST",
    "/mailboxes/alices",
    () => ({ body: "x".repeat(300_000) }),
    413,
    /at most 262144 bytes \(DOCUMENT_BYTES_MAX\), and this has 300000/
  ],
  [
    "content that is too large",
    "POST",
    "/content",
    () => ({ body: "x".repeat(1024 * 1024 + 1) }),
    413,
    /at most 1048576 bytes \(CONTENT_BYTES_MAX\), and this has 1048577/
  ]
]

describe("a refusal names its check", () => {
  it.each(refused)("of %s", async (_what, method, path, options, status, detail) => {
    const answer = await service.send(method, path, options(bob))
    expect([answer.status, answer.child("detail")]).toEqual([
      status,
      expect.stringMatching(detail)
    ])
  })

  it("of too many wrong tokens, with the time", async () => {
    const headers = { "X-Forwarded-For": "203.0.113.5" }
    const answers = []
    for (let round = 0; round < 40; round++) {
      answers.push(
        await service.send("GET", "/accounts", { basic: `bob:wrong${round}`, headers })
      )
    }
    const last = answers.at(-1)
    expect([last?.status, last?.child("detail")]).toEqual([
      429,
      expect.stringMatching(/wrong tokens from this address: try again in \d+ s/)
    ])
  })
})
