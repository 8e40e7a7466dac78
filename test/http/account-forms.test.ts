/** The forms of the pages of accounts and tokens that remove them, also without a script. */
import { afterAll, beforeAll, expect, it } from "vitest"
import { childOf, textOf } from "../../http/formats/xml/index.ts"
import { resourceTable } from "../../http/resource-table.ts"
import { adminToken, type Harness, startService } from "./harness.ts"

const admin = `admin:${adminToken}`
let service: Harness

beforeAll(async () => {
  service = await startService(resourceTable)
})
afterAll(() => service.close())

/** Creates an account; returns its credentials. */
const create = async (name: string): Promise<string> => {
  const body = `<account><name>${name}</name></account>`
  const { status, xml } = await service.send("POST", "/accounts", { basic: admin, body })
  expect(status).toBe(201)
  const token = childOf(xml, "token")
  return `${name}:${token === undefined ? "" : textOf(token)}`
}

const page = (path: string, basic: string) =>
  service.send("GET", path, { basic, accept: "text/html" })

const submit = (path: string, fields: Readonly<Record<string, string>>, basic: string) =>
  service.send("POST", path, {
    basic,
    body: new URLSearchParams(fields).toString(),
    type: "application/x-www-form-urlencoded",
    accept: "text/html"
  })

const removal = { method: "delete" }

it("revokes a token by the form of its page, which is closed at first", async () => {
  const owner = await create("forgetful")
  const made = await service.send("POST", "/accounts/forgetful/token", { basic: owner })
  const path = new URL(made.header("location") ?? "").pathname
  const lost = `forgetful:${textOf(made.xml)}`
  expect((await page(path, lost)).text).toMatch(
    new RegExp(`<details class="rare">.*\\n<form action="${path}" method="post">`)
  )
  const revoked = await submit(path, removal, owner)
  expect([revoked.status, revoked.header("location")]).toEqual([
    303,
    `${service.base}/accounts/forgetful/tokens`
  ])
  expect((await page("/accounts/forgetful", lost)).status).toBe(401)
  expect((await submit(path, removal, owner)).status).toBe(404)
  expect((await page("/accounts/forgetful", owner)).status).toBe(200)
})

it("does not revoke it for others, nor without the method", async () => {
  const owner = await create("careful")
  const other = await create("curious")
  const made = await service.send("POST", "/accounts/careful/token", { basic: owner })
  const path = new URL(made.header("location") ?? "").pathname
  expect((await submit(path, removal, other)).status).toBe(403)
  expect((await submit(path, {}, owner)).status).toBe(422)
  expect((await page(path, `careful:${textOf(made.xml)}`)).status).toBe(200)
})

it("removes an account by the form of its page, which only an admin has", async () => {
  const owner = await create("leaving")
  expect((await page("/accounts/leaving", owner)).text).not.toContain("Remove this account")
  expect((await submit("/accounts/leaving", removal, owner)).status).toBe(403)
  expect((await page("/accounts/leaving", admin)).text).toContain(
    "<details class=\"rare\"><summary>Remove this account</summary>"
  )
  const removed = await submit("/accounts/leaving", removal, admin)
  expect([removed.status, removed.header("location")]).toEqual([303, `${service.base}/accounts`])
  expect((await page("/accounts/leaving", admin)).status).toBe(410)
  expect((await page("/accounts/leaving", owner)).status).toBe(401)
})

it("keeps an account that owns something, unless the box is checked", async () => {
  const owner = await create("owning")
  const body = "<mailbox><name>owned-box</name></mailbox>"
  expect((await service.send("POST", "/mailboxes", { basic: owner, body })).status).toBe(201)
  const kept = await submit("/accounts/owning", removal, admin)
  expect(kept.status).toBe(409)
  expect(kept.text).toMatch(/id="removal-owned-delete-fault" class="fault">✗ the account owning/)
  expect((await page("/accounts/owning", owner)).status).toBe(200)
  const removed = await submit("/accounts/owning", { ...removal, owned: "delete" }, admin)
  expect(removed.status).toBe(303)
  expect((await page("/accounts/owning", admin)).status).toBe(410)
  await expect.poll(async () => (await page("/mailboxes/owned-box", admin)).status, {
    timeout: 60_000
  }).toBe(410)
})
