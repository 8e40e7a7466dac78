/** Identities: claims of tokens, keys of issuers, addresses behind proxies, and their settings. */
import { Result } from "effect"
import { array, assert, constantFrom, dictionary, property, string } from "fast-check"
import { describe, expect, it } from "vitest"
import { Role } from "../../actors/account/protocol.ts"
import { loadSettings } from "../../deploy/settings/settings.ts"
import { keySetSourceOf } from "../../deploy/settings/values.ts"
import { isSlug } from "../../http/auth/credentials/credentials.ts"
import { claimAt, evaluateClaims } from "../../http/auth/issuer/claims.ts"
import { isJwt } from "../../http/auth/issuer/issuer.ts"
import { metadataUrl, parseKeySet, parseKeysUrl } from "../../http/auth/issuer/key-source.ts"
import { Clients } from "../../http/rates/client-address.ts"
import { RequestHeaders } from "../../http/wire/request.ts"

const names = { account: "sub", roles: "roles", rolesPrefix: "", isScopeRequired: false }

describe("the claims of a token", () => {
  it.each([
    ["Keycloak", "realm_access.roles", { realm_access: { roles: ["quotes"] } }],
    ["a client of Keycloak", "resource_access.post.roles", {
      resource_access: { post: { roles: ["quotes"] } }
    }],
    ["Auth0", "https://post.example/roles", { "https://post.example/roles": ["quotes"] }],
    ["Entra", "roles", { roles: ["quotes"] }],
    ["scopes", "scope", { scope: "openid quotes" }]
  ])("name roles as %s does", (_, roles, claims) => {
    expect(evaluateClaims({ sub: "alice", ...claims }, { ...names, roles }))
      .toEqual({ name: "alice", roles: ["quotes"], rights: {} })
  })

  it("name an account as Kubernetes does", () => {
    const claims = {
      sub: "system:serviceaccount:shop:poster",
      "kubernetes.io": { namespace: "shop", serviceaccount: { name: "poster", uid: "1" } }
    }
    const account = "kubernetes.io.serviceaccount.name"
    expect(evaluateClaims(claims, { ...names, account })).toMatchObject({ name: "poster" })
    expect(evaluateClaims(claims, names)).toBeTypeOf("string")
  })

  it("reject a name that is none, and give known roles only", () => {
    const anything = constantFrom<unknown>(undefined, null, 7, true, {}, [], ["alice"], "", "Alice")
    const role = constantFrom("admin", "quotes", "customers", "king", "post-admin", "Admin")
    assert(property(string(), anything, array(role), (text, other, roles) => {
      const result = evaluateClaims({ sub: text, roles }, names)
      if (isSlug(text)) {
        const known = Role.literals.filter((one) => roles.includes(one))
        expect(result).toEqual({ name: text, roles: known, rights: {} })
      } else expect(result).toBeTypeOf("string")
      expect(evaluateClaims({ sub: other, roles }, names)).toBeTypeOf("string")
      expect(evaluateClaims({ sub: "alice", roles: other }, names)).toMatchObject({ roles: [] })
      const prefixed = { ...names, rolesPrefix: "post-" }
      expect(evaluateClaims({ sub: "alice", roles }, prefixed))
        .toMatchObject({ roles: roles.includes("post-admin") ? ["admin"] : [] })
      expect(evaluateClaims({ sub: "alice", roles, cnf: {} }, names)).toBeTypeOf("string")
    }))
  })

  it.each<[string, unknown, string, object]>([
    ["of others", "openid profile", "", {}],
    ["no text", ["read"], "", {}],
    ["scopes", "openid read send", "", { scopes: ["send", "read"] }],
    ["a mailbox", "deposit mailbox:box", "", { scopes: ["deposit"], mailbox: "box" }],
    ["a prefix", "read post-deposit post-mailbox:b", "post-", {
      scopes: ["deposit"],
      mailbox: "b"
    }],
    ["two mailboxes, which give no right", "mailbox:a mailbox:b", "", { scopes: [] }]
  ])("give the scope that they have: %s", (_, scope, rolesPrefix, rights) => {
    expect(evaluateClaims({ sub: "alice", scope }, { ...names, rolesPrefix }))
      .toEqual({ name: "alice", roles: [], rights })
  })

  it("give no right without a scope for this service, where the operator requires one", () => {
    const required = { ...names, isScopeRequired: true }
    const rightsOf = (scope: unknown) => evaluateClaims({ sub: "alice", scope }, required)
    expect(rightsOf(undefined)).toMatchObject({ rights: { scopes: [] } })
    expect(rightsOf("openid profile")).toMatchObject({ rights: { scopes: [] } })
    expect(rightsOf("openid read")).toMatchObject({ rights: { scopes: ["read"] } })
    expect(rightsOf("mailbox:box")).toMatchObject({ rights: { mailbox: "box" } })
  })

  it("are found by their own names only, whatever a path says", () => {
    expect(claimAt({ a: { "b.c": 1 } }, "a.b.c")).toBe(1)
    expect(claimAt({ "a.b": { c: 1 }, a: {} }, "a.b.c")).toBe(1)
    for (const path of ["__proto__", "constructor.name", "toString", "a.length", ".", "a."]) {
      expect(claimAt({ a: "text" }, path)).toBeUndefined()
    }
    assert(property(dictionary(string(), string()), string(), (claims, path) => {
      const found = claimAt(claims, path)
      expect(found).toBe(Object.hasOwn(claims, path) ? claims[path] : undefined)
    }))
  })
})

