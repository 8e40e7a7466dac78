/** Brute force on accounts' tokens, by address and by account, at any node. */
import { Effect } from "effect"
import { afterEach, describe, expect, it } from "vitest"
import { wrongAccountTokensMax, wrongPasswordsMax, wrongTokensMax } from "../../actors/limits.ts"
import { sha256 } from "../../actors/secret-hash.ts"
import { idempotencyKeyCharsMax } from "../../http/limits.ts"
import type { Service } from "../../http/pipeline/service.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { type Address, AskTimeout, type Tagged } from "../../runtime/index.ts"
import { adminToken, type Answered, type Harness, type Sending, startService } from "./harness.ts"

let service: Harness
afterEach(() => service.close())

const start = async (trustedProxies: ReadonlyArray<string> = []) => {
  service = await startService(resourceTable, { trustedProxies })
}

const from = (client: string) => ({ "X-Forwarded-For": client })
const tried = (name: string, token: string, headers = {}): Promise<Answered> =>
  service.send("GET", "/mailboxes", { basic: `${name}:${token}`, headers })

const deposit = "<notification><item><description>d</description>" +
  "<url>http://example.org/</url></item></notification>"

const expectWait = (answered: Answered, detail: RegExp) => {
  expect([answered.status, answered.child("detail")]).toEqual([429, expect.stringMatching(detail)])
  const seconds = Number(answered.header("retry-after"))
  expect(seconds).toBeGreaterThan(0)
  expect(seconds).toBeLessThanOrEqual(60)
}

const open = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const options = { basic: `admin:${adminToken}`, body, headers: from("198.51.100.1") }
  return (await service.send("POST", "/accounts", options)).child("token") ?? ""
}

/**
 * Sends requests with different tokens until there were too many. Attempts leave the window of a
 * minute meanwhile on a slow machine, so that it takes more of them.
 */
const exhaust = async (
  send: (token: string, n: number) => Promise<Answered>,
  wrongMax = wrongTokensMax
): Promise<ReadonlyArray<number>> => {
  const statuses = new Set<number>()
  for (let n = 0; n < 10 * wrongMax; n += 1) {
    const answered = await send(`guess-${n}`, n)
    if (answered.status === 429 && answered.text.includes("wrong tokens")) {
      expect(n).toBeGreaterThanOrEqual(wrongMax)
      return [...statuses]
    }
    statuses.add(answered.status)
  }
  return expect.fail("no number of wrong tokens was too many")
}

