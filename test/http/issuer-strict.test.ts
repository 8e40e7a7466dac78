/** Tokens of an issuer whose operator requires their type (RFC 9068) and a scope. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { resourceTable } from "../../http/resource-table.ts"
import { type Harness, startService } from "./harness.ts"
import { issuers, type Key, type KeyServer, makeKey, startKeyServer,
  tokenOf } from "./issuer-harness.ts"

let keys: KeyServer
let vouching: ReturnType<typeof issuers>
let service: Harness
let key: Key

beforeAll(async () => {
  key = await makeKey("first")
  keys = await startKeyServer()
  await keys.serve(200, [key])
  const strict = { AUTH_JWKS: keys.url, AUTH_TOKEN_TYPE: "at+jwt", AUTH_SCOPE: "required" }
  vouching = issuers(strict)
  service = await startService(resourceTable, {}, { adminToken: undefined }, vouching.make)
})
afterAll(async () => {
  await service.close()
  await vouching.close()
  await keys.close()
})

const statusOf = async (claims: object, header: object): Promise<number> => {
  const token = await tokenOf(key, claims, header)
  const headers = { Authorization: `Bearer ${token}` }
  return (await service.send("GET", "/mailboxes", { headers })).status
}

it("a token needs the type of an access token: an ID token has another", async () => {
  const scoped = { scope: "read" }
  for (const typ of ["at+jwt", "application/at+jwt", "AT+JWT"]) {
    expect([typ, await statusOf(scoped, { typ })]).toEqual([typ, 200])
  }
  for (const typ of ["JWT", "", "id_token+jwt", "logout+jwt", undefined]) {
    expect([typ, await statusOf(scoped, { typ })]).toEqual([typ, 401])
  }
})

it("a token without a scope for this service has no right", async () => {
  const typ = { typ: "at+jwt" }
  expect(await statusOf({}, typ)).toBe(403)
  expect(await statusOf({ scope: "openid profile" }, typ)).toBe(403)
  expect(await statusOf({ scope: "openid read" }, typ)).toBe(200)
})

it("the scope cannot be required where it has the roles", async () => {
  const both = issuers({ AUTH_JWKS: keys.url, AUTH_SCOPE: "required", AUTH_ROLES_CLAIM: "scope" })
  await expect(both.make()).rejects.toThrow("auth.scope is required, and auth.rolesClaim is scope")
})
