/** Every refusal names the check or limit that it was, and tells a stranger no secret. */
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { anonymousQueriesMax } from "../../http/limits.ts"
import { toHttpError } from "../../http/pipeline/http-error.ts"
import { DiskFloor } from "../../http/rates/disk-floor.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { creationChanges, networkHash,
  type StoredQuery } from "../../http/resources/rows/query-store.ts"
import { framingOf } from "../../http/wire/request.ts"
import { MessageTooLarge, ValueTooLarge } from "../../runtime/index.ts"
import { adminToken, type Harness, type Sending, startService } from "./harness.ts"

const admin = `admin:${adminToken}`

/** A point in time, such as the end of a limit. */
const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z`

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
    /does not own/
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

  it("of too many queries of one network, with the time", async () => {
    const stored: StoredQuery = {
      query: { on: "customers" },
      address: networkHash("203.0.113.0/24"),
      editHash: "",
      createdMs: Date.now()
    }
    const ids = Array.from({ length: anonymousQueriesMax }, (_, at) => `full-${at}-query`)
    for (let at = 0; at < ids.length; at += 20) {
      const changes = ids.slice(at, at + 20).flatMap((id) => creationChanges(id, stored))
      await service.run(service.service.records.write(changes))
    }
    const answer = await service.send("POST", "/queries", {
      headers: { "X-Forwarded-For": "203.0.113.78" },
      body: "<query on=\"customers\"/>"
    })
    expect(Number(answer.header("retry-after"))).toBeGreaterThan(0)
    expect([answer.status, answer.child("detail")]).toEqual([
      429,
      expect.stringMatching(
        new RegExp(`^this network has ${anonymousQueriesMax} queries .* try again at ${time}$`)
      )
    ])
  })

  it("of an answer by href at an address that is not public", async () => {
    const begun = await service.send("POST", "/sessions", {
      body: "<answer continue=\"true\">yes</answer>"
    })
    const path = `${begun.header("location").slice(service.base.length)}/name`
    const answer = await service.send("PUT", path, { body: "<answer href=\"http://10.1.2.3/\"/>" })
    expect([answer.status, answer.child("detail")]).toEqual([
      422,
      expect.stringContaining(
        "it is not public, and OUTBOUND_ALLOW does not permit it to clients without an account"
      )
    ])
  })

  it("of a callback that is not public, as the problem of its registration", async () => {
    const sending = { basic: bob, headers: { Slug: "bobs" } }
    const made = await service.send("POST", "/mailboxes", sending)
    const registrations = `${made.header("location")}/registrations`
    const body = "<registration><callback>http://10.1.2.3/hook</callback></registration>"
    const created = await service.send("POST", registrations, { basic: bob, body })
    expect(created.status).toBe(201)
    const problem = async (): Promise<string> =>
      (await service.send("GET", created.header("location"), { basic: bob })).text
    await expect.poll(problem, { timeout: 60_000 })
      .toContain("it is not public, and OUTBOUND_ALLOW does not permit it")
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

describe("a refusal without space names its quota", () => {
  const kib = 1024
  const disk = { freeBytes: 500, totalBytes: 1_000 }
  const diskFloor = new DiskFloor({ percent: 10 }, () => Promise.resolve({ ...disk }))
  let small: Harness
  beforeAll(async () => {
    small = await startService(resourceTable, {
      quotas: { anonymousBytesMax: 40 * kib, networkBytesMax: 20 * kib, accountBytesMax: 60 * kib },
      diskFloor,
      trustedProxies: ["127.0.0.0/8"]
    })
  })
  afterAll(() => small.close())

  const publish = (kibs: number, sending: Sending = {}) =>
    small.send("POST", "/content", { body: "x".repeat(kibs * kib), type: "text/plain", ...sending })

  const elsewhere: Sending = { headers: { "X-Forwarded-For": "203.0.113.9" } }

  const who = "clients without an account"

  it.each<readonly [what: string, kibs: number, sending: Sending, detail: RegExp]>([
    [
      "all strangers",
      50,
      {},
      new RegExp(`content of ${who} uses 0 of 40960 bytes, .*\\(ANONYMOUS_BYTES_MAX\\)`)
    ],
    [
      "a network, with the time",
      30,
      elsewhere,
      new RegExp(
        `${who} in the network 203\\.0\\.113\\.0/24 .*of 20480 bytes, ` +
          ".*\\(ANONYMOUS_NETWORK_BYTES_MAX a day, with 1024 for each Idempotency-Key\\): use an " +
          `account, try again at ${time}, or let the operator raise the limit$`
      )
    ],
    [
      "an account",
      70,
      { basic: admin },
      /the content of the account admin uses 0 of 61440 bytes, .*\(ACCOUNT_BYTES_MAX\)/
    ]
  ])("of %s", async (_what, kibs, sending, detail) => {
    const answer = await publish(kibs, sending)
    expect([answer.status, answer.child("detail")]).toEqual([507, expect.stringMatching(detail)])
  })

  it("or the floor of the disk", async () => {
    disk.freeBytes = 99
    await Effect.runPromise(diskFloor.check)
    const answer = await publish(1)
    expect([answer.status, answer.child("detail")]).toEqual([
      507,
      expect.stringMatching(/less free space than DISK_FREE_MIN.*account/)
    ])
  })
})
