/** Bearer JWTs of an external issuer (protocol §4), whose key server on loopback may fail. */
import { Effect } from "effect"
import { SignJWT } from "jose"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { keysFreshMs, keysPauseMs, keysStaleMs } from "../../http/limits.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Answered, type Harness, startService } from "./harness.ts"
import { audience, clock, issuerName, issuers, type Key, type KeyServer, makeKey, pemOf, seconds,
  startKeyServer, tokenOf } from "./issuer-harness.ts"

const admin = `admin:${adminToken}`

let keys: KeyServer
let vouching: ReturnType<typeof issuers>
let service: Harness
let first: Key
let second: Key
let rsa: Key

beforeAll(async () => {
  first = await makeKey("first")
  second = await makeKey("second")
  rsa = await makeKey("rsa", "RS256")
  keys = await startKeyServer()
  await keys.serve(200, [first, rsa])
  vouching = issuers({ AUTH_JWKS: keys.url })
  service = await startService(resourceTable, {}, { adminToken }, vouching.make)
})
afterAll(async () => {
  await service.close()
  await vouching.close()
  await keys.close()
})
// Each test begins with fresh keys, and the service may fetch them at once.
beforeEach(async () => {
  await keys.serve(200, [first, rsa])
  clock.atMs += 2 * keysStaleMs
})

const as = (token: string, method = "GET", path = "/mailboxes", body?: string) =>
  service.send(method, path, {
    headers: { Authorization: `Bearer ${token}` },
    ...body === undefined ? {} : { body }
  })

const everywhere = async (token: string): Promise<ReadonlyArray<number>> => {
  const all = await Promise.all(service.nodes.map((node) => as(token, "GET", `${node}/mailboxes`)))
  return all.map(({ status }) => status)
}
const everyNode = (status: number) => service.nodes.map(() => status)

const challenges = ({ headers }: Answered): string => headers.get("www-authenticate") ?? ""

const expectRefused = async (token: string, why: string) => {
  const answered = await as(token)
  expect([answered.status, answered.child("detail")]).toEqual([401, expect.stringContaining(why)])
  expect(challenges(answered)).toContain("Basic realm=\"restante\"")
  expect(challenges(answered))
    .toContain("Bearer realm=\"restante\", error=\"invalid_token\", error_description=\"")
}

