/** Who may repeat a request with an Idempotency-Key, and get its secrets again (protocol §7). */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { childOf, textOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"

const admin = { basic: `admin:${adminToken}` }

let service: Harness
beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)
const keyed = (key: string) => ({ headers: { "Idempotency-Key": key } })
const note = `<notification><item><description>d</description><url>http://x.example/</url></item>` +
  "</notification>"

/** An account, with its first token and a second one. */
const accountNamed = async (name: string) => {
  const created = await send("POST", "/accounts", {
    ...admin,
    body: `<account><name>${name}</name></account>`
  })
  const first = { basic: `${name}:${created.child("token")}` }
  const more = await send("POST", `/accounts/${name}/token`, first)
  const second = { basic: `${name}:${textOf(more.xml)}` }
  const revokeSecond = () => send("DELETE", more.header("location"), first)
  return { first, second, revokeSecond }
}

const secretsOf = (answered: Answered): ReadonlyArray<string | undefined> => [
  answered.child("password"),
  childOf(answered.xml, "shared")?.attributes["href"]
]

describe("an anonymous client", () => {
  it("needs a key that nobody guesses", async () => {
    const post = (key: string) => send("POST", "/content", { body: "mine", ...keyed(key) })
    const short = await post("k".repeat(21))
    expect([short.status, short.child("type")])
      .toEqual([422, `${service.base}/problems/unprocessable`])
    expect(short.child("detail")).toContain("must have at least 22 characters")
    const mine = await post("k".repeat(22))
    expect(mine.status).toBe(202)
    expect((await post("k".repeat(22))).header("link")).toBe(mine.header("link"))
    // A second stranger with the same body, but a key of its own.
    expect((await post("l".repeat(22))).header("location")).not.toBe(mine.header("location"))
  })
})

it("is told that it needs an account, whatever its key is", async () => {
  for (const key of ["short", "k".repeat(22)]) {
    for (const path of ["/accounts", "/mailboxes", "/outgoing/admin"]) {
      const answered = await send("POST", path, { body: "<x/>", ...keyed(key) })
      expect([path, key, answered.status]).toEqual([path, key, 401])
    }
  }
})

describe("an account", () => {
  it("repeats with any of its tokens, and gets secrets with the one that got them", async () => {
    const { first, second } = await accountNamed("two-tokens")
    const open = (token: typeof first) =>
      send("POST", "/mailboxes", { ...token, body: "<mailbox/>", ...keyed("open") })
    const opened = await open(first)
    expect(opened.status).toBe(201)
    const again = await open(first)
    expect(secretsOf(again)).toEqual(secretsOf(opened))
    const other = await open(second)
    expect([other.status, other.text.includes(opened.child("password") ?? "")])
      .toEqual([409, false])
    const deposit = (token: typeof first) =>
      send("POST", opened.header("location"), { ...token, body: note, ...keyed("note") })
    const deposited = await deposit(first)
    const repeated = await deposit(second)
    expect([repeated.status, repeated.header("location")])
      .toEqual([202, deposited.header("location")])
  })

  it("repeats nothing with a token that was revoked", async () => {
    const { first, revokeSecond, second } = await accountNamed("revoked-token")
    const open = (token: typeof first) =>
      send("POST", "/mailboxes", { ...token, body: "<mailbox/>", ...keyed("open") })
    expect((await open(second)).status).toBe(201)
    expect((await revokeSecond()).status).toBe(204)
    const repeated = await open(second)
    expect([repeated.status, repeated.text.includes("<password>")]).toEqual([401, false])
    expect((await open(first)).status).toBe(409)
  })

  it("uses one key for one path", async () => {
    const { first } = await accountNamed("one-path")
    const post = (path: string) =>
      send("POST", path, { ...first, body: "the same", type: "text/plain", ...keyed("\"a key\"") })
    expect((await post("/content")).status).toBe(202)
    const other = await send("POST", "/mailboxes", { ...first, ...keyed("\"a key\"") })
    expect(other.child("type")).toBe(`${service.base}/problems/idempotency-key-reuse`)
  })

  // Content has a type and a password, a mailbox a name.
  it.each([
    ["Content-Type", "/content", "Hello!", "text/plain", "text/markdown"],
    [
      "Message-Password",
      "/content",
      "Hello!",
      "the-first-of-2-passwords",
      "another-of-2-passwords"
    ],
    ["Slug", "/mailboxes", undefined, "first-of-a-key", "second-of-a-key"]
  ])("uses one key for one %s", async (name, path, body, one, other) => {
    const { first } = await accountNamed(`one-${name.toLowerCase()}`)
    const post = (value: string) =>
      send("POST", path, {
        ...first,
        ...body === undefined ? {} : { body },
        type: name === "Content-Type" ? value : "text/plain",
        headers: {
          "Idempotency-Key": "one-key-of-one-field",
          ...name === "Content-Type" ? {} : { [name]: value }
        }
      })
    const created = await post(one)
    expect(created.status).toBeLessThan(300)
    const refused = await post(other)
    expect([refused.status, refused.child("type")])
      .toEqual([422, `${service.base}/problems/idempotency-key-reuse`])
    expect((await post(one)).header("location")).toBe(created.header("location"))
  })
})

describe("a reader of a mailbox", () => {
  it("repeats nothing once the password is another one", async () => {
    const { first } = await accountNamed("changed-password")
    const opened = await send("POST", "/mailboxes", first)
    const href = opened.header("location")
    const register = (reader: { readonly basic: string }) =>
      send("POST", `${href}/registrations`, {
        ...reader,
        body: "<registration><callback>https://callback.example/</callback></registration>",
        ...keyed("register")
      })
    const reader = { basic: `anybody:${opened.child("password")}` }
    const registered = await register(reader)
    expect(registered.status).toBe(201)
    expect((await register(reader)).child("secret")).toBe(registered.child("secret"))
    expect((await send("POST", `${href}/password`, first)).status).toBe(200)
    const repeated = await register(reader)
    expect([repeated.status, repeated.text.includes(registered.child("secret") ?? "")])
      .toEqual([401, false])
  })
})