describe("keys", () => {
  const jwk = { kty: "EC", crv: "P-256", x: "x", y: "y" }
  it("are accepted with public keys only", () => {
    const secret = { kty: "oct", k: "c2VjcmV0" }
    expect(parseKeySet(JSON.stringify({ keys: [jwk, secret, { kty: "new" }, null] })))
      .toEqual({ set: { keys: [jwk] } })
    const wrong = [
      "",
      "[]",
      "{}",
      "{\"keys\":{}}",
      "{\"keys\":[]}",
      JSON.stringify({ keys: [secret] })
    ]
    for (const text of wrong) expect(parseKeySet(text)).toBeTypeOf("string")
    expect(parseKeySet(JSON.stringify({ keys: [{ ...jwk, d: "d" }] }))).toContain("private key")
    const many = Array.from({ length: 101 }, () => jwk)
    expect(parseKeySet(JSON.stringify({ keys: many }))).toContain("more than")
  })

  it("are at a URL, in a file, or in the setting itself", () => {
    expect(keySetSourceOf("https://issuer.example/jwks?v=1")).toMatchObject({ _tag: "Url" })
    expect(keySetSourceOf("./jwks.json")).toEqual({ _tag: "File", file: "./jwks.json" })
    expect(keySetSourceOf(JSON.stringify({ keys: [jwk] }))).toMatchObject({ _tag: "Inline" })
    const none = ["", "ftp://issuer.example/", "https://user@issuer.example/", "{}", "https://"]
    for (const text of none) expect([text, keySetSourceOf(text)]).toEqual([text, undefined])
  })
})

describe("an issuer with metadata (OpenID Connect Discovery)", () => {
  const jwks_uri = "https://keys.example/jwks"
  const keysUrlOf = (changes: object, issuer = "https://id.example/realms/post") =>
    parseKeysUrl(JSON.stringify({ issuer, jwks_uri, ...changes }), issuer)

  it("has them below its own URL, with or without a last slash (§4)", () => {
    const path = "/.well-known/openid-configuration"
    expect(metadataUrl("https://id.example")).toBe(`https://id.example${path}`)
    expect(metadataUrl("https://id.example/")).toBe(`https://id.example${path}`)
    expect(metadataUrl("http://id.test:81/a/b")).toBe(`http://id.test:81/a/b${path}`)
    for (
      const none of [
        "",
        "id.example",
        "urn:x",
        "https://a@id.example",
        "https://a/?b",
        "https://a/#b"
      ]
    ) {
      expect([none, metadataUrl(none)]).toEqual([none, undefined])
    }
  })

  it("names itself to the letter, and its keys (§4.3)", () => {
    expect(keysUrlOf({})).toEqual({ url: jwks_uri })
    expect(keysUrlOf({ issuer: "https://id.example/realms/post/" })).toContain("another issuer")
    expect(keysUrlOf({ jwks_uri: "http://keys.example/" })).toContain("uses https")
    expect(keysUrlOf({ jwks_uri: "http://keys.test/" }, "http://id.test")).toEqual({
      url: "http://keys.test/"
    })
    for (const none of [undefined, 3, "jwks", "ftp://keys.example/", "https://a@keys.example/"]) {
      expect(keysUrlOf({ jwks_uri: none })).toContain("no jwks_uri")
    }
    expect(parseKeysUrl("<html>", "https://id.example")).toContain("not JSON")
    expect(parseKeysUrl("null", "https://id.example")).toContain("another issuer")
  })
})

it("distinguishes a JWT from a token of the service", () => {
  expect(isJwt("eyJhbGciOiJFUzI1NiJ9.e30.c2ln")).toBe(true)
  assert(property(string(), (text) => {
    expect(isJwt(text.replaceAll(".", ""))).toBe(false)
    expect(isJwt(`eyJ${text.replaceAll(".", "")}`)).toBe(false)
  }))
})