describe("a token of the issuer", () => {
  it("authenticates its subject, whose account its first use creates", async () => {
    const token = await tokenOf(first, { sub: "jwt-owner" })
    expect((await as(token)).status).toBe(200)
    const opened = await as(token, "POST", "/mailboxes", "<mailbox><name>jwt-box</name></mailbox>")
    expect(opened.status).toBe(201)
    const other = await tokenOf(first, { sub: "jwt-other" })
    expect((await as(other, "GET", "/mailboxes/jwt-box")).status).toBe(403)
    expect((await as(token, "GET", "/mailboxes/jwt-box")).status).toBe(200)
    const account = await service.send("GET", "/accounts/jwt-owner", { basic: admin })
    expect([account.status, account.child("name")]).toEqual([200, "jwt-owner"])
    expect((await as(token, "GET", "/outgoing/jwt-owner")).status).toBe(200)
  })

  it("is accepted with RS256, and without kid by any of the keys", async () => {
    expect((await as(await tokenOf(rsa))).status).toBe(200)
    expect((await as(await tokenOf(rsa, {}, { kid: undefined }))).status).toBe(200)
    await keys.serve(200, [first, second])
    clock.atMs += 2 * keysStaleMs
    for (const key of [first, second]) {
      expect((await as(await tokenOf(key, {}, { kid: undefined }))).status).toBe(200)
    }
    const third = await makeKey("third")
    await expectRefused(await tokenOf(third, {}, { kid: undefined }), "signature")
  })

  it("gives the roles that it names and this service knows", async () => {
    const quote = "<quote symbol=\"ACME\"><price currency=\"USD\">1.50</price></quote>"
    const put = async (roles: unknown) =>
      (await as(await tokenOf(first, { roles }), "PUT", "/quotes/ACME", quote)).status
    expect(await put(["quotes", "king"])).toBe(201)
    expect(await put(["customers"])).toBe(403)
    expect(await put(undefined)).toBe(403)
    expect(await put({ quotes: true })).toBe(403)
    expect(await put("openid quotes")).toBe(200)
    const chief = await tokenOf(first, { sub: "jwt-chief", roles: ["admin"] })
    expect((await as(chief, "GET", "/accounts")).status).toBe(200)
  })

  it("has the scope that it names, and makes no token with more", async () => {
    const token = await tokenOf(first, { sub: "jwt-scoped", scope: "openid read admin" })
    expect((await as(token, "GET", "/mailboxes")).status).toBe(200)
    const refused = await as(token, "POST", "/outgoing/jwt-scoped", "<notification/>")
    expect(refused.status).toBe(403)
    expect(refused.header("www-authenticate")).toContain("error=\"insufficient_scope\"")
    const path = "/accounts/jwt-scoped/token"
    expect((await as(token, "POST", path)).status).toBe(403)
    expect((await as(token, "POST", path, "<token scope=\"read\"/>")).status).toBe(201)
  })

  it("is refused when a claim is wrong or missing", async () => {
    const wrong: ReadonlyArray<readonly [object, string]> = [
      [{ exp: seconds(-31) }, "expired"],
      [{ nbf: seconds(60) }, "not valid yet"],
      [{ iss: "https://issuer.example/realms/other" }, "iss"],
      [{ iss: undefined }, "iss"],
      [{ aud: "https://elsewhere.example" }, "aud"],
      [{ aud: undefined }, "aud"],
      [{ exp: undefined }, "exp"],
      [{ sub: undefined }, "sub"],
      [{ sub: "auth0|64f0" }, "not an account name"],
      [{ sub: "Alice" }, "not an account name"],
      [{ sub: "a".repeat(65) }, "not an account name"],
      [{ cnf: { jkt: "x" } }, "bound to a key"],
      [{ authorization_details: [{ type: "payment" }] }, "authorization_details"]
    ]
    for (const [claims, why] of wrong) await expectRefused(await tokenOf(first, claims), why)
    await expectRefused(await tokenOf(first, {}, { typ: "logout+jwt" }), "unaccepted type")
    const tolerated = await tokenOf(first, { exp: seconds(-20), aud: [audience, "other"] })
    expect((await as(tolerated)).status).toBe(200)
  })

  it("is refused unless the issuer's key has signed it", async () => {
    const claims = { iss: issuerName, aud: audience, sub: "forger", exp: seconds(300) }
    const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url")
    await expectRefused(`${part({ alg: "none" })}.${part(claims)}.`, "algorithm")
    await expectRefused(`${part({ alg: "none" })}.${part(claims)}.c2ln`, "algorithm")
    // The public key as a shared secret.
    const shared = await new SignJWT(claims).setProtectedHeader({ alg: "HS256", kid: "rsa" })
      .sign(Buffer.from(await pemOf(rsa)))
    await expectRefused(shared, "algorithm")
    await expectRefused(await tokenOf({ ...second, kid: "first" }), "signature")
    const [header = "", , signature = ""] = (await tokenOf(first)).split(".")
    await expectRefused(`${header}.${part({ ...claims, roles: ["admin"] })}.${signature}`, "sign")
    await expectRefused(`${header}.e30.`, "signature")
    await expectRefused(`${part({ alg: "RS256", kid: "first" })}.${part(claims)}.c2ln`, "key")
    expect((await as("eyJ.not-a.token")).status).toBe(401)
  })

  it("does not lock an address out that repeats an expired one", async () => {
    const expired = await tokenOf(first, { exp: seconds(-60) })
    for (let n = 0; n < 40; n += 1) expect((await as(expired)).status).toBe(401)
    expect((await as(await tokenOf(first))).status).toBe(200)
  })

  it("has the Idempotency-Key of its account, as the issuer's tokens are soon others", async () => {
    const publish = async (sub: string, claims: object) =>
      service.send("POST", "/content", {
        headers: {
          Authorization: `Bearer ${await tokenOf(first, { sub, ...claims })}`,
          "Idempotency-Key": "once"
        },
        body: "the same"
      })
    const one = await publish("jwt-keyed", { jti: "1" })
    const repeated = await publish("jwt-keyed", { jti: "2" })
    expect([one.status, repeated.header("location")]).toEqual([202, one.header("location")])
    expect((await publish("jwt-other", {})).header("location")).not.toBe(one.header("location"))
    expect((await publish("jwt-keyed", { exp: seconds(-60) })).status).toBe(401)
  })

  it("does not share its Idempotency-Key with made-up credentials", async () => {
    const token = await tokenOf(first, { sub: "jwt-secret", roles: ["customers"] })
    const post = (authorization: string) =>
      service.send("POST", "/content", {
        headers: { Authorization: authorization, "Idempotency-Key": "the-key-of-many-clients" },
        body: "the same"
      })
    const one = await post(`Bearer ${token}`)
    expect(one.status).toBe(202)
    const others = ["federated jwt-secret customers", "federated jwt-secret", "federated"]
    for (const other of others) {
      expect((await post(other)).header("location")).not.toBe(one.header("location"))
    }
  })

  it("is refused where the resource would be open to anybody", async () => {
    const expired = await tokenOf(first, { exp: seconds(-60) })
    expect((await as(expired, "POST", "/content", "mine")).status).toBe(401)
  })
})