describe("wrong tokens", () => {
  it("of one address: so many, then 429, whatever the address claims to be", async () => {
    await start()
    await open("alice")
    expect(await exhaust((guess, n) => tried("alice", guess, from(`10.0.0.${n}`)))).toEqual([401])
    expectWait(await tried("alice", "another"), /from this address/)
    const bearer = { headers: { Authorization: "Bearer another" } }
    expectWait(await service.send("GET", "/mailboxes", bearer), /from this address/)
    expectWait(await service.send("POST", "/content", { body: "x", ...bearer }), /this address/)
    // A node cannot distinguish a valid token that it has never seen from a guess.
    const all = await Promise.all(service.nodes.map(async (node) => {
      await service.send("GET", `${node}/mailboxes`, { basic: "alice:one-more" })
      return service.send("GET", `${node}/accounts`, { basic: "alice:yet-one-more" })
    }))
    for (const one of all) expectWait(one, /from this address/)
  })

  it("do not lock out a client with a recently valid token", async () => {
    await start()
    const token = await open("alice")
    for (const node of service.nodes) {
      const right = await service.send("GET", `${node}/mailboxes`, { basic: `alice:${token}` })
      expect(right.status).toBe(200)
    }
    await exhaust((guess) => tried("alice", guess))
    expectWait(await tried("alice", "another"), /from this address/)
    for (let n = 0; n < 5; n += 1) expect((await tried("alice", token)).status).toBe(200)
  })

  it("count once each: a client may repeat an old token", async () => {
    await start()
    const token = await open("alice")
    for (let n = 0; n < 2 * wrongTokensMax; n += 1) {
      expect((await tried("alice", "revoked-long-ago")).status).toBe(401)
    }
    expect((await tried("alice", token)).status).toBe(200)
  })

  it("of one account, from many addresses: 429 for those, and no other", async () => {
    await start(["127.0.0.0/8"])
    const token = await open("alice")
    const other = await open("bob")
    const attackers = Array.from({ length: wrongAccountTokensMax / 10 }, (_, n) => `203.0.113.${n}`)
    const send = (guess: string, n: number) =>
      tried("alice", guess, from(attackers[n % attackers.length] ?? ""))
    expect(await exhaust(send, wrongAccountTokensMax)).toEqual([401])
    const [attacker = ""] = attackers
    expectWait(await tried("alice", "another", from(attacker)), /for this account/)
    expectWait(await tried("alice", "another", from("203.0.113.200")), /for this account/)
    // The owner uses an address without wrong attempts.
    expect((await tried("alice", token, from("192.0.2.7"))).status).toBe(200)
    // Other accounts are not affected, even from the same addresses.
    expect((await tried("bob", "wrong", from(attacker))).status).toBe(401)
    expect((await tried("bob", other, from(attacker))).status).toBe(200)
  })

  it("are counted where an account is only optional, too", async () => {
    await start()
    const basic = `admin:${adminToken}`
    const body = "<mailbox><name>members</name><deposit>accounts</deposit></mailbox>"
    expect((await service.send("POST", "/mailboxes", { basic, body })).status).toBe(201)
    const send = (guess: string) =>
      service.send("POST", "/mailboxes/members", { basic: `admin:${guess}`, body: deposit })
    expect(await exhaust(send)).toEqual([401])
  })
})

const openMailbox = async (name: string, settings = ""): Promise<string> => {
  const body = `<mailbox><name>${name}</name>${settings}</mailbox>`
  const opened = await service.send("POST", "/mailboxes", { basic: `admin:${adminToken}`, body })
  expect(opened.status).toBe(201)
  return opened.child("password") ?? ""
}