describe("the client's address", () => {
  const client = (near: string, forwarded: string | undefined, ...trusted: Array<string>) =>
    new Clients(trusted).clientOf({
      remoteAddress: near,
      headers: new RequestHeaders(forwarded === undefined ? [] : ["x-forwarded-for", forwarded])
    }).address

  it.each([
    ["192.0.2.1", undefined, [], "192.0.2.1"],
    ["192.0.2.1", "198.51.100.9", [], "192.0.2.1"],
    ["10.0.0.1", "198.51.100.9", ["10.0.0.0/8"], "198.51.100.9"],
    ["10.0.0.1", undefined, ["10.0.0.0/8"], "10.0.0.1"],
    // The client's own entries precede those of the proxies.
    ["10.0.0.1", "1.1.1.1, 198.51.100.9, 10.0.0.2", ["10.0.0.0/8"], "198.51.100.9"],
    ["10.0.0.1", "1.1.1.1, unknown", ["10.0.0.0/8"], "10.0.0.1"],
    ["10.0.0.1", "198.51.100.9:4711", ["10.0.0.0/8"], "198.51.100.9"],
    ["0000:0000:0000:0000:0000:ffff:0a00:0001", "192.0.2.3", ["10.0.0.1/32"], "192.0.2.3"],
    ["2001:db8:0:1:aaaa::1", undefined, [], "2001:db8:0:1::/64"],
    ["2001:db8:0:1::2", undefined, [], "2001:db8:0:1::/64"],
    ["fd00::1", "[2001:db8::5]:443", ["fd00::/8"], "2001:db8::/64"],
    ["", undefined, ["10.0.0.0/8"], ""]
  ])("near %s, forwarded for %s, trusting %s: %s", (near, forwarded, trusted, expected) => {
    expect(client(near, forwarded, ...trusted)).toBe(expected)
  })
})

describe("a server that listens on a loopback address", () => {
  const forwarded = (...fields: ReadonlyArray<string>) => ({
    headers: new RequestHeaders(fields),
    remoteAddress: "127.0.0.9"
  })

  it.each([["127.0.0.1", "127.0.0.0/24"], ["::1", "::/48"]])("%s has this machine as its peer", (
    listensOn,
    network
  ) => {
    const peer = {
      headers: new RequestHeaders([]),
      get remoteAddress(): string {
        throw new Error("it asked for the address")
      }
    }
    expect(new Clients([], listensOn).clientOf(peer)).toMatchObject({ network, isLocal: true })
  })

  it("has the clients of its proxies", () => {
    const clients = new Clients(["127.0.0.0/8"], "127.0.0.1")
    const { address, isLocal } = clients.clientOf(forwarded("x-forwarded-for", "192.0.2.7"))
    expect([address, isLocal]).toEqual(["192.0.2.7", false])
    expect(clients.clientOf(forwarded("forwarded", "for=192.0.2.7")).isLocal).toBe(false)
  })

  it.each(["0.0.0.0", "localhost", "192.0.2.1"])("is not one on %s", (listensOn) => {
    expect(new Clients([], listensOn).clientOf(forwarded()).address).toBe("127.0.0.9")
  })
})

describe("the issuer's settings", () => {
  const whole = {
    AUTH_JWKS: "https://issuer.example/jwks",
    AUTH_ISSUER: "https://issuer.example/",
    AUTH_AUDIENCE: "post"
  }
  const problem = (changes: Record<string, string>): string => {
    const loaded = loadSettings({ ...whole, ...changes })
    return Result.isFailure(loaded) ? loaded.failure.message : ""
  }

  it("are all set, or none", () => {
    expect(problem({})).toBe("")
    expect(problem({ AUTH_JWKS: "", AUTH_ISSUER: "", AUTH_AUDIENCE: "" })).toBe("")
    expect(problem({ AUTH_JWKS: "" })).toBe("")
    for (const issuer of ["post", "urn:issuer", "https://issuer.example/?tenant=post"]) {
      expect(problem({ AUTH_JWKS: "", AUTH_ISSUER: issuer }))
        .toMatch(/auth\.jwks is not set \(AUTH_JWKS\)/)
    }
    expect(problem({ AUTH_JWKS: "", AUTH_ISSUER: "" })).toMatch(/auth\.issuer is not set/)
    expect(problem({ AUTH_JWKS: "", AUTH_AUDIENCE: "" })).toMatch(/auth\.audience is not set/)
    expect(problem({ AUTH_ISSUER: "" })).toMatch(/auth\.issuer is not set/)
    expect(problem({ AUTH_AUDIENCE: "" })).toMatch(/auth\.audience is not set/)
  })

  it.each([
    ["AUTH_JWKS", "ftp://issuer.example/jwks"],
    ["AUTH_ALGORITHMS", "HS256"],
    ["AUTH_ALGORITHMS", "ES256,none"],
    ["AUTH_ROLES_CLAIM", "realm_access..roles"],
    ["AUTH_CLOCK_TOLERANCE", "10m"],
    ["TRUSTED_PROXIES", "my-proxy"]
  ])("stop the start: %s=%s", (name, value) => {
    expect(problem({ [name]: value })).not.toBe("")
  })
})
