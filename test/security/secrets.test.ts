/** Ids and secrets: their bits, their comparison, and the answers to wrong ones. */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { sameHash } from "../../actors/secret-hash.ts"
import { derivedIds, randomId, randomIds } from "../../http/auth/credentials/credentials.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "../http/harness.ts"

const basic = `admin:${adminToken}`
let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

const post = (path: string, body: string, options: Parameters<Harness["send"]>[2] = {}) =>
  service.send("POST", path, { body, basic, ...options })

const pathOf = (answered: Answered): string =>
  answered.header("location").slice(service.base.length)
const item = "<item><description>d</description><url>http://a.test/</url></item>"
const notification = `<notification>${item}</notification>`

/** The edit URI in the Link field. */
const editOf = (answered: Answered): string =>
  /<([^>]+)>; rel="edit"/.exec(answered.header("link"))?.[1]?.replace(service.base, "") ?? ""

/** Creates one resource of each kind whose id or secret the service chooses. */
const makeAll = async () => {
  const mailbox = await post("/mailboxes", "<mailbox/>")
  const name = pathOf(mailbox)
  const content = await service.send("POST", "/content", {
    body: "x",
    headers: { "Message-Password": "generate" }
  })
  const callback = "<registration><callback>http://127.0.0.1:9/</callback></registration>"
  const to = `<notification><to>${service.base}${name}</to>${item}</notification>`
  return {
    mailbox,
    content,
    deposit: await post(name, notification),
    registration: await post(`${name}/registrations`, callback),
    session: await post("/sessions", "<answer continue=\"true\">go</answer>"),
    cabinet: await post("/cabinets", `<cabinet><mailbox href="${name}"/></cabinet>`),
    query: await service.send("POST", "/queries", { body: "<query on=\"quotes\"/>" }),
    outgoing: await post("/outgoing/admin", to),
    token: await post("/accounts/admin/token", "<token/>"),
    account: await post(
      "/accounts",
      `<account><name>a-${randomId().toLowerCase().replace(/[^a-z0-9]/g, "")}</name></account>`
    )
  }
}

describe("15: ids", () => {
  const bits = (text: string): ReadonlyArray<number> =>
    [...Buffer.from(text, "base64url")].flatMap((byte) =>
      Array.from({ length: 8 }, (_, bit) => (byte >> bit) & 1)
    )

  it("have 128 random bits, secrets 256, and each of them is one as often as not", () => {
    const draws = 4_000
    const drawn = [
      [128, () => randomId()],
      [128, () => randomIds.id("a")],
      [256, () => randomIds.secret("a")]
    ] as const
    for (const [wanted, draw] of drawn) {
      const ones = Array.from({ length: wanted }, () => 0)
      const seen = new Set<string>()
      for (let n = 0; n < draws; n += 1) {
        const id = draw()
        seen.add(id)
        bits(id).forEach((bit, at) => {
          ones[at] = (ones[at] ?? 0) + bit
        })
      }
      expect(seen.size).toBe(draws)
      expect(ones).toHaveLength(wanted)
      // Twelve standard deviations from a half.
      expect(ones.filter((count) => Math.abs(count / draws - 0.5) > 0.1)).toEqual([])
    }
  })

  it("never begin with a dash, which a command line would take for flags", () => {
    const names = Array.from({ length: 1_000 }, (_, n) => `name ${n}`)
    const derived = derivedIds("key", "scope")
    const drawn = [randomIds, derived].flatMap(({ id, secret }) =>
      names.flatMap((name) => [id(name), secret(name)])
    )
    expect(drawn.filter((text) => text.startsWith("-"))).toEqual([])
    expect(new Set(drawn).size).toBe(4_000)
    for (const name of names) expect(derived.id(name)).toBe(derived.id(name))
  })

  it("that are derived have as many, and another for each name, body and caller", () => {
    const one = derivedIds("key", "scope")
    expect(one.id("a")).toBe(derivedIds("key", "scope").id("a"))
    const all = [
      one.id("a"),
      one.id("b"),
      derivedIds("key", "other").id("a"),
      derivedIds("another", "scope").id("a")
    ]
    expect(new Set(all).size).toBe(4)
    for (const id of all) expect(bits(id)).toHaveLength(128)
    expect(bits(one.secret("a"))).toHaveLength(256)
  })

  it("of whatever is made here are such, and no two are the same", async () => {
    const created = [await makeAll(), await makeAll()]
    for (const kind of ["mailbox", "content", "deposit", "registration", "session"] as const) {
      const ids = created.map((all) => pathOf(all[kind]).split("/").at(-1) ?? "")
      for (const id of ids) expect([kind, id]).toEqual([kind, expect.stringMatching(/[\w-]{22,}$/)])
      expect([kind, new Set(ids).size]).toEqual([kind, 2])
    }
    for (const kind of ["cabinet", "query", "outgoing"] as const) {
      for (const all of created) expect(pathOf(all[kind])).toMatch(/[\w-]{22,}$/)
    }
    for (const all of created) {
      expect(editOf(all.content)).toMatch(/~[\w-]{43}$/)
      expect(editOf(all.query)).toMatch(/~[\w-]{43}$/)
      expect(all.token.xml.children.join("")).toMatch(/^rst_[\w-]{43}$/)
      expect(all.account.child("token")).toMatch(/^rst_[\w-]{43}$/)
    }
  })
})