describe("wrong tokens where Basic may be a password", () => {
  it("of an accepted deposit count, whether or not the account exists", async () => {
    await start(["127.0.0.0/8"])
    const token = await open("alice")
    await openMailbox("anyone")
    const [node] = service.nodes
    for (const [client, name] of [["192.0.2.1", "alice"], ["192.0.2.2", "nobody"]] as const) {
      const send = (guess: string) =>
        service.send("POST", `${node}/mailboxes/anyone`, {
          basic: `${name}:${guess}`,
          body: deposit,
          headers: from(client)
        })
      expect([name, ...await exhaust(send)]).toEqual([name, 202])
      expectWait(await send("another"), /from this address/)
      // The right one is no different.
      expectWait(await send(token), /from this address/)
    }
  })

  it("of a deposit count as wrong passwords too, over whose limit none is checked", async () => {
    await start()
    const password = await openMailbox("guessed")
    const [node] = service.nodes
    const send = (guess: string) =>
      service.send("POST", `${node}/mailboxes/guessed`, {
        basic: `Not a name:${guess}`,
        body: deposit
      })
    for (let n = 0; n < wrongPasswordsMax; n += 1) await send(`guess-${n}`)
    const read = await service.send("GET", `${node}/mailboxes/guessed`, { basic: "x y:wrong" })
    expectWait(read, /wrong passwords from this address/)
    // The right one then counts as any other.
    for (let n = wrongPasswordsMax; n < wrongTokensMax - 2; n += 1) await send(`guess-${n}`)
    expect((await send(password)).status).toBe(202)
    expectWait(await send("another"), /wrong tokens from this address/)
  })

  it("of a webhook without a signature count", async () => {
    await start()
    const token = await open("alice")
    await openMailbox("hooks", "<webhook>{/a}</webhook>")
    const secret = await service.send("PUT", "/mailboxes/hooks/webhook-secret", {
      basic: `admin:${adminToken}`,
      body: "<webhook-secret><secret>a-long-random-text</secret></webhook-secret>"
    })
    expect(secret.status).toBe(204)
    const [node] = service.nodes
    const send = (guess: string) =>
      service.send("POST", `${node}/mailboxes/hooks`, {
        basic: `alice:${guess}`,
        body: "{\"a\":1}",
        type: "application/json"
      })
    expect(await exhaust(send)).toEqual([403])
    expectWait(await send("another"), /from this address/)
    expectWait(await send(token), /from this address/)
  })

  it("of a reader of a mailbox count, also beyond the limit of wrong passwords", async () => {
    await start()
    const token = await open("alice")
    await openMailbox("members")
    const [node] = service.nodes
    const send = (guess: string) =>
      service.send("GET", `${node}/mailboxes/members`, { basic: `alice:${guess}` })
    expect(await exhaust(send)).toEqual([401, 429])
    expectWait(await send(token), /from this address/)
  })

  it("of a reader of a mailbox that does not exist count, too", async () => {
    await start()
    const token = await open("alice")
    const [node] = service.nodes
    const send = (guess: string) =>
      service.send("GET", `${node}/mailboxes/nowhere`, { basic: `alice:${guess}` })
    expect(await exhaust(send)).toEqual([404, 429])
    expectWait(await send(token), /from this address/)
  })

  it("of the operator at a removed mailbox count, but not passwords of it", async () => {
    await start(["127.0.0.0/8"])
    const token = await open("alice")
    const password = await openMailbox("removed")
    const admin = { basic: `admin:${adminToken}` }
    expect((await service.send("DELETE", "/mailboxes/removed", admin)).status).toBe(204)
    const [node] = service.nodes
    const send = (guess: string, client: string, user = "admin") =>
      service.send("GET", `${node}/mailboxes/removed`, {
        basic: `${user}:${guess}`,
        headers: from(client)
      })
    // A client that polls removed mailboxes, each by its own password, or one by the same.
    for (let n = 0; n <= wrongTokensMax; n += 1) {
      expect((await send(`password ${n}`, "192.0.2.1", "reader")).status).toBe(410)
      expect((await send(password, "192.0.2.1")).status).toBe(410)
    }
    expect((await tried("alice", token, from("192.0.2.1"))).status).toBe(200)
    expect(await exhaust((guess) => send(guess, "192.0.2.2"))).toEqual([410])
    expectWait(await send("another", "192.0.2.2"), /from this address/)
  })

  it("of a request with a key count, and the password of its mailbox does not", async () => {
    await start()
    const token = await open("alice")
    const published = await service.send("POST", "/content", { body: "x", type: "text/plain" })
    const { pathname } = new URL(published.header("location"))
    const passwords = []
    for (let n = 0; n <= wrongTokensMax; n += 1) passwords.push(await openMailbox(`box-${n}`))
    const [node] = service.nodes
    const keyed = (guess: string) => ({
      basic: `alice:${guess}`,
      headers: { "Idempotency-Key": "a-key-of-enough-characters" }
    })
    for (const [n, password] of passwords.entries()) {
      const options = { ...keyed(password), body: deposit }
      expect((await service.send("POST", `${node}/mailboxes/box-${n}`, options)).status).toBe(202)
    }
    const send = (guess: string) =>
      service.send("POST", node + pathname, {
        ...keyed(guess),
        body: "<receipt status=\"received\"/>"
      })
    expect(await exhaust(send)).toEqual([202])
    expectWait(await send("another"), /from this address/)
    expectWait(await send(token), /from this address/)
  })

  it("of a request with a key count, also where its handler does not check them", async () => {
    await start(["127.0.0.0/8"])
    const [node] = service.nodes
    const key = "a-key-of-enough-characters"
    const cases = [
      ["k".repeat(idempotencyKeyCharsMax + 1), "/mailboxes/box", 400],
      [key, "/mailboxes/Not-a-name", 404],
      [key, "/mailboxes/Not-a-name/read", 404],
      [key, "/mailboxes/Not-a-name/registrations", 404]
    ] as const
    for (const [n, [idempotencyKey, path, status]] of cases.entries()) {
      const token = await open(`alice-${n}`)
      const send = (guess: string) =>
        service.send("POST", `${node}${path}`, {
          basic: `alice-${n}:${guess}`,
          headers: { "Idempotency-Key": idempotencyKey, ...from(`192.0.2.${n}`) },
          body: deposit
        })
      expect([path, ...await exhaust(send)]).toEqual([path, status])
      expectWait(await send(token), /from this address/)
    }
  })

  it("of a keyed registration at a secret URI count, and its password does not", async () => {
    await start()
    const token = await open("alice")
    const passwords: Array<string> = []
    for (let n = 0; n <= wrongTokensMax; n += 1) passwords.push(await openMailbox(`box-${n}`))
    const [node] = service.nodes
    const register = (n: number, password: string) =>
      service.send("POST", `${node}/mailboxes/box-${n}~${passwords[n]}/registrations`, {
        basic: `alice:${password}`,
        headers: { "Idempotency-Key": "a-key-of-enough-characters" },
        body: "<registration><callback>http://192.0.2.1/</callback></registration>"
      })
    for (const [n, password] of passwords.entries()) {
      expect((await register(n, password)).status).toBe(201)
    }
    expect(await exhaust((guess) => register(0, guess))).toEqual([401, 429])
    expectWait(await register(0, token), /from this address/)
  })

  it("of the operator are no more guesses at once than one after the other", async () => {
    const guesses = Array.from({ length: 4 * wrongTokensMax }, (_, n) => `guess-number-${n}`)
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    let checks = 0
    // The account does not reply before each of the requests has asked the throttle.
    const askSlowly = (one: Service) => (to: Address, message: Tagged) => {
      if (to.kind === "throttle" && (checks += 1) >= guesses.length) open()
      return to.kind === "account" && message._tag === "Authenticate"
        ? Effect.andThen(Effect.promise(() => gate), one.system.ask(to, message))
        : one.system.ask(to, message)
    }
    service = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, ask: askSlowly(one) } })
    )
    const all = await Promise.all(guesses.map((guess) => tried("admin", guess)))
    const statuses = all.map(({ status }) => status)
    expect(statuses.filter((status) => status === 401)).toHaveLength(wrongTokensMax)
    expect(statuses.filter((status) => status === 429)).toHaveLength(3 * wrongTokensMax)
    expectWait(await tried("admin", "another"), /from this address/)
    const bearer = { headers: { Authorization: "Bearer another" } }
    expectWait(await service.send("GET", "/mailboxes", bearer), /from this address/)
  })

  it("of the operator count until they are a password, which is no guess", async () => {
    await start()
    const passwords: Array<string> = []
    for (let n = 0; n <= wrongTokensMax; n += 1) passwords.push(await openMailbox(`box-${n}`))
    for (const [n, password] of passwords.entries()) {
      const basic = `admin:${password}`
      expect((await service.send("GET", `/mailboxes/box-${n}`, { basic })).status).toBe(200)
      const deposited = await service.send("POST", `/mailboxes/box-${n}`, { basic, body: deposit })
      expect(deposited.status).toBe(202)
    }
    expect((await tried("admin", "wrong")).status).toBe(401)
  })

  it("of the operator that could not be checked count no longer", async () => {
    let isLost = true
    const askInVain = (one: Service) => (to: Address, message: Tagged) =>
      isLost && to.kind === "account" && message._tag === "Authenticate"
        ? Effect.fail(new AskTimeout({ key: to.id, deadlineMs: 1 }))
        : one.system.ask(to, message)
    service = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, ask: askInVain(one) } })
    )
    for (let n = 0; n < wrongTokensMax; n += 1) {
      expect((await tried("admin", `guess-number-${n}`)).status).toBe(503)
    }
    isLost = false
    expect((await tried("admin", "another")).status).toBe(401)
  })

  it("of a keyed registration at a wrong secret URI count", async () => {
    await start()
    const token = await open("alice")
    await openMailbox("box")
    const [node] = service.nodes
    const send = (guess: string) =>
      service.send("POST", `${node}/mailboxes/box~${"x".repeat(22)}/registrations`, {
        basic: `alice:${guess}`,
        headers: { "Idempotency-Key": "a-key-of-enough-characters" },
        body: "<registration><callback>http://192.0.2.1/</callback></registration>"
      })
    expect(await exhaust(send)).toEqual([404])
    expectWait(await send(token), /from this address/)
  })

  it("are not checked for content that needs no account", async () => {
    const policy = { quota: 1_000, windowMs: 60_000 }
    service = await startService(resourceTable, {
      trustedProxies: ["127.0.0.0/8"],
      rateLimits: { address: policy, account: policy }
    })
    const token = await open("alice")
    const publish = async (headers = {}): Promise<string> => {
      const options = {
        body: "x",
        type: "text/plain",
        headers: { ...from("192.0.2.1"), ...headers }
      }
      return new URL((await service.send("POST", "/content", options)).header("location")).pathname
    }
    const [node] = service.nodes
    const policyOf = async (path: string) => {
      const options = { basic: `alice:${token}`, headers: from("192.0.2.2") }
      const answered = await service.send("GET", node + path, options)
      return [answered.status, answered.header("ratelimit-policy").split(";")[0]]
    }
    for (const path of [await publish(), await publish({ "Message-Password": token })]) {
      // The second answer would show that the first one has found a right token.
      for (let n = 0; n < 2; n += 1) expect(await policyOf(path)).toEqual([200, "\"address\""])
    }
    // So readers of many messages, each with its password and any user name, guess nothing.
    for (let n = 0; n <= wrongTokensMax; n += 1) {
      const password = `the-password-of-message-${n}`
      const path = await publish({ "Message-Password": password })
      const options = { basic: `alice:${password}`, headers: from("192.0.2.2") }
      expect((await service.send("GET", node + path, options)).status).toBe(200)
    }
  })
})

