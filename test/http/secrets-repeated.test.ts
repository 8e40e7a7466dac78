/**
 * A POST that makes a token, an account or the secrets of a mailbox is repeated with its
 * Idempotency-Key after an unknown outcome. What was revoked or replaced since stays so.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { accountTokensMax } from "../../actors/limits.ts"
import { childrenOf, textOf } from "../../http/formats/xml/index.ts"
import { adminToken, type Answered, type Harness } from "./harness.ts"
import { keyed, loseNoMoreReplies, loseReply, repeatLost, startLosing } from "./lost-replies.ts"

const basic = `admin:${adminToken}`

let service: Harness
beforeAll(async () => {
  service = await startLosing()
})
afterAll(() => service.close())

const send: Harness["send"] = (...request) => service.send(...request)
const kept = (message: string) => ({ message, isKept: true })

const open = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const created = await send("POST", "/accounts", { basic, body })
  return `${name}:${created.child("token")}`
}

describe("a token", () => {
  const listed = async (name: string) => {
    const { xml } = await send("GET", `/accounts/${name}/tokens`, { basic })
    return childrenOf(xml, "token").map(({ attributes }) => attributes["id"] ?? "")
  }
  const post = (name: string) => ({
    key: "token",
    path: `/accounts/${name}/token`,
    sending: { basic, body: "<token name=\"ci\"/>" }
  })
  const revokeLast = async (name: string) => {
    const path = `/accounts/${name}/tokens/${(await listed(name)).at(-1)}`
    expect((await send("DELETE", path, { basic })).status).toBe(204)
  }
  const recordsOf = async (name: string) => {
    const { records } = service.service
    const ids = await service.run(records.range("token-ids", { prefix: `${name}.`, limit: 99 }))
    return ids.map(({ key }) => key.slice(name.length + 1))
  }

  it("stays revoked, and leaves no record", async () => {
    await open("revoked")
    const answered = await repeatLost(
      service,
      post("revoked"),
      kept("AddToken"),
      () => revokeLast("revoked")
    )
    expect([answered.status, await listed("revoked")]).toEqual([409, await recordsOf("revoked")])
    expect(await listed("revoked")).toHaveLength(1)
  })

  it.each([true, false])("is created once (kept: %s)", async (isKept) => {
    const name = `once-${isKept}`
    const own = await open(name)
    const answered = await repeatLost(service, post(name), { message: "AddToken", isKept })
    expect([answered.status, (await listed(name)).length]).toEqual([201, 2])
    const token = textOf(answered.xml)
    expect((await send("GET", `/accounts/${name}`, { basic: `${name}:${token}` })).status).toBe(200)
    expect((await send("GET", `/accounts/${name}`, { basic: own })).status).toBe(200)
  })

  describe("of an account with a token that expires", () => {
    const expiring = async (name: string) => {
      const lasting = await open(name)
      const sending = { basic: lasting, body: "<token scope=\"admin\" expires=\"P30D\"/>" }
      const { xml } = await send("POST", `/accounts/${name}/token`, sending)
      return { basic: `${name}:${textOf(xml)}`, endMs: Date.parse(xml.attributes["expires"] ?? "") }
    }

    it.each(["", " expires=\"P31D\""])(
      "is not shown to it if it expires later (%s)",
      async (ends) => {
        const name = `later-${ends.length}`
        const { basic: brief } = await expiring(name)
        const path = `/accounts/${name}/token`
        const body = `<token scope="admin"${ends}/>`
        const { xml } = await send("POST", path, { basic, body: "<token/>" })
        loseReply("AddToken", true)
        const first = keyed("later", { basic: `${name}:${textOf(xml)}`, body })
        expect((await send("POST", path, first)).status).toBe(503)
        const repeated = await send("POST", path, keyed("later", { basic: brief, body }))
        expect([repeated.status, repeated.text]).toEqual([403, expect.not.stringContaining("rst_")])
        expect((await send("POST", path, first)).status).toBe(201)
      }
    )

    it("is created once, though a duration would now end too late", async () => {
      const { basic: brief, endMs } = await expiring("duration")
      const seconds = Math.floor((endMs - Date.now()) / 1000) - 2
      const isLate = () => Date.now() + seconds * 1000 > endMs
      const answered = await repeatLost(
        service,
        {
          ...post("duration"),
          sending: { basic: brief, body: `<token scope="admin" expires="${seconds}"/>` }
        },
        kept("AddToken"),
        () => expect.poll(isLate, { timeout: 60_000 }).toBe(true)
      )
      expect(answered.status).toBe(201)
      expect(Date.parse(answered.xml.attributes["expires"] ?? "")).toBeLessThanOrEqual(endMs)
    })
  })

  it("is created by the key that was refused before", async () => {
    await open("full")
    const make = () => send("POST", "/accounts/full/token", { basic })
    for (let n = 1; n < accountTokensMax; n++) expect((await make()).status).toBe(201)
    const { path, sending } = post("full")
    const headers = { "Idempotency-Key": "\"a refused key\"" }
    expect((await send("POST", path, { ...sending, headers })).status).toBe(409)
    await revokeLast("full")
    expect((await send("POST", path, { ...sending, headers })).status).toBe(201)
  })

  it("of many parallel requests is created for each", async () => {
    await open("parallel")
    const sent = await Promise.all(
      Array.from({ length: 6 }, (_, n) =>
        send("POST", "/accounts/parallel/token", {
          basic,
          headers: { "Idempotency-Key": `"parallel ${n}"` }
        }))
    )
    expect(sent.map(({ status }) => status)).toEqual(sent.map(() => 201))
    expect(await listed("parallel")).toHaveLength(7)
  })

  it.each([true, false])(
    "that is revoked leaves no record when their removal fails (kept: %s)",
    async (isKept) => {
      const name = `left-${isKept}`
      await open(name)
      await send("POST", `/accounts/${name}/token`, { basic })
      loseReply("tokens", isKept)
      await revokeLast(name)
      await expect.poll(() => recordsOf(name), { timeout: 20_000 }).toEqual(await listed(name))
      // The account's timer may have removed the records before the request did.
      loseNoMoreReplies()
      loseReply("tokens", isKept)
      const all = await send("DELETE", `/accounts/${name}/tokens`, { basic })
      expect([all.status, await listed(name)]).toEqual([204, []])
      await expect.poll(() => recordsOf(name), { timeout: 20_000 }).toEqual([])
      // The account's timer may have removed the records before the request did.
      loseNoMoreReplies()
    }
  )
})

it("an account that is removed again leaves no record of a token", async () => {
  await open("removed")
  loseReply("tokens", false)
  const remove = () => send("DELETE", "/accounts/removed", { basic })
  expect((await remove()).status).toBe(503)
  expect((await remove()).status).toBe(410)
  const { records } = service.service
  const left = records.range("token-ids", { prefix: "removed.", limit: 9 })
  expect(await service.run(left)).toEqual([])
})

it("an account is created once, with a token that stays revoked", async () => {
  const body = "<account><name>keyed</name></account>"
  const post = { key: "account", path: "/accounts", sending: { basic, body } }
  const answered = await repeatLost(service, post, kept("Create"), async () => {
    expect((await send("DELETE", "/accounts/keyed/tokens", { basic })).status).toBe(204)
  })
  const { records } = service.service
  const left = records.range("token-ids", { prefix: "keyed.", limit: 9 })
  expect([answered.status, await service.run(left)]).toEqual([410, []])
})

describe("the secrets of a mailbox", () => {
  const open = async (name: string) => {
    const created = await send("POST", "/mailboxes", { basic, headers: { Slug: name } })
    expect(created.status).toBe(201)
    return `/mailboxes/${name}`
  }
  const changing = (path: string) => ({
    key: "secrets",
    path: `${path}/password`,
    sending: { basic }
  })
  const isValid = async (path: string, answered: Answered) => {
    const shared = /~[\w-]{43}/.exec(answered.text)?.[0] ?? ""
    return (await send("GET", path + shared)).status === 200
  }

  it("stay those of another client that has changed them since", async () => {
    const path = await open("changed")
    const theirs: Array<Answered> = []
    const answered = await repeatLost(service, changing(path), kept("ChangeSecrets"), async () => {
      theirs.push(await send("POST", `${path}/password`, { basic }))
    })
    const [other] = theirs
    expect([answered.status, other && await isValid(path, other)]).toEqual([409, true])
  })

  it.each([true, false])("are changed once (kept: %s)", async (isKept) => {
    const path = await open(`once-${isKept}`)
    const lost = { message: "ChangeSecrets", isKept }
    const answered = await repeatLost(service, changing(path), lost)
    expect([answered.status, await isValid(path, answered)]).toEqual([200, true])
  })

  it.each([true, false])("are changed once at the shared URI (kept: %s)", async (isKept) => {
    const path = await open(`shared-${isKept}`)
    const { text } = await send("POST", `${path}/password`, { basic })
    const shared = path + /~[\w-]{43}/.exec(text)?.[0]
    const lost = { message: "ChangeSecrets", isKept }
    const answered = await repeatLost(service, changing(shared), lost)
    expect([answered.status, await isValid(path, answered)]).toEqual([200, true])
    const headers = { "Idempotency-Key": "\"a new key\"" }
    expect((await send("POST", `${shared}/password`, { basic, headers })).status).toBe(404)
    expect(await isValid(path, answered)).toBe(true)
  })
})

describe("the secret of a registration", () => {
  const register = async (name: string) => {
    expect((await send("POST", "/mailboxes", { basic, headers: { Slug: name } })).status).toBe(201)
    const body = "<registration><callback>http://10.1.2.3/none</callback></registration>"
    const registered = await send("POST", `/mailboxes/${name}/registrations`, { basic, body })
    expect(registered.status).toBe(201)
    const { pathname } = new URL(registered.header("location"))
    // The only attempt, as the address is forbidden, changes the registration's entity tag.
    await expect.poll(async () => (await send("GET", pathname, { basic })).text)
      .toContain("<problem>")
    return pathname
  }
  const rotating = (path: string) => ({
    key: "rotation",
    path: `${path}/secret`,
    sending: { basic }
  })
  it.each([
    { isKept: true, status: 200 },
    { isKept: false, status: 409 }
  ])("stays that of another client (kept: $isKept)", async ({ isKept, status }) => {
    const path = await register(`rotated-${isKept}`)
    const loss = { message: "Rotate", isKept }
    const versions: Array<string> = []
    const answered = await repeatLost(service, rotating(path), loss, async () => {
      expect((await send("POST", `${path}/secret`, { basic })).status).toBe(200)
      versions.push((await send("GET", path, { basic })).etag)
    })
    expect(answered.status).toBe(status)
    expect((await send("GET", path, { basic })).etag).toBe(versions[0])
  })

  it.each([true, false])("is changed once (kept: %s)", async (isKept) => {
    const path = await register(`rotated-once-${isKept}`)
    const answered = await repeatLost(service, rotating(path), { message: "Rotate", isKept })
    expect([answered.status, answered.child("secret")?.startsWith("whsec_")]).toEqual([200, true])
  })
})

it.each([
  { isKept: true, status: 410 },
  { isKept: false, status: 201 }
])("a registration that was removed since stays so (kept: $isKept)", async ({ isKept, status }) => {
  const path = `/mailboxes/made-${isKept}`
  const slug = { Slug: path.replace("/mailboxes/", "") }
  expect((await send("POST", "/mailboxes", { basic, headers: slug })).status).toBe(201)
  const list = async () => {
    const { xml } = await send("GET", `${path}/registrations`, { basic })
    return childrenOf(xml, "registration").map(({ attributes }) => attributes["href"] ?? "")
  }
  const body = "<registration><callback>http://127.0.0.1:9/none</callback></registration>"
  const post = { key: "registration", path: `${path}/registrations`, sending: { basic, body } }
  const answered = await repeatLost(service, post, { message: "Register", isKept }, async () => {
    for (const href of await list()) {
      expect((await send("DELETE", href, { basic })).status).toBe(204)
    }
  })
  expect([answered.status, (await list()).length]).toEqual([status, isKept ? 0 : 1])
})