describe("the issuer's keys", () => {
  it("are fetched again when a token names an unknown one, but not at once", async () => {
    expect(await everywhere(await tokenOf(first))).toEqual(everyNode(200))
    const rotated = await tokenOf(second)
    await keys.serve(200, [second])
    const before = keys.requestCount()
    for (let n = 0; n < 5; n += 1) expect(await everywhere(rotated)).toEqual(everyNode(401))
    await expectRefused(rotated, "no such key")
    expect(keys.requestCount()).toBe(before)
    clock.atMs += keysPauseMs
    for (let n = 0; n < 5; n += 1) expect(await everywhere(rotated)).toEqual(everyNode(200))
    expect(keys.requestCount()).toBe(before + service.nodes.length)
  })

  it("take their tokens with them when they are withdrawn", async () => {
    const token = await tokenOf(first, { exp: seconds(24 * 3600) })
    expect(await everywhere(token)).toEqual(everyNode(200))
    await keys.serve(200, [second])
    clock.atMs += keysFreshMs
    expect(await everywhere(token)).toEqual(everyNode(401))
  })

  it("admit nobody while they are unavailable, and are fetched afterwards", async () => {
    const token = await tokenOf(first, { exp: seconds(24 * 3600) })
    for (const [status, body] of [[500, ""], [200, "<html>"], [200, "{\"keys\":[]}"]] as const) {
      keys.answer(status, body)
      const refused = await as(token)
      expect([refused.status, refused.header("retry-after")])
        .toEqual([503, String(keysPauseMs / 1000)])
      expect(refused.child("type")).toMatch(/issuer-unavailable$/)
      expect((await service.send("GET", "/mailboxes", { basic: admin })).status).toBe(200)
      clock.atMs += keysPauseMs
    }
    await keys.serve(200, [first])
    expect(await everywhere(token)).toEqual(everyNode(200))
  })

  it("are used for a while when they cannot be fetched again", async () => {
    const token = await tokenOf(first, { exp: seconds(24 * 3600) })
    expect(await everywhere(token)).toEqual(everyNode(200))
    keys.answer(503, "")
    clock.atMs += keysFreshMs
    expect(await everywhere(token)).toEqual(everyNode(200))
    clock.atMs += keysStaleMs
    expect(await everywhere(token)).toEqual(everyNode(503))
  })
})

describe("an issuer that is only named", () => {
  it("names the address of its keys at each fetch", async () => {
    const named = issuers({ AUTH_ISSUER: keys.issuer })
    const issuer = await named.make()
    if (issuer === undefined) throw new Error("there is no issuer")
    const token = await tokenOf(first, { iss: keys.issuer, exp: seconds(24 * 3600) })
    const verified = () => Effect.runPromise(Effect.result(issuer.verify(token)))
    expect(await verified()).toMatchObject({ _tag: "Success", success: { name: "alice" } })
    const away = { _tag: "Failure", failure: { _tag: "KeysAway" } }
    const wrong: ReadonlyArray<readonly [metadata: object, why: string]> = [
      [{ issuer: `${keys.issuer}/` }, "another issuer"],
      [{ jwks_uri: "urn:keys" }, "no jwks_uri"],
      [{ jwks_uri: `${keys.url}/of/another` }, ""]
    ]
    for (const [metadata, why] of wrong) {
      keys.setMetadata(metadata)
      clock.atMs += 2 * keysStaleMs
      const outcome = await verified()
      if (why === "") expect(outcome).toMatchObject({ _tag: "Success" })
      else {expect(outcome).toMatchObject({
          ...away,
          failure: { why: expect.stringContaining(why) }
        })}
    }
    keys.setMetadata({})
    await named.close()
  })
})

describe("accounts and the issuer", () => {
  it("a removed account is not created again, and the operator's is not available", async () => {
    const token = await tokenOf(first, { sub: "jwt-leaver" })
    expect((await as(token)).status).toBe(200)
    const removed = await service.send("DELETE", "/accounts/jwt-leaver", { basic: admin })
    expect(removed.status).toBe(204)
    await expectRefused(token, "removed")
    await expectRefused(await tokenOf(first, { sub: "admin", roles: ["admin"] }), "operator")
  })

  it("no lasting token has roles that the issuer does not grant", async () => {
    const body = "<account><name>jwt-both</name><role>quotes</role></account>"
    const created = await service.send("POST", "/accounts", { basic: admin, body })
    expect(created.status).toBe(201)
    const make = async (sub: string, roles: ReadonlyArray<string>) =>
      as(await tokenOf(first, { sub, roles }), "POST", `/accounts/${sub}/token`)
    expect((await make("jwt-both", [])).status).toBe(403)
    expect((await make("jwt-both", ["quotes"])).status).toBe(201)
    const own = await make("jwt-plain", [])
    expect(own.status).toBe(201)
    expect((await as(own.xml.children.join(""), "GET", "/accounts/jwt-plain")).status).toBe(200)
  })
})