describe("message passwords at once", () => {
  const password = "the-right-password-of-it"
  const publish = async (of = password): Promise<string> => {
    const options = { body: "x", type: "text/plain", headers: { "Message-Password": of } }
    return new URL((await service.send("POST", "/content", options)).header("location")).pathname
  }
  const read = async (path: string, guess: string, n: number, headers = {}): Promise<number> => {
    const node = service.nodes[n % service.nodes.length]
    const options = { headers: { "Message-Password": guess, ...headers } }
    return (await service.send("GET", `${node}${path}`, options)).status
  }
  const countOf = (statuses: ReadonlyArray<number>, status: number): number =>
    statuses.filter((one) => one === status).length

  it("are no more guesses than one after the other", async () => {
    const guesses = Array.from({ length: 10 * wrongPasswordsMax }, (_, n) => `guess-number-${n}`)
    let open = () => {}
    const gate = new Promise<void>((resolve) => (open = resolve))
    let checks = 0
    // No content replies before each of the requests has asked the throttle.
    const askSlowly = (one: Service) => (to: Address, message: Tagged) => {
      if (to.kind === "throttle" && (checks += 1) >= guesses.length) open()
      return to.kind === "content" && message._tag === "Describe"
        ? Effect.andThen(Effect.promise(() => gate), one.system.ask(to, message))
        : one.system.ask(to, message)
    }
    service = await startService((one) =>
      resourceTable({ ...one, system: { ...one.system, ask: askSlowly(one) } })
    )
    const path = await publish()
    const statuses = await Promise.all(guesses.map((guess, n) => read(path, guess, n)))
    expect([countOf(statuses, 401), countOf(statuses, 429)])
      .toEqual([wrongPasswordsMax, 9 * wrongPasswordsMax])
    expect(await read(path, password, 0)).toBe(429)
  })

  it("are all accepted if they are right, of one or many messages, beside some wrong", async () => {
    await start()
    const passwords = Array.from({ length: 50 }, (_, n) => `the-password-of-message-${n}`)
    const paths = await Promise.all(passwords.map(publish))
    // The second time this node knows them.
    for (let round = 0; round < 2; round += 1) {
      const statuses = await Promise.all([
        ...paths.map((path, n) => read(path, passwords[n] ?? "", n)),
        ...paths.map((_, n) => read(paths[0] ?? "", passwords[0] ?? "", n)),
        ...paths.slice(0, 3).map((path, n) => read(path, `a-wrong-password-${n}`, n))
      ])
      expect([countOf(statuses, 200), countOf(statuses, 401)]).toEqual([100, 3])
    }
  })

  it("are remembered only if they are right", async () => {
    await start()
    const { credentialCache } = service.service
    const [node] = service.nodes
    const content = async (headers = {}) => {
      const options = { basic: `admin:${adminToken}`, body: "x", type: "text/plain", headers }
      return new URL((await service.send("POST", "/content", options)).header("location")).pathname
    }
    const isKnownAfter = async (path: string, guess: string, sent: Sending) => {
      const { status } = await service.send("GET", `${node}${path}`, sent)
      const id = path.slice(path.lastIndexOf("/") + 1)
      return [status, credentialCache.isKnownPassword(sha256(`${id}\n${sha256(guess)}`))]
    }
    const withField = (guess: string) => ({ headers: { "Message-Password": guess } })
    const closed = await content({ "Message-Password": password })
    const open = await content()
    const missing = `/content/${"x".repeat(22)}`
    const guess = "any-password-of-somebody"
    for (const path of [open, missing]) {
      const known = await isKnownAfter(path, guess, withField(guess))
      expect(known).toEqual([path === open ? 200 : 404, false])
    }
    expect(await isKnownAfter(closed, guess, withField(guess))).toEqual([401, false])
    // The owner may read it with its token alone.
    const owner = { Authorization: `Bearer ${adminToken}`, "Message-Password": guess }
    expect(await isKnownAfter(closed, guess, { headers: owner })).toEqual([200, false])
    expect(await isKnownAfter(closed, password, withField(password))).toEqual([200, true])
    const basic = { basic: `admin:${adminToken}` }
    expect(await isKnownAfter(closed, adminToken, basic)).toEqual([200, true])
  })

  it("of a network have a limit of their own, whatever addresses of it send them", async () => {
    await start(["127.0.0.0/8"])
    const path = await publish()
    // Each /64 of a /48 keeps to its own limit.
    const guesses = Array.from({ length: 2 * wrongAccountTokensMax }, (_, n) => n)
    const statuses = await Promise.all(
      guesses.map((n) =>
        read(path, `guess-number-${n}`, n, from(`2001:db8:7:${(n % 64).toString(16)}::1`))
      )
    )
    expect([countOf(statuses, 401), countOf(statuses, 429)])
      .toEqual([wrongAccountTokensMax, wrongAccountTokensMax])
    const options = { headers: { "Message-Password": password, ...from("2001:db8:7:ff::1") } }
    expectWait(await service.send("GET", path, options), /wrong passwords from this network/)
    expect(await read(path, password, 0, from("2001:db8:8::1"))).toBe(200)
  })

  it("by Basic count also while the address has no more wrong tokens", async () => {
    await start()
    const path = await publish()
    const [node] = service.nodes
    await exhaust((guess) => tried("alice", guess))
    await tried("alice", "another")
    const guess = (one: string) => service.send("GET", `${node}${path}`, { basic: `alice:${one}` })
    for (let n = 0; n < wrongPasswordsMax; n += 1) await guess(`guess-number-${n}`)
    expectWait(await guess("one-more-guess"), /wrong passwords from this address/)
    expectWait(await guess(password), /wrong passwords from this address/)
  })
})
