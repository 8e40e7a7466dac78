/** Every refusal names the check or limit that it was, and tells a stranger no secret. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { toHttpError } from "../../http/pipeline/http-error.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { framingOf } from "../../http/wire/request.ts"
import { MessageTooLarge, ValueTooLarge } from "../../runtime/index.ts"
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

const recipient = "<to>http://example.org/m</to>"

const recipients = (count: number): string =>
  Array.from({ length: count }, (_, n) => recipient.replace("/m", `/m${n}`)).join("")

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
  ],
  [
    "elements that are nested too deep",
    "POST",
    "/queries",
    () => ({ body: "<a>".repeat(33) + "</a>".repeat(33) }),
    400,
    /nested deeper than 32 \(XML_DEPTH_MAX\): nest them less deep/
  ],
  [
    "values that are nested too deep",
    "POST",
    "/queries",
    () => ({ body: "{\"a\":".repeat(33) + "1" + "}".repeat(33), type: "application/json" }),
    400,
    /nested deeper than 32 \(XML_DEPTH_MAX\): nest them less deep/
  ],
  [
    "too many recipients",
    "POST",
    "/outgoing/bob",
    (basic) => ({ basic, body: notification.replace("<item>", `${recipient.repeat(1001)}<item>`) }),
    422,
    /more than 1000 to elements \(RECIPIENTS_MAX\): send to the others by another notification/
  ],
  [
    "too many recipients at one origin",
    "POST",
    "/outgoing/bob",
    (basic) => ({ basic, body: notification.replace("<item>", `${recipients(101)}<item>`) }),
    422,
    /101 recipients are at http:\/\/example.org, at most 100 may be: .* in FANOUT_ALLOW/
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

  it("of header fields that are too large", () => {
    const line = { method: "GET", path: "/", query: "" }
    const { detail, refusal } = framingOf(line, ["host", "a", "x", "x".repeat(16_384)])
    expect([refusal, detail]).toEqual([
      "header-fields-too-large",
      expect.stringMatching(
        /about 16\d{3} bytes, and may have at most 16384: send fewer or shorter/
      )
    ])
  })

  it("of what is too large for the servers of NATS", () => {
    const failures = [
      new ValueTooLarge({ detail: "a secret key" }),
      new MessageTooLarge({ key: "a secret key", bytesMax: 1_000_000 })
    ]
    for (const failure of failures) {
      const { detail, status } = toHttpError(failure).problem
      expect([status, detail]).toEqual([413, expect.stringMatching(/max_payload.*: send less/)])
      expect(detail).not.toContain("secret")
    }
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