describe("16: secrets", () => {
  it("are compared as hashes, in constant time, wherever one is presented", () => {
    const root = fileURLToPath(new URL("../..", import.meta.url))
    const name = String.raw`[\w.]*(?:[hH]ash|[sS]ecret|[pP]assword|[tT]oken)\b\)?`
    const plain = new RegExp(`${name} [!=]== (?!undefined|"|typeof)|[!=]== ${name}(?![.(])`)
    const found = ["http", "actors", "deploy"].flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
        .filter((file) => file.endsWith(".ts"))
        .flatMap((file) =>
          readFileSync(join(root, folder, file), "utf8").split("\n")
            .filter((line) => plain.test(line))
            .map((line) => `${folder}/${file}: ${line.trim()}`)
        )
    )
    // None of these compares a secret that a client presents.
    expect(found.toSorted()).toEqual([
      "actors/account/decide.ts: const tokens = state.tokens.map((token) => token === used"
      + " ? { ...used, usedAtMs: nowMs } : token)",
      "actors/account/decide.ts: return existing.hash === tokenHash",
      "actors/audit/chain.ts: if (entry.previous !== this.previous.hash) {",
      "actors/audit/chain.ts: return n > last.n || hash === last.hash",
      // What the owner sets, encrypted. A signature by it is compared by timingSafeEqual.
      "actors/mailbox/decide.ts: ...state.webhookSecret === null ? {} :"
      + " { webhookSecret: state.webhookSecret },",
      "actors/mailbox/decide.ts: if (secret === state.webhookSecret) return stay().reply(done)",
      "actors/mailbox/decide.ts: webhookSecret === state.webhookSecret",
      "deploy/settings/settings.ts: const isSecret = (kind: ValueKind<unknown>): boolean =>"
      + " kind === secret || kind === headerFields",
      "http/resources/accounts/bootstrap.ts: if (before !== tokenHash)"
      + " yield* addToken(service, operatorAccount, operatorTokenId, tokenHash)",
      "http/resources/accounts/bootstrap.ts: if (before !== tokenHash)"
      + " yield* recordOperatorToken(service)",
      "http/resources/accounts/bootstrap.ts: if (before !== undefined && before !== tokenHash)"
      + " yield* removeHash(service, before)",
      // What its owner types, with what its owner has set.
      "http/resources/mailboxes/webhook-settings.ts: const isSame = stored !== undefined"
      + " && service.keyring.open(use, stored) === secret",
      "http/resources/mailboxes/webhook-settings.ts: if (secret === null) return null"
    ])
    const text = readFileSync(join(root, "actors/secret-hash.ts"), "utf8")
    expect(text).toContain("return timingSafeEqual(")
    const users = ["account/decide.ts", "content/decide.ts", "mailbox/decide.ts"]
    for (const user of users) {
      expect(readFileSync(join(root, "actors", user), "utf8")).toContain("sameHash(")
    }
  })

  it("are compared correctly for any values", () => {
    expect([sameHash("abc", "abc"), sameHash("abc", "abd"), sameHash("abc", "abcd")])
      .toEqual([true, false, false])
    expect([sameHash("", ""), sameHash(undefined, undefined), sameHash("a", undefined)])
      .toEqual([true, false, false])
  })
})

/** An answer without the parts that depend on the path or the time. */
const comparable = (answered: Answered, path: string) => {
  const same = (text: string) => text.replaceAll(path.replace(/~.*/, ""), "PATH")
  const headers = [...answered.headers].filter(([name]) => !/^(date|content-length)$/.test(name))
  return {
    status: answered.status,
    headers: headers.map(([name, value]) => `${name}: ${same(value)}`),
    text: same(answered.text)
  }
}

it("18: an unknown thing and a wrong secret get the same answer", async () => {
  const { content, mailbox, query } = await makeAll()
  const secret = randomIds.secret("wrong")
  const pairs = [pathOf(mailbox), pathOf(content), editOf(query).replace(/~.*/, "")].flatMap(
    (path) => {
      // Also a valid name of a mailbox.
      const other = randomId().toLowerCase().replaceAll(/[_-]/g, "0")
      const unknown = path.replace(/[^/]+$/, other)
      return [path, unknown].map((one) => `${one}~${secret}`).join(" ")
    }
  )
  expect(pairs).toHaveLength(3)
  for (const pair of pairs) {
    const [known = "", unknown = ""] = pair.split(" ")
    for (const method of ["GET", "HEAD", "PUT", "DELETE"]) {
      for (const who of [{}, { basic }, { accept: "text/html" }]) {
        const options = { ...who, ...(method === "PUT" ? { body: "<mailbox/>" } : {}) }
        const one = comparable(await service.send(method, known, options), known)
        const other = comparable(await service.send(method, unknown, options), unknown)
        expect([method, known, one]).toEqual([method, known, other])
        expect(one.status).toBeGreaterThanOrEqual(400)
      }
    }
  }
})

it("20: what shows a secret is never stored by others, nor sent to the next page", async () => {
  const { account, cabinet, content, mailbox, query, registration, token } = await makeAll()
  const shown = { account, content, mailbox, query, registration, token }
  for (const [name, answered] of Object.entries(shown)) {
    expect([name, answered.header("cache-control")]).toEqual([name, "no-store"])
  }
  const shared = /<shared href="([^"]+)"/.exec(mailbox.text)?.[1] ?? ""
  const read = await service.send("GET", shared.slice(service.base.length))
  expect([read.status, read.header("cache-control")]).toEqual([200, "private, no-cache"])
  expect(read.header("x-robots-tag")).toBe("noindex")
  for (const answered of [...Object.values(shown), cabinet, read]) {
    expect(answered.header("referrer-policy")).toBe("no-referrer")
  }
})
